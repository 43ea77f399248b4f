"""The NetworkPool controller: the only one who hands out addresses.

One pass over a pool:

  observe   the pool, and a view of the allocations that is at least as new as the pool's `allocationsSeen`
  decide    `plan`: all waiting requests of the pool at once, up to a batch
  reserve   one write of the pool's status, valid only for the version that was decided on
  commit    one write per granted allocation, in parallel; and one per refusal that says something new

Nothing is remembered between passes that safety depends on. A conflict or an unknown outcome of the reserve means
reading the pool again and deciding again; a commit that fails leaves its intent in the pool, and the next pass, of
this process or another, carries it out. Several processes may do all this at once: at worst they get in each other's
way. What must never happen here: a commit for which no intent stands in the pool, or for a version of an allocation
that was read after the pool was last known to be there, or a decision on a cache that does not follow the server as it
is now.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from butler.api.codec import status_patch
from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.labels import AllocationReason, ConditionType, Finalizer, Label, PoolReason
from butler.api.objects import Key, finalizers_patch, is_older, key_of, with_finalizer, without_finalizer
from butler.controllers.networkpool.claim_steps import Claimed, Claiming
from butler.controllers.networkpool.claims_writer import ClaimRegister, newest_of
from butler.controllers.networkpool.grant_writer import LOOK_AGAIN, AllocationWriter
from butler.ipam.granted import had_range
from butler.ipam.requests import read_unbuilt_tenant
from butler.kube import absence
from butler.kube.controller import After, Controller
from butler.kube.errors import Conflict, KubeError, NotFound
from butler.kube.kinds import ALLOCATIONS, POOLS, WRITE_TIMEOUT
from butler.rules.allocation.held import pool_key
from butler.rules.allocation.owner import recorded_owner, tenant_key
from butler.rules.pool.claims import claimed_network
from butler.rules.pool.conditions import NotHandingOut, names, seen_too_much, unreadable, with_readiness
from butler.rules.pool.excluded_addresses import excluded_addresses, pools_named_by
from butler.rules.pool.foreign_addresses import ForeignAddresses, shown_by
from butler.rules.pool.holdings import Holdings, pool_named_in
from butler.rules.pool.next_status import (
    PoolPlan,
    PoolView,
    is_leaving,
    layout_of,
    no_such_pool,
    only_forgets_intents,
    open_intents,
    plan,
    uncommitted,
)
from butler.rules.pool.quota import limit_of, quota_of
from butler.rules.pool.tenant_blocks import is_block_of_a_tenant, is_waiting
from butler.rules.provider.placement import named_provider, placement
from butler.rules.provider.settings import pools_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import ExcludedAddress, NetworkPool, NetworkPoolStatus
    from butler.api.objects import Change, Json
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.networkpool.grant_writer import Due
    from butler.controllers.networkpool.metrics import IpamMetrics
    from butler.controllers.service_looks import ServiceLooks
    from butler.ipam.addresses import Family, Range
    from butler.ipam.layout import PoolLayout
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.kube.metrics import Metrics
    from butler.rules.pool.quota import Quota
    from butler.rules.pool.settings import IpamSettings

WORKERS: Final = 16
"""Pools at a time, which is also how many may share one write of the claims."""
BY_POOL: Final = "providers by the pools that they name"
COMING_BACK: Final = "what allocations had that come back"
VIEW_TIMEOUT: Final = 0.5
"""Seconds to wait for the allocation cache to catch up with what the pool has seen: its worker is needed elsewhere."""
CONFIRMED: Final = 10.0
"""Seconds since the caches were last in contact, up to which addresses are granted on them unasked."""
LIST_TIMEOUT: Final = 5.0
"""Seconds to wait for our own writes, or a list, to show."""
LONGEST_PAUSE: Final = 1.0
"""Seconds after which a pool that someone waits for is looked at again, whatever went wrong."""
TIDY_AFTER: Final = 2.0
"""Seconds that carried out intents may stay in a pool's status when nothing else is to be written."""
UNREADABLE_AGAIN: Final = 5.0
"""Seconds until a pool is looked at again that waits for an allocation to make sense: its end may not be told."""
log = logging.getLogger(__name__)


class StaleView(KubeError):
    """A cache is behind: that of the allocations what the pool's status takes into account, or that of the pools."""


class NetworkPoolController:
    def __init__(
        self,
        client: Client,
        pools: Cache[NetworkPool],
        allocations: Cache[IPAllocation],
        tenants: Cache[TenantCluster],
        providers: Cache[ProviderConfig],
        claims: Cache[Json],
        events: EventRecorder,
        metrics: IpamMetrics,
        settings: IpamSettings,
        clock: Callable[[], datetime],
        looks: ServiceLooks | None = None,
    ) -> None:
        self._client = client
        self._looks = looks
        self._clock = clock
        self._pools = pools
        self._allocations = allocations
        self._claims = claims
        self._events = events
        self._metrics = metrics
        self._holdings = Holdings(lambda pool: metrics.inconsistent(pool, "unreadable"))
        register = ClaimRegister(client, settings.home_namespace, settings.namespace, claims.wrote)
        self._claiming = Claiming(register, claims, pools, self._holdings, settings.namespace)
        self._tenants = tenants
        self._providers = providers
        self._home = settings.home_namespace
        providers.index(BY_POOL, pools_named_by)
        self._foreign = ForeignAddresses()
        self._tidy_at: dict[Key, float] = {}
        self._met: dict[Key, str] = {}
        """UIDs of pools whose first view was new enough, see `_meet`."""
        tenants.on_change(self._foreign.changed)
        allocations.index("uid", lambda allocation: [allocation.metadata.uid])
        allocations.index("waiting", lambda allocation: [pool_key(allocation)] if is_waiting(allocation) else [])
        allocations.index(
            "blocks",
            lambda block: [block.metadata.labels[Label.TENANT_UID]] if is_block_of_a_tenant(block) else [],
        )
        allocations.index(
            "balancers", lambda allocation: [pool_key(allocation)] if _is_for_balancers(allocation) else []
        )
        allocations.index("tenant", lambda allocation: [tenant_key(allocation)] if _counts(allocation) else [])
        allocations.index_ranges(COMING_BACK, _had_in_namespace)
        allocations.index("leaving", lambda allocation: [pool_key(allocation)] if is_leaving(allocation) else [])
        allocations.on_change(self._holdings.changed)
        self._writer = AllocationWriter(
            client, allocations, tenants, events, metrics, settings.commit_concurrency, clock
        )

    def controller(self, metrics: Metrics | None = None) -> Controller:
        """With its watches. That a key is never worked on twice at once is all the order that is needed here."""
        return (
            Controller(
                "networkpool", self.reconcile, workers=WORKERS, longest_pause=self._longest_pause, metrics=metrics
            )
            .hears(self._pools, self._claiming.concerned_by_pool)
            .watches(self._allocations, self._pools_concerned)
            .hears(self._claims, self._claiming.concerned_by_claims)
            .hears(self._tenants, self._concerned_by_tenant)
            .watches(self._providers, self._pools_named_by, when=_network_changed)
        )

    def _quota_of(self, allocation: IPAllocation) -> Quota | None:
        """What bounds a request: the quota of the provider that its cluster is on. Without a cluster, nothing does."""
        cluster = self._tenants.get(tenant_key(allocation))
        if cluster is None or recorded_owner(allocation) not in (None, cluster.metadata.uid):
            return None
        key = named_provider(cluster, self._home) or placement(
            cluster, {key_of(config) for config in self._providers.values()}, self._home
        )
        config = self._providers.get(key) if key is not None else None
        most = limit_of(config, allocation.spec.type) if config is not None else None
        if most is None:
            return None
        theirs = [
            other
            for other in self._allocations.by("tenant", tenant_key(allocation))
            if recorded_owner(other) in (None, cluster.metadata.uid)
        ]
        named = f"TenantCluster {key_of(cluster)}"
        return quota_of(allocation, named, most, theirs, lambda other: self._pools.get(pool_key(other)))

    def _pools_named_by(self, config: ProviderConfig) -> Iterable[Key]:
        return [Key(self._home, name) for name in pools_named_by(config)]

    def _excluded(self, pool: NetworkPool) -> tuple[ExcludedAddress, ...]:
        """Gateways and DNS servers in this pool; ProviderConfigs name pools of the home namespace only."""
        here = pool.metadata.namespace == self._home
        return excluded_addresses(pool, self._providers.by(BY_POOL, pool.metadata.name)) if here else ()

    def _pools_concerned(self, allocation: IPAllocation) -> Iterable[Key]:
        """The pool of an allocation, those that others of its tenant wait for on its account, and one that keeps free
        for it what it had."""
        tenant = read_unbuilt_tenant(allocation)
        others = [*self._allocations.by("blocks", tenant.uid)] if tenant else []
        others += [other for other in self._allocations.by("tenant", tenant_key(allocation)) if _is_over_quota(other)]
        had = had_range(allocation)
        kept_in = self._holdings.pools_around(*had) if had is not None else ()
        return {pool_key(allocation), *kept_in, *(pool_key(other) for other in others if is_waiting(other))}

    def _concerned_by_tenant(self, change: Change[TenantCluster]) -> Iterable[Key]:
        """The pools of the addresses that a tenant's Services began to show, or show no longer."""
        differs = set(shown_by(change.old)) ^ set(shown_by(change.new))
        return [pool for shown in differs for pool in self._holdings.pools_around(shown.family, shown.range)]

    def _longest_pause(self, key: Key) -> float | None:
        pool = self._pools.get(key)
        is_awaited = (pool is not None and pool.status.intents) or self._allocations.count("waiting", key)
        return LONGEST_PAUSE if is_awaited else None

    async def reconcile(self, key: Key) -> After | None:
        """Bring a pool and its requests in order."""
        before: NetworkPool | None = None
        while True:
            pool = self._pools.get(key)
            if pool is None:
                return await self._without_pool(key)
            if pool is before:
                # To decide the same again at once would only meet the same conflict again.
                raise StaleView(f"NetworkPool {key} is no longer what the cache shows")
            before = pool
            self._metrics.pool_found(key)  # before anything is counted: its first pass may grant already
            finalizers = with_finalizer(pool, Finalizer.NETWORK_POOL)
            if finalizers is not None:
                await self._set_finalizers(pool, finalizers)
                continue
            ahead_of = await self._observe(key, pool)
            if ahead_of is not None:
                await self._take_back(pool, ahead_of)
                continue
            outcome = await self._pass(key, pool)
            if outcome is not None:
                return outcome.after

    async def _pass(self, key: Key, pool: NetworkPool) -> _Done | None:
        """One observe, decide, reserve, commit. None: there is more to do at once."""
        layout, obstacle = layout_of(pool, self._excluded(pool))
        claim = await self._claiming.step(pool, layout)
        obstacle = obstacle or claim.obstacle
        await self._meet(key, pool)
        if self._pools.get(key) is not pool or not (self._pools.is_followed and self._allocations.is_followed):
            return None  # what it promises may never have been, see `kube.timeline`
        # From here to the reserve nothing is awaited: pool and view belong together.
        unseen = self._seconds_unseen(key)
        view = self._view(key, layout, grants_wait=unseen is not None)
        if view.unreadable:
            obstacle = NotHandingOut(PoolReason.ALLOCATION_UNREADABLE, unreadable(view.unreadable))
            claim = Claimed(claimed_network(pool))  # nor is anything given up that an allocation may hold
        is_new = claimed_network(pool) is None and claim.cidr is not None and bool(view.waiting)
        if is_new:  # its claim comes first: only from then on do we know what there is to be seen, see `_meet`
            view = replace(view, waiting=())
        if pool.metadata.deletion_timestamp is not None:
            if not pool.metadata.finalizers:
                return _Done()  # nothing keeps it: the watch will say so
            others = without_finalizer(pool, Finalizer.NETWORK_POOL)
            if others is not None and view.live == 0 and not view.unreadable and not open_intents(pool, view):
                if await self._set_finalizers(pool, others):
                    self._claiming.emptied(pool)
                return None
            obstacle = self._being_deleted(key, pool, view)
        book = self._holdings.book(key, layout) if layout is not None else None
        if book is not None and book.overlaps:
            log.error("NetworkPool %s: two allocations hold the same address; was a status edited by hand?", key)
            self._metrics.inconsistent(key, "overlap")
        made = plan(pool, layout, book, view, obstacle=obstacle, claimed_cidr=claim.cidr, now=self._clock())
        wait = self._put_off(key, pool, made)
        due = uncommitted(msgspec.structs.replace(pool, status=made.status), view.find)
        reserved = await self._reserve(pool, made, due, put_off=wait is not None)
        if reserved is None:
            return None
        pool = reserved
        if claim.again or is_new:
            return None  # it lasts a moment only: no request is refused for it
        pairs = [(allocation, refusal) for refusal in made.refusals if (allocation := view.find(refusal.uid))]
        # Side by side, whatever becomes of either: a write that fails must not delay the others.
        newest, next_refusal = await asyncio.gather(
            self._writer.commit(due), self._writer.refuse(pairs), return_exceptions=True
        )
        self._metrics.pool_status(key, pool.status)
        self._report_waiting(key)
        if isinstance(newest, BaseException):
            raise newest
        if isinstance(next_refusal, BaseException):
            raise next_refusal
        await self._claiming.settle(pool)
        if made.left_over:
            await self._catch_up(newest)
            return None if made.granted else _Done(After(0.5))
        # What was carried out shows in the view any moment; what met a conflict may need us again.
        unsettled = LOOK_AGAIN if uncommitted(pool, view.find) else None
        unread = UNREADABLE_AGAIN if view.unreadable else None
        waits = (wait, made.next_notice, made.next_refusal, next_refusal, unsettled, unread, claim.retry, unseen)
        soonest = min((seconds for seconds in waits if seconds is not None), default=None)
        return _Done(After(soonest) if soonest is not None else None)

    # Observe.

    def _view(self, key: Key, layout: PoolLayout | None, *, grants_wait: bool) -> PoolView:
        foreign = self._foreign.within(layout.family, layout.network) if layout is not None else ()
        return PoolView(
            waiting=() if grants_wait else self._allocations.by("waiting", key),
            leaving=self._allocations.by("leaving", key),
            coming_back=self._coming_back(key, layout),
            live=self._holdings.count(key),
            find=lambda uid: next(iter(self._allocations.by("uid", uid)), None),
            blocks_of=lambda tenant: self._allocations.by("blocks", tenant),
            quota_of=self._quota_of,
            unreadable=[*self._holdings.unreadable(key), *self._undecodable(key)],
            foreign=foreign,
        )

    def _coming_back(self, pool: Key, layout: PoolLayout | None) -> list[IPAllocation]:
        if layout is None:
            return []
        return self._allocations.touching(COMING_BACK, (pool.namespace, layout.family), layout.network)

    def _seconds_unseen(self, key: Key) -> float | None:
        """In how many seconds to ask again whether Services have been seen; None: grants need not wait for that.

        Services may show what is on no record, see `butler.controllers.service_looks`.
        """
        if self._looks is None or not self._allocations.count("waiting", key) or not self._serves_balancers(key):
            return None
        return self._looks.seconds_left() or None

    def _serves_balancers(self, pool: Key) -> bool:
        """Whether Services may show addresses of a pool: the records may be lost of all that it granted for them."""
        if self._allocations.count("balancers", pool):
            return True
        return pool.namespace == self._home and any(
            pool.name in pools_for(IPAllocationType.LOAD_BALANCER, config.spec.network)
            for config in self._providers.by(BY_POOL, pool.name)
        )

    def _undecodable(self, pool: Key) -> list[str]:
        """Allocations that do not fit their type, and may hold addresses of this pool.

        An allocation holds addresses of the pool that it names. Where that cannot be read, or there is no such pool,
        it is unknown which other pool the addresses may have passed to.
        """
        found = []
        for key, text in self._allocations.unreadable.items():
            named = pool_named_in(text)
            if key.namespace == pool.namespace and (
                named in (None, pool.name) or Key(key.namespace, named) not in self._pools
            ):
                found.append(key.name)
        return found

    async def _observe(self, key: Key, pool: NetworkPool) -> str | None:
        """Have a view that is as new as the pool; the version of all allocations where that is impossible.

        The version that a pool has seen may be from elsewhere: a status restored into another cluster, or written by a
        process that had not yet noticed that the server was restored. A fresh list is as new as anything can be then.
        """
        if self._allocations.count("waiting", key):
            await asyncio.gather(self._pools.confirm(CONFIRMED), self._allocations.confirm(CONFIRMED))
        if not await self._pools.reached(None, VIEW_TIMEOUT):
            raise StaleView(f"the pool cache does not follow the server, nor did in {VIEW_TIMEOUT} seconds")
        seen = pool.status.allocations_seen
        if await self._allocations.reached(seen, VIEW_TIMEOUT):
            return None
        if seen is not None and self._allocations.is_followed:
            newest = await self._allocations.newest()
            if not seen.isdecimal() or is_older(newest, seen):
                # All that this pool's status rests on happened before it was written.
                written = pool.metadata.resource_version
                if not await self._allocations.reached(written, 0.0):
                    self._allocations.doubt()
                if await self._allocations.reached(written, LIST_TIMEOUT):
                    return self._allocations.position
        raise StaleView(f"the allocation cache has not reached version {seen} in {VIEW_TIMEOUT} seconds")

    async def _meet(self, key: Key, pool: NetworkPool) -> None:
        """Have a view of all that an earlier pool of this name granted, once, before a new one grants anything.

        Where that pool was removed by force, nothing tells how new a view has to be; but once the new one has its
        claim, no process can carry out the intents of the earlier one.
        """
        if pool.status.allocations_seen is not None or claimed_network(pool) is None:
            return
        if self._met.get(key) == pool.metadata.uid or not self._allocations.count("waiting", key):
            return
        if not await self._allocations.reached(pool.metadata.resource_version, 0.0):
            listed = (await self._client.list(ALLOCATIONS, key.namespace)).items
            await self._catch_up(newest_of(allocation for allocation in listed if pool_key(allocation) == key))
        self._met[key] = pool.metadata.uid

    async def _catch_up(self, version: str | None) -> None:
        if not await self._allocations.reached(version, LIST_TIMEOUT):
            raise StaleView(f"the allocation cache has not reached version {version} in {LIST_TIMEOUT:.0f} seconds")

    def _put_off(self, key: Key, pool: NetworkPool, made: PoolPlan) -> float | None:
        """Seconds for which a write that only forgets carried out intents may wait for a better occasion."""
        if not only_forgets_intents(pool.status, made):
            self._tidy_at.pop(key, None)
            return None
        clock = asyncio.get_running_loop().time()
        wait = self._tidy_at.setdefault(key, clock + TIDY_AFTER) - clock
        if wait > 0:
            return wait
        del self._tidy_at[key]
        return None

    def _being_deleted(self, key: Key, pool: NetworkPool, view: PoolView) -> NotHandingOut:
        holders = [holding.name for holding in self._holdings.of(key)]
        holders += [intent.name for intent in open_intents(pool, view)]
        goes = f", and goes once all its addresses are released by {names(sorted(holders))}" if holders else ""
        return NotHandingOut(PoolReason.DELETING, f"it is being deleted{goes}")

    # Act.

    async def _reserve(
        self, pool: NetworkPool, made: PoolPlan, due: Sequence[Due], *, put_off: bool
    ) -> NetworkPool | None:
        """Write the decision, for this version of the pool and no other. None: it did not count, decide again.

        Where nothing is to be written, the pool has to be there if anything is to be carried out.
        """
        if put_off or made.status == pool.status:
            return pool if not self._writer.current(due) or await self._is_there(pool) else None
        written = await self._write_status(pool, made.status)
        if written is not None:
            self._tell(written, made)
        return written

    async def _take_back(self, pool: NetworkPool, newest: str) -> None:
        """Let a pool that speaks of allocations that never were say so, and have seen what there is."""
        obstacle = NotHandingOut(PoolReason.VERSIONS_WENT_BACK, seen_too_much(pool, newest))
        status = msgspec.structs.replace(pool.status, allocations_seen=newest)
        written = await self._write_status(pool, with_readiness(status, None, obstacle, (), (), self._clock()))
        if written is not None:
            self._events.record(written, POOLS, obstacle.reason, obstacle.message, "Warning")

    async def _write_status(self, pool: NetworkPool, status: NetworkPoolStatus) -> NetworkPool | None:
        key = key_of(pool)
        patch = status_patch(pool.metadata, pool.status, status)
        assert patch is not None
        try:
            written = await self._client.patch(
                POOLS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
            )
        except Conflict:
            self._metrics.conflict(key, "reserve")
            await self._read_again(key)
            return None
        except NotFound:
            await self._read_again(key)
            return None
        except KubeError as error:
            if error.outcome_unknown:
                self._metrics.unknown_outcome(key, "reserve")
                await self._read_again(key)
            raise
        self._pools.wrote(written)
        return written

    async def _is_there(self, pool: NetworkPool) -> bool:
        """Whether this very pool exists, by an answer of the server: what it promises is carried out only then."""
        now = await self._read_again(key_of(pool))
        same = now.metadata.uid == pool.metadata.uid
        return same and not is_older(now.metadata.resource_version, pool.metadata.resource_version)

    async def _read_again(self, key: Key) -> NetworkPool:
        """Have the newest state of a pool before deciding again."""
        try:
            return await self._pools.read_again(key)
        except NotFound as gone:
            # The watch will say so too; until then there is nothing to decide.
            raise Conflict(409, gone.status, f"NetworkPool {key} is gone") from gone

    async def _set_finalizers(self, pool: NetworkPool, finalizers: list[str]) -> bool:
        """Write them for this version of the pool and no other; whether that counted."""
        key, patch = key_of(pool), finalizers_patch(pool, finalizers)
        try:
            self._pools.wrote(await self._client.patch(POOLS, key.name, patch, key.namespace, timeout=WRITE_TIMEOUT))
        except (Conflict, NotFound):
            self._metrics.conflict(key, "reserve")
            await self._read_again(key)
            return False
        return True

    async def _without_pool(self, key: Key) -> After | None:
        """Requests for a pool that does not exist, and what an earlier one of that name left behind."""
        waiting = self._allocations.by("waiting", key)
        if waiting or self._claiming.knows(key):
            found = await absence.read(self._client, POOLS, key)
            if found is not None:  # the cache is behind
                self._pools.wrote(found)
                return After(0.1)
        self._holdings.close(key)
        self._metrics.pool_gone(key)
        self._report_waiting(key)
        self._tidy_at.pop(key, None)
        self._met.pop(key, None)
        next_refusal = await self._writer.refuse([(allocation, no_such_pool(allocation)) for allocation in waiting])
        await self._claiming.forget(key)
        return After(next_refusal) if next_refusal is not None else None

    # Tell.

    def _tell(self, pool: NetworkPool, made: PoolPlan) -> None:
        for notice in made.notices:
            self._events.record(pool, POOLS, notice.reason, notice.message, notice.type)
        if made.granted:
            self._metrics.batch(key_of(pool), len(made.granted))
            grants = [f"{intent.name} {intent.start_address}-{intent.end_address}" for intent in made.granted]
            self._events.record(pool, POOLS, "IPsAllocated", f"granted {names(grants)}")

    def _report_waiting(self, key: Key) -> None:
        waiting = self._allocations.by("waiting", key)
        pending = sum(allocation.status.phase is IPAllocationPhase.PENDING for allocation in waiting)
        failed = Counter(
            ready.reason
            for allocation in waiting
            if allocation.status.phase is IPAllocationPhase.FAILED
            and (ready := find_condition(allocation.status.conditions, ConditionType.READY)) is not None
        )
        self._metrics.waiting(key, pending, failed)


def _counts(allocation: IPAllocation) -> bool:
    """Whether an allocation may count against a quota, or wait for one."""
    return allocation.status.phase is not IPAllocationPhase.RELEASED


def _had_in_namespace(allocation: IPAllocation) -> list[tuple[tuple[str, Family], Range]]:
    """What an allocation that comes back had, for all pools of its namespace."""
    had = had_range(allocation)
    return [((allocation.metadata.namespace, had[0]), had[1])] if had is not None else []


def _is_for_balancers(allocation: IPAllocation) -> bool:
    return allocation.spec.type is IPAllocationType.LOAD_BALANCER and _counts(allocation)


def _is_over_quota(allocation: IPAllocation) -> bool:
    ready = find_condition(allocation.status.conditions, ConditionType.READY)
    return ready is not None and ready.reason == AllocationReason.QUOTA_EXCEEDED


def _network_changed(old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
    return old is None or new is None or old.spec.network != new.spec.network


class _Done:
    """The pass brought the pool in order; look again after a while, or when something changes."""

    def __init__(self, after: After | None = None) -> None:
        self.after = after
