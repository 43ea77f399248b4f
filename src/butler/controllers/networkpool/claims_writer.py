"""Changes the ConfigMap of claims: one writer per process, and one write for all pools that ask at the same time.

See `claims` for why an order of reads and writes is safe; here is how it is kept. All wishes that came in while the
last write was under way are settled together:

    read      the ConfigMap, then each of the pools
    list      the allocations, once, where an entry would lose something that they may hold, or passes to another pool
    write     the requests that wait for a pool that is gone, so that they have a newer version than it ever knew
    swap      all entries that change, valid only for the ConfigMap that was read

A swap that comes too late, because another process was quicker, is decided anew from a fresh read.

Why requests are written: a pool that was removed by force takes its intents along, and some controller may still be
about to carry one out. It does so only for a version of the request that it read while that pool was there (`writes`).
So once all that wait have a newer one, the next pool of the network may grant every address that is not held.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.labels import Annotation
from butler.api.objects import Json, Key, is_newer, key_of
from butler.ipam.addresses import BadAddress, parse_network
from butler.kube import absence
from butler.kube.errors import AlreadyExists, AnswerTooLarge, Conflict, Invalid, KubeError, NotFound
from butler.kube.kinds import ALLOCATIONS, POOLS, WRITE_TIMEOUT
from butler.kube.resource import CONFIGMAPS
from butler.rules.allocation.held import pool_key
from butler.rules.pool.claims import CLAIMS, ClaimTable, NetworkClaim, claimed_network, contains, entry
from butler.rules.pool.holdings import holding_of
from butler.rules.pool.tenant_blocks import is_waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.kube.client import Client

    Held = dict[Key, list[IPAllocation]]
    """Allocations by the pool that they name."""

ATTEMPTS: Final = 6
"""How often a swap is tried that others are quicker than; then each pool tries again after its own back-off."""
PAUSE: Final = 0.02
"""Seconds, at most and times the attempt, between two of them: two processes must not keep step."""
_PURPOSE: Final = "Which NetworkPool may hand out from which network; kept by Butler, not for editing."


class PoolMoved(KubeError):
    """The pool is no longer what the claim was for: look again."""


class StillHeld(KubeError):
    """A claim cannot be given up: look again when the addresses are released."""

    def __init__(self, pool: Key, holder: str, cidr: str) -> None:
        super().__init__(f"NetworkPool {pool}: {holder} still holds addresses in {cidr}")
        self.holder = holder
        self.cidr = cidr


Wanted = Callable[[NetworkClaim | None, "NetworkPool | None"], NetworkClaim | None]
"""What an entry should be, given what it is and what its pool is now; the same for no change. May raise PoolMoved."""


def entered(asked: NetworkPool, now: NetworkPool | None) -> NetworkClaim:
    """The entry for the pool as it was asked for, if that is still what it is."""
    key, meta = key_of(asked), asked.metadata
    if now is None or (now.metadata.uid, now.metadata.generation) != (meta.uid, meta.generation):
        raise PoolMoved(f"NetworkPool {key} was changed meanwhile")
    if (claimed := claimed_network(now)) is not None and not contains(now.spec.cidr, claimed):
        raise PoolMoved(f"NetworkPool {key} has not yet given up {claimed}")
    return NetworkClaim(now.spec.cidr, now.metadata.uid, now.metadata.generation)


def shrunk(before: NetworkClaim | None, now: NetworkPool | None) -> NetworkClaim | None:
    """The entry without what the pool's status no longer claims."""
    claimed = claimed_network(now) if now is not None else None
    if before is None or now is None or claimed is None or claimed != now.spec.cidr:
        return before
    if before.cidr == claimed or not contains(before.cidr, claimed):
        return before
    return NetworkClaim(claimed, now.metadata.uid, now.metadata.generation)


def dropped(before: NetworkClaim | None, now: NetworkPool | None) -> NetworkClaim | None:
    """No entry, unless there is a pool of this name again."""
    return before if now is not None else None


@dataclass(eq=False, slots=True)
class _Wish:
    """What is asked about one pool's entry."""

    key: Key
    wanted: Wanted
    answer: asyncio.Future[Key | None]
    age: tuple[float, str] | None = None
    """Of the pool that wants to have a network; the older goes first, after all that give something back."""
    emptied: str | None = None
    """UID of a pool from which surely no allocation holds anything."""
    failure: Exception | None = None

    def passes_on(self, before: NetworkClaim | None, after: NetworkClaim | None) -> bool:
        """Whether the entry is that of a pool which is gone, and which may have promised something."""
        return before is not None and before.uid != self.emptied and (after is None or after.uid != before.uid)

    def loses(self, before: NetworkClaim | None, after: NetworkClaim | None) -> bool:
        """Whether the entry would give up addresses that an allocation may hold."""
        if before is None or before.uid == self.emptied:
            return False
        return after is None or not contains(after.cidr, before.cidr)


class ClaimRegister:
    """Wishes in, swaps out. `on_written` hears of the ConfigMap that a swap left."""

    def __init__(
        self, client: Client, home: str, scope: str = "", on_written: Callable[[Json], None] = lambda _: None
    ) -> None:
        self._client = client
        self._home = home
        self._scope = scope
        self._on_written = on_written
        self._table = ClaimTable()
        self._wishes: list[_Wish] = []
        self._writer: asyncio.Task[None] | None = None

    async def claim(self, pool: NetworkPool) -> Key | None:
        """Enter the pool's network; the rival's key when that is not possible."""
        return await self._ask(key_of(pool), lambda _, now: entered(pool, now), age=age_of(pool))

    async def shrink(self, key: Key) -> None:
        """Give back what a pool's status no longer claims."""
        await self._ask(key, shrunk)

    async def drop(self, key: Key, emptied: str | None = None) -> None:
        """Forget the claim of a pool that is gone, unless an allocation still holds addresses from it.

        `emptied` is the UID of a pool whose finalizer we removed ourselves, in a version in which no allocation held
        its addresses: then none does now.
        """
        await self._ask(key, dropped, emptied=emptied)

    async def _ask(
        self, key: Key, wanted: Wanted, age: tuple[float, str] | None = None, emptied: str | None = None
    ) -> Key | None:
        wish = _Wish(key, wanted, asyncio.get_running_loop().create_future(), age, emptied)
        self._wishes.append(wish)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="network-claims")
        return await wish.answer

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(0)  # all who are about to ask in this turn of the loop come along
            wishes, self._wishes = [wish for wish in self._wishes if not wish.answer.done()], []
            if not wishes:
                return
            try:
                await self._settle(wishes)
            except Exception as error:
                _answer(wishes, error)

    async def _settle(self, wishes: Sequence[_Wish]) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answers = await self._attempt(wishes)
            except Conflict:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(random.uniform(0, PAUSE * attempt))  # noqa: S311  # jitter, not secrets
            except (Invalid, AnswerTooLarge):
                if len(wishes) == 1:
                    raise
                for wish in wishes:  # one of them cannot be written: it must not keep the others
                    await self._settle_alone(wish)
                return
            else:
                for wish, rival in zip(wishes, answers, strict=True):
                    _answer([wish], wish.failure, rival)
                return

    async def _settle_alone(self, wish: _Wish) -> None:
        try:
            await self._settle([wish])
        except Exception as error:
            _answer([wish], error)

    async def _attempt(self, wishes: Sequence[_Wish]) -> list[Key | None]:
        """One read and one swap; the rival of each wish. A wish that cannot be met says so itself."""
        config_map = await self._read()
        self._table.take(config_map)
        # Only now: a process that claims for a newer state of one of them changes the ConfigMap that we have read.
        found = await asyncio.gather(*(self._pool(wish.key) for wish in wishes), return_exceptions=True)
        wanted: dict[_Wish, NetworkClaim | None] = {}
        for wish, pool in zip(wishes, found, strict=True):
            wish.failure = None
            try:
                if isinstance(pool, BaseException):
                    raise pool
                wanted[wish] = wish.wanted(self._table.get(wish.key), pool)
            except KubeError as error:
                wish.failure = error
        losers = {wish for wish, claim in wanted.items() if wish.loses(self._table.get(wish.key), claim)}
        orphaned = {wish for wish, claim in wanted.items() if wish.passes_on(self._table.get(wish.key), claim)}
        held = await self._held({wish.key.namespace for wish in losers | orphaned})
        rivals: dict[_Wish, Key | None] = {}
        data: dict[str, str | None] = {}
        for wish in sorted(wanted, key=lambda wish: wish.age or (0.0, "")):
            before, claim = self._table.get(wish.key), wanted[wish]
            if wish.age is not None and claim is not None:
                rivals[wish] = self._table.rival(wish.key, claim.cidr)
            if rivals.get(wish) is not None or claim == before:
                continue  # the entry stands already where a process died between this and the pool's status
            if before is not None and wish in losers:
                wish.failure = _still_held(wish.key, before, claim, held.get(wish.key, ()))
            if before is not None and wish in orphaned and wish.failure is None:
                wish.failure = await self._outdate(before.uid, held.get(wish.key, ()))
            if wish.failure is None:
                self._table.put(wish.key, claim)
                data.update([entry(wish.key, claim)])
        if data:
            await self._swap(config_map, data)
        return [rivals.get(wish) for wish in wishes]

    async def _outdate(self, gone: str, allocations: Sequence[IPAllocation]) -> Exception | None:
        """Give every request that waits a version that the pool which is gone never knew; what went wrong."""
        holders = newest_of(other for other in allocations if not is_waiting(other))
        waiting = [allocation for allocation in allocations if is_waiting(allocation)]
        todo = [allocation for allocation in waiting if not _is_outdated(allocation, gone, holders)]
        done = await asyncio.gather(*(self._mark(allocation, gone) for allocation in todo), return_exceptions=True)
        return next((result for result in done if isinstance(result, Exception)), None)

    async def _mark(self, allocation: IPAllocation, gone: str) -> None:
        meta = allocation.metadata
        patch = {
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "annotations": {Annotation.POOL_GONE.value: f"{gone} {meta.resource_version}"},
            }
        }
        with suppress(NotFound):
            await self._client.patch(ALLOCATIONS, meta.name, patch, meta.namespace, timeout=WRITE_TIMEOUT)

    async def _swap(self, config_map: Json, data: dict[str, str | None]) -> None:
        meta = config_map["metadata"]
        patch = {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}, "data": data}
        self._on_written(await self._client.patch(CONFIGMAPS, CLAIMS, patch, self._home))

    async def _pool(self, key: Key) -> NetworkPool | None:
        return await absence.read(self._client, POOLS, key)

    async def _held(self, namespaces: Iterable[str]) -> Held:
        """The allocations of these namespaces, as they are now."""
        found: Held = {}
        for namespace in sorted(namespaces):
            for allocation in (await self._client.list(ALLOCATIONS, namespace)).items:
                found.setdefault(pool_key(allocation), []).append(allocation)
        return found

    async def _read(self) -> Json:
        """The ConfigMap as it is now; made first, with what pools claim already, where there is none."""
        try:
            return await self._client.get(CONFIGMAPS, CLAIMS, self._home)
        except NotFound:
            pass
        pools = await self._client.list(POOLS, self._scope)
        data = dict(
            entry(key_of(pool), NetworkClaim(claimed, pool.metadata.uid, pool.metadata.generation))
            for pool in pools.items
            if (claimed := claimed_network(pool)) is not None
        )
        metadata = {"name": CLAIMS, "namespace": self._home, "annotations": {"kubernetes.io/description": _PURPOSE}}
        try:
            return await self._client.create(CONFIGMAPS, {"metadata": metadata, "data": data})
        except AlreadyExists:
            return await self._client.get(CONFIGMAPS, CLAIMS, self._home)


def _answer(wishes: Iterable[_Wish], failure: Exception | None, rival: Key | None = None) -> None:
    for wish in wishes:
        if wish.answer.done():  # who asked was cut off
            continue
        if failure is not None:
            wish.answer.set_exception(failure)
        else:
            wish.answer.set_result(rival)


def age_of(pool: NetworkPool) -> tuple[float, str]:
    """What of two pools decides which is the older."""
    created = pool.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, pool.metadata.uid)


def newest_of(allocations: Iterable[IPAllocation]) -> str | None:
    """The newest version among these."""
    newest: str | None = None
    for allocation in allocations:
        version = allocation.metadata.resource_version
        if newest is None or is_newer(version, newest):
            newest = version
    return newest


def _is_outdated(allocation: IPAllocation, gone: str, holders: str | None) -> bool:
    """Whether a request was written since that pool was gone, and since all that hold something of it were."""
    marked = allocation.metadata.annotations.get(Annotation.POOL_GONE, "").startswith(f"{gone} ")
    return marked and (holders is None or is_newer(allocation.metadata.resource_version, holders))


def _still_held(
    key: Key, before: NetworkClaim, after: NetworkClaim | None, allocations: Iterable[IPAllocation]
) -> StillHeld | None:
    for allocation in allocations:
        if _holds_in(allocation, before.cidr, after):
            return StillHeld(key, allocation.metadata.name, before.cidr)
    return None


def _holds_in(allocation: IPAllocation, before: str, after: NetworkClaim | None) -> bool:
    """Whether an allocation is live in one network and outside the other."""
    try:
        holding = holding_of(allocation)
    except BadAddress:
        return True  # what it holds is unknown, so it may be this
    if holding is None:
        return False
    family, old = parse_network(before)
    new = parse_network(after.cidr)[1] if after is not None else None
    return holding.family is family and old.overlaps(holding.range) and not (new and new.contains(holding.range))
