"""Release: the one place that turns an allocation Released.

Whoever lets go of addresses (a person's delete, the orphan sweep, a tenant's end, a pool that shrinks) comes
through here, so that it always looks the same: one status write, valid only for the version that the decision was
made on; phase, time and a sentence that says why; and an event on the pool. What was granted stays in the status,
for whoever asks later who had an address.

Released is final. Nothing here or elsewhere brings an allocation back from it, and the write never touches
`addresses`: views may have been trimmed of them to save memory.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from butler.api.codec import status_patch
from butler.api.conditions import with_condition, without_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus
from butler.api.labels import AllocationReason, ConditionType, TenantReason
from butler.controllers.kinds import ALLOCATIONS, POOLS, WRITE_TIMEOUT
from butler.controllers.networkpool.holdings import pool_key
from butler.controllers.owners import tenant_key
from butler.kube.errors import Conflict, KubeError
from butler.kube.objects import key_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.controllers.metrics import IpamMetrics, Why
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder, EventType

IPS_RELEASED: Final = "IPsReleased"
ORPHANED_ALLOCATION_GC: Final = "OrphanedAllocationGC"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why an allocation is released: in words that follow a colon, as a metric's label, and the event that tells it."""

    because: str
    why: Why
    event: str = IPS_RELEASED
    event_type: EventType = "Normal"


DELETED_BY_REQUEST: Final = Grounds("deleted by request", "deleted")


def owner_gone(allocation: IPAllocation, uid: str) -> Grounds:
    """The grounds of the orphan sweep."""
    gone = f"TenantCluster {tenant_key(allocation)} (uid {uid}) no longer exists"
    return Grounds(gone, "orphan", ORPHANED_ALLOCATION_GC)


def what_it_held(status: IPAllocationStatus) -> str | None:
    """The grant in words, such as "5 IPs (10.40.2.10-10.40.2.14)"; None when there was none."""
    first, last = status.start_address, status.end_address
    if first is None or last is None:
        return None
    count = status.allocated_count
    amount = "IPs" if count is None else f"{count} {'IP' if count == 1 else 'IPs'}"
    return f"{amount} ({first if first == last else f'{first}-{last}'})"


def released(allocation: IPAllocation, grounds: Grounds, now: datetime) -> IPAllocationStatus:
    """The status of an allocation that is released. Pure."""
    status, held = allocation.status, what_it_held(allocation.status)
    pool = allocation.spec.pool_ref.name
    conditions = with_condition(
        without_condition(status.conditions, ConditionType.WAITING),
        type=ConditionType.READY,
        status=False,
        reason=AllocationReason.RELEASED,
        message=f"{f'{held} released to {pool}' if held else 'released before anything was granted'}"
        f": {grounds.because}",
        now=now,
    )
    if grounds.why == "orphan":
        conditions = with_condition(
            conditions,
            type=ConditionType.TENANT_FOUND,
            status=False,
            reason=TenantReason.NOT_FOUND,
            message=grounds.because,
            now=now,
        )
    return msgspec.structs.replace(status, phase=IPAllocationPhase.RELEASED, released_at=now, conditions=conditions)


class Releases:
    """Releases allocations, and tells it. `clock` gives the time of day, in UTC."""

    def __init__(
        self,
        client: Client,
        pools: Cache[NetworkPool],
        events: EventRecorder,
        metrics: IpamMetrics,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._pools = pools
        self._events = events
        self._metrics = metrics
        self._clock = clock

    async def release(self, allocation: IPAllocation, grounds: Grounds) -> IPAllocation:
        """Write it, and tell it on the pool if that gets something back or lost an owner. Raises when it failed.

        Conflict: the allocation is no longer the one that was decided on; look again.
        """
        key, pool = key_of(allocation), pool_key(allocation)
        patch = status_patch(allocation.metadata, allocation.status, released(allocation, grounds, self._clock()))
        assert patch is not None, "the time of release is new in any case"
        try:
            written = await self._client.patch(
                ALLOCATIONS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
            )
        except Conflict:
            self._metrics.conflict(pool, "release")
            raise
        except KubeError as error:
            if error.outcome_unknown:
                self._metrics.unknown_outcome(pool, "release")
            raise
        held = what_it_held(allocation.status)
        message = f"{f'{held} of ' if held else ''}IPAllocation {key.name} released: {grounds.because}"
        log.info("%s (namespace %s)", message, key.namespace)
        self._metrics.reclaimed(pool, allocation.status.allocated_count or 0, grounds.why)
        subject = self._pools.get(pool)
        if subject is not None and (held or grounds.why == "orphan"):
            self._events.record(subject, POOLS, grounds.event, message, grounds.event_type)
        return written
