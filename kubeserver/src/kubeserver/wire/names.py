"""What a name, a label, an annotation and the rest of `metadata` may look like.

Every object passes here before it is written. The rules are Kubernetes', and so is every word of the refusals,
because people paste them into search engines and programs compare them. Checks report all that is wrong, in the
order kube-apiserver does, and as often: on update it looks at the metadata of a custom resource three times, so one
bad label is three causes in `details.causes` (and one phrase in the message, which is free of repetitions).

Nothing here changes an object, and nothing here knows what is stored: name conflicts, namespace lifecycle and
the filling of uid or generation belong to the write path.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, Final

from kubeserver.wire.goformat import marshal, quote
from kubeserver.wire.status import OMITTED, FieldError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.resources import Resource

Json = dict[str, Any]

ANNOTATIONS_LIMIT: Final = 256 * 1024
_GENERATED_BASE_LIMIT: Final = 58
_SUFFIX_LENGTH: Final = 5
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by accident
_MANAGER_LIMIT: Final = 128
_SUBRESOURCE_LIMIT: Final = 256

_LABEL_1123: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"

_LABEL_1123_PATTERN: Final = re.compile(_LABEL_1123)
_SUBDOMAIN_PATTERN: Final = re.compile(_SUBDOMAIN)
_LABEL_1035_PATTERN: Final = re.compile(_LABEL_1035)
_QUALIFIED_PATTERN: Final = re.compile(_QUALIFIED)
_VALUE_PATTERN: Final = re.compile(_VALUE)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _too_long(limit: int, unit: str) -> str:
    """Kubernetes always counts bytes, and calls them characters in names."""
    return f"must be no more than {limit} {unit}"


def _does_not_match(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def dns_subdomain(value: str, unit: str = "characters") -> list[str]:
    """What keeps a text from being a DNS subdomain (`a.b-c`); an empty list if nothing does."""
    errors = [_too_long(253, unit)] if _size(value) > 253 else []
    if not _SUBDOMAIN_PATTERN.fullmatch(value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(_does_not_match(rule, _SUBDOMAIN, "example.com"))
    return errors


def dns_label(value: str) -> list[str]:
    """What keeps a text from being one DNS label (`a-b`)."""
    errors = [_too_long(63, "characters")] if _size(value) > 63 else []
    if not _LABEL_1123_PATTERN.fullmatch(value):
        if _SUBDOMAIN_PATTERN.fullmatch(value):
            return [*errors, "must not contain dots"]
        rule = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(_does_not_match(rule, _LABEL_1123, "my-name", "123-abc"))
    return errors


def dns_1035_label(value: str) -> list[str]:
    """What keeps a text from being a DNS label that starts with a letter."""
    errors = [_too_long(63, "characters")] if _size(value) > 63 else []
    if not _LABEL_1035_PATTERN.fullmatch(value):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(_does_not_match(rule, _LABEL_1035, "my-name", "abc-123"))
    return errors


def label_key(value: str) -> list[str]:
    """What keeps a text from being a label key, also called a qualified name (`example.com/name`)."""
    rule = (
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    grammar = _does_not_match(rule, _QUALIFIED, "MyName", "my.name", "123-abc")
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {grammar} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = []
    if slash:
        wrong = dns_subdomain(prefix, "bytes") if prefix else ["must be non-empty"]
        errors += [f"prefix part {text}" for text in wrong]
    if not name:
        errors.append("name part must be non-empty")
    elif _size(name) > 63:
        errors.append(f"name part {_too_long(63, 'bytes')}")
    if not _QUALIFIED_PATTERN.fullmatch(name):
        errors.append(f"name part {grammar}")
    return errors


def label_value(value: str) -> list[str]:
    """What keeps a text from being the value of a label."""
    errors = [_too_long(63, "bytes")] if _size(value) > 63 else []
    if not _VALUE_PATTERN.fullmatch(value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(_does_not_match(rule, _VALUE, "MyValue", "my_value", "12345"))
    return errors


def path_segment(value: str, *, prefix: bool = False) -> list[str]:
    """What keeps a text from standing between two slashes of a URL: all that RBAC kinds ask of a name."""
    if not prefix and value in {".", ".."}:
        return [f"may not be '{value}'"]
    return [f"may not contain '{letter}'" for letter in "/%" if letter in value]


def _of_prefix(rule: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The rule for generateName: a final dash is fine, as a suffix will follow."""

    def check(value: str) -> list[str]:
        return rule(value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value)

    return check


_NAME_RULES: Final[dict[str, Callable[[str], list[str]]]] = {
    "subdomain": dns_subdomain,
    "label": dns_label,
    "label-1035": dns_1035_label,
    "path-segment": path_segment,
}
_PREFIX_RULES: Final[dict[str, Callable[[str], list[str]]]] = {
    "subdomain": _of_prefix(dns_subdomain),
    "label": _of_prefix(dns_label),
    "label-1035": _of_prefix(dns_1035_label),
    "path-segment": lambda value: path_segment(value, prefix=True),
}


def random_suffix() -> str:
    """Five characters that make a generated name unlikely to exist already."""
    return "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_LENGTH))


def generated_name(base: str) -> str:
    """A name for `generateName: base`, never longer than a DNS label."""
    if _size(base) > _GENERATED_BASE_LIMIT:
        base = base.encode("utf-8", "surrogatepass")[:_GENERATED_BASE_LIMIT].decode("utf-8", "ignore")
    return base + random_suffix()


def validate_metadata(resource: Resource, metadata: Json) -> list[FieldError]:
    """All that is wrong with the metadata of an object that is about to be created."""
    return [
        *_validate_whole(metadata, resource.namespaced, resource.name_rule),
        *_unqualified_finalizers(resource, metadata),
    ]


def validate_metadata_update(new: Json, old: Json) -> list[FieldError]:
    """All that is wrong with what an update does to metadata, compared with what is stored."""
    errors = []
    if old.get("deletionTimestamp"):
        errors += _no_new_finalizers(new.get("finalizers") or [], old.get("finalizers") or [])
    if not new.get("resourceVersion"):
        errors.append(_invalid("resourceVersion", "", "must be specified for an update"))
    generation = new.get("generation") or 0
    errors += _not_negative("generation", generation)
    if generation < (old.get("generation") or 0):
        errors.append(_invalid("generation", generation, "must not be decremented"))
    for name, zero in _IMMUTABLE:
        if (new.get(name) or zero) != (old.get(name) or zero):
            errors.append(_invalid(name, new.get(name) or zero, "field is immutable"))
    return [
        *errors,
        *validate_labels(new.get("labels") or {}),
        *validate_annotations(new.get("annotations") or {}),
        *_validate_owners(new.get("ownerReferences") or []),
        *_validate_managed_fields(new.get("managedFields") or []),
    ]


def validate_updated_metadata(resource: Resource, new: Json, old: Json) -> list[FieldError]:
    """The complete list for an update, each fault as often as kube-apiserver reports it."""
    changes = validate_metadata_update(new, old)
    found = [
        *_validate_whole(new, resource.namespaced, "path-segment"),
        *changes,
        *changes,
        *_unqualified_finalizers(resource, new),
    ]
    if resource.custom or resource.group == "apiextensions.k8s.io":
        return found
    return list({(error.path, error.body()): error for error in reversed(found)}.values())[::-1]


# Kinds whose finalizers need no domain, besides custom resources.
_PLAIN_FINALIZERS: Final = frozenset(
    {
        ("", "events"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("coordination.k8s.io", "leases"),
        ("policy", "poddisruptionbudgets"),
    }
)
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def _unqualified_finalizers(resource: Resource, metadata: Json) -> list[FieldError]:
    if resource.custom or (resource.group, resource.plural) in _PLAIN_FINALIZERS:
        return []
    return [
        _invalid(
            f"finalizers[{index}]",
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        )
        for index, finalizer in enumerate(metadata.get("finalizers") or [])
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


_IMMUTABLE: Final[tuple[tuple[str, Any], ...]] = (
    ("name", ""),
    ("namespace", ""),
    ("uid", ""),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
)


def _invalid(name: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", f"metadata.{name}", detail, value)


def _required(name: str, detail: str) -> FieldError:
    return FieldError("FieldValueRequired", f"metadata.{name}", detail)


def _validate_whole(metadata: Json, namespaced: bool, name_rule: str) -> list[FieldError]:
    errors = []
    if generate_name := metadata.get("generateName"):
        errors += [_invalid("generateName", generate_name, text) for text in _PREFIX_RULES[name_rule](generate_name)]
    if name := metadata.get("name"):
        errors += [_invalid("name", name, text) for text in _NAME_RULES[name_rule](name)]
    else:
        errors.append(_required("name", "name or generateName is required"))
    namespace = metadata.get("namespace")
    if namespaced:
        if namespace:
            errors += [_invalid("namespace", namespace, text) for text in dns_label(namespace)]
        else:
            errors.append(_required("namespace", ""))
    elif namespace:
        errors.append(FieldError("FieldValueForbidden", "metadata.namespace", "not allowed on this type"))
    return [
        *errors,
        *_not_negative("generation", metadata.get("generation") or 0),
        *validate_labels(metadata.get("labels") or {}),
        *validate_annotations(metadata.get("annotations") or {}),
        *_validate_owners(metadata.get("ownerReferences") or []),
        *_validate_finalizers(metadata.get("finalizers") or []),
        *_validate_managed_fields(metadata.get("managedFields") or []),
    ]


def _not_negative(name: str, value: int) -> list[FieldError]:
    return [_invalid(name, value, "must be greater than or equal to 0")] if value < 0 else []


def validate_labels(labels: dict[str, str], path: str = "metadata.labels") -> list[FieldError]:
    errors = []
    for key, value in labels.items():
        errors += [FieldError("FieldValueInvalid", path, text, key) for text in label_key(key)]
        errors += [FieldError("FieldValueInvalid", path, text, value) for text in label_value(value)]
    return errors


def validate_annotations(annotations: dict[str, str], path: str = "metadata.annotations") -> list[FieldError]:
    errors = []
    for key in annotations:
        errors += [FieldError("FieldValueInvalid", path, text, key) for text in label_key(key.lower())]
    if sum(_size(key) + _size(value) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        errors.append(FieldError("FieldValueTooLong", path, f"may not be more than {ANNOTATIONS_LIMIT} bytes"))
    return errors


def _validate_finalizers(finalizers: list[str]) -> list[FieldError]:
    errors = [_invalid("finalizers", finalizer, why) for finalizer in finalizers for why in label_key(finalizer)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(_invalid("finalizers", finalizers, detail))
    return errors


def _no_new_finalizers(new: list[str], old: list[str]) -> list[FieldError]:
    extra = sorted(set(new) - set(old))
    if not extra:
        return []
    listed = ", ".join(quote(text) for text in extra)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [FieldError("FieldValueForbidden", "metadata.finalizers", detail)]


_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")
_OWNER_FLAGS: Final = ("controller", "blockOwnerDeletion")


def _shown_owner(reference: Json) -> str:
    """A reference in the order of its Go fields; a plain dict would be printed with sorted keys, as a Go map is."""
    shown = [(name, reference.get(name) or "") for name in _OWNER_FIELDS]
    shown += [(name, reference[name]) for name in _OWNER_FLAGS if reference.get(name) is not None]
    return "{" + ",".join(f'"{name}":{marshal(value)}' for name, value in shown) + "}"


def _validate_owners(references: list[Json]) -> list[FieldError]:
    errors = []
    controller = ""
    for index, reference in enumerate(references):
        where = f"ownerReferences[{index}]"
        api_version = reference.get("apiVersion") or ""
        if api_version and (api_version.count("/") > 1 or api_version.endswith("/")):
            errors.append(_invalid(f"{where}.apiVersion", api_version, "must be <group>/<version> or <version>"))
        errors += [
            _required(f"{where}.{name}", "must not be empty") for name in _OWNER_FIELDS if not reference.get(name)
        ]
        if api_version in {"v1", "/v1"} and reference.get("kind") == "Event":
            detail = f"{_shown_owner(reference)}: /v1, Kind=Event is disallowed from being an owner"
            errors.append(_invalid(where, OMITTED, detail))
        if reference.get("controller"):
            this = f"{reference.get('kind', '')}/{reference.get('name', '')}"
            if controller:
                shown = ",".join(_shown_owner(obj) for obj in references)
                detail = (
                    f"[{shown}]: Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {this}'
                )
                errors.append(_invalid("ownerReferences", OMITTED, detail))
            else:
                controller = this
    return errors


def validate_field_manager(manager: str, path: str) -> list[FieldError]:
    """A field manager is short and printable, wherever it is named."""
    errors = []
    if _size(manager) > _MANAGER_LIMIT:
        errors.append(FieldError("FieldValueTooLong", path, f"may not be more than {_MANAGER_LIMIT} bytes"))
    position = 0
    for character in manager:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(FieldError("FieldValueInvalid", path, detail, manager))
        position += _size(character)
    return errors


def _validate_managed_fields(entries: list[Json]) -> list[FieldError]:
    errors = []
    for index, entry in enumerate(entries):
        where = f"metadata.managedFields[{index}]"
        operation = entry.get("operation") or ""
        if not operation:
            errors.append(FieldError("FieldValueRequired", f"{where}.operation", "must not be empty"))
        elif operation not in {"Apply", "Update"}:
            path = f"{where}.operation"
            errors.append(FieldError("FieldValueNotSupported", path, "", operation, ("Apply", "Update")))
        fields_type = entry.get("fieldsType") or ""
        if fields_type not in {"", "FieldsV1"}:
            errors.append(FieldError("FieldValueInvalid", f"{where}.fieldsType", "must be `FieldsV1`", fields_type))
        errors += validate_field_manager(entry.get("manager") or "", f"{where}.manager")
        if _size(entry.get("subresource") or "") > _SUBRESOURCE_LIMIT:
            detail = f"may not be more than {_SUBRESOURCE_LIMIT} bytes"
            errors.append(FieldError("FieldValueTooLong", f"{where}.subresource", detail))
    return errors
