"""Which network a pool may hand out from, step by step: what its status should claim next, and why not more.

Grows: the register first, the pool's status second. Shrinks: the status first, the register second. A network in
which this pool's allocations still live is never given up. See `claims` for why that order is safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, PoolReason
from butler.controllers.networkpool.claims import (
    Claims,
    StillHeld,
    claimed_network,
    contains,
    is_network,
    overlaps,
    read_claims,
)
from butler.controllers.networkpool.conditions import NotHandingOut
from butler.controllers.networkpool.plan import intent_range, is_promise
from butler.ipam.addresses import parse_network
from butler.kube.errors import Forbidden, NotFound
from butler.kube.objects import key_of

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.controllers.networkpool.claims import ClaimRegister
    from butler.controllers.networkpool.holdings import Holdings
    from butler.ipam.layout import PoolLayout
    from butler.kube.cache import Cache
    from butler.kube.resource import Json, Key

RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Claimed:
    """What the pool's status is to claim, why it hands out nothing, and when to take another step."""

    cidr: str | None
    obstacle: NotHandingOut | None = None
    again: bool = False
    """Another step follows at once."""
    retry: float | None = None
    """Another step may go better after so many seconds, though nothing we watch changes until then."""


class Claiming:
    """Takes a pool's claim from where it is to where its spec wants it."""

    def __init__(
        self, register: ClaimRegister, claims: Cache[Json], pools: Cache[NetworkPool], holdings: Holdings
    ) -> None:
        self._register = register
        self._claims = claims
        self._pools = pools
        self._holdings = holdings

    async def step(self, pool: NetworkPool, layout: PoolLayout | None) -> Claimed:
        """What to claim in the pool's next status. Enters the register first where the claim grows."""
        claimed, wanted = claimed_network(pool), pool.spec.cidr
        if layout is None or pool.metadata.deletion_timestamp is not None:
            return Claimed(claimed)
        if claimed == wanted and self.knows(key_of(pool)):
            return Claimed(claimed)
        # Also when the register does not know what the pool claims: then somebody edited or deleted the register.
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
        """Give back what the register has for the pool beyond its claim."""
        claim = self._entries().get(key_of(pool))
        claimed = pool.status.claimed_cidr
        if claim is not None and claimed is not None and claimed == pool.spec.cidr and claim.cidr != claimed:
            await self._register.shrink(key_of(pool))

    def knows(self, key: Key) -> bool:
        """Whether the register has an entry for the pool."""
        return key in self._entries()

    async def forget(self, key: Key) -> None:
        """The pool is gone."""
        if self.knows(key):
            await self._register.drop(key)

    async def _grow(self, pool: NetworkPool) -> Claimed:
        claimed = claimed_network(pool)
        try:
            # Nobody goes before a pool that has its claim already.
            older = self._older_rival(pool) if claimed != pool.spec.cidr else None
            rival = older or await self._register.claim(pool)
        except StillHeld as held:  # from an earlier pool of this name, which somebody removed by force
            return Claimed(claimed, _stays(held.cidr, pool.spec.cidr, held.holder))
        except (NotFound, Forbidden) as error:
            message = f"Butler cannot record which pool has which network: {error.message}"
            return Claimed(claimed, NotHandingOut(PoolReason.NOT_CLAIMED, message), retry=RETRY_SECONDS)
        if rival is None:
            return Claimed(pool.spec.cidr)
        other = self._pools.get(rival)
        claim = self._entries().get(rival)
        network = other.spec.cidr if other is not None else claim.cidr if claim is not None else None
        message = (
            f"{pool.spec.cidr} overlaps NetworkPool {rival}{f' ({network})' if network else ''}:"
            " change or delete one of them, nothing is granted from this one until then"
        )
        return Claimed(claimed, NotHandingOut(PoolReason.OVERLAP, message))

    def _older_rival(self, pool: NetworkPool) -> Key | None:
        """An older pool that wants the same addresses and has not claimed them yet: it goes first."""
        for other in self._pools.values():
            if (
                other.metadata.uid != pool.metadata.uid
                and other.metadata.deletion_timestamp is None
                and not is_overlapped(other)
                and _age(other) < _age(pool)
                and is_network(other.spec.cidr)
                and overlaps(other.spec.cidr, pool.spec.cidr)
            ):
                return key_of(other)
        return None

    def _entries(self) -> Claims:
        return read_claims(next(iter(self._claims.values()), None))

    def _held(self, pool: NetworkPool, claimed: str, wanted: str) -> str | None:
        """Somebody who holds addresses in the network that is to be given up."""
        _, old = parse_network(claimed)
        _, new = parse_network(wanted)
        held = [(holding.name, holding.range) for holding in self._holdings.of(key_of(pool))]
        # Also intents that are carried out already: then they name what the allocation holds anyhow.
        held += [(intent.name, intent_range(intent)[1]) for intent in pool.status.intents if is_promise(intent)]
        return next((name for name, each in held if each.overlaps(old) and not new.contains(each)), None)


def _stays(claimed: str, wanted: str, holder: str) -> NotHandingOut:
    message = (
        f"it cannot move from {claimed} to {wanted} while {holder} holds addresses there:"
        " change the cidr back, or release them"
    )
    return NotHandingOut(PoolReason.VALIDATION_FAILED, message)


def is_overlapped(pool: NetworkPool) -> bool:
    """Whether the pool waits for another one to go out of its way."""
    ready = find_condition(pool.status.conditions, ConditionType.READY)
    return ready is not None and ready.reason == PoolReason.OVERLAP


def _age(pool: NetworkPool) -> tuple[float, str]:
    created = pool.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, pool.metadata.uid)
