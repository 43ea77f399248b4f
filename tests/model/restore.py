"""The model of a restore: the server's versions go back under controllers that remember what never was.

One pool, a few names of allocations, one snapshot and one restore, each at any moment. After the restore the server
counts on from the version of the snapshot, and gives the versions that were lost to other writes. Here versions are
numbers, and one counter serves the pool and the allocations, as in etcd: that two objects get the same number twice is
what this model is about.

A controller has two caches, of the pool and of the allocations. Each has contents, a position and a watch:

    open      it hears of every write after its position
    dead      the server is another, and the connection does not say so yet: it hears nothing and looks open
    cut       the connection is known to be lost
    reopened  it hears again, of what comes after its position; that is nothing for as long as the server is behind it
    doubted   it has to list anew; what it knew is still there

`butler.kube.cache` and `.timeline` turn one into the other, and `NetworkPoolController.reconcile` asks for them before
it decides: `Rules` has what it asks. The decisions themselves are those of `model.deciding`, or Butler's own.

Beside the controllers that live through the restore there is one that always sees the present, as one does that was
started later. Time is left out but for one assumption, `World.a_restore_takes_time`: no operator stops etcd, restores
it, starts it and has a write accepted within the ten seconds for which a cache trusts its last contact
(`LONGEST_BLIND`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from model.allocations import NAMES, Write, address_told, wanted_writes
from model.deciding import (
    ALLOCATED,
    FAILED,
    NOTHING_SEEN,
    PENDING,
    RELEASED,
    WAITING,
    Allocation,
    Designed,
    Intent,
    Pool,
    View,
)
from model.search import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from model.deciding import Decisions

T = TypeVar("T")

OPEN, DEAD, CUT, REOPENED, DOUBTED = "open", "dead", "cut", "reopened", "doubted"
FOLLOWED = (OPEN, DEAD)
NOWHERE = -1
"""The position of a cache that has to list: what it had is no proof of anything."""
POOL = -1
"""In the log, an entry about the pool rather than about the allocation of a name."""
SURVIVORS = ("A", "B")


class PoolAt(NamedTuple):
    pool: Pool
    version: int


class Cache(NamedTuple):
    contents: Any
    """A PoolAt or a View."""
    position: int
    watch: str = OPEN
    lost: bool = False
    """The last contact was with the server as it was before the restore, and beyond the snapshot."""

    @property
    def ahead(self) -> int:
        """How far its contents go: the answer to a write is taken in before the watch tells of it."""
        return max(self.position, self.contents.version) if isinstance(self.contents, PoolAt) else self.position


class Mind(NamedTuple):
    pools: Cache
    allocations: Cache
    under_way: PoolAt | None = None
    """The pool of a reconcile that had begun when everything known was called in question."""


def _with_cache(mind: Mind, kind: str, cache: Cache) -> Mind:
    return mind._replace(pools=cache) if kind == "pools" else mind._replace(allocations=cache)


class Snapshot(NamedTuple):
    revision: int
    pool: PoolAt
    view: View


class Budget(NamedTuple):
    creations: int = 1
    releases: int = 0
    restores: int = 1
    given_up: int = 0
    """Writes that are on their way when the server is restored, and arrive later: the second thing that is left."""


class Late(NamedTuple):
    """A write on its way, for the version that it names."""

    write: Write
    version: int


class State(NamedTuple):
    revision: int
    pool: PoolAt
    view: View
    log: tuple[tuple[int, Any], ...]
    """What was written since the oldest position that a cache still has, up to the newest revision."""
    minds: tuple[Mind, ...]
    snapshot: Snapshot | None
    late: Late | None
    born: tuple[int, ...]
    budget: Budget


@dataclass(frozen=True)
class Rules:
    """What Butler does about versions that go back. Each can be taken away."""

    reopened_watches_are_compared: bool = True
    """Nothing counts as seen on a watch that was opened again before a quorum read was not behind it."""
    answers_are_compared: bool = True
    """With that read, the answers to writes count as seen, too, though the watch has not told of them."""
    nothing_is_resumed_after_long: bool = True
    """Who was without contact for long lists anew, because the server may have passed the old position."""
    compared_in_time: bool = True
    """Nor does that read count when its answer comes after long."""
    all_caches_doubt: bool = True
    """Proof from one cache makes all of the process list anew."""
    older_objects_are_proof: bool = True
    a_grant_confirms_contact: bool = True
    """Before deciding on a pool that a request waits for, the last contact is recent, or a quorum read is made."""
    pools_are_followed: bool = True
    """Nothing is decided on a pool that the cache of pools does not show, or shows without following the server."""
    seen_is_taken_back: bool = True
    """A pool that has seen more than there is gets what there is, on a view as new as the pool."""
    take_back_on_a_new_view: bool = True


@dataclass(frozen=True)
class World:
    survivors: int = 1
    names: int = 2
    addresses: int = 3
    held: int = 1
    """How many allocations hold an address at the beginning."""
    waiting: int = 0
    """How many more wait."""
    seen: int = NOTHING_SEEN
    """What the pool says at the beginning that it has seen."""
    dead_connections: bool = False
    """Connections may look open after the restore; that is noticed before the server has passed what they told."""
    dead_for_long: bool = False
    """Or they are not: the first thing that is left, in docs/safety.md."""
    a_restore_takes_time: bool = True
    writes: int | None = None
    """How many writes are looked at. Without its guards the protocol writes for ever; with them it needs no bound."""
    bumped: bool = False
    """Restored as the documentation says: versions go on far beyond all that were seen, and old ones are compacted."""
    budget: Budget = field(default_factory=Budget)


FIRST = 10
BUMP = 100


@dataclass(frozen=True)
class RestoreModel:
    rules: Rules = field(default_factory=Rules)
    world: World = field(default_factory=World)
    decisions: Decisions = field(default_factory=Designed)
    only_duplicates: bool = False

    def initial(self) -> State:
        world = self.world
        view: list[Allocation | None] = [None] * world.names
        for slot in range(world.held):
            view[slot] = Allocation(slot, ALLOCATED, deleting=False, address=1 << slot, version=slot + 1)
        for slot in range(world.held, world.held + world.waiting):
            view[slot] = Allocation(slot, PENDING, deleting=False, address=0, version=slot + 1)
        pool = PoolAt(Pool(world.addresses, seen=world.seen), world.names + 1)
        mind = Mind(Cache(pool, FIRST), Cache(tuple(view), FIRST))
        born = tuple(int(allocation is not None) for allocation in view)
        return State(FIRST, pool, tuple(view), (), (mind,) * world.survivors, None, None, born, world.budget)

    def canonical(self, state: State) -> State:
        if len(state.minds) == 2:
            first, second = state.minds
            if repr(first) > repr(second):
                return state._replace(minds=(second, first))
        return state

    # What must never be.

    def broken(self, state: State) -> str:
        live = [allocation for allocation in state.view if allocation is not None and allocation.phase == ALLOCATED]
        for index, one in enumerate(live):
            for other in live[:index]:
                if one.address & other.address:
                    return f"{self._name(other.uid)} and {self._name(one.uid)} both hold {address_told(one.address)}"
        return ""

    def unfinished(self, state: State) -> str:
        held = 0
        for allocation in state.view:
            held |= allocation.address if allocation is not None and allocation.phase == ALLOCATED else 0
        for intent in state.pool.pool.intents:
            held |= intent.address
        free = state.pool.pool.addresses & ~held
        for allocation in state.view:
            if allocation is not None and allocation.phase in WAITING and self.decisions.fits(allocation.uid, free):
                return f"{self._name(allocation.uid)} waits for ever though {address_told(free)} is free"
        return ""

    # What may happen.

    def steps(self, state: State) -> Iterator[Step[State]]:
        if self.world.writes is None or state.revision < FIRST + self.world.writes:
            for step in self._steps(state):
                if self.world.dead_for_long or not _passed(step.after):
                    yield step

    def _steps(self, state: State) -> Iterator[Step[State]]:
        for who in range(len(state.minds)):
            yield from self._follow(state, who)
            yield from self._decide(state, who)
        yield from self._newcomer(state)
        yield from self._late(state)
        yield from self._people(state)
        yield from self._operator(state)

    def _people(self, state: State) -> Iterator[Step[State]]:
        left = state.budget
        for slot, now in enumerate(state.view):
            if now is None and left.creations and (slot == 0 or state.born[slot - 1]):
                uid = slot + len(state.view) * state.born[slot]
                after = state._replace(
                    born=_put(state.born, slot, state.born[slot] + 1),
                    budget=left._replace(creations=left.creations - 1),
                )
                made = Allocation(uid, PENDING, deleting=False, address=0, version=0)
                yield Step(f"a user creates {self._name(uid)}", self._wrote(after, slot, made), outside=True)
            if now is not None and left.releases and now.phase != RELEASED:
                after = state._replace(budget=left._replace(releases=left.releases - 1))
                after = self._wrote(after, slot, now._replace(phase=RELEASED))
                yield Step(f"the sweep releases {self._name(now.uid)}", after, outside=True)

    def _operator(self, state: State) -> Iterator[Step[State]]:
        if not state.budget.restores:
            return
        if state.snapshot is None:
            snapshot = Snapshot(state.revision, state.pool, state.view)
            yield Step("a snapshot is taken", state._replace(snapshot=snapshot), outside=True)
        elif state.snapshot.revision < state.revision:
            watches = (CUT, DEAD) if self.world.dead_connections else (CUT,)
            for watch in watches:
                yield self._restored(state, state.snapshot, watch)

    def _restored(self, state: State, snapshot: Snapshot, watch: str) -> Step[State]:
        def cut(cache: Cache) -> Cache:
            if self.world.bumped:
                return cache._replace(watch=DOUBTED, position=NOWHERE)  # what it asks for is compacted: 410
            if cache.watch == DOUBTED:
                return cache
            if cache.ahead <= snapshot.revision:
                return cache._replace(watch=CUT)
            return cache._replace(watch=watch, lost=True)

        lost = state.revision - snapshot.revision
        base = state.revision - len(state.log)
        after = state._replace(
            revision=snapshot.revision + (BUMP if self.world.bumped else 0),
            pool=snapshot.pool,
            view=snapshot.view,
            log=() if self.world.bumped else state.log[: max(0, snapshot.revision - base)],
            minds=tuple(Mind(cut(mind.pools), cut(mind.allocations), mind.under_way) for mind in state.minds),
            snapshot=None,
            budget=state.budget._replace(restores=0),
        )
        words = f"the server is restored, and {lost} writes are lost: {self._told_all(after)}"
        return Step(words if watch == CUT else f"{words}; no connection says so", after, outside=True)

    # How caches follow.

    def _follow(self, state: State, who: int) -> Iterator[Step[State]]:
        mind, name = state.minds[who], SURVIVORS[who]
        for kind in ("pools", "allocations"):
            cache: Cache = getattr(mind, kind)
            if cache.watch in (OPEN, REOPENED) and cache.position < state.revision:
                yield Step(f"{name} hears of the {kind} at {cache.position + 1}", self._heard(state, who, kind))
            if cache.watch == DEAD:
                after = self._minded(state, who, _with_cache(mind, kind, cache._replace(watch=CUT)))
                yield Step(f"{name} notices that its connection for {kind} is dead", after)
            if cache.watch == CUT and self._may_resume(state, cache):
                watch = REOPENED if self.rules.reopened_watches_are_compared else OPEN
                reopened = cache._replace(watch=watch, lost=cache.lost and watch == REOPENED)
                yield Step(
                    f"{name} opens its watch of {kind} again, from {cache.position} on",
                    self._minded(state, who, _with_cache(mind, kind, reopened)),
                )
            if cache.watch in (CUT, DOUBTED):
                yield from self._lists(state, who, kind)
            if cache.watch == REOPENED:
                yield from self._compares(state, who, kind)

    def _may_resume(self, state: State, cache: Cache) -> bool:
        if not cache.lost or not self.rules.nothing_is_resumed_after_long:
            return True
        return state.revision < cache.ahead

    def _seen(self, cache: Cache) -> int:
        """What a read of the server's newest version is compared with."""
        if cache.watch == DOUBTED:
            return NOWHERE
        return cache.ahead if self.rules.answers_are_compared else cache.position

    def _heard(self, state: State, who: int, kind: str) -> State:
        mind = state.minds[who]
        cache: Cache = getattr(mind, kind)
        slot, value = state.log[cache.position - state.revision]
        contents = cache.contents
        if kind == "pools" and slot == POOL and value.version > contents.version:
            contents = value
        if kind == "allocations" and slot != POOL:
            contents = _put(contents, slot, value)
        heard = cache._replace(contents=contents, position=cache.position + 1)
        return self._minded(state, who, _with_cache(mind, kind, heard))

    def _lists(self, state: State, who: int, kind: str) -> Iterator[Step[State]]:
        mind, name = state.minds[who], SURVIVORS[who]
        cache: Cache = getattr(mind, kind)
        listed = Cache(state.pool if kind == "pools" else state.view, state.revision)
        words = f"{name} lists the {kind}, at {state.revision}"
        if state.revision >= self._seen(cache):
            yield Step(words, self._minded(state, who, _with_cache(mind, kind, listed)))
            return
        for doubted in self._went_back(mind, besides=kind):
            after = self._minded(state, who, _with_cache(doubted, kind, listed))
            yield Step(f"{words}, and sees that versions went back{_under_way(doubted)}", after)

    def _compares(self, state: State, who: int, kind: str) -> Iterator[Step[State]]:
        mind, name = state.minds[who], SURVIVORS[who]
        cache: Cache = getattr(mind, kind)
        if state.revision >= self._seen(cache):
            if self.rules.compared_in_time and not self._may_resume(state, cache):
                doubted = _with_cache(mind, kind, cache._replace(watch=DOUBTED, position=NOWHERE))
                words = f"{name} is told too late that the server is at {state.revision}, and lists the {kind} anew"
                yield Step(words, self._minded(state, who, doubted))
                return
            verified = cache._replace(watch=OPEN, lost=False)
            words = f"{name} finds the server at {state.revision}, not behind its {kind} at {cache.position}"
            yield Step(words, self._minded(state, who, _with_cache(mind, kind, verified)))
            return
        for doubted in self._went_back(mind, only=kind):
            words = f"{name} finds the server at {state.revision}, behind its {kind} at {cache.position}"
            yield Step(f"{words}{_under_way(doubted)}", self._minded(state, who, doubted))

    def _went_back(self, mind: Mind, *, besides: str = "", only: str = "") -> list[Mind]:
        """Everything is called in question; a reconcile may be under way, with the pool as it was."""
        kinds = ("pools", "allocations") if self.rules.all_caches_doubt else (only,) if only else ()
        doubted = mind._replace(
            **{kind: getattr(mind, kind)._replace(watch=DOUBTED, position=NOWHERE) for kind in kinds if kind != besides}
        )
        return [doubted, doubted._replace(under_way=mind.pools.contents)]

    # What controllers do.

    def _decide(self, state: State, who: int) -> Iterator[Step[State]]:
        mind, name = state.minds[who], SURVIVORS[who]
        if mind.under_way is not None:
            yield Step(f"{name} ends what was under way", self._minded(state, who, mind._replace(under_way=None)))
            if not self.rules.pools_are_followed:
                yield from self._pass(state, who, mind.under_way)
        if mind.pools.watch == DOUBTED or mind.allocations.watch == DOUBTED:
            return  # workers wait for both
        if mind.pools.watch in FOLLOWED or not self.rules.pools_are_followed:
            yield from self._pass(state, who, mind.pools.contents)

    def _pass(self, state: State, who: int, known: PoolAt) -> Iterator[Step[State]]:
        mind, name = state.minds[who], SURVIVORS[who]
        cache, pool = mind.allocations, known.pool
        if cache.watch not in FOLLOWED:
            return
        for kind in ("pools", "allocations") if self._must_ask(mind) else ():
            trusted: Cache = getattr(mind, kind)
            if trusted.watch == DEAD and state.revision < self._seen(trusted):
                for doubted in self._went_back(mind, only=kind):
                    words = f"{name} asks before it grants, and the server is behind its {kind}{_under_way(doubted)}"
                    yield Step(words, self._minded(state, who, doubted))
                return
        if cache.position < pool.seen:
            yield from self._take_back(state, who, known)
            return
        writes = wanted_writes(self.decisions, pool, cache.contents, True, False)
        reserves = [write for write in writes if write.kind == "reserve"]
        first = [write for write in reserves if not _only_forgets(pool, write.pool)]
        for write in writes:
            if write.kind == "commit" and first:
                continue  # the pool is written first, and a conflict ends the pass
            yield from self._attempt(state, who, known, write)

    def _must_ask(self, mind: Mind) -> bool:
        """Whether contact has to be confirmed by a read before this is decided on."""
        waits = any(content is not None and content.phase in WAITING for content in mind.allocations.contents)
        return self.rules.a_grant_confirms_contact and waits and self.world.a_restore_takes_time

    def _take_back(self, state: State, who: int, known: PoolAt) -> Iterator[Step[State]]:
        mind, name = state.minds[who], SURVIVORS[who]
        cache, pool = mind.allocations, known.pool
        if state.revision >= pool.seen or not self.rules.seen_is_taken_back:
            return
        if cache.position < known.version and self.rules.take_back_on_a_new_view:
            doubted = mind._replace(allocations=cache._replace(watch=DOUBTED, position=NOWHERE))
            yield Step(f"{name} wants allocations as new as the pool", self._minded(state, who, doubted))
            return
        write = Write("reserve", pool=pool._replace(seen=cache.position))
        yield from self._attempt(state, who, known, write)

    def _attempt(self, state: State, who: int, known: PoolAt, write: Write) -> Iterator[Step[State]]:
        name, mind = SURVIVORS[who], state.minds[who]
        version = self._version_for(mind, known, write)
        if state.budget.given_up and state.budget.restores and state.late is None:
            after = state._replace(late=Late(write, version), budget=state.budget._replace(given_up=0))
            yield Step(f"{name} sends, and it is long on its way: {self._told(write)}", after, outside=True)
        if version == self._newest(state, write):
            yield self._arrives(state, write, f"{name} writes: ", who)
        elif write.kind == "reserve":
            yield from self._conflict(state, who, known)

    def _version_for(self, mind: Mind, known: PoolAt, write: Write) -> int:
        if write.kind == "reserve":
            return known.version
        found = mind.allocations.contents[write.uid % len(mind.allocations.contents)]
        return found.version

    def _newest(self, state: State, write: Write) -> int:
        """The version that a write has to name to be accepted; -1 where its object does not exist."""
        if write.kind == "reserve":
            return state.pool.version
        found = state.view[write.uid % len(state.view)]
        return found.version if found is not None and found.uid == write.uid else -1

    def _conflict(self, state: State, who: int, known: PoolAt) -> Iterator[Step[State]]:
        """The pool is read again."""
        mind, name, found = state.minds[who], SURVIVORS[who], state.pool
        cache, words = mind.pools, f"{name} meets a conflict and reads the pool, at {found.version}"
        if found.version < cache.contents.version and self.rules.older_objects_are_proof:
            for doubted in self._went_back(mind, only="pools"):
                yield Step(f"{words}: versions went back{_under_way(doubted)}", self._minded(state, who, doubted))
        elif found.version > cache.position and found.version > cache.contents.version and cache.position != NOWHERE:
            after = mind._replace(pools=cache._replace(contents=found))
            yield Step(words, self._minded(state, who, after))

    def _newcomer(self, state: State) -> Iterator[Step[State]]:
        """A controller that was started later, and sees everything as it is."""
        pool = state.pool.pool
        if pool.seen > state.revision:
            if self.rules.seen_is_taken_back:
                yield self._arrives(state, Write("reserve", pool=pool._replace(seen=state.revision)), "C writes: ")
            return
        for write in wanted_writes(self.decisions, pool, state.view, True, False):
            yield self._arrives(state, write, "C writes: ")

    def _late(self, state: State) -> Iterator[Step[State]]:
        if state.late is None or state.budget.restores:
            return
        before, late = state._replace(late=None), state.late
        yield Step("what was on its way is lost", before, outside=True)
        if self._newest(state, late.write) == late.version:
            arrived = self._arrives(before, late.write, "what was on its way during the restore arrives: ")
            yield Step(arrived.words, arrived.after, arrived.broken, outside=True)

    def _arrives(self, state: State, write: Write, who: str, mind: int | None = None) -> Step[State]:
        words = f"{who}{self._told(write)}"
        if write.kind == "reserve":
            assert write.pool is not None
            after = self._wrote(state, POOL, state.pool.pool._replace(intents=write.pool.intents, seen=write.pool.seen))
            if mind is not None:
                pools = after.minds[mind].pools
                if pools.position != NOWHERE and after.revision > pools.position:
                    ours = after.minds[mind]._replace(pools=pools._replace(contents=after.pool))
                    after = self._minded(after, mind, ours)
            return Step(words, after)
        slot = write.uid % len(state.view)
        found = state.view[slot]
        assert found is not None
        if write.kind == "commit":
            broken = ""
            if not self.only_duplicates and Intent(write.uid, write.address) not in state.pool.pool.intents:
                promised = f"{self._name(write.uid)} gets {address_told(write.address)}"
                broken = f"{promised}, which the pool has not reserved for it"
            granted = found._replace(phase=ALLOCATED, address=write.address)
            return Step(words, self._wrote(state, slot, granted), broken)
        phase = {"refuse": FAILED, "release": RELEASED}[write.kind]
        return Step(words, self._wrote(state, slot, found._replace(phase=phase)))

    def _wrote(self, state: State, slot: int, value: Any) -> State:
        revision = state.revision + 1
        if slot == POOL:
            entry: Any = PoolAt(value, revision)
            state = state._replace(pool=entry)
        else:
            entry = value._replace(version=revision)
            state = state._replace(view=_put(state.view, slot, entry))
        return _trimmed(state._replace(revision=revision, log=(*state.log, (slot, entry))))

    def _minded(self, state: State, who: int, mind: Mind) -> State:
        return _trimmed(state._replace(minds=_put(state.minds, who, mind)))

    # Words.

    def _name(self, uid: int) -> str:
        again, slot = divmod(uid, self.world.names)
        return NAMES[slot] + "'" * again

    def _told(self, write: Write) -> str:
        if write.kind == "reserve":
            assert write.pool is not None
            return f"the pool has {self._pool_told(write.pool)}"
        name = self._name(write.uid)
        match write.kind:
            case "commit":
                return f"{name} is Allocated {address_told(write.address)}"
            case "refuse":
                return f"{name} is Failed, nothing is free"
        return f"{name} is Released"

    def _pool_told(self, pool: Pool) -> str:
        promised = ", ".join(f"{self._name(intent.uid)} -> {address_told(intent.address)}" for intent in pool.intents)
        seen = "" if pool.seen == NOTHING_SEEN else f", seen {pool.seen}"
        return f"intents {promised or 'none'}{seen}"

    def _told_all(self, state: State) -> str:
        told = [
            " ".join(
                filter(
                    None,
                    (
                        self._name(allocation.uid),
                        f"{allocation.phase}",
                        address_told(allocation.address) if allocation.address else "",
                    ),
                )
            )
            for allocation in state.view
            if allocation is not None
        ]
        pool = self._pool_told(state.pool.pool)
        return f"{', '.join(told) or 'no allocations'}, the pool {pool}, at {state.revision}"


def _only_forgets(before: Pool, after: Pool | None) -> bool:
    """Whether a write may wait for a better occasion, and commits go on without it."""
    return after is not None and set(after.intents) < set(before.intents)


def _passed(state: State) -> bool:
    """Whether the server has passed the position of a watch that is dead without its client knowing."""
    caches = [cache for mind in state.minds for cache in (mind.pools, mind.allocations)]
    return any(cache.watch == DEAD and cache.lost and state.revision >= cache.ahead for cache in caches)


def _under_way(mind: Mind) -> str:
    return ", in the middle of a reconcile" if mind.under_way is not None else ""


def _trimmed(state: State) -> State:
    """Forget the parts of the log that no cache needs any more."""
    positions = [
        cache.position for mind in state.minds for cache in (mind.pools, mind.allocations) if cache.position != NOWHERE
    ]
    needed = state.revision - min((*positions, state.revision))
    return state if needed >= len(state.log) else state._replace(log=state.log[len(state.log) - needed :])


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
