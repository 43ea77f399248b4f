"""IPAllocation: its finalizer, its owner, its release and its end. Granting is the pool's business, not ours.

The life of an allocation, as far as this controller goes:

    created        the finalizer is added where the creator did not; nothing is granted before it is there
    waiting        nothing is written
    Allocated      the owner's UID is recorded when its TenantCluster is first seen after the grant; and the grant is
                   repeated in the metadata, for the day on which the object comes back without its status: by us, if
                   it was not by the one who hands the addresses out (`record`)
    deleted        while something may use its addresses it stays Allocated and says what it waits for, in condition
                   Deleting (see `allocation_deletion`). Else it is Released (addresses kept for the record), then the
                   pool takes note (`allocationsSeen` reaches this version), then the finalizer goes
    Released       by Butler itself: kept for the retention time, then deleted, and on as above

Every step is one write that is valid only for the version it was decided on; who comes too late gets a conflict and
looks again. Two of these controllers may run at once: they would write the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from butler.api.codec import status_patch
from butler.api.conditions import condition_holds, find_condition, with_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus
from butler.api.labels import ConditionType, Finalizer, Label
from butler.api.objects import finalizers_patch, is_newer, key_of, with_finalizer, without_finalizer
from butler.controllers.ipallocation.deletion import observe
from butler.controllers.ipallocation.record import record_patch
from butler.controllers.ipallocation.release import Releases
from butler.ipam.granted import GrantRecord, due_record, is_from_another_life, recorded_grant, was_released
from butler.kube.absence import read
from butler.kube.controller import After, Controller
from butler.kube.errors import NotFound
from butler.kube.kinds import ALLOCATIONS, POOLS, WRITE_TIMEOUT
from butler.rules.allocation.deletion import DeletionObstacle, grounds, is_wish, judge
from butler.rules.allocation.held import pool_key
from butler.rules.allocation.owner import is_insisted, is_taken_over, owner_of, tenant_key
from butler.rules.pool.next_status import is_leaving
from butler.rules.tenant.status_urgency import is_on_its_way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Json, Key
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.networkpool.metrics import IpamMetrics
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.kube.metrics import Metrics

LEAVING_BY_POOL: Final = "leaving allocations by pool"
OWNERLESS_BY_TENANT: Final = "allocations without a found owner by tenant"
WISHES_BY_TENANT: Final = "allocations whose deletion waits by tenant"
UNANSWERED: Final = "requests without an answer"
MORE_PATIENT: Final = 5
"""How many times longer the record of a grant waits at most, as long as others wait for an answer."""
BEFORE_USE: Final = 200
"""The same for the addresses of a cluster that is being built: who hands them out first records them, see `record`."""
SELDOM: Final = 10
"""How many times less often such a grant is looked at: there may be thousands."""
LOOK_AGAIN: Final = After(1.0)
"""For a view that must be behind the server: the watch brings the news, this is for a watch that broke."""

USERS_AGAIN: Final = After(5.0)
"""For a deletion that waits: what its tenant does is watched, its machines are not."""
DELETION_WAITS: Final = "DeletionWaits"

# What to do, decided by `decide`.


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    finalizers: list[str]


@dataclass(frozen=True, slots=True)
class Record:
    """Write what the status does not say yet."""

    status: IPAllocationStatus


@dataclass(frozen=True, slots=True)
class Release:
    """Give the addresses back: the object is being deleted, and nothing uses them; or it was released before."""


@dataclass(frozen=True, slots=True)
class Wait:
    """It is being deleted, and its addresses may be in use: say so, and look again."""

    status: IPAllocationStatus


@dataclass(frozen=True, slots=True)
class AwaitPool:
    """The pool has not taken note of the release; its next write wakes us."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    finalizers: list[str]


@dataclass(frozen=True, slots=True)
class Keep:
    """Released, and kept for audit for so many seconds more."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Delete:
    """Released, and kept long enough."""


@dataclass(frozen=True, slots=True)
class Note:
    """Repeat in the metadata, which backups keep, what was granted, or that it was released."""

    record: GrantRecord | None


@dataclass(frozen=True, slots=True)
class NoteLater:
    """The same, in so many seconds: what was just granted is looked at by others, and this is in no hurry."""

    seconds: float


Step = Note | NoteLater | AddFinalizer | Record | Release | Wait | AwaitPool | RemoveFinalizer | Keep | Delete


def decide(
    allocation: IPAllocation,
    tenant: TenantCluster | None,
    pool: NetworkPool | None,
    *,
    retention: timedelta,
    note_after: timedelta = timedelta(seconds=3),
    now: datetime,
    obstacle: DeletionObstacle | None = None,
) -> Step | None:
    """The next step in an allocation's life; None when there is none to take.

    `tenant` is the TenantCluster that it names, as far as known. `pool` matters for an allocation that `is_leaving`:
    there, None means that the pool surely does not exist. `obstacle` matters for one that `is_wish`.
    """
    status = allocation.status
    released = status.phase is IPAllocationPhase.RELEASED
    if allocation.metadata.deletion_timestamp is not None:
        if not released:
            return Release() if obstacle is None else Wait(waiting(allocation, tenant, obstacle, now))
        if not is_leaving(allocation):
            return None
        if pool is not None and not has_taken_note(pool, allocation):
            return AwaitPool()
        return RemoveFinalizer(without_finalizer(allocation, Finalizer.IP_ALLOCATION) or [])
    if released:
        due = due_record(allocation)
        return Note(due) if due is not None and due != recorded_grant(allocation) else _retain(status, retention, now)
    if was_released(allocation):
        return Release()
    finalizers = with_finalizer(allocation, Finalizer.IP_ALLOCATION)
    if finalizers is not None:
        return AddFinalizer(finalizers)
    if tenant is not None and wants_owner(allocation):
        owner = owner_of(allocation, tenant, now)
        if owner.found:
            return Record(
                msgspec.structs.replace(
                    status, tenant_cluster_uid=owner.tenant_cluster_uid, conditions=owner.conditions
                )
            )
    return _note(allocation, note_after, now) if wants_record(allocation, tenant) else None


def _note(allocation: IPAllocation, after: timedelta, now: datetime) -> Step:
    granted = allocation.status.allocated_at
    left = (granted + after - now).total_seconds() if granted is not None else 0.0
    return NoteLater(left) if 0 < left <= after.total_seconds() else Note(due_record(allocation))


def wants_record(allocation: IPAllocation, tenant: TenantCluster | None) -> bool:
    """Whether its metadata does not repeat what it holds.

    One from another life is first taken over by its tenant; unless the tenant is of this life, and the record is an
    old one that was applied again.
    """
    due = due_record(allocation)
    if due is None or recorded_grant(allocation) == due:
        return False
    return not is_from_another_life(allocation) or (tenant is not None and is_taken_over(allocation, tenant))


def waiting(
    allocation: IPAllocation, tenant: TenantCluster | None, obstacle: DeletionObstacle, now: datetime
) -> IPAllocationStatus:
    """The status of an allocation whose deletion waits: what for, and whose it is."""
    owner = owner_of(allocation, tenant, now)
    status = allocation.status
    if owner.found:
        # The teardown of its cluster releases what is known to be the cluster's.
        status = msgspec.structs.replace(
            status, tenant_cluster_uid=owner.tenant_cluster_uid, conditions=owner.conditions
        )
    if obstacle.others_know_better and find_condition(status.conditions, ConditionType.DELETING) is not None:
        return status
    conditions = with_condition(
        status.conditions,
        type=ConditionType.DELETING,
        status=True,
        reason=obstacle.reason,
        message=obstacle.message,
        now=now,
    )
    return msgspec.structs.replace(status, conditions=conditions)


def _retain(status: IPAllocationStatus, retention: timedelta, now: datetime) -> Step:
    if status.released_at is None:
        # Set to Released by hand: the time for audit starts when that is noticed.
        return Record(msgspec.structs.replace(status, released_at=now))
    left = (status.released_at + retention - now).total_seconds()
    return Keep(left) if left > 0 else Delete()


def has_taken_note(pool: NetworkPool, allocation: IPAllocation) -> bool:
    """Whether the pool's books are from after this version of the allocation."""
    seen = pool.status.allocations_seen
    return seen is not None and not is_newer(allocation.metadata.resource_version, seen)


def wants_owner(allocation: IPAllocation) -> bool:
    """Whether finding its TenantCluster would be worth a write.

    A request that waits is not written to; the grant or the refusal that comes says whose it is. One that was refused
    gets its owner recorded, lest it wait for ever after its cluster went; where a label tells the owner there is no
    need.
    """
    if condition_holds(allocation.status.conditions, ConditionType.TENANT_FOUND):
        return False
    phase = allocation.status.phase
    return phase is IPAllocationPhase.ALLOCATED or (
        phase is IPAllocationPhase.FAILED and not allocation.metadata.labels.get(Label.TENANT_UID)
    )


def is_settled(allocation: IPAllocation) -> bool:
    """Whether there is surely nothing to decide: the usual case, sorted out before it costs a reconcile."""
    return (
        allocation.metadata.deletion_timestamp is None
        and allocation.status.phase is not IPAllocationPhase.RELEASED
        and Finalizer.IP_ALLOCATION in allocation.metadata.finalizers
        and not wants_owner(allocation)
        and due_record(allocation) in (None, recorded_grant(allocation))
        and not was_released(allocation)
    )


class IPAllocationController:
    """Takes one step at a time for every allocation that needs one. `clock` tells the time of day, in UTC."""

    def __init__(
        self,
        client: Client,
        allocations: Cache[IPAllocation],
        pools: Cache[NetworkPool],
        tenants: Cache[TenantCluster],
        events: EventRecorder,
        *,
        retention: timedelta,
        note_after: timedelta = timedelta(seconds=3),
        clock: Callable[[], datetime],
        metrics: IpamMetrics,
    ) -> None:
        self._client = client
        self._allocations = allocations
        self._pools = pools
        self._tenants = tenants
        self._events = events
        self._releases = Releases(client, pools, events, metrics, clock)
        self._retention = retention
        self._note_after = note_after
        self._clock = clock
        self._written: dict[Key, tuple[str, int]] = {}
        """The version that our last write replaced, until the view shows what came of it, be it by a new list."""
        allocations.index(LEAVING_BY_POOL, lambda item: [pool_key(item)] if is_leaving(item) else ())
        allocations.index(OWNERLESS_BY_TENANT, lambda item: [tenant_key(item)] if wants_owner(item) else ())
        allocations.index(UNANSWERED, lambda item: [True] if item.status.phase is IPAllocationPhase.PENDING else ())
        allocations.index(WISHES_BY_TENANT, lambda item: [tenant_key(item)] if is_wish(item) else ())

    def controller(self, *, workers: int = 16, metrics: Metrics | None = None) -> Controller:
        """The queue and the watches that call `reconcile`."""
        controller = Controller("ipallocation", self.reconcile, workers=workers, metrics=metrics)
        controller.watches(self._allocations, when=lambda _, new: new is None or not is_settled(new))
        # Two watches of pools, so that a pool's every write wakes only those that it lets go.
        controller.watches(self._pools, self._noted_by, when=_seen_more)
        controller.watches(self._pools, self._waiting_for, when=lambda _, new: new is None)
        controller.watches(self._tenants, self._ownerless, when=lambda old, _: old is None)
        controller.watches(self._tenants, self._wishes, when=_comes_or_goes)
        return controller

    def _noted_by(self, pool: NetworkPool) -> Iterable[Key]:
        waiting = self._allocations.by(LEAVING_BY_POOL, key_of(pool))
        return [key_of(allocation) for allocation in waiting if has_taken_note(pool, allocation)]

    def _waiting_for(self, pool: NetworkPool) -> Iterable[Key]:
        return [key_of(allocation) for allocation in self._allocations.by(LEAVING_BY_POOL, key_of(pool))]

    def _ownerless(self, tenant: TenantCluster) -> Iterable[Key]:
        return [key_of(allocation) for allocation in self._allocations.by(OWNERLESS_BY_TENANT, key_of(tenant))]

    def _wishes(self, tenant: TenantCluster) -> Iterable[Key]:
        return [key_of(allocation) for allocation in self._allocations.by(WISHES_BY_TENANT, key_of(tenant))]

    async def reconcile(self, key: Key) -> After | None:
        """Observe, decide, act."""
        allocation = self._allocations.get(key)
        if allocation is None or self._written.get(key) != self._seen_at(allocation):
            self._written.pop(key, None)
        else:
            return None  # what we wrote is on its way: from this version there is nothing more to do
        if allocation is None:
            return None
        pool = self._pools.get(pool_key(allocation))
        if pool is None and is_leaving(allocation):
            pool = await read(self._client, POOLS, pool_key(allocation))
        tenant = self._tenants.get(tenant_key(allocation))
        obstacle = None
        if is_wish(allocation) and not is_insisted(allocation):
            obstacle = judge(allocation, await observe(self._client, allocation, tenant))
        is_built = tenant is not None and is_on_its_way(tenant)
        unhurried = BEFORE_USE if is_built else MORE_PATIENT if self._allocations.count(UNANSWERED, True) else 1
        step = decide(
            allocation,
            tenant,
            pool,
            retention=self._retention,
            note_after=self._note_after * unhurried,
            now=self._clock(),
            obstacle=obstacle,
        )
        match step:
            case None:
                return None
            case Wait(status) if status == allocation.status:
                return USERS_AGAIN
            case AwaitPool():
                # A pool that the view does not show yet cannot wake us.
                return None if pool_key(allocation) in self._pools else LOOK_AGAIN
            case Keep(seconds):
                return After(seconds)
            case NoteLater(seconds):
                return After(min(seconds, self._note_after.total_seconds() * (SELDOM if is_built else 1)))
        try:
            await self._act(allocation, step)
        except NotFound:
            return LOOK_AGAIN  # gone meanwhile, and the view will say so
        return USERS_AGAIN if isinstance(step, Wait) else None

    async def _act(self, allocation: IPAllocation, step: Step) -> None:
        seen_at = self._seen_at(allocation)
        answer = await self._write(allocation, step)
        if answer is None or answer.metadata.resource_version != allocation.metadata.resource_version:
            self._written[key_of(allocation)] = seen_at

    def _seen_at(self, allocation: IPAllocation) -> tuple[str, int]:
        return allocation.metadata.resource_version, self._allocations.lists

    async def _write(self, allocation: IPAllocation, step: Step) -> IPAllocation | None:
        """One write; the allocation as it is now, or None when it goes."""
        key = key_of(allocation)
        match step:
            case AddFinalizer(finalizers):
                return await self._patch(key, finalizers_patch(allocation, finalizers))
            case RemoveFinalizer(finalizers):
                await self._patch(key, finalizers_patch(allocation, finalizers))
            case Record(status):
                changes = status_patch(allocation.metadata, allocation.status, status)
                if changes is None:
                    return allocation
                return await self._patch(key, changes, "status")
            case Wait(status):
                return await self._say(allocation, status)
            case Note(record):
                return await self._patch(key, record_patch(allocation, record))
            case Release():
                return await self._releases.release(allocation, grounds(allocation))
            case Delete():
                await self._client.delete(
                    ALLOCATIONS, key.name, key.namespace, uid=allocation.metadata.uid, timeout=WRITE_TIMEOUT
                )
        return None

    async def _say(self, allocation: IPAllocation, status: IPAllocationStatus) -> IPAllocation:
        """Write what a deletion waits for, and tell it if that is news."""
        changes = status_patch(allocation.metadata, allocation.status, status)
        if changes is None:
            return allocation
        written = await self._patch(key_of(allocation), changes, "status")
        before = find_condition(allocation.status.conditions, ConditionType.DELETING)
        now = find_condition(status.conditions, ConditionType.DELETING)
        if now is not None and (before is None or before.reason != now.reason):
            self._events.record(allocation, ALLOCATIONS, DELETION_WAITS, now.message, "Warning")
        return written

    async def _patch(self, key: Key, patch: Json, subresource: str = "") -> IPAllocation:
        return await self._client.patch(
            ALLOCATIONS, key.name, patch, key.namespace, subresource=subresource, timeout=WRITE_TIMEOUT
        )


def _seen_more(old: NetworkPool | None, new: NetworkPool | None) -> bool:
    return new is not None and (old is None or old.status.allocations_seen != new.status.allocations_seen)


def _comes_or_goes(old: TenantCluster | None, new: TenantCluster | None) -> bool:
    if old is None or new is None or old.metadata.uid != new.metadata.uid:
        return True
    return old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
