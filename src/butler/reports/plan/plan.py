"""A plan: what can be asked, and what is answered. Values only; `planning` finds the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.ipam.addresses import Family, Range

if TYPE_CHECKING:
    from butler.api.networkpool import CapacityTier, NetworkPoolSpec
    from butler.ipam.capacity import Capacity
    from butler.ipam.layout import FieldProblem

# The question.


@dataclass(frozen=True, slots=True)
class Tenants:
    """So many new clusters, one like the other."""

    count: int
    nodes: int | None = None
    """Workers of each; None: one, which gets the pool's usual number of addresses."""
    load_balancers: int | None = None
    """Load-balancer addresses of each; None: what the provider or the pool gives."""
    provider: str | None = None
    """None: where clusters go that name none, unless `pools` are given."""
    pools: tuple[str, ...] = ()
    """With a provider: only these of its pools. Without: these, in this order, by no provider's rules."""

    @property
    def by_a_provider(self) -> bool:
        return self.provider is not None or not self.pools


@dataclass(frozen=True, slots=True)
class Single:
    """One IPAllocation."""

    pool: str
    count: int | None
    type: IPAllocationType = IPAllocationType.LOAD_BALANCER


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a pool: another network, other windows, more that is kept back."""

    pool: str
    cidr: str | None = None
    windows: tuple[tuple[str, str], ...] = ()
    reserve: tuple[str, ...] = ()


# The answer.


@dataclass(frozen=True, slots=True)
class Block:
    """What becomes of one request: its range, or why there is none."""

    name: str
    tenant: str
    type: IPAllocationType
    pool: str
    count: int | None
    range: Range | None
    family: Family = Family.V4
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class TenantOutcome:
    """What becomes of one tenant; `why` is what its status would say, empty when it has all its addresses."""

    number: int
    name: str
    blocks: tuple[Block, ...]
    why: str = ""

    @property
    def fits(self) -> bool:
        return not self.why


@dataclass(frozen=True, slots=True)
class FillEstimate:
    """How full a pool is at one moment."""

    capacity: Capacity
    tiers: tuple[CapacityTier, ...]
    """Those reached, the lowest first."""


@dataclass(frozen=True, slots=True)
class PoolOutcome:
    """A pool before and after; None where its spec makes no sense."""

    name: str
    cidr: str
    before: FillEstimate | None
    after: FillEstimate | None


@dataclass(frozen=True, slots=True)
class StrandedRange:
    """An allocation whose addresses an edit would take out of its pool."""

    name: str
    tenant: str
    range: Range
    family: Family


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """What admission would say to an edit."""

    pool: str
    before: NetworkPoolSpec
    after: NetworkPoolSpec
    problems: tuple[FieldProblem, ...]
    warnings: tuple[str, ...]
    stranded: tuple[StrandedRange, ...]


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """The whole answer."""

    edit: EditOutcome | None
    provider: str | None
    """Where the tenants go; None for pools by themselves."""
    waiting: tuple[Block, ...]
    """Requests that wait at present, and what becomes of them."""
    tenants: tuple[TenantOutcome, ...]
    requests: tuple[Block, ...]
    pools: tuple[PoolOutcome, ...]
    shared: bool
    """Whether a tenant's two blocks come from one pool: then which of them lies first is settled by chance."""

    @property
    def edit_is_refused(self) -> bool:
        return self.edit is not None and bool(self.edit.problems)

    @property
    def first_failure(self) -> TenantOutcome | None:
        return next((tenant for tenant in self.tenants if not tenant.fits), None)

    @property
    def fits(self) -> bool:
        return (
            not self.edit_is_refused
            and self.first_failure is None
            and all(request.range is not None for request in self.requests)
        )


class CannotPlan(Exception):
    """A question that makes no sense for this estate, as a sentence."""
