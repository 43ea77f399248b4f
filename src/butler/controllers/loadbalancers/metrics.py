"""What load-balancer addresses tell Prometheus: how they follow demand, how long Services wait, and what went wrong.

No label names a tenant: there may be thousands, and each knows its own figures in its status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 1800)


class LoadBalancerMetrics:
    """The metrics of load-balancer addresses, in the registry of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, about: str) -> Counter:
            return Counter(f"butler_load_balancer_{name}", about, registry=registry)

        self._growths = counter("growths", "How often a tenant was given more addresses.")
        self._added = counter("growth_addresses", "Addresses that tenants were given because Services waited.")
        self._shrinks = counter("shrinks", "How often a tenant gave addresses back.")
        self._returned = counter("shrink_addresses", "Addresses that tenants gave back.")
        self._broken_off = counter("drains_cancelled", "Drains broken off because a Service needed an address.")
        self._drift = counter("drift_corrections", "How often MetalLB's configuration on a tenant was put right.")
        self._moved = counter("services_moved", "Services that lost the address that they had; must stay 0.")
        self._waited = Histogram(
            "butler_load_balancer_wait_seconds",
            "Time from a Service that waits for an address to its address.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._waiting = Gauge(
            "butler_load_balancer_services_waiting",
            "Services that MetalLB would serve and that have no address.",
            registry=registry,
        )
        self._addresses = Gauge(
            "butler_load_balancer_addresses",
            "Load-balancer addresses that tenants hold, by whether a Service has them.",
            ["state"],
            registry=registry,
        )
        self._watched = Gauge("butler_tenants_watched", "Tenants whose Services are watched.", registry=registry)
        self._unreachable = Gauge(
            "butler_tenants_unreachable", "Tenants whose API server cannot be reached.", registry=registry
        )

    def grew(self, addresses: int) -> None:
        self._growths.inc()
        self._added.inc(addresses)

    def shrank(self, addresses: int) -> None:
        self._shrinks.inc()
        self._returned.inc(addresses)

    def drain_broken_off(self) -> None:
        self._broken_off.inc()

    def drift_corrected(self) -> None:
        self._drift.inc()

    def moved(self) -> None:
        self._moved.inc()

    def waited(self, seconds: float) -> None:
        self._waited.observe(max(0.0, seconds))

    def show(self, *, waiting: int, in_use: int, idle: int, watched: int, unreachable: int) -> None:
        """Where all tenants stand now."""
        self._waiting.set(waiting)
        self._addresses.labels("in_use").set(in_use)
        self._addresses.labels("idle").set(idle)
        self._watched.set(watched)
        self._unreachable.set(unreachable)
