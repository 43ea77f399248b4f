"""Butler's own answers about tenants' blocks: real clusters, pools and allocations in, its decisions out.

Pool 0 is 10.0.0.0/24, and its first address is 10.0.0.11; pool 1 is 10.1.0.0/24. Tenant 0 is the oldest.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from butler.api.codec import from_json
from butler.api.conditions import with_condition
from butler.api.ipallocation import (
    IPAllocation,
    IPAllocationPhase,
    IPAllocationSpec,
    IPAllocationStatus,
    IPAllocationType,
)
from butler.api.labels import Annotation, ConditionType, Finalizer, Label
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.api.networkpool import Intent as RealIntent
from butler.api.networkpool import NetworkPool, NetworkPoolStatus
from butler.api.objects import key_of
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
from model import butler_code
from model.blocks_state import ALLOCATED, FAILED, KINDS, Block, Facts, Intent, Name, Pool, Tenant, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HOME: Final = "butler-system"
NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
OFFSET: Final = 10
MANY: Final = 1 << 18
TYPES: Final = (IPAllocationType.NODES, IPAllocationType.LOAD_BALANCER)
A_WHILE, LONG = timedelta(seconds=5), timedelta(hours=1)
"""For how long a block has been held: long enough to be given back, and too long to wait for younger tenants."""


class PoolAnswer(NamedTuple):
    """What a pool's next status is, and who is told what."""

    pool: Pool
    refusals: tuple[tuple[int, Name, str], ...]
    commits: tuple[Intent, ...]


class TenantAnswer(NamedTuple):
    """What a tenant asks for, gives back or is built with."""

    creates: tuple[int, ...]
    gives_back: Name | None
    is_marked: bool
    """What it gives back is named on the cluster."""
    missing_in: str | None
    """The pool that refuses its other block."""
    builds_with: tuple[Name, ...]
    """All its blocks; none: something is missing."""


class Product:
    """Compared by identity, as what it answers depends on the code that is loaded."""

    def __init__(self, world: World, *, asked_together: bool = True) -> None:
        self._world = world
        self._asked_together = asked_together
        self._provider = self._made_provider()
        self._pool = lru_cache(MANY)(self._decide_pool)
        self._tenant = lru_cache(MANY)(self._decide_tenant)
        self._time = lru_cache(MANY)(self._decide_time)
        self._real_pool = lru_cache(MANY)(self._made_pool)
        self._allocation = lru_cache(MANY)(self._made_allocation)

    def pool(self, facts: Facts, index: int) -> PoolAnswer:
        """What a pool's controller would write that sees this."""
        return self._pool(facts.blocks, facts.pools[index], index)

    def tenant(self, facts: Facts, index: int) -> TenantAnswer:
        """What a tenant's controller would do that sees this."""
        stock = tuple(pool._replace(intents=()) for pool in facts.pools)
        return self._tenant(facts.tenants[index]._replace(labelled=False), facts.blocks[index], stock, index)

    def is_time(self, facts: Facts, index: int, answer: TenantAnswer) -> bool:
        """Whether the tenant gives back now, or waits for younger ones."""
        assert answer.gives_back is not None
        return self._time(facts.tenants[index], facts.blocks, index, answer.gives_back, answer.missing_in)

    # Pools.

    def _decide_pool(self, blocks: tuple[tuple[Block | None, ...], ...], pool: Pool, index: int) -> PoolAnswer:
        real, everything = self._real_pool(pool, index), self._allocations(blocks)
        here = [allocation for allocation in everything if allocation.spec.pool_ref.name == real.metadata.name]
        by_uid = {allocation.metadata.uid: allocation for allocation in everything}
        layout = butler_code.read_layout(real.spec)
        held = [
            (allocation.metadata.uid, one)
            for allocation in everything
            if (one := butler_code.holding_of(allocation)) is not None
        ]
        view = butler_code.PoolView(
            waiting=[allocation for allocation in here if butler_code.is_waiting(allocation)],
            leaving=[],
            live=sum(allocation.status.phase is IPAllocationPhase.ALLOCATED for allocation in here),
            find=by_uid.get,
            blocks_of=lambda uid: _blocks_of(everything, uid),
        )
        made = butler_code.plan_pool(
            real,
            layout,
            butler_code.Book(key_of(real), layout, butler_code.LiveAllocations(held)),
            view,
            obstacle=None,
            claimed_cidr=real.spec.cidr,
            now=NOW,
        )
        status = made.status
        after = pool._replace(
            intents=tuple(sorted(_intent(intent) for intent in status.intents)),
            available=status.available_ips or 0,
            largest=status.largest_free_block or 0,
        )
        if set(after.intents) < set(pool.intents) and after._replace(intents=pool.intents) == pool:
            after = pool  # that grants were carried out is written with the next thing there is to say
        return PoolAnswer(
            after,
            tuple((*_read_uid(refusal.uid), str(refusal.reason)) for refusal in made.refusals),
            tuple(_intent(intent) for _, intent in butler_code.uncommitted(real, by_uid.get)),
        )

    def _made_pool(self, pool: Pool, index: int) -> NetworkPool:
        ends = _address(index, 1), _address(index, pool.size)
        defaults = dict(zip(("nodesPerTenant", "lbPoolPerTenant"), self._world.sizes, strict=True))
        spec = {"cidr": f"10.{index}.0.0/24", "tenantAllocation": {"ranges": [_range(*ends)], "defaults": defaults}}
        metadata = {"name": _pool_name(index), "namespace": HOME, "uid": f"pool-{index}", "generation": 1}
        found = from_json(NetworkPool, {"metadata": metadata, "spec": spec})
        ready = with_condition((), type=ConditionType.READY, status=True, reason="Ready", message="", now=NOW)
        status = NetworkPoolStatus(
            claimed_cidr=found.spec.cidr,
            conditions=ready,
            available_ips=pool.available,
            largest_free_block=pool.largest,
            intents=tuple(self._real_intent(intent, index) for intent in pool.intents),
        )
        return msgspec.structs.replace(found, status=status)

    def _real_intent(self, intent: Intent, index: int) -> RealIntent:
        last = intent.first + self._world.sizes[intent.name.kind] - 1
        uid = _uid(intent.tenant, intent.name)
        return RealIntent(
            uid=uid, name=uid, start_address=_address(index, intent.first), end_address=_address(index, last)
        )

    # Tenants.

    def _decide_tenant(
        self, tenant: Tenant, blocks: tuple[Block | None, ...], pools: tuple[Pool, ...], index: int
    ) -> TenantAnswer:
        cluster, own = self._cluster(index, tenant), self._own(index, blocks)
        real_pools = {_pool_name(number): self._real_pool(pool, number) for number, pool in enumerate(pools)}
        plan = butler_code.plan_addresses(cluster, self._provider, real_pools, own, lambda _: False, HOME)
        assert not plan.drop, "there is no other pool to ask"
        marked = None if tenant.started else butler_code.marked_block(cluster, plan.blocks)
        block = marked or next(iter(plan.give_back), None)
        complete = plan.blocked is None and not plan.create and len(plan.blocks) == len(KINDS)
        return TenantAnswer(
            creates=tuple(TYPES.index(request.spec.type) for request in plan.create),
            gives_back=None if block is None else _read_uid(block.metadata.uid)[1],
            is_marked=marked is not None,
            missing_in=plan.missing_in,
            builds_with=tuple(_read_uid(block.metadata.uid)[1] for block in plan.blocks) if complete else (),
        )

    def _decide_time(
        self,
        tenant: Tenant,
        blocks: tuple[tuple[Block | None, ...], ...],
        index: int,
        name: Name,
        missing_in: str | None,
    ) -> bool:
        views = cast("Any", _KnownViews(self._allocations(blocks)))
        looks = butler_code.HalfTenants(cast("Any", None), views, cast("Any", None), lambda: NOW)
        block = blocks[index][name.kind]
        assert block is not None
        return looks._is_time(self._cluster(index, tenant), self._allocation(index, name.kind, block), missing_in)

    def _cluster(self, index: int, tenant: Tenant) -> TenantCluster:
        metadata = {
            "name": f"tenant-{index}",
            "namespace": "team",
            "uid": f"tenant-{index}",
            "creationTimestamp": _born(index).isoformat(),
            "annotations": {} if tenant.mark is None else {Annotation.GIVES_BACK.value: _uid(index, tenant.mark)},
        }
        spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": self._world.sizes[0]}}
        found = from_json(TenantCluster, {"metadata": metadata, "spec": spec})
        status = TenantClusterStatus(tenant_namespace=f"tenant-{index}" if tenant.started else None)
        return msgspec.structs.replace(found, status=status)

    def _made_provider(self) -> ProviderConfig:
        several = len(self._world.pools) > 1
        references = [
            {"name": _pool_name(number)} | ({"types": [str(TYPES[number])]} if several else {})
            for number in range(len(self._world.pools))
        ]
        spec = {"provider": "proxmox", "network": {"mode": "ipam", "poolRefs": references, "gateway": "10.0.0.1"}}
        return from_json(ProviderConfig, {"metadata": {"name": "lab", "namespace": HOME, "uid": "lab"}, "spec": spec})

    # Allocations.

    def _allocations(self, blocks: tuple[tuple[Block | None, ...], ...]) -> list[IPAllocation]:
        return [allocation for tenant, own in enumerate(blocks) for allocation in self._own(tenant, own)]

    def _own(self, tenant: int, blocks: tuple[Block | None, ...]) -> list[IPAllocation]:
        return [self._allocation(tenant, kind, block) for kind, block in enumerate(blocks) if block is not None]

    def _made_allocation(self, tenant: int, kind: int, block: Block) -> IPAllocation:
        index, uid = self._world.pool_of(kind), _uid(tenant, Name(kind, block.uid))
        together = {
            Annotation.GRANTED_TOGETHER.value: ",".join(TYPES),
            Annotation.TENANT_CREATED.value: _born(tenant).isoformat(),
        }
        granted = block.phase == ALLOCATED
        last = block.first + self._world.sizes[kind] - 1
        refused = with_condition(
            (), type=ConditionType.READY, status=False, reason=block.reason, message=block.reason, now=NOW
        )
        return IPAllocation(
            metadata=ObjectMeta(
                name=uid,
                namespace=HOME,
                uid=uid,
                resource_version="1",
                generation=1,
                creation_timestamp=NOW - LONG if granted or self._world.others_are_overdue else NOW,
                finalizers=(Finalizer.IP_ALLOCATION,),
                labels={Label.TENANT_UID.value: f"tenant-{tenant}"},
                annotations=together if self._asked_together else {},
            ),
            spec=IPAllocationSpec(
                pool_ref=LocalObjectReference(name=_pool_name(index)),
                tenant_cluster_ref=NamespacedObjectReference(name=f"tenant-{tenant}", namespace="team"),
                type=TYPES[kind],
                count=self._world.sizes[kind],
            ),
            status=IPAllocationStatus(
                phase=IPAllocationPhase(block.phase),
                start_address=_address(index, block.first) if granted else None,
                end_address=_address(index, last) if granted else None,
                allocated_count=self._world.sizes[kind] if granted else None,
                allocated_at=NOW - (A_WHILE if self._world.patient else LONG) if granted else None,
                conditions=refused if block.phase == FAILED else (),
            ),
        )


class _KnownViews:
    """The part of a controller's views that a tenant asks which is about to give something back."""

    def __init__(self, everything: Sequence[IPAllocation]) -> None:
        self.allocations = self
        self._everything = everything

    def by(self, index: str, key: object) -> Iterable[IPAllocation]:
        blocks = [allocation for allocation in self._everything if butler_code.is_block_of_a_tenant(allocation)]
        if index == butler_code.REFUSED_BLOCKS:
            return [block for block in blocks if block.status.phase is IPAllocationPhase.FAILED]
        assert index == butler_code.BLOCKS
        return [block for block in blocks if block.metadata.labels[Label.TENANT_UID] == key]

    def younger_halves_hold(self, cluster: TenantCluster, pool: str | None) -> bool:
        return butler_code.Views.younger_halves_hold(cast("Any", self), cluster, pool)


def _blocks_of(everything: Iterable[IPAllocation], uid: str) -> list[IPAllocation]:
    own = (allocation for allocation in everything if allocation.metadata.labels[Label.TENANT_UID] == uid)
    return [allocation for allocation in own if butler_code.is_block_of_a_tenant(allocation)]


def _born(tenant: int) -> datetime:
    return NOW - LONG + timedelta(minutes=tenant)


def _pool_name(index: int) -> str:
    return f"pool-{index}"


def _uid(tenant: int, name: Name) -> str:
    return f"{tenant}/{name.kind}/{name.uid}"


def _read_uid(uid: str) -> tuple[int, Name]:
    tenant, kind, number = map(int, uid.split("/"))
    return tenant, Name(kind, number)


def _address(index: int, number: int) -> str:
    return f"10.{index}.0.{OFFSET + number}"


def _range(start: str, end: str) -> dict[str, str]:
    return {"start": start, "end": end}


def _intent(intent: RealIntent) -> Intent:
    return Intent(*_read_uid(intent.uid), int(intent.start_address.rpartition(".")[2]) - OFFSET)
