"""Release: the one place that turns an allocation Released.

Every release of addresses (a person's delete, the orphan sweep, a tenant's end, a pool that shrinks) comes
through here, so that it always looks the same: one status write, valid only for the version that the decision was
made on; phase, time and a sentence that says why; and an event on the pool. What was granted stays in the status,
as the record of which tenant had an address.

Released is final. Nothing here or elsewhere brings an allocation back from it, and the write never touches
`addresses`: views may have been trimmed of them to save memory.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from butler.api.codec import status_patch
from butler.api.objects import key_of
from butler.kube.errors import Conflict, KubeError
from butler.kube.kinds import ALLOCATIONS, POOLS, WRITE_TIMEOUT
from butler.rules.allocation.held import pool_key
from butler.rules.allocation.release import Grounds, released, what_it_held

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.controllers.networkpool.metrics import IpamMetrics
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder

log = logging.getLogger(__name__)


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
