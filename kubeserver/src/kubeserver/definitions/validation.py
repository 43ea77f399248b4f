"""Whether a CustomResourceDefinition can be served.

The checks are those of Kubernetes, in its order. It moves what all versions share (schema, subresources, columns,
selectable fields) to the top of the spec before it looks, which shows in the paths of its errors: the schema of a
definition with one version is `spec.validation.openAPIV3Schema`, not `spec.versions[0].schema...`.

One thing is refused here that Kubernetes takes: conversion by webhook. Versions of one kind are shown as they are,
apart from `apiVersion`; a definition that says otherwise must not be accepted and then ignored.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from kubeserver.cel.paths import PathError, field_path
from kubeserver.definitions.schemas import validate_schema
from kubeserver.definitions.structure import forbidden, invalid, required, unsupported
from kubeserver.definitions.values import go_versions
from kubeserver.schemas.correlation import same
from kubeserver.schemas.formats import effective
from kubeserver.schemas.schema import parse
from kubeserver.wire.goformat import quote
from kubeserver.wire.names import dns_1035_label, dns_subdomain
from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_COLUMN_TYPES: Final = "boolean,date,integer,number,string"
_COLUMN_FORMATS: Final = "byte,date,date-time,double,float,int32,int64,password"
_MOST_SELECTABLE: Final = 8
_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_MOST_REMEMBERED: Final = 256
_right: Final[set[bytes]] = set()  # digests of specs
_APPROVAL: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def validate_crd(crd: Json, old: Json | None = None) -> list[FieldError]:
    """What is wrong with a definition; `old` is what it replaces."""
    spec = crd["spec"]
    errors = [] if old is not None else _name_errors(crd)
    errors += _errors_in_spec(spec, old)
    if old is not None:
        errors += changes_refused(crd, old)
    status = crd.get("status") or {}
    errors += _names_errors(status.get("acceptedNames") or {}, "status.acceptedNames")
    errors += _stored_errors(status.get("storedVersions") or [], spec.get("versions") or [])
    errors += _approval_errors(crd, old)
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid("spec.preserveUnknownFields", True, detail))
    return errors


def _errors_in_spec(spec: Json, old: Json | None) -> list[FieldError]:
    """What is wrong with a spec. Where it replaces no other, one that is right is remembered: every one of hundreds of
    logical clusters gets the same definitions, and to look at one takes milliseconds.
    """
    if old is not None:
        return _spec_errors(spec, _unchanged_schemas(spec, old.get("spec") or {}))
    text = hashlib.sha256(json.dumps(spec).encode()).digest()
    if text in _right:
        return []
    errors = _spec_errors(spec, set())
    if not errors:
        if len(_right) >= _MOST_REMEMBERED:
            _right.clear()
        _right.add(text)
    return errors


def changes_refused(crd: Json, old: Json) -> list[FieldError]:
    """What an update may not change."""
    new_spec, old_spec = crd["spec"], old["spec"]
    established = any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in (old.get("status") or {}).get("conditions") or ()
    )
    checked = [("scope",), ("names", "kind")] if established else []
    errors: list[FieldError] = []
    for names in (*checked, ("group",), ("names", "plural")):
        new, before = _at(new_spec, names), _at(old_spec, names)
        if new != before:
            errors.append(invalid(".".join(("spec", *names)), new, "field is immutable"))
    return errors


def _at(spec: Json, names: tuple[str, ...]) -> Any:
    found: Any = spec
    for name in names:
        found = (found or {}).get(name)
    return found or ""


def _name_errors(crd: Json) -> list[FieldError]:
    name = (crd.get("metadata") or {}).get("name") or ""
    names = crd["spec"].get("names") or {}
    wanted = f"{names.get('plural') or ''}.{crd['spec'].get('group') or ''}"
    if name and name != wanted:
        return [invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]
    return []


def _shared(spec: Json) -> tuple[Json, list[Json]]:
    """What all versions have in common, and the versions without it."""
    versions = [dict(version) for version in spec.get("versions") or ()]
    common: Json = {}
    for key in _SHARED if versions else ():
        first = versions[0].get(key)
        if all(same(version.get(key), first) for version in versions):
            common[key] = first
            for version in versions:
                version.pop(key, None)
    return common, versions


def _unchanged_schemas(spec: Json, old: Json) -> set[str]:
    """The versions whose schema was accepted before, when a rule may have been cheaper."""
    before = {version.get("name") or "": version.get("schema") for version in old.get("versions") or ()}
    return {
        name
        for version in spec.get("versions") or ()
        if (name := version.get("name") or "") in before and same(version.get("schema"), before[name])
    }


def _spec_errors(spec: Json, unchanged: set[str]) -> list[FieldError]:
    errors = _group_errors(spec)
    scope = spec.get("scope") or ""
    if not scope:
        errors.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(FieldError("FieldValueNotSupported", "spec.scope", "", scope, ("Cluster", "Namespaced")))
    common, versions = _shared(spec)
    if not (common.get("schema") or {}).get("openAPIV3Schema"):
        for index, version in enumerate(versions):
            if not (version.get("schema") or {}).get("openAPIV3Schema"):
                errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    for index, version in enumerate(versions):
        known = (version.get("name") or "") in unchanged
        errors += _version_errors(version, common, f"spec.versions[{index}]", unchanged=known)
    listed = [version.get("name") or "" for version in versions]
    if len(set(listed)) != len(listed):
        errors.append(invalid("spec.versions", go_versions(versions), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", go_versions(versions), detail))
    if listed and (problems := dns_1035_label(listed[0])):
        errors.append(invalid("spec.version", listed[0], ",".join(problems)))
    names = spec.get("names") or {}
    errors += [
        required(f"spec.names.{key}") for key in ("plural", "singular", "kind", "listKind") if not names.get(key)
    ]
    errors += _names_errors(names, "spec.names")
    schema = (common.get("schema") or {}).get("openAPIV3Schema")
    if schema:
        any_status = any(_has_status(obj.get("subresources")) for obj in (common, *versions))
        where = "spec.validation.openAPIV3Schema"
        known = bool(listed) and listed[0] in unchanged
        errors += validate_schema(schema, where, has_status=any_status, unchanged=known)
    errors += _subresource_errors(common.get("subresources"), "spec.subresources")
    errors += _column_errors(common.get("additionalPrinterColumns"), "spec.additionalPrinterColumns")
    if common.get("selectableFields"):
        if common.get("schema") is None:
            detail = "may only be set when validations.schema is included"
            errors.append(invalid("spec.selectableFields", "", detail))
        else:
            errors += _selectable_errors(common["selectableFields"], schema or {}, "spec.selectableFields")
    return [*errors, *_conversion_errors(spec.get("conversion"))]


def _group_errors(spec: Json) -> list[FieldError]:
    group = spec.get("group") or ""
    if not group:
        return [required("spec.group")]
    if problems := dns_subdomain(group):
        return [invalid("spec.group", group, ",".join(problems))]
    if "." not in group:
        return [invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _version_errors(version: Json, common: Json, path: str, *, unchanged: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if problems := dns_1035_label(version.get("name") or ""):
        errors.append(invalid(f"{path}.name", version.get("name") or "", ",".join(problems)))
    warning = version.get("deprecationWarning")
    problems = _warning_problems(warning, deprecated=bool(version.get("deprecated")))
    errors += [invalid(f"{path}.deprecationWarning", warning, problem) for problem in problems]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema:
        subresources = common.get("subresources", version.get("subresources"))
        has_status = _has_status(subresources)
        where = f"{path}.schema.openAPIV3Schema"
        errors += validate_schema(schema, where, has_status=has_status, unchanged=unchanged)
    errors += _subresource_errors(version.get("subresources"), f"{path}.subresources")
    errors += _column_errors(version.get("additionalPrinterColumns"), f"{path}.additionalPrinterColumns")
    selectable = version.get("selectableFields")
    if selectable:
        if not schema:
            detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
            errors.append(invalid(f"{path}.selectableFields", "", detail))
        else:
            errors += _selectable_errors(selectable, schema, f"{path}.selectableFields")
    return errors


def _has_status(subresources: Json | None) -> bool:
    return isinstance((subresources or {}).get("status"), dict)


def _warning_problems(warning: str | None, *, deprecated: bool) -> list[str]:
    if warning is None:
        return []
    if not deprecated:
        return ["can only be set for deprecated versions"]
    problems = []
    if len(warning.encode()) > 256:
        problems.append("must be <= 256 characters long")
    if not warning:
        problems.append("must not be an empty string")
    at = 0
    for character in warning:
        if not character.isprintable():
            detail = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            problems.append(detail)
            break
        at += len(character.encode())
    return problems


def _names_errors(names: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    mixed = "may have mixed case, but should otherwise match: "
    for key in ("plural", "singular"):
        value = names.get(key) or ""
        if value and (problems := dns_1035_label(value)):
            errors.append(invalid(f"{path}.{key}", value, ",".join(problems)))
    for key in ("kind", "listKind"):
        value = names.get(key) or ""
        if value and (problems := dns_1035_label(value.lower())):
            errors.append(invalid(f"{path}.{key}", value, mixed + ",".join(problems)))
    errors += _list_of_names(names, "shortNames", path)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        errors.append(invalid(f"{path}.listKind", names["listKind"], detail))
    return [*errors, *_list_of_names(names, "categories", path)]


def _list_of_names(names: Json, key: str, path: str) -> list[FieldError]:
    return [
        invalid(f"{path}.{key}[{index}]", value, ",".join(problems))
        for index, value in enumerate(names.get(key) or ())
        if (problems := dns_1035_label(value))
    ]


def _json_path_errors(value: str, path: str) -> list[FieldError]:
    if not value.startswith("."):
        return [invalid(path, value, "must be a simple json path starting with .")]
    return []


def _subresource_errors(subresources: Json | None, path: str) -> list[FieldError]:
    scale = (subresources or {}).get("scale")
    if not scale:
        return []
    errors: list[FieldError] = []
    for key, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        value, where = scale.get(key) or "", f"{path}.scale.{key}"
        if not value:
            errors.append(required(where))
        elif problems := _json_path_errors(value, where):
            errors += problems
        elif not value.startswith(roots):
            errors.append(invalid(where, value, f"should be a json path under {roots[0].rstrip('.')}"))
    selector, where = scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"
    if selector:
        problems = _json_path_errors(selector, where)
        if not problems and not selector.startswith((".spec.", ".status.")):
            problems = [invalid(where, selector, "should be a json path under either .spec or .status")]
        errors += problems
    return errors


def _column_errors(columns: list[Json] | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, column in enumerate(columns or ()):
        where = f"{path}[{index}]"
        if not column.get("name"):
            errors.append(required(f"{where}.name"))
        kind = column.get("type") or ""
        if not kind:
            errors.append(required(f"{where}.type", f"must be one of {_COLUMN_TYPES}"))
        elif kind not in _COLUMN_TYPES.split(","):
            errors.append(invalid(f"{where}.type", kind, f"must be one of {_COLUMN_TYPES}"))
        form = column.get("format") or ""
        if form and form not in _COLUMN_FORMATS.split(","):
            errors.append(invalid(f"{where}.format", form, f"must be one of {_COLUMN_FORMATS}"))
        json_path = column.get("jsonPath") or ""
        if not json_path:
            errors.append(required(f"{where}.JSONPath"))
        else:
            errors += _json_path_errors(json_path, f"{where}.JSONPath")
    return errors


def _selectable_errors(fields: list[Json], document: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    problem = unsupported(document)
    if problem:
        return [invalid(f"{path.rsplit('.', 1)[0]}.schema.openAPIV3Schema", "", problem)]
    schema = parse(document)
    seen: set[str] = set()
    for index, selectable in enumerate(fields):
        where, text = f"{path}[{index}].jsonPath", selectable.get("jsonPath") or ""
        if not text:
            errors.append(required(where))
            continue
        try:
            found, target = field_path(text, schema, brackets=False)
        except PathError as why:
            errors.append(invalid(where, text, f"is an invalid path: {why}"))
            continue
        if found.split(".")[0] == "metadata":
            errors.append(invalid(where, text, "must not point to fields in metadata"))
        if target.type not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(invalid(where, text, detail))
        if found in seen:
            errors.append(FieldError("FieldValueDuplicate", where, "", text))
        seen.add(found)
    if len(seen) > _MOST_SELECTABLE:
        detail = f"must have at most {_MOST_SELECTABLE} items"
        errors.append(FieldError("FieldValueTooMany", path, detail, len(seen)))
    return errors


def _conversion_errors(conversion: Json | None) -> list[FieldError]:
    if not conversion:
        return []
    strategy = conversion.get("strategy") or ""
    if not strategy:
        return [required("spec.conversion.strategy")]
    if strategy == "Webhook":
        detail = (
            "conversion by webhook is not available in the embedded API server: versions are converted by None only"
        )
        return [forbidden("spec.conversion.strategy", detail)]
    if strategy != "None":
        where = "spec.conversion.strategy"
        return [FieldError("FieldValueNotSupported", where, "", strategy, ("None", "Webhook"))]
    errors: list[FieldError] = []
    webhook = conversion.get("webhook") or {}
    detail = "should not be set when strategy is not set to Webhook"
    if webhook.get("clientConfig"):
        errors.append(forbidden("spec.conversion.webhookClientConfig", detail))
    if webhook.get("conversionReviewVersions"):
        errors.append(forbidden("spec.conversion.conversionReviewVersions", detail))
    return errors


def _stored_errors(stored: list[str], versions: list[Json]) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, None, "must have at least one stored version")]
    errors: list[FieldError] = []
    names = [version.get("name") or "" for version in versions]
    missing = [version.get("name") or "" for version in versions if version.get("storage")]
    errors += [invalid(path, stored, f"must have the storage version {name}") for name in missing if name not in stored]
    for index, name in enumerate(stored):
        if name not in names:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
                f"removes {name} from "
                "status.storedVersions"
            )
            errors.append(invalid(f"{path}[{index}]", name, detail))
    return errors


def _approval_errors(crd: Json, old: Json | None) -> list[FieldError]:
    group = crd["spec"].get("group") or ""
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return []
    found = ((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL) or ""
    state = _approval(found)
    if old is not None:
        before = ((old.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL) or ""
        if _approval(before) == state:
            return []
    path = f"metadata.annotations[{_APPROVAL}]"
    if state == "missing":
        return [required(path, f"protected groups must have approval annotation {quote(_APPROVAL)}, {_SEE}")]
    if state == "invalid":
        detail = (
            f"protected groups must have approval annotation {quote(_APPROVAL)} with either a URL or a reason starting "
            f'with "unapproved", {_SEE}'
        )
        return [invalid(path, found, detail)]
    return []


def _approval(annotation: str) -> str:
    if not annotation:
        return "missing"
    if annotation.startswith("unapproved"):
        return "bypassed"
    scheme, separator, rest = annotation.partition("://")
    return "approved" if separator and scheme and rest.partition("/")[0] else "invalid"


# Warnings


def warnings_of(crd: Json) -> list[str]:
    """What is accepted but probably not meant."""
    unknown: list[str] = []
    sets: set[str] = set()
    for version in crd["spec"].get("versions") or ():
        document = (version.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(document, dict):
            _look_for_warnings(document, unknown, sets)
    common, _ = _shared(crd["spec"])
    if "schema" in common:  # looked at once per version, reported once
        unknown = unknown[: len(unknown) // max(1, len(crd["spec"]["versions"]))]
    return [f"unrecognized format {quote(name)}" for name in unknown] + sorted(sets)


def _look_for_warnings(schema: Json, unknown: list[str], sets: set[str]) -> None:
    name = schema.get("format") or ""
    if name and not effective(schema.get("type") or "", name):
        unknown.append(name)
    items = schema.get("items")
    if schema.get("x-kubernetes-list-type") == "set" and isinstance(items, dict):
        kind = items.get("type")
        if kind in ("object", "array"):
            sets.add(
                f"x-kubernetes-list-type: set for items of type {quote(kind)} is not supported by server-side apply "
                "or CEL validation rules"
            )
    below = [items, schema.get("not"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    for key in ("allOf", "anyOf", "oneOf"):
        below += schema.get(key) or []
    for item in below:
        if isinstance(item, dict):
            _look_for_warnings(item, unknown, sets)
