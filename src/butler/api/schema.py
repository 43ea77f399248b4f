"""The vocabulary in which the custom resources are written: a part, what a field is about, a rule.

A custom resource is a tree of parts. Each field says in one sentence what it is for, with the limits that the API
server enforces:

    cidr: Annotated[str, about("The network this pool owns.", pattern=IPV4_CIDR, max_length=18)]

The sentence and the limits go into the CRD and so into `kubectl explain`. They are *not* checked when an object is
decoded: the API server has done that already, and an object that was admitted under an older CRD must stay visible
to the allocator. An allocation that cannot be read is an address that could be handed out twice.

Parts are frozen, because a cache hands the same object to every reader, and outside the garbage collector's sight
(`gc=False`), because a frozen tree decoded from JSON has no cycles to collect; with 10,000 allocations in memory
that saves a pause on every full collection.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar, dataclass_transform

from msgspec import Meta, Struct, StructMeta, field

_ACRONYMS = {
    "cidr": "CIDR",
    "cpu": "CPU",
    "id": "ID",
    "ids": "IDs",
    "ip": "IP",
    "ips": "IPs",
    "sans": "SANs",
    "uid": "UID",
    "urn": "URN",
    "uuid": "UUID",
}


def wire_name(name: str) -> str:
    """How Kubernetes spells a field: `pod_cidr` is `podCIDR`, `max_node_ips` is `maxNodeIPs`."""
    first, *rest = name.split("_")
    return first + "".join(_ACRONYMS.get(word, word.capitalize()) for word in rest)


class Reason(StrEnum):
    """The kind of fault that a broken rule is reported as."""

    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"


class Rule(Struct, frozen=True):
    """A CEL expression that must hold, and what to tell the person who broke it.

    `self` is the part (or field) that carries the rule; a rule that speaks of `oldSelf` is checked on updates only.
    A rule must not fail on input that another rule or a pattern refuses, or its complaint drowns the clear one.
    """

    expression: str
    message: str
    message_expression: str | None = None
    """The same message with values in it; `message` stands in when it cannot be evaluated."""
    reason: Reason = Reason.INVALID
    field_path: str | None = None
    """The field to blame, relative to the part, such as `.tenantAllocation.end`."""


class PartMeta(StructMeta):
    """Makes every part frozen and keyword-only, which msgspec alone would have each class repeat."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **settings: Any) -> "PartMeta":
        return super().__new__(cls, name, bases, namespace, **{"frozen": True, "kw_only": True, **settings})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Part(Struct, metaclass=PartMeta, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename=wire_name):
    """A piece of a custom resource, written in camel case and without the fields that hold their default."""

    validations: ClassVar[tuple[Rule, ...]] = ()


class ListType(StrEnum):
    """How two appliers of one list are merged, and whether entries may repeat."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


def about(
    description: str,
    *,
    pattern: str | None = None,
    format: str | None = None,  # noqa: A002 - the name that JSON Schema has for it
    minimum: int | None = None,
    maximum: int | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    min_items: int | None = None,
    max_items: int | None = None,
    max_properties: int | None = None,
    list_type: ListType | None = None,
    map_keys: Sequence[str] = (),
    rules: Sequence[Rule] = (),
) -> Meta:
    """Describe a field: one sentence for `kubectl explain`, and the limits that the API server enforces."""
    schema: dict[str, Any] = {
        "description": description,
        "pattern": pattern,
        "format": format,
        "minimum": minimum,
        "maximum": maximum,
        "minLength": min_length,
        "maxLength": max_length,
        "minItems": min_items,
        "maxItems": max_items,
        "maxProperties": max_properties,
        "x-kubernetes-list-type": list_type and list_type.value,
        "x-kubernetes-list-map-keys": list(map_keys) or None,
        "x-kubernetes-validations": [rendered(rule) for rule in rules] or None,
    }
    return Meta(extra_json_schema={key: value for key, value in schema.items() if value is not None})


def rendered(rule: Rule) -> dict[str, str]:
    """A rule as it stands in a CRD."""
    wanted = {
        "rule": rule.expression,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason.value,
        "fieldPath": rule.field_path,
    }
    return {key: value for key, value in wanted.items() if value is not None}
