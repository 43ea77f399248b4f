"""What several answers share."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, dataclass_transform

from msgspec import Struct, field

from butler.api.schema import PartMeta


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Model(Struct, metaclass=PartMeta, frozen=True, kw_only=True, rename="camel"):
    """Something that is sent."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class RequestBody(Struct, metaclass=PartMeta, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Something that is taken: an unknown field is refused, not passed over."""


Type = Literal["nodes", "loadbalancer"]
TenantIs = Literal["exists", "gone", "replaced", "unseen"]
"""Whether the tenant that addresses were given to is there. `unseen`: Butler does not manage it, and cannot tell."""
Tier = Literal["CapacityWarning", "CapacityCritical", "CapacityExhausted"]
Health = Literal["ok", "warning", "critical", "unknown"]


class AddressRange(Model):
    """From start to end, both included."""

    start: str
    end: str
    count: int


class Condition(Model):
    """A condition of an object, and whether that is good news: for CapacityWarning and its like, True is not."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None
    health: Health


class Link(Model):
    """An object that a text speaks of."""

    kind: Literal["pool", "allocation", "tenant", "provider"]
    namespace: str
    name: str


class FieldError(Model):
    """What is wrong with one field."""

    field: str
    message: str


class Problem(Model):
    """An error as RFC 9457 has it; `detail` is a sentence that says what to do."""

    type: str
    """A stable word after `urn:butler:problem:`, such as `not-found`, `conflict`, `invalid`, `forbidden`."""
    title: str
    status: int
    detail: str
    errors: tuple[FieldError, ...] = ()


class Written(Model):
    """What a write left behind."""

    namespace: str
    name: str
    resource_version: str
    warnings: tuple[str, ...] = ()
