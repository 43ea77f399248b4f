"""What a controller decides about allocations, as the design has it, with every guard removable.

A decision sees two things, each of any age: a version of the pool and a view of the allocations. It is free in what
it grants: any waiting requests, any free addresses, whatever a policy such as "best fit, oldest first" would choose.
What is safe here is safe under every policy.

`Decisions` is what the model asks. `Designed` answers from the design; `model.product` answers with Butler's own code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PENDING, FAILED, ALLOCATED, RELEASED = "Pending", "Failed", "Allocated", "Released"
WAITING = (PENDING, FAILED)
NOTHING_SEEN = -1000
"""`allocationsSeen` of a pool that never wrote it: every view is new enough."""


UNCLAIMED = NOTHING_SEEN - 1
"""Of a pool that has not claimed its network yet, after another one that was removed by force."""


class Allocation(NamedTuple):
    uid: int
    phase: str
    deleting: bool
    address: int
    version: int
    """Position in the log of allocation writes, which is also what a resourceVersion is."""


class Intent(NamedTuple):
    uid: int
    address: int


class Pool(NamedTuple):
    addresses: int
    """What it may hand out, a bit mask."""
    intents: tuple[Intent, ...] = ()
    seen: int = NOTHING_SEEN
    uid: int = 1
    deleting: bool = False
    created: int = NOTHING_SEEN
    """How far the log of allocations was when the pool came into being."""
    claimed: int = NOTHING_SEEN
    """How far it was when the pool had its claim."""


View = tuple[Allocation | None, ...]
"""All allocations at one moment, by name."""


@dataclass(frozen=True)
class Rules:
    """The guards. Those about versions are the model's own, the others decide what `Designed` proposes."""

    reserve_first: bool = True
    reserve_for_the_version_decided_on: bool = True
    commit_for_the_version_decided_on: bool = True
    views_reach_what_the_pool_has_seen: bool = True
    seen_covers_grants: bool = True
    seen_covers_carried_out_intents: bool = True
    intents_stay_until_carried_out: bool = True
    """Or else the next write forgets them, whatever became of the commit."""
    intents_survive_edits: bool = True
    """Or else one that an edit of the pool put outside is taken back."""
    intents_are_held: bool = True
    leaving_awaits_the_pool: bool = True
    pool_stays_while_held: bool = True
    requests_of_a_lost_pool_are_written: bool = True
    """Before another one has the network of a pool that was removed by force."""
    commit_what_was_read_while_the_pool_was_there: bool = True
    first_view_is_as_new_as_the_claim: bool = True


class Decisions(Protocol):
    """Everything that a controller may want to write, given what it sees."""

    def __hash__(self) -> int: ...

    def reserves(self, pool: Pool, view: View) -> Iterable[Pool]:
        """The next states of the pool to choose from; none when there is nothing to write."""
        ...

    def commits(self, pool: Pool, view: View) -> Iterable[Intent]: ...

    def refusals(self, pool: Pool, view: View) -> Iterable[int]:
        """Those to be told that nothing is free, by uid."""
        ...

    def releases(self, view: View) -> Iterable[int]: ...

    def leaves(self, pool: Pool | None, view: View) -> Iterable[int]:
        """Those whose finalizer may go, by uid. `pool` is None when it surely does not exist."""
        ...

    def may_go(self, pool: Pool, view: View) -> bool:
        """Whether a pool that is being deleted may lose its finalizer."""
        ...

    def fits(self, uid: int, free: int) -> bool:
        """Whether these addresses would do for a request."""
        ...


@dataclass(frozen=True)
class Designed:
    """The protocol of the design."""

    rules: Rules = field(default_factory=Rules)

    def reserves(self, pool: Pool, view: View) -> Iterator[Pool]:
        kept = self._kept(pool, view)
        promised = {intent.uid for intent in kept}
        waiting = [
            allocation
            for allocation in view
            if allocation is not None and _asks(allocation) and allocation.uid not in promised
        ]
        free = list(_bits(self._free(pool, kept, view))) if not pool.deleting and self.rules.reserve_first else []
        for count in range(min(len(waiting), len(free)) + 1):
            for chosen in combinations(waiting, count):
                for addresses in permutations(free, count):
                    grants = [Intent(each.uid, address) for each, address in zip(chosen, addresses, strict=True)]
                    after = pool._replace(
                        intents=tuple(sorted([*kept, *grants])), seen=self._seen(pool, view, kept, chosen)
                    )
                    if after != pool:
                        yield after

    def commits(self, pool: Pool, view: View) -> Iterator[Intent]:
        waiting = {allocation.uid for allocation in view if allocation is not None and _asks(allocation)}
        if self.rules.reserve_first:
            yield from (intent for intent in pool.intents if intent.uid in waiting)
            return
        for uid in waiting:
            for address in _bits(self._free(pool, (), view)):
                yield Intent(uid, address)

    def refusals(self, pool: Pool, view: View) -> Iterator[int]:
        kept = self._kept(pool, view)
        promised = {intent.uid for intent in kept}
        if self._free(pool, kept, view) and not pool.deleting:
            return
        for allocation in view:
            if (
                allocation is not None
                and _asks(allocation)
                and allocation.phase == PENDING
                and allocation.uid not in promised
            ):
                yield allocation.uid

    def releases(self, view: View) -> Iterator[int]:
        return (
            allocation.uid
            for allocation in view
            if allocation is not None and allocation.deleting and allocation.phase != RELEASED
        )

    def leaves(self, pool: Pool | None, view: View) -> Iterator[int]:
        for allocation in view:
            if allocation is not None and _is_leaving(allocation):
                noted = pool is None or pool.seen >= allocation.version
                if noted or not self.rules.leaving_awaits_the_pool:
                    yield allocation.uid

    def may_go(self, pool: Pool, view: View) -> bool:
        if not self.rules.pool_stays_while_held:
            return True
        live = any(allocation is not None and allocation.phase == ALLOCATED for allocation in view)
        return not live and not self._kept(pool, view)

    def fits(self, uid: int, free: int) -> bool:
        return free != 0

    def _kept(self, pool: Pool, view: View) -> tuple[Intent, ...]:
        by_uid = {allocation.uid: allocation for allocation in view if allocation is not None}
        kept = []
        for intent in pool.intents:
            found = by_uid.get(intent.uid)
            if found is None or found.phase not in WAITING:
                continue
            if not self.rules.intents_stay_until_carried_out:
                continue
            if not self.rules.intents_survive_edits and not intent.address & pool.addresses:
                continue
            kept.append(intent)
        return tuple(kept)

    def _free(self, pool: Pool, kept: Iterable[Intent], view: View) -> int:
        held = 0
        for allocation in view:
            if allocation is not None and allocation.phase == ALLOCATED:
                held |= allocation.address
        if self.rules.intents_are_held:
            for intent in kept:
                held |= intent.address
        return pool.addresses & ~held

    def _seen(self, pool: Pool, view: View, kept: tuple[Intent, ...], granted: Iterable[Allocation]) -> int:
        accounted = [allocation for allocation in view if allocation is not None and _is_leaving(allocation)]
        if self.rules.seen_covers_grants:
            accounted += granted
        named = {intent.uid for intent in pool.intents}
        dropped = named - {intent.uid for intent in kept}
        for allocation in view:
            if allocation is None or allocation.uid not in named:
                continue
            if (
                self.rules.seen_covers_carried_out_intents
                if allocation.uid in dropped
                else self.rules.seen_covers_grants
            ):
                accounted.append(allocation)
        return max((pool.seen, *(allocation.version for allocation in accounted)))


def _asks(allocation: Allocation) -> bool:
    return allocation.phase in WAITING and not allocation.deleting


def _is_leaving(allocation: Allocation) -> bool:
    return allocation.phase == RELEASED and allocation.deleting


def _bits(addresses: int) -> Iterator[int]:
    bit = 1
    while bit <= addresses:
        if addresses & bit:
            yield bit
        bit <<= 1
