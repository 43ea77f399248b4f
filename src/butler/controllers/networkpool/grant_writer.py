"""Writing grants and refusals into the allocations, many at a time.

Each write is valid only for the very version of the allocation that the view showed. Failing is ordinary: a user
labelled or deleted the allocation meanwhile, or another process was quicker. Then nothing is done about it here: the
intent stands in the pool, and the change that got in the way brings the pool up for another pass; should it not
show, the pool is looked at again after a moment.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from butler.api.codec import status_patch
from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus
from butler.api.labels import ConditionType
from butler.api.objects import is_newer, key_of
from butler.kube.errors import Conflict, KubeError, NotFound
from butler.kube.kinds import ALLOCATIONS, WRITE_TIMEOUT
from butler.rules.allocation.held import pool_key
from butler.rules.allocation.owner import tenant_key
from butler.rules.pool import outcomes
from butler.rules.pool.tenant_blocks import WAITING, is_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence
    from datetime import datetime

    from butler.api.networkpool import Intent
    from butler.api.objects import Change
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.networkpool.metrics import IpamMetrics, Step
    from butler.ipam.decide import Refusal
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder

    Due = tuple[IPAllocation, Intent]
    """An allocation in the version that was looked at, and what it is to get."""

SAME_REFUSAL_EVERY: Final = 60.0
"""Seconds between rewrites of a refusal in which only the figures changed."""
LOOK_AGAIN: Final = 1.0
"""Seconds after which a write is tried again that met a conflict, should nothing be heard of its allocation."""
log = logging.getLogger(__name__)


class Unfinished(KubeError):
    """Some writes did not get through; the pool needs another pass."""


class AllocationWriter:
    """The second half of the protocol, for one process."""

    def __init__(
        self,
        client: Client,
        allocations: Cache[IPAllocation],
        tenants: Cache[TenantCluster],
        events: EventRecorder,
        metrics: IpamMetrics,
        concurrency: int,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._allocations = allocations
        self._tenants = tenants
        self._events = events
        self._metrics = metrics
        self._free_hands = asyncio.Semaphore(concurrency)
        self._now = now
        self._first_seen: dict[str, float] = {}  # by the loop's clock, of those that wait
        self._refused_at: dict[str, float] = {}
        self._passed: dict[str, int] = {}
        """How often a request was passed since its refusal was last written."""
        self._replaced: dict[str, str] = {}
        """The version that our last write replaced, until the view shows what came of it."""
        allocations.on_change(self._note)

    def _note(self, change: Change[IPAllocation]) -> None:
        if change.old is not None:
            self._replaced.pop(change.old.metadata.uid, None)
        for allocation in (change.old, change.new):
            if allocation is not None and (change.new is None or allocation.status.phase not in WAITING):
                self._first_seen.pop(allocation.metadata.uid, None)
                self._refused_at.pop(allocation.metadata.uid, None)
                self._passed.pop(allocation.metadata.uid, None)
        if change.new is not None and change.new.status.phase in WAITING:
            self._first_seen.setdefault(change.new.metadata.uid, asyncio.get_running_loop().time())

    def current(self, due: Iterable[Due]) -> list[Due]:
        """Those that could be carried out as far as we know."""
        return [(allocation, intent) for allocation, intent in due if self._is_current(allocation)]

    async def commit(self, due: Iterable[Due]) -> str | None:
        """Carry out open intents; gives the version of the last allocation written.

        The pool has to have been there, by an answer of the server, after these versions of the allocations were
        read: then a pool of the same name that comes later finds all of them, see `register`.

        Raises Unfinished, after having tried them all, when some could not be written for another reason than that
        their allocation has changed.
        """
        todo = [self._commit_one(allocation, intent) for allocation, intent in self.current(due)]
        newest: str | None = None
        for written in await _all(todo):
            if written is not None and (newest is None or is_newer(written, newest)):
                newest = written
        return newest

    async def refuse(self, pairs: Sequence[tuple[IPAllocation, Refusal]]) -> float | None:
        """Write the refusals that say something new; seconds until one that waits may be written.

        An allocation may have moved on since it was refused: one that was granted or released meanwhile is left alone.
        """
        clock = asyncio.get_running_loop().time()
        todo, waits = [], []
        for allocation, refusal in pairs:
            if refusal.passed:
                self._passed[refusal.uid] = self._passed.get(refusal.uid, 0) + refusal.passed
            since = clock - self._refused_at.get(allocation.metadata.uid, float("-inf"))
            told = outcomes.told(allocation.status)
            if since < SAME_REFUSAL_EVERY and told is not None and told.reason == refusal.reason:
                # The usual case where many wait for long: what else might be new about them is left for later.
                if told.message != refusal.message:
                    waits.append(SAME_REFUSAL_EVERY - since)
                continue
            if not is_waiting(allocation):
                continue
            passed = self._passed.get(refusal.uid, 0)
            status = outcomes.refused(allocation, refusal, self._tenant_of(allocation), self._now(), passed)
            if status == allocation.status:
                self._refused_at[allocation.metadata.uid] = clock
                continue
            if outcomes.says_something_new(allocation.status, status) or since >= SAME_REFUSAL_EVERY:
                todo.append(self._refuse_one(allocation, status, refusal))
            else:
                waits.append(SAME_REFUSAL_EVERY - since)
        written = await _all(todo)
        if not all(written):
            waits.append(LOOK_AGAIN)
        return min(waits, default=None)

    async def _commit_one(self, allocation: IPAllocation, intent: Intent) -> str | None:
        status = outcomes.granted(allocation, intent, self._tenant_of(allocation), self._now())
        seen = self._first_seen.get(allocation.metadata.uid)  # forgotten as soon as the watch tells of the grant
        written = await self._write(allocation, status, "commit")
        if written is None:
            return None
        self._metrics.processed(pool_key(allocation), "success")
        self._metrics.granted(
            pool_key(allocation),
            self._age(allocation, seen),
            refused_before=allocation.status.phase is IPAllocationPhase.FAILED,
        )
        return written.metadata.resource_version

    async def _refuse_one(self, allocation: IPAllocation, status: IPAllocationStatus, refusal: Refusal) -> bool:
        before = find_condition(allocation.status.conditions, ConditionType.READY)
        if await self._write(allocation, status, "refuse") is None:
            return False
        self._refused_at[allocation.metadata.uid] = asyncio.get_running_loop().time()
        self._passed.pop(allocation.metadata.uid, None)
        if before is None or before.reason != refusal.reason:
            self._metrics.processed(pool_key(allocation), "failed")
            self._events.record(allocation, ALLOCATIONS, "AllocationFailed", refusal.message, "Warning")
        return True

    async def _write(self, allocation: IPAllocation, status: IPAllocationStatus, step: Step) -> IPAllocation | None:
        patch = status_patch(allocation.metadata, allocation.status, status)
        meta = allocation.metadata
        if patch is None:
            return None
        try:
            async with self._free_hands:
                if not self._is_current(allocation):
                    return None
                written = await self._client.patch(
                    ALLOCATIONS, meta.name, patch, meta.namespace, subresource="status", timeout=WRITE_TIMEOUT
                )
            if self._is_current(allocation):  # else the watch was quicker
                self._replaced[meta.uid] = meta.resource_version
            return written
        except (Conflict, NotFound) as error:
            self._metrics.conflict(pool_key(allocation), step)
            log.debug("%s %s/%s: %s", step, meta.namespace, meta.name, error)
        except KubeError as error:
            if error.outcome_unknown:
                self._metrics.unknown_outcome(pool_key(allocation), step)
            raise
        return None

    def _is_current(self, allocation: IPAllocation) -> bool:
        """Whether this is the newest version that we know of: a write on any other would only be a conflict."""
        meta = allocation.metadata
        overtaken = self._replaced.get(meta.uid) == meta.resource_version
        return not overtaken and self._allocations.get(key_of(allocation)) is allocation

    def _tenant_of(self, allocation: IPAllocation) -> TenantCluster | None:
        return self._tenants.get(tenant_key(allocation))

    def _age(self, allocation: IPAllocation, seen: float | None) -> float:
        """Seconds since the allocation was created.

        The server's timestamp knows whole seconds only; where we saw the creation happen, our own clock is better.
        """
        created = allocation.metadata.creation_timestamp
        since_seen = asyncio.get_running_loop().time() - seen if seen is not None else 0.0
        since_created = (self._now() - created).total_seconds() if created is not None else since_seen
        return since_seen if since_created - since_seen < 2.0 else since_created


T = TypeVar("T")


async def _all(writes: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all of them, whatever becomes of each; then say what went wrong, once."""
    results = await asyncio.gather(*writes, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        unexpected = [failure for failure in failures if not isinstance(failure, KubeError)]
        if unexpected:
            raise unexpected[0]
        raise Unfinished(f"{len(failures)} of {len(results)} writes did not get through, first: {failures[0]}")
    return cast("list[T]", results)
