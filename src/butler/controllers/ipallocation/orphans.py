"""The orphan sweep: gives back the addresses of tenants that are gone, the last of three layers of clean-up.

By the clock, all allocations with a known owner are compared with one consistent list of TenantClusters. Being on
that list is proof of life; being missing from it proves nothing, because a list can be cut short, filtered or empty
for reasons that have nothing to do with tenants. So for each owner that is missing the TenantCluster itself is asked
for by name. Only the answer that it does not exist, or that another one has its name, counts as a sighting. After
two sightings that lie at least `gap` seconds apart, the second a moment ago, the allocation is released. Whatever
else happens (a list that fails, a server that does not answer) teaches nothing, neither for nor against.

A tenant may be gone and its machines still run, if a user removed the finalizer. They are in its namespace, so as
long as that exists its addresses stay held, and an event reports it.

What has been seen is kept in memory alone: after a restart the two sightings are made anew. An allocation whose
owner was never seen is no orphan and is not looked at.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.objects import Key, key_of
from butler.controllers.ipallocation.release import Releases
from butler.kube.absence import read
from butler.kube.errors import Conflict, KubeError, NotFound
from butler.kube.kinds import ALLOCATIONS, TENANT_IDENTITIES
from butler.kube.resource import NAMESPACES
from butler.rules.allocation.orphans import OwnerClaim, by_missing_tenant, claim_of, claims_of
from butler.rules.allocation.release import owner_gone
from butler.rules.tenant_namespace import namespace_of_tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.controllers.networkpool.metrics import IpamMetrics, Sweep
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.kube.kinds import TenantIdentity

log = logging.getLogger(__name__)

ORPHAN_HELD: Final = "OrphanHeld"
AT_ONCE: Final = 8
"""How many tenants are asked for, or allocations released, at the same time: a sweep is in no hurry."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep looked at and did."""

    owned: int = 0
    """Allocations with a known owner that hold or want addresses."""
    suspected: int = 0
    """Those whose owner was seen missing, released or not."""
    unclear: int = 0
    """Those that nothing could be learned about."""
    released: int = 0
    failed: int = 0
    """Releases that did not go through; the next sweep tries again."""
    skipped: str = ""
    """Why nothing could be learned at all."""


@dataclass(slots=True)
class _Tally:
    suspected: int = 0
    unclear: int = 0
    released: int = 0
    failed: int = 0


def is_gone(found: TenantIdentity | None, asked: Key, claim: OwnerClaim) -> bool | None:
    """Whether an owner is gone, from the answer to asking for its name; None when the answer makes no sense."""
    if found is None:
        return True
    seen = found.metadata
    if not seen.uid or (seen.namespace, seen.name) != asked:
        return None
    return not claim.is_met_by((seen.uid,))


class Sightings:
    """When each claim was first seen to be void. Pure memory; the times come from the caller."""

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._first: dict[OwnerClaim, float] = {}

    def __len__(self) -> int:
        return len(self._first)

    def void(self, claim: OwnerClaim, now: float) -> bool:
        """Note that the owner was seen missing; True when an earlier sighting is old enough to act on it."""
        first = self._first.get(claim)
        if first is None:
            self._first[claim] = now
            return False
        return now - first >= self._gap

    def valid(self, claim: OwnerClaim) -> None:
        """The owner is there: all that was seen before is forgotten."""
        self._first.pop(claim, None)

    def keep_only(self, claims: Collection[OwnerClaim]) -> None:
        """Forget the claims that no allocation makes any more."""
        self._first = {claim: first for claim, first in self._first.items() if claim in claims}


class OrphanSweep:
    """Looks for orphans every so often. `clock` is monotonic and measures the gap, `now` is the time of day."""

    def __init__(
        self,
        client: Client,
        allocations: Cache[IPAllocation],
        pools: Cache[NetworkPool],
        events: EventRecorder,
        *,
        every: float,
        gap: float,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        metrics: IpamMetrics,
        at_once: int = AT_ONCE,
    ) -> None:
        self._client = client
        self._allocations = allocations
        self._events = events
        self._releases = Releases(client, pools, events, metrics, now)
        self._every = every
        self._clock = clock
        self._metrics = metrics
        self._at_once = at_once
        self._sightings = Sightings(gap)

    async def run(self) -> None:
        """Sweep until cancelled. Nothing that goes wrong in one sweep keeps the next from happening."""
        await self._allocations.wait_synced()
        while True:
            try:
                report = await self.sweep_once()
                if report.skipped:
                    log.warning("no search for orphans this time: %s", report.skipped)
                elif report.suspected or report.unclear:
                    log.info("search for orphans: %s", report)
            except Exception:
                log.exception("the search for orphans failed; again in %.0f s", self._every)
            await asyncio.sleep(self._every)

    async def sweep_once(self) -> SweepReport:
        """Look at every allocation with a known owner, once."""
        allocations = self._allocations.values()
        # A look at tens of thousands takes a while, in which the loop has grants to make.
        owned = await asyncio.to_thread(claims_of, allocations)
        self._sightings.keep_only(owned)
        if not owned:
            self._metrics.swept("clean", 0)
            return SweepReport()
        try:
            alive = {tenant.metadata.uid for tenant in (await self._client.list(TENANT_IDENTITIES)).items}
        except KubeError as error:
            self._metrics.swept("skipped")
            return SweepReport(owned=len(owned), skipped=f"TenantClusters cannot be listed: {error}")
        missing = await asyncio.to_thread(by_missing_tenant, allocations, alive)
        self._sightings.keep_only({claim for claim in owned if not claim.is_met_by(alive)})
        tally = _Tally()
        await self._ask_for(missing, tally)
        nothing_learned = tally.unclear > 0 and not tally.suspected
        outcome: Sweep = "skipped" if nothing_learned else "orphans" if tally.suspected else "clean"
        self._metrics.swept(outcome, len(self._sightings))
        return SweepReport(len(owned), tally.suspected, tally.unclear, tally.released, tally.failed)

    async def _ask_for(self, missing: dict[Key, list[IPAllocation]], tally: _Tally) -> None:
        """Ask for each missing tenant, a few at a time; one that makes trouble keeps no other waiting for long."""
        left = iter(missing.items())

        async def ask() -> None:
            for tenant, allocations in left:
                try:
                    found = await read(self._client, TENANT_IDENTITIES, tenant)
                except Exception as error:
                    tally.unclear += len(allocations)
                    log.warning("TenantCluster %s: nothing learned: %s", tenant, error or type(error).__name__)
                else:
                    await self._judge(tenant, found, allocations, tally)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._at_once, len(missing))):
                group.create_task(ask())

    async def _judge(
        self, tenant: Key, found: TenantIdentity | None, allocations: list[IPAllocation], tally: _Tally
    ) -> None:
        """Draw the conclusions for all that named this tenant; on the spot, while the answer is fresh."""
        for allocation in allocations:
            claim = claim_of(allocation)
            assert claim is not None, "only allocations with a claim are asked about"
            gone = is_gone(found, tenant, claim)
            if gone is None:
                tally.unclear += 1
            elif not gone:
                self._sightings.valid(claim)
            else:
                tally.suspected += 1
                if self._sightings.void(claim, self._clock()):
                    done = not await self._is_at_home(tenant, allocation, claim)
                    done = done and await self._release(key_of(allocation), claim)
                    tally.released += done
                    tally.failed += not done

    async def _is_at_home(self, tenant: Key, allocation: IPAllocation, claim: OwnerClaim) -> bool:
        """Whether machines may still be there, though their TenantCluster is not."""
        for uid in {claim.owner_uid, claim.formerly}:
            home = namespace_of_tenant(tenant.name, uid)
            try:
                found = await read(self._client, NAMESPACES, Key("", home))
            except Exception as error:
                log.warning("namespace %s: nothing learned: %s", home, error or type(error).__name__)
                return True
            if found is not None:
                message = (
                    f"TenantCluster {tenant} (uid {uid}) no longer exists, but its namespace {home} does: machines in"
                    " it may use these addresses, which are held until the namespace is deleted"
                )
                log.warning("orphan %s: %s", key_of(allocation), message)
                self._events.record(allocation, ALLOCATIONS, ORPHAN_HELD, message, "Warning")
                return True
        return False

    async def _release(self, key: Key, claim: OwnerClaim) -> bool:
        allocation = self._allocations.get(key)
        if allocation is None or claim_of(allocation) != claim:
            return False  # it changed while the sweep was under way
        try:
            await self._releases.release(allocation, owner_gone(allocation, claim.owner_uid))
        except (Conflict, NotFound) as error:
            log.debug("orphan %s: %s", key, error)
            return False
        except Exception as error:
            log.warning("orphan %s could not be released: %s", key, error or type(error).__name__)
            return False
        self._sightings.valid(claim)
        return True
