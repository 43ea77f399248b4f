"""Leading by lease: of several processes, one at a time does the work.

A Lease object names the leader, which renews it; others take over once it has not changed for its duration,
measured on their own monotonic clock (wall clocks of two machines cannot be compared). The leader stops its work
when its last successful renewal, counted from the moment it was *sent*, is older than the renew deadline, which is
shorter than the duration: so it stops before another may start, as long as clocks run and nothing is frozen.

Things do freeze, at times. Hence the one thing this must never be taken for: a lease is no fence. It keeps two
processes from getting in each other's way; what keeps their writes from doing harm is the resourceVersion on each.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from butler.api.objects import Json, is_older, uid_of, version_of
from butler.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from butler.kube.metrics import Metrics
from butler.kube.resource import LEASES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from butler.kube.client import Client

log = logging.getLogger(__name__)


def awake_seconds() -> float:
    """Monotonic time that also passes while the machine sleeps, where the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """Seconds. A leader renews every `retry`, gives up after `deadline`; others may take over after `duration`."""

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.deadline < self.duration:
            raise ValueError(f"a lease needs 0 < retry < deadline < duration, not {self}")


DEFAULT_TERMS = LeaseTerms()


class LeadershipLost(Exception):  # an event in a leader's life, not an error
    """The lease could not be renewed in time, or another process holds it."""


class LeaderLease:
    """One candidate for one Lease."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        identity: str,
        *,
        terms: LeaseTerms = DEFAULT_TERMS,
        clock: Callable[[], float] = awake_seconds,
        rng: random.Random | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._terms = terms
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311  # jitter, not secrets
        self._gauge = (metrics or Metrics()).leading.labels(name)
        self._gauge.set(0)
        self._seen: tuple[object, ...] = ()  # the last record of another holder, and since when it stands unchanged
        self._seen_at = 0.0
        self._lease: Json = {}
        self._known = ("", "")  # the Lease's UID and version when it was last read or written
        self._renewed_at = float("-inf")

    @property
    def is_leader(self) -> bool:
        """Whether the lease is ours by our own clock, now."""
        return self._clock() - self._renewed_at < self._terms.deadline

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for leadership, run `work` under it, and hand the lease on when it ends.

        Raises LeadershipLost after `work` was cancelled and has stopped. Cancelling this stops `work` first and
        gives the lease up last, so that a successor never meets a predecessor at work.
        """
        await self._acquire()
        log.info("%s leads by lease %s/%s", self.identity, self._namespace, self.name)
        self._gauge.set(1)
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._keep_renewing())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
            else:
                await renewing  # raises LeadershipLost
        finally:
            self._gauge.set(0)
            # Renewal goes on while the work winds down: it is still work under the lease.
            if not working.done():
                working.cancel()
                await asyncio.wait({working})
            renewing.cancel()
            await asyncio.wait({renewing})
            await self._release()

    async def _acquire(self) -> None:
        while True:
            try:
                # An answer may come so late that what it grants has run out already: then renew before working.
                if await self._try(self._terms.deadline) and self.is_leader:
                    return
            except KubeError as error:
                log.info("lease %s: %s", self.name, error)
            await asyncio.sleep(self._terms.retry * (0.8 + 0.4 * self._rng.random()))

    async def _keep_renewing(self) -> None:
        while True:
            left = self._renewed_at + self._terms.deadline - self._clock()
            await asyncio.sleep(max(0.0, min(left, self._terms.retry * (0.8 + 0.2 * self._rng.random()))))
            left = self._renewed_at + self._terms.deadline - self._clock()
            if left <= 0:
                raise LeadershipLost(f"lease {self.name} was not renewed for {self._terms.deadline} seconds")
            try:
                # The time limit is enforced here too: nothing in the client may outlive the deadline.
                async with asyncio.timeout(left):
                    held = await self._try(left)
            except (KubeError, TimeoutError) as error:
                log.warning("lease %s: renewal failed: %s", self.name, error or "timed out")
                continue
            if not held:
                self._renewed_at = float("-inf")
                raise LeadershipLost(f"lease {self.name} is held by {self._lease['spec'].get('holderIdentity')}")

    async def _try(self, timeout: float) -> bool:
        """Read, and take or renew if we may. Every write is compare-and-swap on what was read."""
        sent = self._clock()
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        try:
            lease = await self._client.get(LEASES, self.name, self._namespace, timeout=timeout)
        except NotFound:
            return await self._write_new(now, sent, timeout)
        self._compare(lease)
        self._lease = lease
        spec = lease.setdefault("spec", {})
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self.identity) and not self._has_run_out(lease):
            return False
        if holder != self.identity:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = now
        spec |= {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._whole_seconds(),
            "renewTime": now,
        }
        try:
            self._lease = await self._client.replace(LEASES, lease, timeout=timeout)
            self._known = (uid_of(self._lease), version_of(self._lease))
        except Conflict:
            return False if holder != self.identity else await self._try_again(timeout, sent)
        self._renewed_at = sent
        return True

    def _compare(self, lease: Json) -> None:
        """Read every few seconds by every replica, the Lease is the first to show that versions went back."""
        known, self._known = self._known, (uid_of(lease), version_of(lease))
        if known[0] == self._known[0] and is_older(self._known[1], known[1]):
            self._client.timeline.went_back(f"lease {self.name} was at {known[1]} and is at {self._known[1]}")

    async def _try_again(self, timeout: float, began: float) -> bool:
        """A conflict on our own lease: mostly our own earlier write whose answer was lost. Look once more."""
        left = timeout - (self._clock() - began)
        lease = await self._client.get(LEASES, self.name, self._namespace, timeout=max(left, 0.01))
        self._lease = lease
        # Still ours, but not freshly renewed by this attempt: the next one will.
        return bool(lease.get("spec", {}).get("holderIdentity") == self.identity)

    async def _write_new(self, now: str, sent: float, timeout: float) -> bool:
        lease = {
            "metadata": {"name": self.name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self._whole_seconds(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }
        try:
            self._lease = await self._client.create(LEASES, lease, timeout=timeout)
        except (AlreadyExists, Conflict):
            return False
        self._renewed_at = sent
        return True

    def _has_run_out(self, lease: Json) -> bool:
        """Whether another's lease stood still for its whole duration, as watched by our own clock."""
        spec = lease["spec"]
        record = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if record != self._seen:
            self._seen, self._seen_at = record, self._clock()
        return self._clock() - self._seen_at >= float(spec.get("leaseDurationSeconds") or self._terms.duration)

    async def _release(self) -> None:
        """Give the lease up if it is still ours, so that the next leader need not wait. Failing is harmless."""
        if not self.is_leader:
            return
        self._renewed_at = float("-inf")
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            version = self._lease["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": spec}
            await self._client.patch(LEASES, self.name, patch, self._namespace, timeout=self._terms.retry)
        except KubeError as error:
            log.info("lease %s was not handed on, it will run out: %s", self.name, error)

    def _whole_seconds(self) -> int:
        # The API knows whole seconds only; rounding up keeps others away for longer, never for less.
        return max(1, int(-(-self._terms.duration // 1)))
