"""Whose an address is."""

from __future__ import annotations

from datetime import datetime

from butler.server.models.common import AddressRange, Link, Model, TenantIs


class Owner(Model):
    allocation: str
    tenant: str
    tenant_exists: bool
    tenant_is: TenantIs
    type: str
    role: str | None
    pool: str
    range: AddressRange
    phase: str
    allocated_at: datetime | None
    idle_since: datetime | None
    draining_since: datetime | None
    released_at: datetime | None
    why: str | None


class Place(Model):
    start: str
    end: str
    count: int
    pool: str | None
    kind: str
    description: str | None
    stranded: bool
    held: bool
    owners: list[Owner]


class NamedPool(Model):
    name: str
    cidr: str


class AddressAnswer(Model):
    """The pool an address lies in and what that pool says of it, who holds it, who had it, who waits for it."""

    asked: AddressRange
    known: bool
    places: list[Place]
    earlier: list[Owner]
    wanted: list[Owner]
    pools: list[NamedPool]
    nearest_pool: NamedPool | None
    known_as: list[str]


class Hit(Model):
    link: Link
    title: str
    detail: str


class SearchAnswer(Model):
    """What a text may mean: an address or range, or names."""

    address: AddressAnswer | None
    hits: list[Hit]
