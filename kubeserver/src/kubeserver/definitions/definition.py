"""What a CustomResourceDefinition means: defaults, names, and the resources it brings.

All functions are pure and take the definition as the JSON object it is. Validation is in `validation.py`; when
these functions are called with a definition that passed it, they do not fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kubeserver.definitions.validation import changes_refused, validate_crd, warnings_of
from kubeserver.resources import PrintedColumn, Resource, ScaleSubresource, Strategy
from kubeserver.schemas.builtin_types import OBJECT_META, builtin_types
from kubeserver.schemas.schema import Schema, parse
from kubeserver.views.jsonpath import selectable_text
from kubeserver.wire.goformat import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kubeserver.resources import World

Json = dict[str, Any]


# Defaults and what the server fills in


def default_crd(crd: Json) -> None:
    """Fill in what an author may leave out."""
    spec = crd.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    if not spec.get("conversion"):
        spec["conversion"] = {"strategy": "None"}
    service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if isinstance(service, dict):
        service.setdefault("port", 443)
    if not (crd.get("status") or {}).get("storedVersions"):
        _store_version(crd)


def _store_version(crd: Json) -> None:
    """Remember that objects may be kept in the version that is the storage version now."""
    stored = crd.setdefault("status", {}).setdefault("storedVersions", [])
    for version in crd["spec"].get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name") or "")
            break


def _prepare_create(_: World, crd: Json) -> None:
    crd["status"] = {}
    _store_version(crd)
    _complete_status(crd)


def _prepare_update(_: World, crd: Json, old: Json) -> None:
    crd["status"] = old.get("status") or {}
    _store_version(crd)


def _complete_status(crd: Json) -> None:
    """The fields of a status that are there even when nothing is known yet."""
    crd["status"].setdefault("conditions", None)
    crd["status"].setdefault("acceptedNames", {"plural": "", "kind": ""})


STRATEGY: Final = Strategy(
    default=default_crd,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate=validate_crd,
    validate_update=changes_refused,
    warnings=warnings_of,
)


# Names


def accept_names(crd: Json, others: Iterable[Mapping[str, Any]], now: str) -> Json:
    """The status of a definition: the names it got, and whether it is established."""
    group = crd["spec"]["group"]
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == group:
            taken = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {taken.get("plural") or "", taken.get("singular") or "", *(taken.get("shortNames") or ())}
            kinds |= {taken.get("kind") or "", taken.get("listKind") or ""}
    status: Json = {**(crd.get("status") or {})}
    accepted: Json = {**(status.get("acceptedNames") or {})}
    wanted: Json = crd["spec"]["names"]
    reason, message = "", ""
    for field, taken, problem in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        conflict = _conflict(wanted.get(field), accepted.get(field), taken)
        if conflict:
            reason, message = problem, conflict
        elif wanted.get(field):
            accepted[field] = wanted[field]
        else:
            accepted.pop(field, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    conditions = [dict(condition) for condition in status.get("conditions") or ()]
    if reason:
        _set(conditions, "NamesAccepted", "False", reason, message, now)
        if not any(condition["type"] == "Established" for condition in conditions):
            _set(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        _set(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
        initial = "the initial names have been accepted"
        _set(conditions, "Established", "True", "InitialNamesAccepted", initial, now)
    status["conditions"] = conditions
    status["acceptedNames"] = accepted
    status.setdefault("storedVersions", [])
    return status


def _conflict(wanted: Any, accepted: Any, taken: set[str]) -> str:
    if isinstance(wanted, list):
        fresh = [name for name in wanted if name not in (accepted or ())]
        used = [f"{quote(name)} is already in use" for name in fresh if name in taken]
        return used[0] if len(used) == 1 else f"[{', '.join(used)}]" if used else ""
    if not wanted or wanted == accepted or wanted not in taken:
        return ""
    return f"{quote(wanted)} is already in use"


def _set(conditions: list[Json], kind: str, status: str, reason: str, message: str, now: str) -> None:
    for condition in conditions:
        if condition["type"] == kind:
            if kind == "Established" and condition["status"] == status == "True":
                return
            if condition["status"] != status or not condition.get("lastTransitionTime"):
                condition["lastTransitionTime"] = now
            condition.update(status=status, reason=reason, message=message)
            return
    conditions.append({"lastTransitionTime": now, "message": message, "reason": reason, "status": status, "type": kind})


def say_terminating(crd: Json, reason: str, message: str, now: str) -> None:
    """Tell in the status how far the removal of a definition's objects is."""
    status = crd.setdefault("status", {})
    status["conditions"] = [dict(condition) for condition in status.get("conditions") or ()]
    _set(status["conditions"], "Terminating", "True", reason, message, now)


# Resources


def resources_of(crd: Json, revision: int) -> list[Resource]:
    """One resource per served version; `revision` is that of the definition."""
    return [_resource(crd, version, revision) for version in crd["spec"]["versions"] if version.get("served")]


def stored_resource(crd: Json, revision: int) -> Resource:
    """The resource in whose version objects are kept, be it served or not."""
    return _resource(crd, _storage(crd), revision)


def _storage(crd: Json) -> Json:
    found: Json = next(version for version in crd["spec"]["versions"] if version.get("storage"))
    return found


def _resource(crd: Json, version: Json, revision: int) -> Resource:
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    if not names.get("plural"):
        names = spec["names"]
    schema = _schema(version, preserve=bool(spec.get("preserveUnknownFields")))
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    deprecated = bool(version.get("deprecated"))
    api_version = f"{spec['group']}/{version['name']}"
    warning = version.get("deprecationWarning") or f"{api_version} {names['kind']} is deprecated"
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        schema=schema,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status=isinstance(subresources.get("status"), dict),
        scale=None
        if not scale
        else ScaleSubresource(
            scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""
        ),
        columns=tuple(
            _column(additional_printer_column)
            for additional_printer_column in version.get("additionalPrinterColumns") or ()
        ),
        strategy=Strategy(selectable=_selectable(version)),
        storage_version=_storage(crd)["name"],
        custom=True,
        since=revision,
        deprecated=deprecated,
        deprecation_warning=warning if deprecated else "",
    )


def _schema(version: Json, *, preserve: bool) -> Schema:
    """The schema of a version with the fields that every object has."""
    document = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    schema = parse(document)
    own = schema.properties.get("metadata")
    meta = builtin_types()[OBJECT_META]
    schema.properties = {
        "apiVersion": Schema(type="string", description=_API_VERSION),
        "kind": Schema(type="string", description=_KIND),
        "metadata": replace(
            meta, description="Standard metadata of the object.", authored=own or Schema(type="object")
        ),
        **{name: field for name, field in schema.properties.items() if name != "metadata"},
    }
    schema.preserve_unknown = schema.preserve_unknown or preserve
    return schema


_API_VERSION: Final = "The version of this object's schema, as group/version."
_KIND: Final = "What this object is, in CamelCase."


def _column(column: Json) -> PrintedColumn:
    return PrintedColumn(
        name=column["name"],
        type=column["type"],
        format=column.get("format") or "",
        description=column.get("description") or "",
        priority=column.get("priority") or 0,
        json_path=column["jsonPath"],
    )


def _selectable(version: Json) -> dict[str, Any]:
    paths = [selectable_field["jsonPath"] for selectable_field in version.get("selectableFields") or ()]
    return {path.removeprefix("."): selectable_text(path) for path in paths}
