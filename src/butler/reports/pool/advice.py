"""Why a pool cannot meet a request although it has the addresses, and what would open a longer run. Pure.

Between the holes of a pool lie blocks: allocations, and what is reserved. To take away blocks that follow each other
makes one hole of theirs and of the holes around them. Which blocks are worth it is a question of what it costs:

    nothing      blocks that are not in use, as far as Butler knows: being drained, idle growth, those of tenants that
                 are gone
    a move       blocks in use, or of tenants that Butler has never seen and cannot ask: every address in them may be
                 live, and would have to be given up by its user first
    a decision   reserved blocks, which an administrator keeps back for a reason; considered last

What is told about holes is computed by the allocator's own free space.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.labels import AllocationRole, ConditionType, Label
from butler.api.meta import ConditionStatus
from butler.api.objects import key_of
from butler.ipam.addresses import Family, Range, range_cidr
from butler.ipam.capacity import capacity_of
from butler.ipam.free_space import FreeSpace
from butler.ipam.requests import RequestRefusal, read_request
from butler.rules.allocation.held import readable_range, unreadable, why_nothing
from butler.rules.allocation.owner import recorded_owner, tenant_key
from butler.rules.pool.intents import promised
from butler.rules.pool.next_status import intent_range, layout_of
from butler.rules.pool.tenant_blocks import WAITING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.ipam.capacity import Capacity
    from butler.ipam.layout import PoolLayout
    from butler.reports.estate import Estate

MOST_TOGETHER = 4
"""How many blocks in use one piece of advice may ask for."""
MOST_AT_ONCE = 64
"""How many blocks of any kind."""
MOST_ADVICE = 5
NEVER_SEEN = "Butler has never seen this tenant, and cannot tell"


class ObstacleUse(StrEnum):
    """What a block is, the cheapest first."""

    DRAINING = "draining"
    """Butler is taking it back at this moment."""
    IDLE = "idle"
    """A growth block that no Service uses; it goes back by itself after the grace time."""
    OWNERLESS = "ownerless"
    """Its tenant is gone."""
    IN_USE = "inUse"
    RESERVED = "reserved"


@dataclass(frozen=True, slots=True)
class AddressObstacle:
    """A block between holes."""

    name: str
    """Of the IPAllocation; the network of a reserved block."""
    tenant: str
    range: Range
    use: ObstacleUse
    since: datetime | None = None
    note: str = ""
    """What else is known: what it is reserved for, or that its tenant may run where Butler does not see it."""

    @property
    def live(self) -> int:
        """How many of its addresses may be in use."""
        return self.range.size if self.use is ObstacleUse.IN_USE else 0


@dataclass(frozen=True, slots=True)
class HoleOpening:
    """Blocks that follow each other, and the hole that would be there without them."""

    blocks: tuple[AddressObstacle, ...]
    hole: Range
    gain: int
    """By how much the hole is longer than the longest that there is."""
    meets: tuple[str, ...]
    """Requests that wait now, and would fit."""

    @property
    def live(self) -> int:
        return sum(block.live for block in self.blocks)

    @property
    def is_free(self) -> bool:
        """Whether no tenant has to move, and nothing that is kept back on purpose is touched."""
        return not self.live and not self.asks_for_reserved

    @property
    def asks_for_reserved(self) -> bool:
        return any(block.use is ObstacleUse.RESERVED for block in self.blocks)


@dataclass(frozen=True, slots=True)
class PoolAdvice:
    """About one pool."""

    pool: str
    cidr: str
    family: Family
    problem: str
    """Why the pool cannot be judged; everything else is empty then."""
    capacity: Capacity | None = None
    holes: tuple[Range, ...] = ()
    """The longest first."""
    waiting: tuple[tuple[str, int], ...] = ()
    """Requests that no hole is long enough for: name and count."""
    unused: tuple[AddressObstacle, ...] = ()
    """All blocks that cost nothing, whether they open a longer hole or not."""
    openings: tuple[HoleOpening, ...] = ()
    """What would open a longer hole than there is, the best first."""


def advise(pool: NetworkPool, estate: Estate) -> PoolAdvice:
    """What to say about a pool."""
    name, cidr = pool.metadata.name, pool.spec.cidr
    layout, invalid = layout_of(pool)
    if layout is None:
        return PoolAdvice(name, cidr, Family.V4, f"it hands out nothing: {invalid.message if invalid else ''}")
    if problem := why_nothing(unreadable(key_of(pool), estate.allocations)):
        return PoolAdvice(name, cidr, layout.family, f"it hands out nothing: {problem}")
    held = list(_held(pool, layout, estate))
    free = FreeSpace.without(layout.usable, [obstacle.range for obstacle in held])
    waiting = tuple(_waiting(pool, layout, estate, free.largest))
    # One run that all requests fit into is as good as it gets: to take a tenant's addresses would mend nothing.
    is_well = free.holes == 1 and not waiting
    return PoolAdvice(
        name,
        cidr,
        layout.family,
        "",
        capacity_of(free, layout.total),
        tuple(free.largest_holes(free.holes)),
        waiting,
        tuple(obstacle for obstacle in held if not obstacle.live),
        () if is_well else tuple(_best(_openings(layout, held, free.largest, waiting))),
    )


# What is in the way.


def _held(pool: NetworkPool, layout: PoolLayout, estate: Estate) -> Iterator[AddressObstacle]:
    """Everything that holds addresses of the pool, whatever pool it names, in order of address."""
    found = [
        AddressObstacle(intent.name, "", intent_range(intent)[1], ObstacleUse.IN_USE, note="being granted")
        for intent in promised(pool, estate.allocations)
    ]
    for allocation in estate.allocations:
        held = readable_range(allocation)
        if held is not None and held[0] is layout.family and any(held[1].overlaps(span) for span in layout.usable):
            found.append(_obstacle(allocation, held[1]))
    return iter(sorted(found, key=lambda obstacle: (obstacle.range, obstacle.name)))


def _obstacle(allocation: IPAllocation, held: Range) -> AddressObstacle:
    use, since, note = _use(allocation)
    return AddressObstacle(allocation.metadata.name, str(tenant_key(allocation)), held, use, since, note)


def _use(allocation: IPAllocation) -> tuple[ObstacleUse, datetime | None, str]:
    status = allocation.status
    if status.draining_since is not None:
        return ObstacleUse.DRAINING, status.draining_since, ""
    if status.idle_since is not None and allocation.metadata.labels.get(Label.ALLOCATION_ROLE) == AllocationRole.GROWTH:
        return ObstacleUse.IDLE, status.idle_since, ""
    found = find_condition(status.conditions, ConditionType.TENANT_FOUND)
    if found is None or found.status is not ConditionStatus.FALSE:
        return ObstacleUse.IN_USE, None, ""
    if recorded_owner(allocation) is not None:
        return ObstacleUse.OWNERLESS, found.last_transition_time, "its tenant is gone"
    # Imported, or made ahead of its cluster: most likely for machines that run already, where Butler does not see them.
    return ObstacleUse.IN_USE, None, NEVER_SEEN


def _reserved(layout: PoolLayout) -> Iterator[AddressObstacle]:
    for block in layout.blocks:
        name = range_cidr(block.addresses, layout.family) or ""
        yield AddressObstacle(name, "", block.addresses, ObstacleUse.RESERVED, note=block.description)


def _waiting(pool: NetworkPool, layout: PoolLayout, estate: Estate, largest: int) -> Iterator[tuple[str, int]]:
    """Requests without a pin for which no hole is long enough."""
    for allocation in estate.of_pool(pool.metadata.name):
        if allocation.status.phase in WAITING and allocation.spec.pinned_range is None:
            try:
                count = read_request(allocation, layout).count
            except RequestRefusal:
                continue
            if count > largest:
                yield allocation.metadata.name, count


# What would open.


def _openings(
    layout: PoolLayout, held: Sequence[AddressObstacle], largest: int, waiting: Sequence[tuple[str, int]]
) -> Iterator[HoleOpening]:
    """Every run of blocks without which a longer hole would be there than there is."""
    every = sorted([*held, *_reserved(layout)], key=lambda obstacle: obstacle.range)
    for window in layout.windows:
        inside = [obstacle for obstacle in every if obstacle.range.overlaps(window)]
        for blocks, hole in _runs(window, inside):
            meets = tuple(name for name, count in waiting if count <= hole.size)
            found = HoleOpening(blocks, hole, hole.size - largest, meets)
            # To move a tenant and to give up what is kept back, both at once, is more than one would ask for.
            if found.gain > 0 and not (found.live and found.asks_for_reserved):
                yield found


def _runs(window: Range, inside: Sequence[AddressObstacle]) -> Iterator[tuple[tuple[AddressObstacle, ...], Range]]:
    """Blocks that follow each other in a window, as many as one would take together, and the hole in their place."""
    first = window.first
    for start, block in enumerate(inside):
        costly = 0
        for end in range(start, min(len(inside), start + MOST_AT_ONCE)):
            costly += inside[end].use in (ObstacleUse.IN_USE, ObstacleUse.RESERVED)
            if costly > MOST_TOGETHER:
                break
            last = inside[end + 1].range.first - 1 if end + 1 < len(inside) else window.last
            if first <= last:
                yield tuple(inside[start : end + 1]), Range(first, last)
        first = max(first, block.range.last + 1)


def _best(openings: Iterable[HoleOpening]) -> list[HoleOpening]:
    """The few to tell: what costs nothing, then the most gain for each live address, then what touches the reserved.

    Of several in one place only those are told that open more than the better ones.
    """
    told: list[HoleOpening] = []
    for opening in sorted(openings, key=_worth):
        if len(told) == MOST_ADVICE:
            break
        alike = [other for other in told if _kind(other) == _kind(opening) and other.hole.overlaps(opening.hole)]
        if all(other.hole.size < opening.hole.size for other in alike):
            told.append(opening)
    return told


def _kind(opening: HoleOpening) -> int:
    return 2 if opening.asks_for_reserved else 1 if opening.live else 0


def _worth(opening: HoleOpening) -> tuple[object, ...]:
    per_address = opening.gain / opening.live if opening.live else 0.0
    return (_kind(opening), -per_address, -opening.hole.size, len(opening.blocks), opening.hole)
