"""Does what a plan says to a tenant, with kills in between, and tells what came of it.

Nothing here waits for an outcome while the plan is played: users do not either. What came of it is read from the record
of both sides, at every rest and at the end.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from elastic.chronicle import ADDRESS_POOL, DEFAULT_POOL, SERVICE, announced, is_growth, phase, shown, tenant_of
from elastic.real_metallb.plan import ASK, CREATE, DELETE, LEAVE, LET_GO, PAUSE, QUOTA, RETYPE, SQUAT
from elastic.real_metallb.taken_in import seen_size
from elastic.rest import waits
from ipam.history import ALLOCATION
from tenants.estate import API, HOME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from elastic.real_metallb.plan import Act
    from elastic.real_metallb.real_tenant import RealPlace, RealTenant
    from ipam.history import Revision

SERVICES = "/api/v1/namespaces/default/services"


@dataclass
class Churn:
    """A plan at work on one tenant."""

    place: RealPlace
    tenant: RealTenant
    done: Counter[str] = field(default_factory=Counter)

    def play(self, acts: Iterable[Act], seconds: float, incidents: Sequence[tuple[float, Callable[[], None]]]) -> None:
        """Do as told for so long. `incidents` happen at a part of that time."""
        began = time.monotonic()
        waiting = sorted(
            ((began + part * seconds, happen) for part, happen in incidents), key=lambda incident: incident[0]
        )
        for act in acts:
            self.do(act)
            until = time.monotonic() + act.pause
            while True:
                if waiting and waiting[0][0] <= time.monotonic():
                    waiting.pop(0)[1]()
                    continue
                left = until - time.monotonic()
                if left <= 0:
                    break
                time.sleep(min(left, 0.05))
            if time.monotonic() > began + seconds:
                break
        for _, happen in waiting:
            happen()

    def do(self, act: Act) -> None:
        self.done[act.verb] += 1
        path = f"{SERVICES}/{act.name}"
        if act.verb == CREATE:
            self.tenant.send("POST", SERVICES, act.body)
        elif act.verb == DELETE:
            self.tenant.send("DELETE", path)
        elif act.verb in (RETYPE, ASK):
            assert act.body is not None
            self.tenant.merge(path, act.body)
        elif act.verb == LET_GO:
            self.tenant.merge(path, {"metadata": {"finalizers": None}})
        elif act.verb == QUOTA:
            self.place.set(quota=act.number)  # whether or not Butler is alive to hear of it
        elif act.verb == SQUAT:
            self._squat(act)
        elif act.verb == LEAVE:
            self.place.estate.send("DELETE", f"/apis/{API}/namespaces/{HOME}/ipallocations/{self._squatter(act)}")
        else:
            assert act.verb == PAUSE, act

    def _squatter(self, act: Act) -> str:
        return f"{self.place.namespace}-{act.name}"

    def _squat(self, act: Act) -> None:
        """An operator prepares a cluster that is yet to come, and takes a part of the pool."""
        wanted = {
            "poolRef": {"name": self.place.pool},
            "tenantClusterRef": {"name": "later", "namespace": self.place.namespace},
            "type": "loadbalancer",
            "count": act.number,
        }
        meta = {"name": self._squatter(act), "namespace": HOME}
        self.place.estate.apply({"apiVersion": API, "kind": "IPAllocation", "metadata": meta, "spec": wanted})


# What came of it.


@dataclass(frozen=True)
class Figures:
    """What a record of a churn holds."""

    served: list[float]
    """Seconds from a Service that took what it got to its address, each."""
    acted: list[float]
    """Seconds from a write of the pool's addresses to MetalLB's own count of them."""
    service_events: int
    pool_writes: int
    asked: int
    growths: int
    shrinks: int
    drains: int

    def __str__(self) -> str:
        return (
            f"{self.service_events} Service events, {self.pool_writes} pool writes, {self.asked} requests,"
            f" {self.growths} growths, {self.drains} drains begun, {self.shrinks} shrinks;"
            f" Service to address: {spread(self.served)};"
            f" pool write to MetalLB's count: {spread(self.acted)}"
        )


def spread(found: list[float]) -> str:
    if not found:
        return "none"
    ordered = sorted(found)
    p50, p99 = (ordered[min(len(ordered) - 1, math.ceil(part * len(ordered)) - 1)] for part in (0.5, 0.99))
    return f"p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, longest {ordered[-1] * 1000:.0f} ms of {len(ordered)}"


def figures(tenant: RealTenant) -> Figures:
    inside = tenant.side.written()
    services = [revision for revision in inside if revision.kind == SERVICE]
    pools = [revision for revision in inside if revision.kind == ADDRESS_POOL and revision.key == DEFAULT_POOL]
    granted = [revision for revision in tenant.record.management.written() if revision.kind == ALLOCATION]
    own = [revision for revision in granted if tenant_of(revision.obj) == tenant.uid and is_growth(revision.obj)]
    return Figures(
        served=_served(services),
        acted=_acted(pools),
        service_events=len(services),
        pool_writes=len([pool for pool in pools if _spec(pool.before) != _spec(pool.after)]),
        asked=len([revision for revision in own if revision.before is None]),
        growths=_steps(own, "Pending", "Allocated") + _steps(own, "Failed", "Allocated"),
        shrinks=_steps(own, "Allocated", "Released"),
        drains=len([revision for revision in own if not _drains(revision.before) and _drains(revision.after)]),
    )


def _served(services: list[Revision]) -> list[float]:
    """Of Services that waited from their first moment on."""
    waiting: dict[str, float] = {}
    found = []
    for service in services:
        if service.before is None and service.after is not None and waits(service.after):
            waiting[service.uid] = service.seconds
        elif service.uid in waiting and service.after is not None and shown(service.after):
            found.append(service.seconds - waiting.pop(service.uid))
        elif service.uid in waiting and (service.after is None or not waits(service.after)):
            del waiting[service.uid]
    return found


def _acted(pools: list[Revision]) -> list[float]:
    found, since = [], None
    for pool in pools:
        listed = announced(pool.after) if pool.after is not None else set()
        before = announced(pool.before) if pool.before is not None else set()
        if listed != before:
            since = pool.seconds if len(listed) != len(before) else None
        if since is not None and seen_size(pool.after) == len(listed):
            found.append(pool.seconds - since)
            since = None
    return found


def _steps(allocations: list[Revision], before: str, after: str) -> int:
    """How often an allocation went from one phase to another."""
    return len(
        [
            allocation
            for allocation in allocations
            if (phase(allocation.before or {}), phase(allocation.obj)) == (before, after)
        ]
    )


def _spec(obj: object) -> object:
    return obj.get("spec") if isinstance(obj, dict) else None


def _drains(obj: object) -> bool:
    return bool(isinstance(obj, dict) and (obj.get("status") or {}).get("drainingSince"))
