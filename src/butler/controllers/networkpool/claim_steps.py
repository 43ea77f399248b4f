"""Which network a pool may hand out from, step by step: what its status should claim next, and why not more.

Grows: the register first, the pool's status second. Shrinks: the status first, the register second. A network in
which this pool's allocations still live is never given up. See `claims` for why that order is safe.

A pool that another one blocks waits for that one, and is reconciled again when that one's entry in the register or
the pool itself changes. No other pool is, so a change costs as much as pools wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, PoolReason
from butler.api.objects import key_of
from butler.controllers.networkpool.claims_writer import StillHeld, age_of
from butler.ipam.addresses import BadAddress, parse_network
from butler.kube.errors import AnswerTooLarge, Forbidden, Invalid, NotFound
from butler.rules.pool.claims import ClaimTable, claimed_network, contains, moved, overlaps
from butler.rules.pool.conditions import NotHandingOut
from butler.rules.pool.next_status import intent_range, is_promise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Change, Json, Key
    from butler.controllers.networkpool.claims_writer import ClaimRegister
    from butler.ipam.addresses import Family, Range
    from butler.ipam.layout import PoolLayout
    from butler.kube.cache import Cache
    from butler.rules.pool.holdings import Holdings

NETWORKS: Final = "pools by network"
RETRY_SECONDS: Final = 5.0
CATCH_UP_SECONDS: Final = 0.5
"""Until a pool is looked at again whose rival the register, as we see it, does not show: we may have missed its end."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What the pool's status is to claim, why it hands out nothing, and when to take another step."""

    cidr: str | None
    obstacle: NotHandingOut | None = None
    again: bool = False
    """Another step follows at once."""
    retry: float | None = None
    """Another step may go better after so many seconds, though nothing we watch changes until then."""
    rival: Key | None = None
    """The pool that is in the way."""


class Claiming:
    """Takes a pool's claim from where it is to where its spec wants it."""

    def __init__(
        self,
        register: ClaimRegister,
        claims: Cache[Json],
        pools: Cache[NetworkPool],
        holdings: Holdings,
        scope: str = "",
    ) -> None:
        self._register = register
        self._claims = claims
        self._pools = pools
        self._holdings = holdings
        self._scope = scope
        self._table = ClaimTable()
        self._table_of: Json | None = None
        self._waits_for: dict[Key, Key] = {}
        self._waiters: dict[Key, set[Key]] = {}
        self._emptied: dict[Key, str] = {}
        pools.index_ranges(NETWORKS, _network)

    async def step(self, pool: NetworkPool, layout: PoolLayout | None) -> Claimed:
        """What to claim in the pool's next status. Enters the register first where the claim grows."""
        made = await self._step(pool, layout)
        self._wait(key_of(pool), made.rival)
        return made

    async def _step(self, pool: NetworkPool, layout: PoolLayout | None) -> Claimed:
        claimed, wanted = claimed_network(pool), pool.spec.cidr
        if layout is None or pool.metadata.deletion_timestamp is not None:
            return Claimed(claimed)
        if claimed == wanted and self._covers(pool, claimed):
            return Claimed(claimed)
        # Also when the register does not have what the pool claims: then a user edited or deleted the register.
        if claimed is None or contains(wanted, claimed):
            return await self._grow(pool)
        held = self._held(pool, claimed, wanted)
        if contains(claimed, wanted):
            return Claimed(wanted if held is None else claimed)
        if held is not None:
            return Claimed(claimed, _stays(claimed, wanted, held))
        moving = NotHandingOut(PoolReason.OVERLAP, f"it is moving from {claimed} to {wanted}")
        return Claimed(None, moving, again=True)

    async def settle(self, pool: NetworkPool) -> None:
        """Give back what the register has for the pool beyond its claim, once no allocation holds any of it."""
        claim, claimed = self._entries().get(key_of(pool)), claimed_network(pool)
        if claim is None or claimed is None or claimed != pool.spec.cidr or claim.cidr == claimed:
            return
        if self._held(pool, claim.cidr, claimed) is None:  # else the end of what is held wakes us
            await self._register.shrink(key_of(pool))

    def knows(self, key: Key) -> bool:
        """Whether the register has an entry for the pool."""
        return self._entries().get(key) is not None

    def emptied(self, pool: NetworkPool) -> None:
        """We removed a pool's finalizer, in a version in which no allocation held its addresses or was about to."""
        self._emptied[key_of(pool)] = pool.metadata.uid

    async def forget(self, key: Key) -> None:
        """The pool is gone. Its entry stays for as long as allocations hold addresses from it; their end wakes us."""
        self._wait(key, None)
        if self.knows(key) and not self._holdings.count(key) and not self._holdings.unreadable(key):
            await self._register.drop(key, self._emptied.get(key))
        self._emptied.pop(key, None)

    # Whom a change concerns.

    def concerned_by_claims(self, change: Change[Json]) -> Iterable[Key]:
        """Pools whose entry is not what they want, and those that waited for an entry that changed."""
        # What is seen for the first time, or again, or is no more, is looked at as a whole.
        whole = change.old is None or change.new is None
        for key, before, after in moved(change.old, change.new):
            pool = self._pools.get(key)
            fits = pool is not None and after is not None and after[:2] == (pool.spec.cidr, pool.metadata.uid)
            # Entries of other namespaces may be those of pools that we do not watch.
            if not fits and before != after and self._scope in ("", key.namespace):
                yield key
            yield from () if whole else self._waiters.get(key, ())
        if whole:
            yield from self._waits_for

    def concerned_by_pool(self, change: Change[NetworkPool]) -> Iterable[Key]:
        """The pool itself, and those that waited for it to claim its network or to go out of their way."""
        yield change.key
        if change.old is None or change.new is None or _in_the_way(change.old) != _in_the_way(change.new):
            yield from self._waiters.get(change.key, ())

    def _wait(self, key: Key, rival: Key | None) -> None:
        before = self._waits_for.pop(key, None)
        if before is not None:
            waiters = self._waiters[before]
            waiters.discard(key)
            if not waiters:
                del self._waiters[before]
        if rival is not None:
            self._waits_for[key] = rival
            self._waiters.setdefault(rival, set()).add(key)

    # Steps.

    async def _grow(self, pool: NetworkPool) -> Claimed:
        claimed, wanted = claimed_network(pool), pool.spec.cidr
        # No other pool goes before one that has its claim already.
        older = self._older_rival(pool) if claimed != wanted else None
        if older is not None:
            return self._overlap(pool, older)
        try:
            rival = await self._register.claim(pool)
        except StillHeld as held:  # from an earlier pool of this name, which a user removed by force
            return Claimed(claimed, _stays(held.cidr, wanted, held.holder))
        except (NotFound, Forbidden, Invalid, AnswerTooLarge) as error:
            message = f"Butler cannot record which pool has which network: {error.message}"
            return Claimed(claimed, NotHandingOut(PoolReason.NOT_CLAIMED, message), retry=RETRY_SECONDS)
        if rival is None:
            return Claimed(wanted)
        shown = self._entries().get(rival)
        is_shown = shown is not None and overlaps(shown.cidr, wanted)
        return self._overlap(pool, rival, None if is_shown else CATCH_UP_SECONDS)

    def _overlap(self, pool: NetworkPool, rival: Key, retry: float | None = None) -> Claimed:
        other = self._pools.get(rival)
        claim = self._entries().get(rival)
        network = other.spec.cidr if other is not None else claim.cidr if claim is not None else None
        message = (
            f"{pool.spec.cidr} overlaps NetworkPool {rival}{f' ({network})' if network else ''}:"
            " change or delete one of them, nothing is granted from this one until then"
        )
        return Claimed(claimed_network(pool), NotHandingOut(PoolReason.OVERLAP, message), retry=retry, rival=rival)

    def _older_rival(self, pool: NetworkPool) -> Key | None:
        """An older pool that wants the same addresses and has not claimed them yet: it goes first."""
        for family, network in _network(pool):
            for other in self._pools.touching(NETWORKS, family, network):
                if (
                    other.metadata.uid != pool.metadata.uid
                    and age_of(other) < age_of(pool)
                    and other.metadata.deletion_timestamp is None
                    and not is_overlapped(other)
                ):
                    return key_of(other)
        return None

    def _entries(self) -> ClaimTable:
        """The register as far as we have heard of it, read once per version."""
        shown = next(iter(self._claims.values()), None)
        if shown is not self._table_of:
            self._table.take(shown)
            self._table_of = shown
        return self._table

    def _covers(self, pool: NetworkPool, claimed: str) -> bool:
        claim = self._entries().get(key_of(pool))
        return claim is not None and claim.uid == pool.metadata.uid and contains(claim.cidr, claimed)

    def _held(self, pool: NetworkPool, claimed: str, wanted: str) -> str | None:
        """An allocation that holds addresses in the network that is to be given up."""
        _, old = parse_network(claimed)
        _, new = parse_network(wanted)
        held = [(holding.name, holding.range) for holding in self._holdings.of(key_of(pool))]
        # Also intents that are carried out already: then they name what the allocation holds anyhow.
        held += [(intent.name, intent_range(intent)[1]) for intent in pool.status.intents if is_promise(intent)]
        return next((name for name, holding in held if holding.overlaps(old) and not new.contains(holding)), None)


def _stays(claimed: str, wanted: str, holder: str) -> NotHandingOut:
    message = (
        f"it cannot move from {claimed} to {wanted} while {holder} holds addresses there:"
        " change the cidr back, or release them"
    )
    return NotHandingOut(PoolReason.VALIDATION_FAILED, message)


def _network(pool: NetworkPool) -> list[tuple[Family, Range]]:
    """The network that a pool wants; none where that is not one."""
    try:
        return [parse_network(pool.spec.cidr)]
    except BadAddress:
        return []


def _in_the_way(pool: NetworkPool) -> tuple[str, bool, bool]:
    """What decides whether a younger pool waits for this one."""
    return pool.spec.cidr, pool.metadata.deletion_timestamp is not None, is_overlapped(pool)


def is_overlapped(pool: NetworkPool) -> bool:
    """Whether the pool waits for another one to go out of its way."""
    ready = find_condition(pool.status.conditions, ConditionType.READY)
    return ready is not None and ready.reason == PoolReason.OVERLAP
