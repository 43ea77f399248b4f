"""NetworkPools: how full, how scattered, who holds what, and what an edit would do."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from butler.server.models.common import AddressRange, Condition, FieldError, Model, RequestBody, Tier


class PoolItem(Model):
    """A pool in a list. Counters are counted anew from the allocations; null where the pool cannot be read."""

    namespace: str
    name: str
    cidr: str
    total: int | None
    allocated: int | None
    available: int | None
    percent: float | None
    """Of the addresses that tenants may get; not rounded."""
    largest_free_block: int | None
    fragmentation_percent: int | None
    allocation_count: int
    waiting: int
    """Requests that hold nothing yet."""
    tier: Tier | None
    """The highest tier that is reached."""
    ready: bool
    problem: str
    """Why it hands out nothing; empty when it does."""
    providers: list[str]
    """ProviderConfigs whose tenants get addresses here, as `namespace/name`."""
    strip: list[int]
    """The network in 64 equal parts: percent held of what each hands out; -1 where nothing is handed out."""
    created_at: datetime | None
    resource_version: str


class PoolList(Model):
    items: list[PoolItem]
    total: int
    next: str | None
    """What to send as `cursor` for the next page; null on the last."""


class TierMark(Model):
    """From how many addresses on a tier holds."""

    tier: Tier
    percent: int
    addresses: int
    reached: bool


class HoleBucket(Model):
    """Free blocks of about one size."""

    least: int
    most: int
    holes: int
    addresses: int


class TenantShare(Model):
    tenant: str
    """`namespace/name`."""
    addresses: int
    allocations: int


class Reserved(Model):
    cidr: str
    description: str
    start: str
    end: str
    count: int


class Defaults(Model):
    nodes_per_tenant: int
    lb_pool_per_tenant: int


class PoolDetail(Model):
    """Everything about one pool but its segments."""

    pool: PoolItem
    start: str | None
    """First address of the network."""
    end: str | None
    count: int
    """Addresses of the network, handed out or not."""
    windows: list[AddressRange]
    """What tenants may get, before reserved blocks are taken out."""
    reserved: list[Reserved]
    defaults: Defaults
    tiers: list[TierMark]
    holes: list[HoleBucket]
    shares: list[TenantShare]
    """The twenty that hold most."""
    wrong: list[str]
    """What should not be, in a sentence each."""
    doubts: list[str]
    """Where the pool's own counters differ from a recount."""
    conditions: list[Condition]


SegmentKind = Literal["reserved", "outside", "allocated", "granting", "draining", "free"]


class SegmentHolder(Model):
    allocation: str
    tenant: str
    type: str
    role: str
    pool: str


class SegmentColumns(Model):
    """The segments of a pool by column, in order of address and without gaps: entry i of each column is segment i.

    Offsets count from `start`. -1 in `holder` and `note` means none.
    """

    first: list[int]
    size: list[int]
    kind: list[int]
    """Index into `kinds`."""
    holder: list[int]
    """Index into `holders`: who holds it, the first where several do."""
    note: list[int]
    """Index into `notes`: what a reserved block is for."""
    held_by: list[int]
    """How many hold it; more than one is a fault."""
    stranded: list[bool]
    """Held, although the pool does not hand it out."""


class Elsewhere(Model):
    """An allocation of this pool that cannot be drawn."""

    allocation: str
    tenant: str
    start: str
    end: str


class Segments(Model):
    """Where everything in a pool is, in true positions. Bar, map and export all draw from this."""

    pool: str
    cidr: str
    start: str | None
    end: str | None
    count: int
    kinds: list[SegmentKind]
    columns: SegmentColumns
    holders: list[SegmentHolder]
    notes: list[str]
    elsewhere: list[Elsewhere]
    problems: list[FieldError]


class SegmentRow(Model):
    """One segment, for tables and exports."""

    start: str
    end: str
    count: int
    cidr: str | None
    kind: SegmentKind
    description: str
    allocation: str
    tenant: str
    type: str
    role: str
    held_by: int
    stranded: bool


class SegmentRows(Model):
    items: list[SegmentRow]
    total: int
    next: str | None


class FreeBlock(Model):
    start: str
    end: str
    count: int
    cidr: str | None
    fit_start: str
    fit_end: str
    best_fit: bool
    """Whether a request for so many addresses would be taken from here."""


class FreeBlocks(Model):
    pool: str
    size: int | None
    align: bool
    free: int
    holes: int
    largest: int
    best_fit: AddressRange | None
    blocks: list[FreeBlock]
    """At most a thousand, in order of address."""


class AdviceBlock(Model):
    name: str
    tenant: str | None
    range: AddressRange
    use: str
    since: datetime | None
    live_addresses: int
    note: str


class Opening(Model):
    """Blocks whose release would open a longer run."""

    release: list[AdviceBlock]
    live_addresses: int
    touches_reserved: bool
    hole: AddressRange
    gain: int
    meets: list[str]


class WaitingRequest(Model):
    name: str
    count: int


class Advice(Model):
    """Why a pool is scattered, and what would open a longer run."""

    pool: str
    cidr: str
    problem: str
    says: list[str]
    """The advice in sentences."""
    total: int | None
    available: int | None
    largest_free_block: int | None
    fragmentation_percent: int | None
    holes: list[AddressRange]
    waiting: list[WaitingRequest]
    unused: list[AdviceBlock]
    openings: list[Opening]


class Days(Model):
    """A band of days from now; null for what lies beyond the horizon."""

    low: float | None
    median: float | None
    high: float | None


class Band(Model):
    low: float
    median: float
    high: float


class LeavingBand(Model):
    low: float
    high: float


class TierForecast(Model):
    tier: Tier
    percent: int
    now: bool
    days: Days
    share: float
    """In which part of the futures it happens within the horizon."""


class RefusalForecast(Model):
    """When a block of this size is refused first."""

    size: int
    now: bool
    days: Days
    share: float


class ForecastRecord(Model):
    days: float
    arrivals: int
    addresses: int
    releases: int
    release_days: float
    pinned_left_out: int


class Forecast(Model):
    pool: str
    cidr: str
    problem: str
    """Why nothing is foretold; empty when something is."""
    total: int | None
    allocated: int | None
    largest_free_block: int | None
    band_percent: int
    horizon_days: int
    futures: int
    record: ForecastRecord | None
    net_addresses_per_day: Band | None
    leaving_per_day: LeavingBand | None
    tiers: list[TierForecast]
    refusals: list[RefusalForecast]


class UsagePoint(Model):
    at: datetime
    allocated: int


class Change(Model):
    """Something that happened to the pool's addresses."""

    at: datetime
    action: Literal["granted", "released"]
    allocation: str
    tenant: str
    type: str
    range: AddressRange


class History(Model):
    """How many addresses were held, as far as the record reaches: who left long ago is no longer on it."""

    pool: str
    total: int | None
    points: list[UsagePoint]
    """Oldest first, the last one now; a step function."""
    changes: list[Change]
    """Newest first, at most 200."""
    note: str
    """What the record cannot tell."""


# Writes.


class ReservedWrite(RequestBody):
    cidr: str
    description: str | None = None
    """Left out in an edit, a block that is there already keeps what it says."""


class WindowWrite(RequestBody):
    start: str
    end: str


class DefaultsWrite(RequestBody):
    """What is left out stays as it is; in a new pool it is 5 and 8."""

    nodes_per_tenant: int | None = None
    lb_pool_per_tenant: int | None = None


class PoolCreate(RequestBody):
    name: str
    cidr: str
    reserved: tuple[ReservedWrite, ...] = ()
    windows: tuple[WindowWrite, ...] = ()
    """Empty: the whole network but its first and last address."""
    defaults: DefaultsWrite | None = None


class PoolEdit(RequestBody):
    """What to change; what is left out stays as it is."""

    cidr: str | None = None
    reserved: list[ReservedWrite] | None = None
    windows: list[WindowWrite] | None = None
    defaults: DefaultsWrite | None = None
    grow_by: int | None = None
    """At least so many addresses more, where there is room; alone, without the other fields."""


class Fill(Model):
    total: int
    allocated: int
    available: int
    largest_free_block: int
    percent: int
    tiers: list[Tier]


class Stranded(Model):
    name: str
    tenant: str
    range: AddressRange


class PoolPreview(Model):
    """What a new pool or an edit would do; nothing was written."""

    allowed: bool
    errors: list[FieldError]
    warnings: list[str]
    stranded: list[Stranded]
    before: Fill | None
    after: Fill | None
    cidr: str
    windows: list[AddressRange]
    reserved: list[Reserved]
    yaml: str
    """The object as it would be written."""


class PoolOverlap(Model):
    trouble: str
    start: str
    end: str
    count: int
    subjects: list[str]
    message: str


class Overlaps(Model):
    items: list[PoolOverlap]
