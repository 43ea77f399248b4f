"""IPAllocations: who asked for what, and what they hold."""

from __future__ import annotations

from datetime import datetime

from butler.server.models.common import AddressRange, Model, RequestBody, TenantIs, Type


class AllocationItem(Model):
    namespace: str
    name: str
    pool: str
    tenant_namespace: str
    tenant: str
    """Name of the TenantCluster."""
    type: Type
    role: str
    """`initial` or `growth`; empty where that is not recorded."""
    phase: str
    """Pending, Allocated, Released or Failed."""
    state: str
    """In words: `held`, `idle`, `going back`, `asked for`, `refused`, `released`."""
    start: str | None
    end: str | None
    count: int
    """Addresses held; 0 for a request that holds nothing."""
    requested: int | None
    pinned: bool
    reason: str
    message: str
    """Why it was refused, or what it was granted."""
    created_at: datetime | None
    allocated_at: datetime | None
    idle_since: datetime | None
    draining_since: datetime | None
    released_at: datetime | None
    resource_version: str


class AllocationList(Model):
    items: list[AllocationItem]
    total: int
    next: str | None


class AllocationCreate(RequestBody):
    """A request; with `start` and `end` for exactly these addresses (a pin), else for `count` of them."""

    name: str
    pool: str
    tenant_namespace: str
    tenant: str
    type: Type
    count: int | None = None
    start: str | None = None
    end: str | None = None


class AllocationPreview(Model):
    """What a request would get now; nothing was written."""

    granted: bool
    range: AddressRange | None
    reason: str
    message: str
    yaml: str


class InUse(Model):
    kind: str
    name: str
    address: str


class ReleaseImpact(Model):
    """What hangs on an allocation that is about to be released."""

    allocation: str
    tenant: str
    tenant_exists: bool
    tenant_is: TenantIs
    type: str
    pool: str
    phase: str
    range: AddressRange | None
    in_use: list[InUse]
    not_asked: str | None
    """Why the tenant could not be asked who uses the addresses."""
    follows: list[str]
    refused: bool
    """Its tenant lives and may use it: it cannot be released here."""
    unknown: str | None
    """Why it is unknown whether it is in use; null where it is known."""
    resource_version: str
    """To be sent with the release as If-Match, so that only what was shown is released."""
