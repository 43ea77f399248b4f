"""What-if on the production engine; nothing is written."""

from __future__ import annotations

from butler.server.models.common import AddressRange, FieldError, Model, RequestBody, Type
from butler.server.models.pools import Fill, Segments, Stranded


class PlanTenants(RequestBody):
    count: int
    nodes: int | None = None
    load_balancers: int | None = None
    provider: str | None = None
    pools: tuple[str, ...] = ()


class PlanSingle(RequestBody):
    pool: str
    count: int | None = None
    type: Type = "loadbalancer"


class PlanEdit(RequestBody):
    pool: str
    cidr: str | None = None
    windows: tuple[tuple[str, str], ...] = ()
    """Each a first and a last address."""
    reserve: tuple[str, ...] = ()


class PlanRequest(RequestBody):
    """At least one of these."""

    tenants: PlanTenants | None = None
    requests: tuple[PlanSingle, ...] = ()
    edit: PlanEdit | None = None


class PlannedBlock(Model):
    name: str
    tenant: str
    type: str
    pool: str
    count: int | None
    range: AddressRange | None
    reason: str
    message: str


class PlannedTenant(Model):
    name: str
    fits: bool
    blocks: list[PlannedBlock]
    message: str


class FirstFailure(Model):
    tenant: int
    message: str


class PlannedPool(Model):
    name: str
    cidr: str
    before: Fill | None
    after: Fill | None


class PlainRange(Model):
    start: str
    end: str


class PlannedSpec(Model):
    cidr: str
    windows: list[PlainRange]
    reserved: list[str]


class PlannedEdit(Model):
    pool: str
    before: PlannedSpec
    after: PlannedSpec
    refused: list[FieldError]
    warnings: list[str]
    stranded: list[Stranded]


class Plan(Model):
    fits: bool
    provider: str | None
    edit: PlannedEdit | None
    waiting: list[PlannedBlock]
    tenants: list[PlannedTenant]
    tenants_that_fit: int
    first_failure: FirstFailure | None
    requests: list[PlannedBlock]
    order_by_chance: bool
    pools: list[PlannedPool]
    edited: Segments | None = None
    """The edited pool with who holds what of it now, before anything that is planned; None without an edit, and for one
    that is refused."""
