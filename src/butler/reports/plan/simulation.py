"""A stage on which the controllers' own decisions are played through, with nothing written anywhere.

It holds what the API server holds, as values, and does to them what the controllers would do, by calling the very
functions that decide in production:

    a pool       `networkpool.plan.plan`: grants and refusals of all that wait, then its next status
    a cluster    `tenantcluster.provider` (where it may go) and `tenantcluster.addresses.plan` (what it asks of which
                 pool, and when it gives a refused request up to ask elsewhere)

One thing happens after the other here, where the controllers do many at once. Who asks first is served first, in both;
what is left open by that is the order of two who ask within the same second.

Tenants that leave, and Services that come, are not foreseen. Given back is only what a tenant that is not built cannot
use, as its controller does it.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, Finalizer, Label, PoolReason
from butler.api.meta import ConditionStatus
from butler.api.objects import Change, Key, is_being_deleted, key_of, with_finalizer
from butler.ipam.capacity import Capacity
from butler.rules.allocation.owner import recorded_owner, tenant_key
from butler.rules.blocked import Blocked
from butler.rules.pool.claims import ClaimTable, NetworkClaim, claimed_network
from butler.rules.pool.conditions import NotHandingOut
from butler.rules.pool.excluded_addresses import excluded_addresses, pools_named_by
from butler.rules.pool.foreign_addresses import shown_in
from butler.rules.pool.holdings import Holdings
from butler.rules.pool.next_status import PoolView, layout_of, no_such_pool, plan, uncommitted
from butler.rules.pool.outcomes import granted, refused
from butler.rules.pool.quota import limit_of, quota_of
from butler.rules.pool.tenant_blocks import is_block_of_a_tenant, is_waiting
from butler.rules.tenant import addresses
from butler.rules.tenant.provider import access, quota, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.decide import Refusal
    from butler.ipam.layout import PoolLayout
    from butler.reports.estate import Estate
    from butler.rules.pool.next_status import PoolPlan
    from butler.rules.pool.quota import Quota
    from butler.rules.tenant.addresses import Addresses

_TURNS = 8
"""How often a cluster may ask anew for each of its pools before it is taken to go round in circles."""
_TOLD = (
    PoolReason.OVERLAP,
    PoolReason.NOT_CLAIMED,
    PoolReason.ALLOCATION_UNREADABLE,
    PoolReason.VALIDATION_FAILED,
)
"""Why a pool hands out nothing, where only its status can tell."""


class Rehearsal:
    """An estate that can be tried things on. `now` is later than everything in it."""

    def __init__(self, estate: Estate, now: datetime, check: Callable[[], None] = lambda: None) -> None:
        self.home = estate.home
        self._check = check
        self.pools = {pool.metadata.name: _with_excluded(pool, estate.providers) for pool in estate.pools}
        self.providers = {key_of(provider): provider for provider in estate.providers}
        self.clusters = {key_of(cluster): cluster for cluster in estate.clusters}
        self._allocations: dict[str, IPAllocation] = {}
        self._names: set[str] = set()
        self._waiting: dict[str, dict[str, IPAllocation]] = {}
        self._of_tenant: dict[Key, dict[str, IPAllocation]] = {}
        self._blocks: dict[str, dict[str, IPAllocation]] = {}
        self._holdings = Holdings(lambda _: None)
        self._made = 0
        born = [allocation.metadata.creation_timestamp for allocation in (*estate.allocations, *estate.clusters)]
        self._now = max([now, *(moment for moment in born if moment is not None)])
        for allocation in estate.allocations:
            self._put(_with_finalizer(allocation))

    # What there is.

    def find(self, uid: str) -> IPAllocation | None:
        return self._allocations.get(uid)

    def waiting(self) -> list[IPAllocation]:
        """Requests without addresses, in the order of their pools and their age."""
        every = [text for one in self._waiting.values() for text in one.values()]
        return sorted(
            every, key=lambda allocation: (allocation.spec.pool_ref.name, str(allocation.metadata.creation_timestamp))
        )

    def allocations_of(self, cluster: Key) -> list[IPAllocation]:
        """What was asked for on behalf of a cluster, in that order."""
        return list(self._of_tenant.get(cluster, {}).values())

    def capacity(self, name: str) -> Capacity | None:
        """How full a pool is, with what is granted and not yet carried out; None: its spec makes no sense."""
        made, layout = self._decide(name, waiting=False)
        if layout is None:
            return None
        status = made.status
        return Capacity(
            total=status.total_ips or 0,
            allocated=status.allocated_ips or 0,
            largest_free_block=status.largest_free_block or 0,
            fragmentation_percent=status.fragmentation_percent or 0,
        )

    def stranded(self, name: str) -> dict[str, str]:
        """Names by UID of a pool's allocations with addresses that it does not hand out."""
        layout, _ = layout_of(self.pools[name])
        return dict(self._holdings.book(self._pool_key(name), layout).stranded) if layout else {}

    def hands_out(self, name: str) -> tuple[PoolLayout | None, NotHandingOut | None]:
        """What a pool may hand out, and why it hands out nothing, as far as the API server shows."""
        pool = self.pools[name]
        layout, invalid = layout_of(pool)
        return layout, invalid or self._obstacle(pool)

    # What happens to it.

    def later(self, seconds: float = 1.0) -> None:
        """Time passes: requests made from now on come after those made before."""
        self._check()
        self._now += timedelta(seconds=seconds)

    def edit(self, pool: NetworkPool) -> None:
        """A pool is changed, or created."""
        meta = msgspec.structs.replace(pool.metadata, generation=pool.metadata.generation + 1)
        self.pools[meta.name] = msgspec.structs.replace(pool, metadata=meta)

    def settle(self) -> None:
        """Let all that wait have what is there: requests as they stand, then clusters, the oldest first."""
        self.serve(*sorted({*self.pools, *self._waiting}))
        oldest = sorted(
            self.clusters.values(), key=lambda key: (str(key.metadata.creation_timestamp), key.metadata.uid)
        )
        for cluster in oldest:
            if not cluster.spec.paused and not is_being_deleted(cluster):
                self.look_after(cluster)

    def ask(self, request: IPAllocation) -> str:
        """Create an IPAllocation; returns its UID, by which its outcome can be found."""
        self._made += 1
        meta = msgspec.structs.replace(
            request.metadata,
            uid=f"planned-{self._made:08d}",
            resource_version=str((1 << 62) + self._made),
            creation_timestamp=self._now,
        )
        self._put(_with_finalizer(msgspec.structs.replace(request, metadata=meta)))
        return meta.uid

    def serve(self, *names: str) -> None:
        """The controllers of these pools, and of those that they wake, until there is nothing more to do."""
        woken = deque(names)
        while woken:
            self._check()
            before = {uid: _answer(request) for uid, request in self._waiting.get(woken[0], {}).items()}
            self._serve_one(name := woken.popleft())
            for uid, answer in before.items():
                allocation = self._allocations[uid]
                if _answer(allocation) != answer:
                    woken.extend(pool for pool in self._pools_of_other_blocks(allocation) if pool != name)

    def _pools_of_other_blocks(self, allocation: IPAllocation) -> list[str]:
        blocks = self._blocks_of(allocation.metadata.labels.get(Label.TENANT_UID, ""))
        return list(dict.fromkeys(block.spec.pool_ref.name for block in blocks if is_waiting(block)))

    def _serve_one(self, name: str) -> None:
        if name not in self.pools:
            self._refuse([no_such_pool(item) for item in self._waiting_at(name)])
            return
        while True:
            made, _ = self._decide(name)
            pool = self.pools[name] = msgspec.structs.replace(self.pools[name], status=made.status)
            todo = uncommitted(pool, self.find)
            for allocation, intent in todo:
                status = granted(allocation, intent, self._tenant_of(allocation), self._now)
                self._put(msgspec.structs.replace(allocation, status=status))
            if not todo:
                self._refuse(made.refusals)
            if not todo and not made.left_over:
                return

    def admit(self, cluster: TenantCluster) -> Addresses | Blocked:
        """A cluster is created: what becomes of its addresses."""
        self._made += 1
        meta = msgspec.structs.replace(cluster.metadata, uid=f"planned-{self._made:08d}", creation_timestamp=self._now)
        new = msgspec.structs.replace(cluster, metadata=meta)
        self.clusters[key_of(new)] = new
        return self.look_after(new)

    def look_after(self, cluster: TenantCluster) -> Addresses | Blocked:
        """A cluster's controller, as far as addresses go, until it has them or can only wait."""
        provider = resolve(cluster, self.providers, self.home, cluster.status.team or "")
        if isinstance(provider, Blocked):
            return provider
        denied = self._denied(cluster, provider)
        if denied is not None:
            return denied
        for _ in range(_TURNS * max(1, len(provider.spec.network.pool_refs))):
            found = addresses.plan(
                cluster, provider, self.pools, self._own(cluster), self._names.__contains__, self.home
            )
            if not found.create and not found.drop and not found.give_back:
                return found
            for given_up in (*found.drop, *found.give_back):
                self._remove(given_up)
            for request in found.create:
                self.ask(request)
            self.serve(
                *dict.fromkeys(allocation.spec.pool_ref.name for allocation in (*found.create, *found.give_back))
            )
        return found

    def _denied(self, cluster: TenantCluster, provider: ProviderConfig) -> Blocked | None:
        started = cluster.status.tenant_namespace is not None
        team = cluster.status.team or ""
        denied = access(cluster, provider, team, started=started)
        if denied is not None or provider.spec.limits is None:
            return denied
        observed = cluster.status.observed_state
        workers = observed.workers.desired if observed is not None and observed.workers is not None else 0
        return quota(cluster, provider, self._of_the_same_team(cluster, provider), workers, team)

    def _of_the_same_team(self, cluster: TenantCluster, provider: ProviderConfig) -> Iterable[TenantCluster]:
        for other in self.clusters.values():
            if (
                other.metadata.uid != cluster.metadata.uid
                and _counts_with(other, cluster)
                and not is_being_deleted(other)
                and resolve(other, self.providers, self.home, other.status.team or "") is provider
            ):
                yield other

    def _own(self, cluster: TenantCluster) -> list[IPAllocation]:
        named = self._of_tenant.get(key_of(cluster), {}).values()
        return [text for text in named if recorded_owner(text) in (None, cluster.metadata.uid)]

    # A pool's decision.

    def _decide(self, name: str, *, waiting: bool = True) -> tuple[PoolPlan, PoolLayout | None]:
        pool, key = self.pools[name], self._pool_key(name)
        layout, obstacle = self.hands_out(name)
        view = PoolView(
            waiting=self._waiting_at(name) if waiting else (),
            leaving=(),
            live=self._holdings.count(key),
            find=self.find,
            blocks_of=self._blocks_of,
            quota_of=self._quota_of,
            foreign=shown_in(pool),
        )
        made = plan(
            pool,
            layout,
            self._holdings.book(key, layout) if layout is not None else None,
            view,
            obstacle=obstacle,
            claimed_cidr=pool.spec.cidr,
            now=self._now,
        )
        return made, layout

    def _obstacle(self, pool: NetworkPool) -> NotHandingOut | None:
        """Why a pool with a spec that makes sense hands out nothing all the same."""
        if is_being_deleted(pool):
            return NotHandingOut(PoolReason.DELETING, "it is being deleted")
        ready = find_condition(pool.status.conditions, ConditionType.READY)
        if ready is not None and pool.status.observed_generation == (pool.metadata.generation or None):
            told = next((pool_reason for pool_reason in _TOLD if pool_reason == ready.reason), None)
            return NotHandingOut(told, ready.message) if told and ready.status is ConditionStatus.FALSE else None
        claims = ClaimTable()
        for other in self.pools.values():
            if (claimed := claimed_network(other)) is not None:
                claims.put(key_of(other), NetworkClaim(claimed, other.metadata.uid, other.metadata.generation))
        rival = claims.rival(key_of(pool), pool.spec.cidr)
        claim = claims.get(rival) if rival is not None else None
        if claim is None:
            return None
        return NotHandingOut(PoolReason.OVERLAP, f"{pool.spec.cidr} overlaps NetworkPool {rival} ({claim.cidr})")

    def _waiting_at(self, name: str) -> list[IPAllocation]:
        return list(self._waiting.get(name, {}).values())

    def _blocks_of(self, tenant: str) -> list[IPAllocation]:
        return [block for block in self._blocks.get(tenant, {}).values() if is_block_of_a_tenant(block)]

    def _quota_of(self, allocation: IPAllocation) -> Quota | None:
        cluster = self._tenant_of(allocation)
        if cluster is None:
            return None
        provider = resolve(cluster, self.providers, self.home, cluster.status.team or "")
        if isinstance(provider, Blocked):
            return None
        most = limit_of(provider, allocation.spec.type)
        if most is None or recorded_owner(allocation) not in (None, cluster.metadata.uid):
            return None
        named = f"TenantCluster {key_of(cluster)}"
        return quota_of(
            allocation, named, most, self._own(cluster), lambda other: self.pools.get(other.spec.pool_ref.name)
        )

    def _pool_key(self, name: str) -> Key:
        return Key(self.home, name)

    def _tenant_of(self, allocation: IPAllocation) -> TenantCluster | None:
        return self.clusters.get(tenant_key(allocation))

    # Allocations.

    def _refuse(self, refusals: Iterable[Refusal]) -> None:
        for refusal in refusals:
            allocation = self._allocations[refusal.uid]
            status = refused(allocation, refusal, self._tenant_of(allocation), self._now)
            self._put(msgspec.structs.replace(allocation, status=status))

    def _put(self, allocation: IPAllocation) -> None:
        uid, before = allocation.metadata.uid, self._allocations.get(allocation.metadata.uid)
        self._allocations[uid] = allocation
        self._names.add(allocation.metadata.name)
        self._of_tenant.setdefault(tenant_key(allocation), {})[uid] = allocation
        self._blocks.setdefault(allocation.metadata.labels.get(Label.TENANT_UID, ""), {})[uid] = allocation
        here = self._waiting.setdefault(allocation.spec.pool_ref.name, {})
        if is_waiting(allocation):
            here[uid] = allocation
        else:
            here.pop(uid, None)
        self._holdings.changed(Change(key_of(allocation), before, allocation))

    def _remove(self, allocation: IPAllocation) -> None:
        uid = allocation.metadata.uid
        gone = self._allocations.pop(uid)
        self._names.discard(gone.metadata.name)
        self._of_tenant[tenant_key(gone)].pop(uid, None)
        self._blocks[gone.metadata.labels.get(Label.TENANT_UID, "")].pop(uid, None)
        self._waiting[gone.spec.pool_ref.name].pop(uid, None)
        self._holdings.changed(Change(key_of(gone), gone, None))


def _counts_with(other: TenantCluster, cluster: TenantCluster) -> bool:
    """Whether limits per team count two clusters together; namespaces without a team are counted by themselves."""
    if cluster.status.team:
        return other.status.team == cluster.status.team
    return not other.status.team and other.metadata.namespace == cluster.metadata.namespace


def _with_excluded(pool: NetworkPool, configs: Iterable[ProviderConfig]) -> NetworkPool:
    """The pool with the gateways and DNS servers left out that its controller leaves out, or is about to."""
    naming = [config for config in configs if pool.metadata.name in pools_named_by(config)]
    excluded = {entry.address: entry for entry in (*pool.status.excluded_addresses, *excluded_addresses(pool, naming))}
    status = msgspec.structs.replace(pool.status, excluded_addresses=tuple(excluded.values()))
    return msgspec.structs.replace(pool, status=status)


def _with_finalizer(allocation: IPAllocation) -> IPAllocation:
    """As it is when the IPAllocation controller has looked at it: nothing is granted before."""
    finalizers = None if is_being_deleted(allocation) else with_finalizer(allocation, Finalizer.IP_ALLOCATION)
    if finalizers is None:
        return allocation
    meta = msgspec.structs.replace(allocation.metadata, finalizers=tuple(finalizers))
    return msgspec.structs.replace(allocation, metadata=meta)


def _answer(allocation: IPAllocation) -> tuple[str, str]:
    """What a request was last told: what its tenant's other blocks depend on."""
    ready = find_condition(allocation.status.conditions, ConditionType.READY)
    return str(allocation.status.phase), ready.reason if ready else ""
