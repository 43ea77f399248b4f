"""The model of allocations: reserving in the pool, committing into the allocations, and everything that goes wrong.

One pool, a few names under which allocations come and go, and two controllers that do the same work at once: they
reserve, commit, refuse, release and take finalizers off. The server keeps a log of the pool's versions and one of
the allocations'; each controller has a position in either, which moves on one entry at a time, at any time, or
never. So views are stale by any amount, and those of pool and allocations are of different age.

A controller decides from its two views and writes, in one step. That covers a pause between the two, for however
long: it is the same as having stopped listening and deciding later. It covers an answer that gets lost: a view that
has not moved yet. It covers a crash before the write or after the write, for nothing is remembered but views, and a
controller that begins anew has one that is as good as any later one. What it does not cover is a write that is
still on its way when its controller has given it up, or died, and begun to work from newer views: such a write is
part of the state, and arrives at any later time or never.

People create allocations, delete them (finalizers hold them), create others of the same name, label them, edit the
pool; Butler's sweep releases them. Each happens a bounded number of times.

A write for a version that is no longer the newest is not offered, or forgotten at once: it would fail. The logs are
kept from the oldest position that a controller has, and numbers that only serve to be compared are renumbered, so
that the states are finite and few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from model.deciding import (
    ALLOCATED,
    FAILED,
    NOTHING_SEEN,
    PENDING,
    RELEASED,
    UNCLAIMED,
    WAITING,
    Allocation,
    Designed,
    Intent,
    Pool,
    Rules,
    View,
)
from model.search import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from model.deciding import Decisions

T = TypeVar("T")

NAMES = ("a", "b", "c")
CONTROLLERS = ("A", "B")


class Write(NamedTuple):
    """A write on its way, for the newest version of its object, or it would not be here any more."""

    kind: str
    uid: int = 0
    address: int = 0
    pool: Pool | None = None


class Mind(NamedTuple):
    """A controller: how far it has followed each log."""

    pool: int
    view: int


class Budget(NamedTuple):
    """How often the world outside may still do something."""

    creations: int = 2
    deletions: int = 0
    releases: int = 0
    labels: int = 0
    edits: int = 0
    given_up: int = 0
    """Writes whose controllers go on, or begin anew, without knowing what becomes of them."""
    vanishings: int = 0
    """A user removes an allocation's finalizer by hand: it is gone at once, whatever it held."""
    pool_deletions: int = 0
    forced: int = 0
    """The same for the pool."""


class State(NamedTuple):
    pools: tuple[Pool | None, ...]
    """The log of the pool, from the oldest version that a controller still looks at to the newest."""
    views: tuple[View, ...]
    minds: tuple[Mind, ...]
    promised: tuple[Intent, ...]
    """With any number of controllers: intents of former versions of the pool that a controller may still carry out."""
    abandoned: tuple[Write, ...]
    """Writes on their way whose sender no longer waits for the answer."""
    born: tuple[int, ...]
    """How many allocations had each name so far."""
    budget: Budget


@dataclass(frozen=True)
class World:
    controllers: int = 2
    """None stands for any number of them, each with any views it likes at any time."""
    names: int = 2
    addresses: tuple[int, ...] = (3,)
    """What the pool may be edited to hand out; the first is where it begins."""
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class AllocationsModel:
    rules: Rules = field(default_factory=Rules)
    world: World = field(default_factory=World)
    decisions: Decisions = field(default_factory=Designed)
    only_duplicates: bool = False
    """Ask about nothing but two allocations that hold the same address."""

    def initial(self) -> State:
        names = self.world.names
        view: View = (None,) * names
        minds = (Mind(0, 0),) * self.world.controllers
        return State((Pool(self.world.addresses[0]),), (view,), minds, (), (), (0,) * names, self.world.budget)

    # What must never be.

    def broken(self, state: State) -> str:
        live = [view for view in state.views[-1] if view is not None and view.phase == ALLOCATED]
        for index, one in enumerate(live):
            for other in live[:index]:
                if one.address & other.address:
                    return f"{self._name(other.uid)} and {self._name(one.uid)} both hold {address_told(one.address)}"
        return ""

    def unfinished(self, state: State) -> str:
        pool, view = state.pools[-1], state.views[-1]
        held = 0
        for allocation in view:
            if allocation is not None:
                held |= allocation.address if allocation.phase == ALLOCATED else 0
                if allocation.deleting:
                    return f"{self._name(allocation.uid)} is deleted and never goes"
        if pool is None:
            return ""
        if pool.deleting and not held:
            return "the pool is deleted and never goes"
        for intent in pool.intents:
            held |= intent.address
        free = 0 if pool.deleting else pool.addresses & ~held
        for allocation in view:
            if allocation is not None and allocation.phase in WAITING and self.decisions.fits(allocation.uid, free):
                return f"{self._name(allocation.uid)} waits for ever though {address_told(free)} is free"
        return ""

    def _committed(self, state: State, now: Allocation, write: Write) -> str:
        """What is wrong with a commit that arrives."""
        if self.only_duplicates:
            return ""
        if now.phase == ALLOCATED and now.address != write.address:
            return f"{self._name(now.uid)} had {address_told(now.address)} and now has {address_told(write.address)}"
        if now.phase == RELEASED:
            return f"{self._name(now.uid)} was released and comes back"
        pool = state.pools[-1]
        if pool is None or Intent(write.uid, write.address) not in pool.intents:
            return f"{self._name(now.uid)} gets {address_told(write.address)}, which the pool has not reserved for it"
        return ""

    # What may happen.

    def steps(self, state: State) -> Iterator[Step[State]]:
        for who in range(len(state.minds)):
            yield from self._controller(state, who)
        if not state.minds:
            yield from self._late_writers(state)
        for index, write in enumerate(state.abandoned):
            before = state._replace(abandoned=state.abandoned[:index] + state.abandoned[index + 1 :])
            yield self._arrives(before, write, "what was given up arrives: ")
            yield Step(f"what was given up is lost: {self._told(write, state)}", before, outside=True)
        yield from self._people(state)
        yield from self._people_and_the_pool(state)
        yield from self._claims(state)

    def _claims(self, state: State) -> Iterator[Step[State]]:
        """A new pool has its claim, and all that wait a version that no earlier pool knew.

        In one step, though it is many writes: each of them counts only for the version that was listed, and the claim
        comes last, so whatever gets in between makes the claiming controller start again.
        """
        pool = state.pools[-1]
        if pool is None or pool.claimed != UNCLAIMED:
            return
        if self.rules.requests_of_a_lost_pool_are_written:
            for slot, now in enumerate(state.views[-1]):
                if now is not None and now.phase in WAITING:
                    state = self._logged(state, slot, now)
        pool = state.pools[-1]
        assert pool is not None
        yield Step("the pool has its claim", self._pool(state, pool._replace(claimed=len(state.views) - 1)))

    def _people(self, state: State) -> Iterator[Step[State]]:
        view, left = state.views[-1], state.budget
        for slot, now in enumerate(view):
            name = NAMES[slot]
            if now is None:
                # Names are alike: the first of them is used first.
                if left.creations and (slot == 0 or state.born[slot - 1]):
                    born = _put(state.born, slot, state.born[slot] + 1)
                    uid = slot + len(view) * state.born[slot]
                    after = state._replace(born=born, budget=left._replace(creations=left.creations - 1))
                    after = self._logged(after, slot, Allocation(uid, PENDING, deleting=False, address=0, version=0))
                    yield Step(f"a user creates {self._name(uid)}", after, outside=True)
                continue
            called = self._name(now.uid)
            if left.vanishings:
                after = self._logged(state._replace(budget=left._replace(vanishings=left.vanishings - 1)), slot, None)
                yield Step(f"a user takes the finalizer off {called} and deletes it", after, outside=True)
            if now.deleting:
                continue
            if left.deletions:
                after = state._replace(budget=left._replace(deletions=left.deletions - 1))
                after = self._logged(after, slot, now._replace(deleting=True))
                yield Step(f"a user deletes {name} (its finalizer holds it)", after, outside=True)
            if left.labels:
                after = self._logged(state._replace(budget=left._replace(labels=left.labels - 1)), slot, now)
                yield Step(f"a user labels {called}", after, outside=True)
            if left.releases and now.phase != RELEASED:
                after = state._replace(budget=left._replace(releases=left.releases - 1))
                after = self._logged(after, slot, now._replace(phase=RELEASED))
                yield Step(f"the sweep releases {called}", after, outside=True)

    def _people_and_the_pool(self, state: State) -> Iterator[Step[State]]:
        pool, left = state.pools[-1], state.budget
        if pool is None:
            if left.pool_deletions:
                after = state._replace(budget=left._replace(pool_deletions=left.pool_deletions - 1))
                uid = 1 + max((item.uid for item in state.pools if item is not None), default=0)
                claimed = UNCLAIMED if self.world.budget.forced else NOTHING_SEEN
                for addresses in self.world.addresses:
                    words = f"a user creates the pool anew, with {address_told(addresses)}"
                    made = Pool(addresses, uid=uid, created=len(state.views) - 1, claimed=claimed)
                    yield Step(words, self._pool(after, made), outside=True)
            return
        if left.edits and not pool.deleting:
            for addresses in self.world.addresses:
                if addresses != pool.addresses:
                    after = state._replace(budget=left._replace(edits=left.edits - 1))
                    words = f"a user edits the pool: {address_told(pool.addresses)} becomes {address_told(addresses)}"
                    yield Step(words, self._pool(after, pool._replace(addresses=addresses)), outside=True)
        if left.pool_deletions and not pool.deleting:
            words = "a user deletes the pool (its finalizer holds it)"
            yield Step(words, self._pool(state, pool._replace(deleting=True)), outside=True)
        if left.forced and pool.deleting:
            after = state._replace(budget=left._replace(forced=left.forced - 1))
            yield Step("a user takes the finalizer off the pool by hand", self._pool(after, None), outside=True)

    # What controllers do.

    def _controller(self, state: State, who: int) -> Iterator[Step[State]]:
        name, mind = CONTROLLERS[who], state.minds[who]
        if mind.pool + 1 < len(state.pools):
            after = self._trimmed(_minded(state, who, mind._replace(pool=mind.pool + 1)))
            yield Step(f"{name} hears of the pool: {self._pool_told(state.pools[mind.pool + 1], state.views)}", after)
        if mind.view + 1 < len(state.views):
            after = self._trimmed(_minded(state, who, mind._replace(view=mind.view + 1)))
            news = self._news(state.views[mind.view], state.views[mind.view + 1])
            yield Step(f"{name} hears of the allocations: {news}", after)
        for write in self._wanted(state, mind):
            if not self._can_arrive(state, mind, write):
                continue
            yield self._arrives(state, write, f"{name} writes: ")
            if state.budget.given_up and write not in state.abandoned:
                budget = state.budget._replace(given_up=state.budget.given_up - 1)
                abandoned = tuple(sorted((*state.abandoned, write), key=repr))
                yield Step(
                    f"{name} gives up, or dies, before this has arrived: {self._told(write, state)}",
                    state._replace(abandoned=abandoned, budget=budget),
                    outside=True,
                )

    def _late_writers(self, state: State) -> Iterator[Step[State]]:
        """What a controller could write now if it had seen the pool and the allocations at any two moments."""
        told: set[Write] = set()
        for pool in range(len(state.pools)):
            for view in range(len(state.views)):
                mind = Mind(pool, view)
                for write in self._wanted(state, mind):
                    if write not in told and self._can_arrive(state, mind, write):
                        told.add(write)
                        yield self._arrives(state, write, f"{self._seeing(state, mind)} writes: ")
        now = state.pools[-1]
        if now is not None and state.promised:
            former = now._replace(intents=state.promised)
            for intent in self.decisions.commits(former, state.views[-1]):
                write = Write("commit", *intent)
                if write not in told:
                    yield self._arrives(state, write, "a controller with an old look at the pool writes: ")
        for allocation in state.views[-1]:
            # Some old look will always do to find nothing free.
            if allocation is not None and allocation.phase == PENDING and not allocation.deleting:
                after = self._logged(state, allocation.uid % self.world.names, allocation._replace(phase=FAILED))
                yield Step(
                    f"a controller writes: {self._told(Write('refuse', allocation.uid), state)}", after, outside=True
                )

    def _wanted(self, state: State, mind: Mind) -> tuple[Write, ...]:
        pool, view = state.pools[mind.pool], state.views[mind.view]
        reached = pool is None or mind.view >= pool.seen or not self.rules.views_reach_what_the_pool_has_seen
        if pool is not None and pool.seen == NOTHING_SEEN and self.rules.first_view_is_as_new_as_the_claim:
            reached = reached and mind.view >= pool.claimed
        gone = state.pools[-1] is None  # a consistent read
        return wanted_writes(self.decisions, pool, view, reached, gone)

    def _can_arrive(self, state: State, mind: Mind, write: Write) -> bool:
        """Whether the version that the controller looks at is the newest, or the server does not check it."""
        if write.kind in ("reserve", "pool goes"):
            newest = mind.pool == len(state.pools) - 1
            return newest or (write.kind == "reserve" and not self.rules.reserve_for_the_version_decided_on)
        slot = write.uid % len(state.born)
        now, seen = state.views[-1][slot], state.views[mind.view][slot]
        if now is None or now.uid != write.uid:
            return False
        if write.kind == "commit" and self.rules.commit_what_was_read_while_the_pool_was_there:
            pools = [pool for pool in state.pools[mind.pool :] if pool is not None]
            if any(pool.uid != pools[0].uid and now.version > pool.created for pool in pools):
                return False
        return now == seen or (write.kind == "commit" and not self.rules.commit_for_the_version_decided_on)

    def _arrives(self, state: State, write: Write, who: str) -> Step[State]:
        words = f"{who}{self._told(write, state)}"
        if write.kind == "pool goes":
            return Step(words, self._pool(state, None))
        if write.kind == "reserve":
            now = state.pools[-1]
            assert write.pool is not None
            if now is None or now.uid != write.pool.uid:
                return Step(f"{words}, in vain", state)
            return Step(words, self._pool(state, now._replace(intents=write.pool.intents, seen=write.pool.seen)))
        slot = write.uid % len(state.born)
        found = state.views[-1][slot]
        assert found is not None
        match write.kind:
            case "commit":
                after = self._logged(state, slot, found._replace(phase=ALLOCATED, address=write.address))
                return Step(words, after, self._committed(state, found, write))
            case "refuse":
                return Step(words, self._logged(state, slot, found._replace(phase=FAILED)))
            case "release":
                return Step(words, self._logged(state, slot, found._replace(phase=RELEASED)))
        return Step(words, self._logged(state, slot, None))

    def _pool(self, state: State, pool: Pool | None) -> State:
        """The pool has a new version: a controller about to write it for another one fails."""
        fenced = self.rules.reserve_for_the_version_decided_on

        def fails(write: Write) -> bool:
            return write.kind == "pool goes" or (write.kind == "reserve" and fenced)

        abandoned = tuple(write for write in state.abandoned if not fails(write))
        return self._trimmed(state._replace(pools=(*state.pools, pool), abandoned=abandoned))

    def _logged(self, state: State, slot: int, allocation: Allocation | None) -> State:
        """An allocation has a new version: a controller about to write it for another one fails."""
        if allocation is not None:
            allocation = allocation._replace(version=len(state.views))
        view = _put(state.views[-1], slot, allocation)
        uid = -1 if allocation is None else allocation.uid
        fenced = self.rules.commit_for_the_version_decided_on

        def fails(write: Write) -> bool:
            if write.kind in ("reserve", "pool goes") or write.uid % len(view) != slot:
                return False
            return fenced or write.kind != "commit" or write.uid != uid

        abandoned = tuple(write for write in state.abandoned if not fails(write))
        return self._trimmed(state._replace(views=(*state.views, view), abandoned=abandoned))

    def _trimmed(self, state: State) -> State:
        """Forget the parts of the logs that no controller looks at any more."""
        if state.minds:
            return _from(state, min(mind.pool for mind in state.minds), min(mind.view for mind in state.minds))
        pool, rules = state.pools[-1], self.rules
        former = 0
        if rules.reserve_for_the_version_decided_on and not self.world.budget.pool_deletions:
            # All that a former version is good for is to carry out its intents.
            former = len(state.pools) - 1
            waiting = {view.uid for view in state.views[-1] if view is not None and view.phase in WAITING}
            known = {*state.promised, *(intent for item in state.pools if item is not None for intent in item.intents)}
            promised = sorted(
                intent for intent in known if intent.uid in waiting and (pool is None or intent not in pool.intents)
            )
            state = state._replace(promised=tuple(promised))
        oldest = 0
        if rules.views_reach_what_the_pool_has_seen:
            oldest = max(0, min(-1 if item is None else item.seen for item in state.pools[former:]))
        return _from(state, former, oldest)

    def canonical(self, state: State) -> State:
        if not state.minds:
            return state
        first, second = state.minds
        return state if first <= second else state._replace(minds=(second, first))

    # Words.

    def _seeing(self, state: State, mind: Mind) -> str:
        old = []
        if mind.pool + 1 < len(state.pools):
            old.append(f"the pool as it was ({self._pool_told(state.pools[mind.pool], state.views)})")
        if mind.view + 1 < len(state.views):
            seen = [self._allocation_told(view) for view in state.views[mind.view] if view is not None]
            old.append(f"allocations as they were ({', '.join(seen) or 'none'})")
        return f"a controller that sees {' and '.join(old)}" if old else "a controller"

    def _name(self, uid: int) -> str:
        again, slot = divmod(uid, self.world.names)
        return NAMES[slot] + "'" * again

    def _told(self, write: Write, state: State) -> str:
        if write.kind == "reserve":
            return f"the pool has {self._pool_told(write.pool, state.views)}"
        if write.kind == "pool goes":
            return "the pool's finalizer is off, and it is gone"
        name = self._name(write.uid)
        match write.kind:
            case "commit":
                return f"{name} is Allocated {address_told(write.address)}"
            case "refuse":
                return f"{name} is Failed, nothing is free"
            case "release":
                return f"{name} is Released"
        return f"{name}'s finalizer is off, and it is gone"

    def _pool_told(self, pool: Pool | None, views: tuple[View, ...]) -> str:
        if pool is None:
            return "gone"
        promised = ", ".join(f"{self._name(intent.uid)} -> {address_told(intent.address)}" for intent in pool.intents)
        told = f"{address_told(pool.addresses)}, intents {promised or 'none'}"
        for view in views:
            for allocation in view:
                if allocation is not None and allocation.version == pool.seen:
                    return f"{told}, seen that {self._allocation_told(allocation)}"
        return told

    def _news(self, before: View, after: View) -> str:
        for old, new in zip(before, after, strict=True):
            if old != new:
                if new is None:
                    return f"{self._name(old.uid)} is gone" if old is not None else ""
                return self._allocation_told(new)
        return "nothing new"

    def _allocation_told(self, allocation: Allocation) -> str:
        what = allocation.phase
        if allocation.address:
            what += f" {address_told(allocation.address)}"
        return f"{self._name(allocation.uid)} is {what}{' and being deleted' if allocation.deleting else ''}"


@lru_cache(maxsize=1 << 18)
def wanted_writes(decisions: Decisions, pool: Pool | None, view: View, reached: bool, gone: bool) -> tuple[Write, ...]:
    """What a controller would write that sees this pool and this view.

    `reached`: the view is at least as new as the pool asks for. `gone`: there is no pool, by a consistent read.
    """
    writes = [Write("release", uid) for uid in decisions.releases(view)]
    if pool is not None or gone:
        writes += [Write("leave", uid) for uid in decisions.leaves(pool, view)]
    if pool is None or not reached or pool.claimed == UNCLAIMED:
        return tuple(writes)
    writes += [Write("commit", intent.uid, intent.address) for intent in decisions.commits(pool, view)]
    if pool.deleting and decisions.may_go(pool, view):
        return (*writes, Write("pool goes"))
    writes += [Write("reserve", pool=after) for after in decisions.reserves(pool, view)]
    writes += [Write("refuse", uid) for uid in decisions.refusals(pool, view)]
    return tuple(writes)


def _from(state: State, oldest_pool: int, oldest: int) -> State:
    """The logs from these positions on, with all positions numbered from there."""
    pools, views, minds, abandoned = state.pools[oldest_pool:], state.views[oldest:], state.minds, state.abandoned
    written = [write.pool for write in abandoned if write.pool is not None]
    named = [item for item in (*pools, *written) if item is not None]
    known = {number for item in named for number in (item.seen, item.created, item.claimed)}
    known.update(allocation.version for view in views for allocation in view if allocation is not None)
    # Older than the log: only which of two is older still matters.
    before = sorted(number for number in known if NOTHING_SEEN < number < oldest)
    renumbered = {number: index - len(before) for index, number in enumerate(before)}
    renumbered |= {NOTHING_SEEN: NOTHING_SEEN, UNCLAIMED: UNCLAIMED}
    if not oldest and not oldest_pool and all(old == new for old, new in renumbered.items()):
        return state

    def number(old: int) -> int:
        new = renumbered.get(old)
        return old - oldest if new is None else new

    def pool_of(pool: Pool) -> Pool:
        return pool._replace(seen=number(pool.seen), created=number(pool.created), claimed=number(pool.claimed))

    def write_of(write: Write) -> Write:
        return write if write.pool is None else write._replace(pool=pool_of(write.pool))

    def view_of(view: View) -> View:
        return tuple(
            [
                None if allocation is None else Allocation(*allocation[:4], version=number(allocation.version))
                for allocation in view
            ]
        )

    return State(
        tuple([None if pool is None else pool_of(pool) for pool in pools]),
        tuple([view_of(view) for view in views]),
        tuple([Mind(mind.pool - oldest_pool, mind.view - oldest) for mind in minds]),
        state.promised,
        tuple([write_of(write) for write in abandoned]),
        state.born,
        state.budget,
    )


def _minded(state: State, who: int, mind: Mind) -> State:
    return state._replace(minds=_put(state.minds, who, mind))


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def address_told(addresses: int) -> str:
    told = [f".{bit + 1}" for bit in range(addresses.bit_length()) if addresses >> bit & 1]
    return " and ".join(told) or "nothing"
