"""The model of claims: which network a pool may hand out from, when pools overlap and nobody admits them.

Two pools P and Q, three objects: each pool, with its own version, and the ConfigMap of claims, with its version. The
network is cut into a few pieces; a network is a set of them (a bit mask), so a pool of one piece grows over its
neighbour by an edit of its spec. Two controllers read the ConfigMap and a pool, each at any time, decide from what
they read, and write once, at any later time: being paused or having a stale cache is nothing but being late. A write
carries the version of the object it changes. A write that is bound to fail is forgotten at once, as if its controller
had already been told of the conflict; a crash or a lost answer is a controller that forgets what it read and
begins anew, which it may always do.

What the model leaves out: grants are one step on the pool (that reserving and committing is as good as one step is
what the model of allocations shows), so `live` is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from model.search import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

POOLS = ("P", "Q")
CONTROLLERS = ("A", "B")
PIECES = ("low", "high", "far")


class Entry(NamedTuple):
    """What the ConfigMap says of a pool. `made_for` is the pool's version that it was last made for."""

    network: int
    made_for: int


class Claims(NamedTuple):
    version: int
    entries: tuple[Entry | None, ...]


class Pool(NamedTuple):
    version: int
    spec: int
    claimed: int
    deleting: bool


class Write(NamedTuple):
    """A decided write on its way: to the ConfigMap, to a pool's claimedCIDR, or the removal of a pool's finalizer."""

    kind: str
    pool: int
    version: int
    network: int
    made_for: int


class Controller(NamedTuple):
    claims: Claims | None = None
    pool: int = -1
    read: Pool | None = None
    write: Write | None = None


IDLE = Controller()


class State(NamedTuple):
    pools: tuple[Pool | None, ...]
    claims: Claims
    live: tuple[int, ...]
    controllers: tuple[Controller, ...]
    edits: int
    deletions: int
    forced: int


@dataclass(frozen=True)
class Rules:
    """The guards of the protocol; each can be taken away, and then something must break."""

    grow_the_claim_first: bool = True
    shrink_the_status_first: bool = True
    keep_the_claim_of_live_allocations: bool = True
    never_below_live_allocations: bool = True
    growth_renews_the_claim: bool = True
    """Before claimedCIDR grows, the entry is written for the very version of the pool that will be changed."""
    shrink_after_a_fresh_look: bool = True
    """The ConfigMap loses something only if the pool was read after it, and has changed since the claim."""


@dataclass(frozen=True)
class Bounds:
    specs: tuple[tuple[int, ...], ...] = ((1, 3), (2,))
    at_first: tuple[int, ...] = (3, 2)
    edits: int = 2
    deletions: int = 1
    forced: int = 0


def words_of(network: int) -> str:
    return "+".join(name for bit, name in enumerate(PIECES) if network >> bit & 1) or "nothing"


@dataclass(frozen=True)
class ClaimsModel:
    rules: Rules = Rules()
    bounds: Bounds = Bounds()

    def initial(self) -> State:
        pools = tuple(Pool(1, spec, 0, deleting=False) if spec else None for spec in self.bounds.at_first)
        claims = Claims(1, (None,) * len(pools))
        return State(
            pools,
            claims,
            (0,) * len(pools),
            (IDLE,) * len(CONTROLLERS),
            self.bounds.edits,
            self.bounds.deletions,
            self.bounds.forced,
        )

    # What must never be.

    def broken(self, state: State) -> str:
        both = state.live[0] & state.live[1]
        if both:
            return f"P and Q have both handed out {words_of(both)}"
        return ""

    def unfinished(self, state: State) -> str:
        """Never asked: a controller may always read again. See `settled`."""
        return ""

    # What may happen.

    def steps(self, state: State) -> Iterator[Step[State]]:
        yield from self._environment(state)
        for who in range(len(state.controllers)):
            yield from self._controller(state, who)

    def _environment(self, state: State) -> Iterator[Step[State]]:
        for index, pool in enumerate(state.pools):
            name = POOLS[index]
            if pool is None:
                for spec in self.bounds.specs[index]:
                    if state.edits:
                        born = Pool(self._next(state, index), spec, 0, deleting=False)
                        yield Step(
                            f"somebody creates pool {name} with {words_of(spec)}",
                            _tidy(state._replace(pools=_put(state.pools, index, born), edits=state.edits - 1)),
                        )
                continue
            if state.edits and not pool.deleting:
                for spec in self.bounds.specs[index]:
                    if spec != pool.spec:
                        yield Step(
                            f"somebody edits pool {name}: {words_of(pool.spec)} becomes {words_of(spec)}",
                            self._pool(state._replace(edits=state.edits - 1), index, pool._replace(spec=spec)),
                        )
            if state.deletions and not pool.deleting:
                yield Step(
                    f"somebody deletes pool {name} (its finalizer holds it)",
                    self._pool(state._replace(deletions=state.deletions - 1), index, pool._replace(deleting=True)),
                )
            if state.forced and pool.deleting:
                yield Step(
                    f"somebody removes the finalizer of pool {name} by hand",
                    _tidy(state._replace(pools=_put(state.pools, index, None), forced=state.forced - 1)),
                )
            if not pool.deleting and not pool.spec & ~pool.claimed:
                for piece in _pieces(pool.spec & ~state.live[index]):
                    granted = state._replace(live=_put(state.live, index, state.live[index] | piece))
                    yield Step(
                        f"an allocation gets {words_of(piece)} from pool {name}",
                        self._pool(granted, index, pool),
                    )
        for index, live in enumerate(state.live):
            for piece in _pieces(live):
                yield Step(
                    f"the allocation of {words_of(piece)} from pool {POOLS[index]} is released",
                    _tidy(state._replace(live=_put(state.live, index, live & ~piece))),
                )

    def _controller(self, state: State, who: int) -> Iterator[Step[State]]:
        name = CONTROLLERS[who]
        mind = state.controllers[who]
        if mind.write is not None:
            yield Step(f"{name}: {_told(mind.write)}", self._arrives(state, who, mind.write))
            yield Step(f"{name} crashes before it has written", _mind(state, who, IDLE))
            return
        if mind.claims is None and mind.pool < 0:
            yield Step(
                f"{name} reads the claims ({_entries(state.claims)})",
                _mind(state, who, Controller(claims=state.claims)),
            )
            for index, pool in enumerate(state.pools):
                yield Step(
                    f"{name} reads pool {POOLS[index]} ({_seen(pool)})",
                    _mind(state, who, Controller(pool=index, read=pool)),
                )
            return
        yield Step(f"{name} crashes", _mind(state, who, IDLE))
        if mind.claims is not None:
            for index, pool in enumerate(state.pools):
                write = self.decide(index, pool, mind.claims, state.live[index], looked_after=True)
                if write is not None:
                    yield Step(
                        f"{name} reads pool {POOLS[index]} ({_seen(pool)}) and decides: {_told(write)}",
                        _mind(state, who, Controller(write=write)),
                    )
            return
        write = self.decide(mind.pool, mind.read, state.claims, state.live[mind.pool], looked_after=False)
        if write is not None:
            yield Step(
                f"{name} reads the claims ({_entries(state.claims)}) and decides: {_told(write)}",
                _mind(state, who, Controller(write=write)),
            )

    # The protocol.

    def decide(self, index: int, pool: Pool | None, claims: Claims, live: int, *, looked_after: bool) -> Write | None:
        """The one write that is due. `looked_after`: the pool was read (consistently) after the claims."""
        rules = self.rules
        entry = claims.entries[index]
        made_for = entry.made_for if entry else 0
        network = entry.network if entry else 0
        may_lose = looked_after or not rules.shrink_after_a_fresh_look
        if pool is None:
            if not network or not may_lose or (live and rules.keep_the_claim_of_live_allocations):
                return None
            return Write("claims", index, claims.version, 0, 0)
        if pool.deleting:
            return None if live else Write("finalizer", index, pool.version, 0, 0)

        held = live if rules.never_below_live_allocations else 0
        wanted = pool.spec | held
        others = 0
        for other, its in enumerate(claims.entries):
            if other != index and its:
                others |= its.network
        too_much = network & ~(wanted if not rules.shrink_the_status_first else wanted | pool.claimed)
        stale = made_for != pool.version or not rules.growth_renews_the_claim
        if too_much and not rules.shrink_the_status_first and may_lose and stale:
            return Write("claims", index, claims.version, network & ~too_much, made_for)
        if pool.claimed & ~wanted:
            return Write("claimed", index, pool.version, pool.claimed & wanted, 0)
        if too_much and may_lose and stale:
            return Write("claims", index, claims.version, network & ~too_much, made_for)
        if not pool.spec & ~pool.claimed:
            if pool.claimed & ~network and not pool.claimed & others and not rules.grow_the_claim_first:
                return Write("claims", index, claims.version, network | pool.claimed, pool.version)
            return None
        if pool.spec & others:
            return None  # Ready=False, Overlap
        if not rules.grow_the_claim_first:
            return Write("claimed", index, pool.version, pool.claimed | pool.spec, 0)
        renewed = made_for == pool.version or not rules.growth_renews_the_claim
        if pool.spec & ~network or not renewed:
            return Write("claims", index, claims.version, network | pool.spec, pool.version)
        return Write("claimed", index, pool.version, pool.claimed | pool.spec, 0)

    def _arrives(self, state: State, who: int, write: Write) -> State:
        """A write that is still in the state has the right version: those that have not were forgotten."""
        state = state._replace(controllers=_put(state.controllers, who, IDLE))
        if write.kind == "claims":
            entry = Entry(write.network, write.made_for) if write.network else None
            claims = Claims(state.claims.version + 1, _put(state.claims.entries, write.pool, entry))
            return _tidy(state._replace(claims=claims))
        pool = state.pools[write.pool]
        assert pool is not None
        if write.kind == "finalizer":
            return _tidy(state._replace(pools=_put(state.pools, write.pool, None)))
        return self._pool(state, write.pool, pool._replace(claimed=write.network))

    def _pool(self, state: State, index: int, pool: Pool) -> State:
        changed = pool._replace(version=self._next(state, index))
        return _tidy(state._replace(pools=_put(state.pools, index, changed)))

    @staticmethod
    def _next(state: State, index: int) -> int:
        return max(_versions(state, index), default=0) + 1

    def canonical(self, state: State) -> State:
        first, second = state.controllers
        return state if _order(first) <= _order(second) else state._replace(controllers=(second, first))


# Keeping the state space finite: versions are only ever compared for being equal, so they may be renumbered.


def _versions(state: State, index: int) -> set[int]:
    found: set[int] = set()
    pool = state.pools[index]
    if pool is not None:
        found.add(pool.version)
    claims = [state.claims]
    for mind in state.controllers:
        if mind.claims is not None:
            claims.append(mind.claims)
        if mind.pool == index and mind.read is not None:
            found.add(mind.read.version)
        if mind.write is not None and mind.write.pool == index:
            found.add(mind.write.made_for)
            if mind.write.kind != "claims":
                found.add(mind.write.version)
    for one in claims:
        entry = one.entries[index]
        if entry is not None:
            found.add(entry.made_for)
    found.discard(0)
    return found


def _tidy(state: State) -> State:
    """Forget writes that can only fail, and number the versions anew."""
    controllers = list(state.controllers)
    for who, mind in enumerate(controllers):
        write = mind.write
        if write is None:
            continue
        if write.kind == "claims":
            current = write.version == state.claims.version
        else:
            pool = state.pools[write.pool]
            current = pool is not None and pool.version == write.version
        if not current:
            controllers[who] = IDLE
    state = state._replace(controllers=tuple(controllers))
    known = [
        {old: new for new, old in enumerate(sorted(_versions(state, index)), 1)} for index in range(len(state.pools))
    ]
    of_claims = sorted(
        {state.claims.version}
        | {mind.claims.version for mind in controllers if mind.claims is not None}
        | {mind.write.version for mind in controllers if mind.write is not None and mind.write.kind == "claims"}
    )
    claims_number = {old: new for new, old in enumerate(of_claims, 1)}

    def new_claims(one: Claims) -> Claims:
        entries = tuple(
            None if entry is None else entry._replace(made_for=known[index].get(entry.made_for, 0))
            for index, entry in enumerate(one.entries)
        )
        return Claims(claims_number[one.version], entries)

    def new_pool(index: int, one: Pool | None) -> Pool | None:
        return None if one is None else one._replace(version=known[index][one.version])

    def new_write(one: Write | None) -> Write | None:
        if one is None:
            return None
        numbers = claims_number if one.kind == "claims" else known[one.pool]
        return one._replace(version=numbers[one.version], made_for=known[one.pool].get(one.made_for, 0))

    return state._replace(
        pools=tuple(new_pool(index, one) for index, one in enumerate(state.pools)),
        claims=new_claims(state.claims),
        controllers=tuple(
            Controller(
                None if mind.claims is None else new_claims(mind.claims),
                mind.pool,
                new_pool(mind.pool, mind.read) if mind.pool >= 0 else None,
                new_write(mind.write),
            )
            for mind in controllers
        ),
    )


def _order(mind: Controller) -> str:
    return repr(mind)


def _mind(state: State, who: int, mind: Controller) -> State:
    return _tidy(state._replace(controllers=_put(state.controllers, who, mind)))


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _pieces(network: int) -> Iterator[int]:
    for bit in range(len(PIECES)):
        if network >> bit & 1:
            yield 1 << bit


# Words.


def _told(write: Write) -> str:
    pool = POOLS[write.pool]
    if write.kind == "finalizer":
        return f"remove the finalizer of pool {pool}, which is gone then"
    if write.kind == "claimed":
        return f"set claimedCIDR of pool {pool} to {words_of(write.network)}"
    if not write.network:
        return f"drop the claim of pool {pool} from the ConfigMap"
    return f"set the claim of pool {pool} in the ConfigMap to {words_of(write.network)}"


def _entries(claims: Claims) -> str:
    told = [f"{POOLS[index]}: {words_of(entry.network)}" for index, entry in enumerate(claims.entries) if entry]
    return ", ".join(told) or "none"


def _seen(pool: Pool | None) -> str:
    if pool is None:
        return "gone"
    return f"wants {words_of(pool.spec)}, claimed {words_of(pool.claimed)}"
