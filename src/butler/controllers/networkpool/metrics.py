"""What address management tells Prometheus: how full the pools are, who waits, and how well the allocator does.

Pools are few and stay for long, so they may be labels; allocations and tenants may not. Two things make a dashboard
lie, and both are prevented here rather than by every caller:

- Series that outlive their pool. `pool_gone` removes all of them, in every metric, and what a write still under way
  reports afterwards is dropped, until `pool_found` or `pool_status` says that the pool is there (again).
- Series that outlive the lead. A process that lost its lease would go on showing the pools as it last saw them,
  beside those of its successor; `stood_down` takes all of it back.

Counters of a pool start at zero together with the pool: Prometheus sees no increase in a series that begins at one.

Nothing here may raise because of what it is told: a wrong figure is a pity, an allocator that stops over it is not
acceptable. So numbers are taken as they come, and a clock that runs backwards counts as no time at all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType
from butler.api.meta import ConditionStatus
from butler.rules.allocation.release import Why

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from butler.api.networkpool import NetworkPoolStatus
    from butler.api.objects import Key

Result = Literal["success", "failed"]
Step = Literal["reserve", "commit", "refuse", "release"]
Sweep = Literal["clean", "orphans", "skipped"]
Inconsistency = Literal["overlap", "unreadable"]
Way = Literal["direct", "retried"]

_POOL = ("pool", "namespace")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_REMEMBERED: Final = 1024
"""How many pools that went are remembered; what is still under way for one of them ends within seconds."""


class IpamMetrics:
    """The metrics of address management, in the registry of the process."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float] = time.time) -> None:
        def gauge(name: str, about: str, *labels: str) -> Gauge:
            return Gauge(name, about, (*_POOL, *labels), registry=registry)

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(name, about, (*_POOL, *labels), registry=registry)

        self._now = now
        self._total = gauge("butler_network_pool_total_ips", "Addresses that tenants may get in all.")
        self._allocated = gauge("butler_network_pool_allocated_ips", "Addresses that are held.")
        self._available = gauge("butler_network_pool_available_ips", "Addresses that are free.")
        self._count = gauge("butler_network_pool_allocation_count", "IPAllocations that hold addresses.")
        self._fragmentation = gauge(
            "butler_network_pool_fragmentation_percent", "How scattered the free addresses are; 0 is one block."
        )
        self._largest = gauge("butler_network_pool_largest_free_block", "Longest run of free addresses.")
        self._utilization = gauge(
            "butler_network_pool_utilization_ratio", "Held addresses as a part of all, from 0 to 1, unrounded."
        )
        self._ready = gauge(
            "butler_network_pool_ready", "1 when addresses can be granted, 0 when not, with the reason.", "reason"
        )
        self._waiting = gauge(
            "butler_ip_allocations_waiting",
            "IPAllocations without addresses: Pending, or Failed by reason.",
            "phase",
            "reason",
        )
        self._processed = counter("butler_ip_allocation_processed", "Decisions on IPAllocations, by result.", "result")
        self._granting = Histogram(
            "butler_ip_allocation_seconds",
            "Time from the creation of an IPAllocation to Allocated; path is retried when it was refused before.",
            (*_POOL, "path"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._batch_size = Histogram(
            "butler_ip_allocation_batch_size", "Grants per reserve.", _POOL, buckets=_SIZES, registry=registry
        )
        self._conflicts = counter(
            "butler_ipam_write_conflicts", "Writes refused because another client wrote first, by step.", "step"
        )
        self._unknown = counter("butler_ipam_unknown_outcomes", "Writes whose outcome is unknown, by step.", "step")
        self._reclaimed = counter("butler_ip_allocation_reclaimed_ips", "Addresses that became free, by why.", "why")
        self._inconsistent = counter(
            "butler_ipam_inconsistencies", "Held ranges that overlap or cannot be read, as found in status.", "what"
        )
        self._add_sweeps(registry)
        self._figures: tuple[Gauge | Histogram, ...] = (
            self._total,
            self._allocated,
            self._available,
            self._count,
            self._fragmentation,
            self._largest,
            self._utilization,
            self._batch_size,
        )
        self._counted: tuple[tuple[Counter | Histogram, tuple[str, ...]], ...] = (
            (self._processed, get_args(Result)),
            (self._conflicts, get_args(Step)),
            (self._unknown, get_args(Step)),
            (self._reclaimed, get_args(Why)),
            (self._inconsistent, get_args(Inconsistency)),
            (self._granting, get_args(Way)),
        )
        self._reason_shown: dict[Key, str] = {}  # the pools that are there, and why Ready is what it is
        self._waiting_shown: dict[Key, set[tuple[str, str]]] = {}
        self._gone: dict[Key, None] = {}  # in the order they went

    def _add_sweeps(self, registry: CollectorRegistry) -> None:
        self._sweeps = Counter(
            "butler_ipam_orphan_sweeps", "Searches for orphans, by outcome.", ["outcome"], registry=registry
        )
        self._suspected = Gauge(
            "butler_ipam_orphans_suspected",
            "IPAllocations whose TenantCluster was missing in the last search.",
            registry=registry,
        )
        self._last_sweep = Gauge(
            "butler_ipam_last_sweep_timestamp_seconds",
            "When orphans were last searched for with a result; 0 when this process never did.",
            registry=registry,
        )
        for outcome in get_args(Sweep):
            self._sweeps.labels(outcome)

    # Pools.

    def pool_found(self, key: Key) -> None:
        """Count from now on what becomes of a pool's requests, also of one that was missing or gone until now."""
        if key not in self._reason_shown:
            self._begin(key)

    def pool_status(self, key: Key, status: NetworkPoolStatus) -> None:
        """Show a pool as its status has it; a figure that is not there is not shown."""
        self.pool_found(key)
        for gauge, value in (
            (self._total, status.total_ips),
            (self._allocated, status.allocated_ips),
            (self._available, status.available_ips),
            (self._count, status.allocation_count),
            (self._fragmentation, status.fragmentation_percent),
            (self._largest, status.largest_free_block),
            (self._utilization, _utilization(status)),
        ):
            _show(gauge, key, value)
        self._show_ready(key, status)

    def pool_gone(self, key: Key) -> None:
        """Remove everything that is labelled with this pool, and drop what may still come in for it."""
        self._gone.pop(key, None)
        self._gone[key] = None
        while len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
        # One by one: to look for them would be a look at the series of all other pools.
        for figure in self._figures:
            figure.remove(key.name, key.namespace)
        for metric, values in self._counted:
            for value in values:
                metric.remove(key.name, key.namespace, value)
        self._ready.remove(key.name, key.namespace, self._reason_shown.pop(key, ""))
        for labels in self._waiting_shown.pop(key, ()):
            self._waiting.remove(key.name, key.namespace, *labels)

    def stood_down(self) -> None:
        """Take back all that only the leader knows, once another process may lead."""
        for metric in (*self._figures, *(counted for counted, _ in self._counted), self._ready, self._waiting):
            metric.clear()
        self._suspected.set(0)
        self._reason_shown.clear()
        self._waiting_shown.clear()

    def _begin(self, key: Key) -> None:
        self._gone.pop(key, None)
        self._reason_shown[key] = ""
        for counter, values in self._counted:
            if isinstance(counter, Counter):
                for value in values:
                    counter.labels(key.name, key.namespace, value)

    def _show_ready(self, key: Key, status: NetworkPoolStatus) -> None:
        ready = find_condition(status.conditions, ConditionType.READY)
        reason, before = ready.reason if ready else "", self._reason_shown[key]
        if before and before != reason:
            self._ready.remove(key.name, key.namespace, before)
        if ready:
            self._ready.labels(key.name, key.namespace, reason).set(ready.status is ConditionStatus.TRUE)
        self._reason_shown[key] = reason

    # Requests.

    def waiting(self, key: Key, pending: int, failed_by_reason: Mapping[str, int]) -> None:
        """Show who waits for addresses of a pool, which need not exist; what is not named waits no longer."""
        wanted = {(str(IPAllocationPhase.FAILED), str(reason)): n for reason, n in failed_by_reason.items() if n}
        if pending or key in self._reason_shown:
            wanted[str(IPAllocationPhase.PENDING), ""] = pending
        for labels in self._waiting_shown.pop(key, set()) - wanted.keys():
            self._waiting.remove(key.name, key.namespace, *labels)
        for labels, number in wanted.items():
            self._waiting.labels(key.name, key.namespace, *labels).set(number)
        if wanted:
            self._waiting_shown[key] = set(wanted)

    def processed(self, key: Key, result: Result) -> None:
        """Count a decision."""
        if key not in self._gone:
            self._processed.labels(key.name, key.namespace, result).inc()

    def granted(self, key: Key, seconds: float, *, refused_before: bool = False) -> None:
        """Record how long an IPAllocation took to get its addresses.

        One that was Failed waited for an operator to make space, which says nothing about how fast Butler is.
        """
        if key not in self._gone:
            path: Way = "retried" if refused_before else "direct"
            self._granting.labels(key.name, key.namespace, path).observe(max(0.0, seconds))

    def batch(self, key: Key, size: int) -> None:
        """Record how many grants one reserve carried."""
        if key not in self._gone:
            self._batch_size.labels(key.name, key.namespace).observe(size)

    def reclaimed(self, key: Key, addresses: int, why: Why) -> None:
        """Count addresses that became free again."""
        if key not in self._gone:
            self._reclaimed.labels(key.name, key.namespace, why).inc(max(0, addresses))

    # Trouble.

    def conflict(self, key: Key, step: Step) -> None:
        """Count a write that came too late."""
        if key not in self._gone:
            self._conflicts.labels(key.name, key.namespace, step).inc()

    def unknown_outcome(self, key: Key, step: Step) -> None:
        """Count a write that was sent and never answered."""
        if key not in self._gone:
            self._unknown.labels(key.name, key.namespace, step).inc()

    def inconsistent(self, key: Key, what: Inconsistency) -> None:
        """Count a held range that overlaps another one or cannot be read."""
        if key not in self._gone:
            self._inconsistent.labels(key.name, key.namespace, what).inc()

    # The orphan sweep.

    def swept(self, outcome: Sweep, suspected: int | None = None) -> None:
        """Count a search for orphans; one that was skipped learned nothing, and is none as far as its age goes."""
        self._sweeps.labels(outcome).inc()
        if outcome != "skipped":
            self._last_sweep.set(self._now())
        if suspected is not None:
            self._suspected.set(suspected)


def _utilization(status: NetworkPoolStatus) -> float | None:
    if status.total_ips is None or status.allocated_ips is None:
        return None
    return status.allocated_ips / status.total_ips if status.total_ips else 0.0


def _show(gauge: Gauge, key: Key, value: float | None) -> None:
    if value is None:
        gauge.remove(key.name, key.namespace)
    else:
        gauge.labels(key.name, key.namespace).set(value)
