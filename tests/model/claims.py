"""The model of claims: which network a pool may hand out from, when pools overlap and admission is off.

Two pools P and Q and the ConfigMap of claims. The network is cut into a few pieces; a network is a set of them (a bit
mask), so that an edit of a pool's spec grows it over its neighbour, shrinks it or moves it. Two controllers do what
`butler.controllers.networkpool.claim_steps` and `.claims` do, one request at a time, with anything in between:

    claim    look at the pool (in the cache), read the ConfigMap, read the pool, list the allocations if the entry
             would lose something, swap the entry (unless it stands there already, word for word), write claimedCIDR
             for the version of the pool that was looked at
    shrink   look at the pool, read the ConfigMap, read the pool, list the allocations, swap the entry
    drop     the same for a pool that is gone; who removed the finalizer of this very pool need not list
    and      write a smaller claimedCIDR, remove the finalizer of a pool without allocations

Two that have read the same ConfigMap may swap both their entries in one write, as the workers of one process do
(`.register`): the one that gives something back first, and the other only if its network is free then.

Being paused or having a stale cache is nothing but being late, and a crash or a lost answer is a controller that
forgets what it was about, which it may always do. No state holds a version: a controller that would write with a
version that is no longer the newest is bound to fail, and is sent back to its beginning at that moment instead of
later. So "the ConfigMap that I read is still the newest" is what a controller between its read and its swap stands for.
In the same way a UID and generation are only ever compared with the pool's present ones, so they are a flag for as long
as nothing but the full comparison is made.

Left out: a grant is one step on the pool. That reserving and committing is as good as one step is what the model of
allocations shows.
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
    """What the ConfigMap says of a pool: the network, and of which state of the pool that was."""

    network: int
    generation: int
    same_uid: bool = True
    """Whether the entry names the pool that exists now."""


class Pool(NamedTuple):
    spec: int
    claimed: int
    generation: int
    deleting: bool = False


class Mind(NamedTuple):
    """Where a controller is in its work on a pool."""

    doing: str
    stage: str
    pool: int
    generation: int = 0
    same_uid: bool = True
    """Generation and uid of the pool that was looked at."""
    newest: bool = True
    """Whether that version of the pool is still the newest."""
    entry: Entry | None = None
    """What is to be swapped in."""
    network: int = 0
    """What is to be written to claimedCIDR."""
    listed: tuple[int, ...] = ()
    """What all pools claimed when the ConfigMap was missing."""
    blocked: bool = False
    """Whether a rival stands in the ConfigMap that was read: then only a write that takes that away may go on."""
    emptied: bool = False
    """Whether the entry is still that of the pool that this controller let go, from which nothing was allocated."""


class State(NamedTuple):
    pools: tuple[Pool | None, ...]
    claims: tuple[Entry | None, ...] | None
    live: tuple[int, ...]
    minds: tuple[Mind | None, ...]
    edits: int
    deletions: int
    forced: int
    losses: int


@dataclass(frozen=True)
class Rules:
    """The guards of the protocol; each can be taken away."""

    grow_the_entry_first: bool = True
    shrink_the_status_first: bool = True
    claims_are_swapped: bool = True
    """A change of the ConfigMap counts only for the version that was read."""
    status_for_the_pool_looked_at: bool = True
    """claimedCIDR grows only in the very version of the pool that was looked at."""
    entry_names_the_generation: bool = True
    entry_names_the_uid: bool = True
    pool_is_read_after_the_claims: bool = True
    pool_is_what_was_looked_at: bool = True
    nothing_left_to_give_up: bool = True
    """No entry is made for a pool whose status still claims something else."""
    status_keeps_what_is_held: bool = True
    entry_keeps_what_is_held: bool = True
    one_write_sees_its_own_entries: bool = True
    """Of two entries in one write, the second counts the first as a rival."""
    emptied_names_the_uid: bool = True
    """Who need not list drops only the entry of the pool that it let go, not that of a later one of this name."""


@dataclass(frozen=True)
class Bounds:
    specs: tuple[tuple[int, ...], ...] = ((1, 3), (2,))
    at_first: tuple[int, ...] = (3, 2)
    edits: int = 2
    deletions: int = 1
    forced: int = 0
    losses: int = 0


def words_of(network: int) -> str:
    return "+".join(name for bit, name in enumerate(PIECES) if network >> bit & 1) or "nothing"


@dataclass(frozen=True)
class ClaimsModel:
    rules: Rules = Rules()
    bounds: Bounds = Bounds()

    def initial(self) -> State:
        pools = tuple(Pool(spec, 0, 1) if spec else None for spec in self.bounds.at_first)
        bounds = self.bounds
        return State(
            pools,
            (None,) * len(pools),
            (0,) * len(pools),
            (None,) * len(CONTROLLERS),
            bounds.edits,
            bounds.deletions,
            bounds.forced,
            bounds.losses,
        )

    # What must never be.

    def broken(self, state: State) -> str:
        both = state.live[0] & state.live[1]
        return f"P and Q have both handed out {words_of(both)}" if both else ""

    def unfinished(self, state: State) -> str:
        """At rest: no controller finds anything to do."""
        claims = state.claims or (None,) * len(state.pools)
        for index, pool in enumerate(state.pools):
            entry = claims[index]
            others = [its for other, its in enumerate(claims) if other != index and its is not None]
            if pool is None:
                if entry is not None and not state.live[index]:
                    return f"the claim of {POOLS[index]}, which is gone, stays"
                continue
            if pool.deleting:
                return "" if state.live[index] else f"pool {POOLS[index]} stays though no allocation is held"
            # What is held in the network that a pool gives up keeps both as they are.
            if state.live[index] & ~pool.spec or any(its.network & pool.spec for its in others):
                continue
            if pool.claimed != pool.spec or entry is None or entry.network != pool.spec:
                return f"pool {POOLS[index]} never gets {words_of(pool.spec)}, which no other pool has"
        return ""

    # What may happen.

    def steps(self, state: State) -> Iterator[Step[State]]:
        yield from self._people(state)
        yield from self._allocations(state)
        for who, mind in enumerate(state.minds):
            if mind is None:
                yield from self._looks(state, who)
            else:
                yield Step(f"{CONTROLLERS[who]} crashes", _think(state, who, None), outside=True)
                yield from self._goes_on(state, who, mind)
        yield from self._swap_both(state)

    def _people(self, state: State) -> Iterator[Step[State]]:
        if state.losses and state.claims is not None:
            after = _tidy(_claims(state, None)._replace(losses=state.losses - 1), self.rules)
            yield Step("a user deletes the ConfigMap", after, outside=True)
        for index, pool in enumerate(state.pools):
            name = POOLS[index]
            if pool is None:
                for spec in self.bounds.specs[index] if state.edits else ():
                    after = self._pool(state._replace(edits=state.edits - 1), index, Pool(spec, 0, 1))
                    yield Step(f"a user creates pool {name} with {words_of(spec)}", after, outside=True)
                continue
            if state.edits and not pool.deleting:
                for spec in self.bounds.specs[index]:
                    if spec != pool.spec:
                        edited = pool._replace(spec=spec, generation=pool.generation + 1)
                        yield Step(
                            f"a user edits pool {name}: {words_of(pool.spec)} becomes {words_of(spec)}",
                            self._pool(state._replace(edits=state.edits - 1), index, edited),
                            outside=True,
                        )
            if state.deletions and not pool.deleting:
                going = pool._replace(deleting=True, generation=pool.generation + 1)
                after = self._pool(state._replace(deletions=state.deletions - 1), index, going)
                yield Step(f"a user deletes pool {name} (its finalizer holds it)", after, outside=True)
            if state.forced and pool.deleting:
                after = self._pool(state._replace(forced=state.forced - 1), index, None)
                yield Step(f"a user removes the finalizer of pool {name} by hand", after, outside=True)

    def _allocations(self, state: State) -> Iterator[Step[State]]:
        for index, pool in enumerate(state.pools):
            live = state.live[index]
            if pool is not None and not pool.deleting and not pool.spec & ~pool.claimed:
                for piece in _pieces(pool.spec & ~live):
                    granted = state._replace(live=_put(state.live, index, live | piece))
                    words = f"an allocation gets {words_of(piece)} from pool {POOLS[index]}"
                    yield Step(words, self._pool(granted, index, pool), outside=True)
            for piece in _pieces(live):
                after = state._replace(live=_put(state.live, index, live & ~piece))
                words = f"the allocation of {words_of(piece)} from pool {POOLS[index]} is released"
                yield Step(words, after, outside=True)

    # What controllers do.

    def _looks(self, state: State, who: int) -> Iterator[Step[State]]:
        """Take a pool from the cache and see what is due. To look without effect is no reason to call it unrest."""
        for index, pool in enumerate(state.pools):
            mind = self._due(index, pool, state)
            if mind is not None:
                words = f"{CONTROLLERS[who]} looks at pool {POOLS[index]} ({_seen(pool)}): {_told(mind)}"
                yield Step(words, _think(state, who, mind), outside=not self._comes_to_something(mind, state))

    def _due(self, index: int, pool: Pool | None, state: State) -> Mind | None:
        rules, live = self.rules, state.live[index]
        entry = state.claims[index] if state.claims is not None else None
        if pool is None:
            return Mind("drop", "read the claims", index) if entry is not None else None
        if pool.deleting:
            return Mind("finalizer", "write the pool", index) if not live else None
        looked = Mind("claim", "read the claims", index, pool.generation)
        if pool.claimed == pool.spec:
            if not rules.grow_the_entry_first and (entry is None or pool.spec & ~entry.network):
                return looked
            shrinks = entry is not None and entry.network != pool.claimed
            return looked._replace(doing="shrink") if shrinks or state.claims is None else None
        if not rules.shrink_the_status_first and entry is not None and entry.network & ~pool.spec:
            return looked._replace(doing="shrink")
        if not pool.claimed & ~pool.spec:
            if rules.grow_the_entry_first:
                return looked
            rivals = [its for other, its in enumerate(state.claims or ()) if other != index and its]
            free = not any(its.network & pool.spec for its in rivals)
            return Mind("status", "write the pool", index, network=pool.spec) if free else None
        if live & pool.claimed & ~pool.spec and rules.status_keeps_what_is_held:
            return None
        to = 0 if pool.spec & ~pool.claimed else pool.spec
        return Mind("status", "write the pool", index, network=to)

    def _comes_to_something(self, mind: Mind, state: State) -> bool:
        """Whether anything would be written if no other process did anything from here on."""
        if mind.stage == "write the pool" or state.claims is None:
            return True
        prepared = self._prepares(mind, state.pools[mind.pool])
        compared = None if prepared is None else self._compares(prepared, state)
        return (
            compared is not None
            and not compared.blocked
            and not (compared.stage == "list" and state.live[mind.pool] & self._lost(compared, state))
        )

    def _goes_on(self, state: State, who: int, mind: Mind) -> Iterator[Step[State]]:
        name, pool_name = CONTROLLERS[who], POOLS[mind.pool]
        pool = state.pools[mind.pool]
        match mind.stage:
            case "read the claims" if state.claims is None:
                listed = tuple(item.claimed if item is not None else 0 for item in state.pools)
                words = f"{name} finds no ConfigMap and lists what pools claim"
                yield Step(words, _think(state, who, mind._replace(stage="create", listed=listed)))
            case "create":
                claims = tuple(
                    Entry(network, pool.generation) if network and pool is not None else None
                    for network, pool in zip(mind.listed, state.pools, strict=True)
                )
                words = f"{name} creates the ConfigMap ({_entries(claims)})"
                yield Step(words, _tidy(_claims(_think(state, who, None), claims), self.rules))
            case "read the claims" if self.rules.pool_is_read_after_the_claims:
                words = f"{name} reads the claims ({_entries(state.claims)})"
                yield Step(words, _think(state, who, mind._replace(stage="read the pool")))
            case "read the claims":
                # Taken away: the pool is read first, what to write follows from that, and then the claims are read.
                after = self._prepares(mind, pool)
                words = f"{name} reads pool {pool_name} ({_seen(pool)})"
                read = None if after is None else after._replace(stage="read the claims at last")
                yield Step(words, _think(state, who, read))
            case "read the claims at last":
                words = f"{name} reads the claims ({_entries(state.claims)})"
                yield Step(words, _think(state, who, self._compares(mind, state)))
            case "read the pool":
                prepared = self._prepares(mind, pool)
                compared = None if prepared is None else self._compares(prepared, state)
                words = f"{name} reads pool {pool_name} ({_seen(pool)})"
                yield Step(words, _think(state, who, compared))
            case "list":
                words = f"{name} lists the allocations ({words_of(state.live[mind.pool])} is held from {pool_name})"
                held = state.live[mind.pool] & self._lost(mind, state)
                yield Step(words, _think(state, who, None if held else mind._replace(stage="swap")))
            case "swap" if mind.blocked:
                yield Step(f"{name} leaves pool {pool_name}, which has a rival", _think(state, who, None))
            case "swap":
                yield Step(f"{name} {_swap(mind)}", self._swaps(state, who, mind))
            case "write the pool":
                words = f"{name} {_told(mind)}"
                if pool is None:
                    yield Step(f"{words}, which is gone", _think(state, who, None))
                elif mind.doing == "finalizer":
                    entry = state.claims[mind.pool] if state.claims is not None else None
                    drop = Mind("drop", "read the claims", mind.pool, emptied=True)
                    goes_on = drop if entry is not None and entry.same_uid else None
                    yield Step(words, _think(self._pool(_think(state, who, None), mind.pool, None), who, goes_on))
                else:
                    written = pool._replace(claimed=mind.network)
                    yield Step(words, self._pool(_think(state, who, None), mind.pool, written))

    def _prepares(self, mind: Mind, pool: Pool | None) -> Mind | None:
        """Read the pool: what the entry should become; None when the pool says that nothing is to be done."""
        rules = self.rules
        if mind.doing == "drop":
            return mind if pool is None else None
        if pool is None:
            return None
        if mind.doing == "claim":
            if rules.pool_is_what_was_looked_at and not (mind.same_uid and mind.generation == pool.generation):
                return None
            if rules.nothing_left_to_give_up and pool.claimed & ~pool.spec:
                return None
            return mind._replace(entry=_as_named(Entry(pool.spec, pool.generation), pool, rules), generation=0)
        if rules.shrink_the_status_first and pool.claimed != pool.spec:
            return None
        return mind._replace(entry=_as_named(Entry(pool.spec, pool.generation), pool, rules), generation=0)

    def _compares(self, mind: Mind, state: State) -> Mind | None:
        """What the claims say about it; they are as they were read, or this controller would not be here."""
        claims = state.claims or (None,) * len(state.pools)
        before, entry = claims[mind.pool], mind.entry
        if mind.doing == "drop":
            if before is None:
                return None
        elif mind.doing == "claim":
            assert entry is not None
            rivals = (its.network & entry.network for other, its in enumerate(claims) if other != mind.pool and its)
            mind = mind._replace(blocked=any(rivals))
        elif before is None or entry is None or not before.network & ~entry.network or entry.network & ~before.network:
            return None
        if entry is not None and before == entry:
            return None if mind.blocked else self._follows(mind)
        loses = self.rules.entry_keeps_what_is_held and self._lost(mind, state) and not mind.emptied
        return mind._replace(stage="list" if loses else "swap")

    def _lost(self, mind: Mind, state: State) -> int:
        before = state.claims[mind.pool] if state.claims is not None else None
        return (before.network if before else 0) & ~(mind.entry.network if mind.entry else 0)

    def _swaps(self, state: State, who: int, mind: Mind) -> State:
        state = _think(state, who, self._follows(mind))
        if state.claims is None:
            return state
        state = _claims(state, _put(state.claims, mind.pool, mind.entry))
        if self.rules.emptied_names_the_uid:
            state = state._replace(minds=tuple(_names_another(item, mind) for item in state.minds))
        return _tidy(state, self.rules, swapped=True)

    def _swap_both(self, state: State) -> Iterator[Step[State]]:
        """Both controllers stand before their swap of the same ConfigMap: as workers of one process they share it."""
        both = state.minds
        if state.claims is None or any(mind is None or mind.stage != "swap" for mind in both):
            return
        for first, second in ((0, 1), (1, 0)):
            one, other = both[first], both[second]
            assert one is not None
            assert other is not None
            if one.pool == other.pool or one.blocked or (one.doing == "claim" and other.doing != "claim"):
                continue
            entry = one.entry.network if one.entry is not None else 0
            theirs = other.entry.network if other.entry is not None else 0
            is_rival = other.doing == "claim" and self.rules.one_write_sees_its_own_entries and entry & theirs
            if is_rival or (other.blocked and entry & theirs):
                continue
            after = self._swaps(state, first, one)
            # The swap of the one sends all back that have read the same; the other is part of it.
            after = self._swaps(_think(after, second, other._replace(blocked=False)), second, other)
            words = f"{CONTROLLERS[first]} {_swap(one)} and in the same write {_swap(other)}"
            yield Step(words, after)

    def _follows(self, mind: Mind) -> Mind | None:
        """What is left to do once the entry stands: a claim goes on to the pool, if that still has its version."""
        fits = mind.newest or not self.rules.status_for_the_pool_looked_at
        if mind.doing != "claim" or mind.entry is None or not self.rules.grow_the_entry_first or not fits:
            return None
        return Mind("status", "write the pool", mind.pool, network=mind.entry.network)

    # What a change does to those who had read what was there before.

    def _pool(self, state: State, index: int, pool: Pool | None) -> State:
        before = state.pools[index]
        another = pool is None or before is None
        minds = list(state.minds)
        for who, mind in enumerate(minds):
            if mind is None or mind.pool != index:
                continue
            if mind.stage == "write the pool":
                fenced = mind.doing == "finalizer" or self.rules.status_for_the_pool_looked_at
                minds[who] = None if fenced or another else mind
                continue
            entry = mind.entry
            if another and entry is not None:
                entry = entry._replace(same_uid=False)
            late = mind._replace(entry=entry)
            if mind.doing == "claim":
                late = late._replace(newest=False, same_uid=mind.same_uid and not another)
            minds[who] = late
        claims = state.claims
        entry = claims[index] if claims is not None else None
        if another and claims is not None and entry is not None:
            claims = _put(claims, index, entry._replace(same_uid=False))
        state = state._replace(pools=_put(state.pools, index, pool), claims=claims, minds=tuple(minds))
        return _tidy(state, self.rules)

    def canonical(self, state: State) -> State:
        first, second = state.minds
        return state if _order(first) <= _order(second) else state._replace(minds=(second, first))


def _names_another(mind: Mind | None, swapped: Mind) -> Mind | None:
    """Who let a pool go, once the entry is that of another one of this name."""
    if mind is None or not mind.emptied or mind.pool != swapped.pool or swapped.entry is None:
        return mind
    return mind._replace(emptied=False)


def _order(mind: Mind | None) -> tuple[object, ...]:
    return () if mind is None else (*mind[:6], mind.entry or (), *mind[7:])


def _claims(state: State, claims: tuple[Entry | None, ...] | None) -> State:
    return state._replace(claims=claims)


_HAS_READ_THE_CLAIMS = ("read the pool", "list", "swap")


def _tidy(state: State, rules: Rules, *, swapped: bool = False) -> State:
    """Send back controllers that read claims that are gone, and forget differences that are never compared again."""
    missing = state.claims is None
    minds = list(state.minds)
    for who, mind in enumerate(minds):
        if mind is None:
            continue
        if (mind.stage in _HAS_READ_THE_CLAIMS and (missing or (swapped and rules.claims_are_swapped))) or (
            mind.stage == "create" and not missing
        ):
            minds[who] = None
            continue
        pool = state.pools[mind.pool]
        minds[who] = mind._replace(entry=_as_named(mind.entry, pool, rules))
    claims = state.claims
    if claims is not None:
        claims = tuple(_as_named(entry, pool, rules) for entry, pool in zip(claims, state.pools, strict=True))
    return state._replace(claims=claims, minds=tuple(minds))


def _as_named(entry: Entry | None, pool: Pool | None, rules: Rules) -> Entry | None:
    """An entry, as far as it tells states of the pool apart: one of a former state equals no entry made from now on."""
    if entry is None:
        return None
    same_uid = entry.same_uid or not rules.entry_names_the_uid
    generation = entry.generation if rules.entry_names_the_generation else 0
    if rules.entry_names_the_generation and same_uid and pool is not None and generation < pool.generation:
        generation = 0 if rules.entry_names_the_uid else generation
    if not same_uid:
        generation = 0
    return Entry(entry.network, generation, same_uid)


def _think(state: State, who: int, mind: Mind | None) -> State:
    return state._replace(minds=_put(state.minds, who, mind))


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _pieces(network: int) -> Iterator[int]:
    for bit in range(len(PIECES)):
        if network >> bit & 1:
            yield 1 << bit


# Words.


def _told(mind: Mind) -> str:
    pool = POOLS[mind.pool]
    match mind.doing:
        case "finalizer":
            return f"removes the finalizer of pool {pool}, which is gone then"
        case "status":
            return f"sets claimedCIDR of pool {pool} to {words_of(mind.network)}"
        case "drop":
            return "it is gone, so its claim should go"
        case "shrink":
            return "the claim should shrink"
    return "it should be claimed"


def _swap(mind: Mind) -> str:
    pool = POOLS[mind.pool]
    if mind.entry is None:
        return f"drops the claim of pool {pool} from the ConfigMap"
    return f"sets the claim of pool {pool} in the ConfigMap to {words_of(mind.entry.network)}"


def _entries(claims: tuple[Entry | None, ...] | None) -> str:
    told = [f"{POOLS[index]}: {words_of(entry.network)}" for index, entry in enumerate(claims or ()) if entry]
    return ", ".join(told) or "none"


def _seen(pool: Pool | None) -> str:
    if pool is None:
        return "gone"
    return f"wants {words_of(pool.spec)}, claimed {words_of(pool.claimed)}{', being deleted' if pool.deleting else ''}"
