"""What a controller process tells Prometheus about itself.

Names and labels follow controller-runtime and client-go where they have a counterpart, so that existing dashboards
fit. Labels are kinds, verbs and codes: never names of objects, which would grow without bound.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """One process's metrics, in a registry of their own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        self.requests = Counter(
            "rest_client_requests", "Requests to the API server.", ["verb", "resource", "code"], registry=registry
        )
        self.request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time to the head of the answer.",
            ["verb"],
            buckets=_FAST,
            registry=registry,
        )
        self.watch_restarts = Counter(
            "butler_watch_restarts", "Watches that ended, by why.", ["resource", "reason"], registry=registry
        )
        self.cache_objects = Gauge("butler_cache_objects", "Objects in a cache.", ["resource"], registry=registry)
        self.cache_silence = Gauge(
            "butler_cache_silent_seconds",
            "Time since the server was last heard about a kind; infinite before the first time.",
            ["resource"],
            registry=registry,
        )
        self.undecodable = Counter(
            "butler_cache_undecodable_objects",
            "Objects that did not fit their type; the last good version stays in the cache.",
            ["resource"],
            registry=registry,
        )
        self.handler_errors = Counter(
            "butler_cache_handler_errors", "Change handlers that raised.", ["resource"], registry=registry
        )
        self.reconciles = Counter(
            "controller_runtime_reconcile", "Reconciles, by outcome.", ["controller", "result"], registry=registry
        )
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Time per reconcile.",
            ["controller"],
            buckets=_FAST,
            registry=registry,
        )
        self.active_workers = Gauge(
            "controller_runtime_active_workers", "Reconciles under way.", ["controller"], registry=registry
        )
        self.queue_depth = Gauge("workqueue_depth", "Keys ready to be worked on.", ["name"], registry=registry)
        self.queue_seconds = Histogram(
            "workqueue_queue_duration_seconds",
            "Time a key waits once it is ready.",
            ["name"],
            buckets=_FAST,
            registry=registry,
        )
        self.queue_retries = Counter("workqueue_retries", "Keys put back with a delay.", ["name"], registry=registry)
        self.leading = Gauge(
            "leader_election_master_status", "1 while this process leads.", ["name"], registry=registry
        )
        self.events_dropped = Counter(
            "butler_events_dropped", "Events not written, by why.", ["reason"], registry=registry
        )
        self.loop_lag = Histogram(
            "butler_event_loop_lag_seconds",
            "How late the event loop woke a sleeper.",
            buckets=_FAST,
            registry=registry,
        )

    def observe_request(self, verb: str, resource: str, code: str, seconds: float) -> None:
        """The observer to give to a client."""
        self.requests.labels(verb, resource, code).inc()
        self.request_seconds.labels(verb).observe(seconds)
