"""TenantClusters: where they stand, what they wait for, which addresses they have."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from butler.server.models.common import AddressRange, Condition, FieldError, Model, RequestBody, Type


class TenantItem(Model):
    namespace: str
    name: str
    phase: str
    since: datetime | None
    waits_for: str
    """Why it is not ready; empty when it waits for nothing."""
    trouble: list[str]
    version: str
    goes_to: str
    """The version that it is on its way to; empty when it is there."""
    workers_ready: int
    workers_wanted: int
    provider: str
    team: str
    endpoint: str
    node_addresses: int | None
    """Null where that may not be read."""
    load_balancer_addresses: int | None
    load_balancers_in_use: int | None
    services_waiting: int | None
    elastic: bool
    created_at: datetime | None
    deleting: bool
    resource_version: str


class TenantList(Model):
    items: list[TenantItem]
    total: int
    next: str | None
    namespaces: list[str]
    """In which the person sees tenants, whatever they are looking for."""


class Block(Model):
    """Addresses that a cluster holds or asks for: one IPAllocation."""

    allocation: str
    type: Type
    pool: str
    phase: str
    state: str
    range: AddressRange | None
    requested: int
    growth: bool
    pinned: bool
    leaving: bool
    why: str
    since: datetime | None
    idle_since: datetime | None


class LoadBalancerUse(Model):
    """What the tenant's Services make of its addresses, as the controller last saw it."""

    held: int
    in_use: int
    idle: int
    waiting: int
    most: int | None
    """The quota; null for none."""


class TenantChange(Model):
    """Growth or shrinking of its addresses."""

    at: datetime
    action: str
    """`granted` or `released`."""
    allocation: str
    type: str
    range: AddressRange
    growth: bool


class TenantDetail(Model):
    tenant: TenantItem
    steps: list[Condition]
    """Its conditions, in the order in which they came to be what they are."""
    blocks: list[Block] | None
    """Null: the allocations may not be read."""
    load_balancers: LoadBalancerUse | None
    changes: list[TenantChange]
    """Newest first."""
    yaml: str
    """The object as it is written, without what the server adds."""


class Span(Model):
    """One address, or a run of addresses that are all alike."""

    start: str
    end: str
    count: int
    state: str
    """`in use`, `idle`, `not known` or `not held`."""
    users: list[str]
    platform: bool
    pool: str
    allocation: str


class MetalLB(Model):
    """What the tenant's MetalLB may announce, beside what it should."""

    in_step: bool | None
    """Null: unknown."""
    missing: list[str]
    strange: list[str]
    says: str


class TenantAddresses(Model):
    """Every address of a tenant and who has it, as the tenant itself says."""

    namespace: str
    name: str
    nodes: list[Span]
    load_balancers: list[Span]
    waiting: list[str] | None
    """Services that wait for an address; null: the tenant cannot be asked."""
    metallb: MetalLB
    unseen: list[str]


class Drift(Model):
    """MetalLB of one tenant against its allocations."""

    namespace: str
    name: str
    in_step: bool | None
    missing: list[str]
    strange: list[str]
    says: str


class DriftList(Model):
    items: list[Drift]
    not_asked: int
    """Tenants that were not asked, as they come up, go, or have no addresses from pools."""


class TenantManifest(RequestBody):
    """A TenantCluster as kubectl would take it."""

    manifest: dict[str, Any]


class TenantPreview(Model):
    """What a new tenant would get, or a changed one beyond what it has; nothing was written."""

    allowed: bool
    errors: list[FieldError]
    warnings: list[str]
    provider: str
    gets: list[Block]
    obstacle: str
    """Why it would not have all it needs; empty when it would."""
    waits: bool
    """Whether it would go on by itself as soon as there is room."""


class Scale(RequestBody):
    workers: int


class Upgrade(RequestBody):
    version: str


class Kubeconfig(Model):
    """A secret: sent only when a person asks for this one, and never kept."""

    kubeconfig: str
    filename: str
