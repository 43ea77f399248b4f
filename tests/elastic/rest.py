"""What must be true of elastic tenants when nothing moves any more; shares no code with Butler.

No Service that quota and pools could serve stays without an address. MetalLB has exactly what the tenant holds. The
figures in the TenantCluster's status are those that one gets by counting, and its condition LoadBalancersReady says
that all is well exactly if no Service waits and MetalLB hands out addresses. A request that no Service needs any more
is gone. And at rest nothing is written (`written_since`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.chronicle import (
    ADDRESS_POOL,
    DEFAULT_POOL,
    PROVIDER,
    SERVICE,
    TENANT,
    Chronicle,
    announced,
    asked,
    asked_pool,
    granted,
    latest,
    phase,
    sharing_key,
    shown,
    tenant_of,
)
from ipam import oracle
from ipam.history import ALLOCATION, POOL
from ipam.oracle import number, text
from ipam.story import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipam.history import Json

CONDITION = "LoadBalancersReady"
PLATFORM = "butler.butlerlabs.dev/platform-lb"


def at_rest(chronicle: Chronicle) -> list[Violation]:
    """Every broken rule of rest, of the last state in the record."""
    found: list[Violation] = []
    for uid in chronicle.tenants:
        cluster = next((obj for obj in latest(chronicle.management, TENANT) if obj["metadata"]["uid"] == uid), None)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            continue
        tenant = Standing(chronicle, cluster)
        found += [*tenant.unserved(), *tenant.unpublished(), *tenant.miscounted(), *tenant.needless()]
        found += tenant.untrue()
    return found


def written_since(chronicle: Chronicle, mark: Chronicle) -> list[Violation]:
    """L3: what was written to anything of these tenants after another look at the same record."""
    found = []
    for tenant, dated in chronicle.tenants.items():
        known = len(mark.tenants.get(tenant, []))
        found += [item.revision for item in dated[known:]]
    known_versions = {(item.revision.kind, item.revision.version) for item in mark.management}
    for item in chronicle.management:
        obj = item.revision.obj
        mine = obj["metadata"]["uid"] in chronicle.tenants or tenant_of(obj) in chronicle.tenants
        if mine and (item.revision.kind, item.revision.version) not in known_versions:
            found.append(item.revision)
    return [Violation("L3", f"{revision.kind} {revision.name} was written at rest", (revision,)) for revision in found]


class Standing:
    """One tenant as it stands at the end of a record."""

    def __init__(self, chronicle: Chronicle, cluster: Json) -> None:
        uid = cluster["metadata"]["uid"]
        self.name = cluster["metadata"]["name"]
        self.cluster = cluster
        every = latest(chronicle.management, ALLOCATION)
        self.allocations = [obj for obj in every if tenant_of(obj) == uid and obj["spec"]["type"] == "loadbalancer"]
        self.every_allocation = every
        self.pools = {obj["metadata"]["name"]: obj for obj in latest(chronicle.management, POOL)}
        reference = cluster["spec"]["providerConfigRef"]["name"]
        providers = latest(chronicle.management, PROVIDER)
        provider = next((obj for obj in providers if obj["metadata"]["name"] == reference), None)
        self.network: Json = ((provider or {}).get("spec") or {}).get("network") or {}
        services = latest(chronicle.tenants[uid], SERVICE)
        self.services = [service for service in services if service["spec"].get("type") == "LoadBalancer"]
        pools = latest(chronicle.tenants[uid], ADDRESS_POOL)
        self.metallb = {(pool["metadata"]["namespace"], pool["metadata"]["name"]): pool for pool in pools}

    @property
    def is_elastic(self) -> bool:
        return bool((self.network.get("loadBalancer") or {}).get("allocationMode") == "elastic")

    @property
    def held(self) -> set[int]:
        return {address for allocation in self.allocations for address in granted(allocation)}

    @property
    def going(self) -> set[int]:
        """What was deleted and is held until no Service uses it; new Services get other addresses."""
        deleted = [allocation for allocation in self.allocations if allocation["metadata"].get("deletionTimestamp")]
        return {address for obj in deleted for address in granted(obj)}

    @property
    def published(self) -> set[int]:
        pool = self.metallb.get(DEFAULT_POOL)
        return announced(pool) if pool is not None else set()

    def claimed(self) -> set[int]:
        """Addresses that a Service shows or names."""
        named = [item for service in self.services for item in asked(service) if ":" not in item and _lives(service)]
        return {item for service in self.services for item in shown(service)} | {number(entry) for entry in named}

    def waiting(self) -> list[Json]:
        return [service for service in self.services if waits(service)]

    def demand(self) -> int:
        """Those with the same sharing key need one address together."""
        keys = {sharing_key(obj) for obj in self.waiting() if sharing_key(obj)}
        return len([obj for obj in self.waiting() if not sharing_key(obj)]) + len(keys)

    # Rules.

    def unserved(self) -> Iterator[Violation]:
        waiting = self.waiting()
        if not waiting:
            return
        names = ", ".join(obj["metadata"]["name"] for obj in waiting)
        free = sorted((self.published & self.held) - self.claimed() - self.going)
        if free:
            what = f"{names} of {self.name} wait, and {text((free[0], free[0]))} is free"
            yield Violation("unserved", what)
        elif self.is_elastic and self.quota_left() > 0 and (room := self.room()):
            what = f"{names} of {self.name} wait, the quota leaves {self.quota_left()}, and there is room in {room}"
            yield Violation("unserved", what)

    def quota_left(self) -> float:
        most = (self.network.get("quotaPerTenant") or {}).get("maxLoadBalancerIPs")
        return float("inf") if most is None else most - len(self.held)

    def room(self) -> list[str]:
        """The provider's pools for load balancers in which an address is free."""
        held = [
            (number(allocation["status"]["startAddress"]), number(allocation["status"]["endAddress"]))
            for allocation in self.every_allocation
            if phase(allocation) == "Allocated"
        ]
        found = []
        for reference in self.network.get("poolRefs") or ():
            pool = self.pools.get(reference["name"])
            rules = oracle.rules_of_pool(pool) if pool is not None else None
            if "loadbalancer" in (reference.get("types") or ["loadbalancer"]) and rules and oracle.runs(rules, held):
                found.append(reference["name"])
        return found

    def unpublished(self) -> Iterator[Violation]:
        pool = self.metallb.get(DEFAULT_POOL)
        entries = list((pool or {"spec": {}})["spec"].get("addresses") or ())
        granted_now = [allocation["status"] for allocation in self.allocations if phase(allocation) == "Allocated"]
        wanted = [f"{item['startAddress']}-{item['endAddress']}" for item in granted_now]
        if sorted(entries) != sorted(wanted):
            yield Violation("unpublished", f"default-pool of {self.name} has {entries}, and the tenant holds {wanted}")
        if pool is not None and pool["spec"].get("autoAssign") is False and not self.going:
            yield Violation("unpublished", f"default-pool of {self.name} hands out nothing by itself at rest")

    def miscounted(self) -> Iterator[Violation]:
        use = (self.cluster.get("status") or {}).get("loadBalancers")
        if use is None:
            yield Violation("miscounted", f"{self.name} says nothing of its load balancers")
            return
        held, used = self.held, self.held & {item for service in self.services for item in shown(service)}
        served = [obj for obj in self.services if shown(obj)]
        right = {
            "held": len(held),
            "inUse": len(used),
            "idle": len(held) - len(used),
            "services": len(served),
            "platformServices": len([obj for obj in served if _is_platform(obj)]),
            "waitingServices": len(self.waiting()),
        }
        wrong = {name: (use.get(name, 0), value) for name, value in right.items() if use.get(name, 0) != value}
        if wrong:
            yield Violation("miscounted", f"{self.name} says and is: {wrong}")

    def untrue(self) -> Iterator[Violation]:
        """A condition that says that all is well while it is not, or the other way round."""
        conditions = (self.cluster.get("status") or {}).get("conditions") or ()
        said = next((condition for condition in conditions if condition["type"] == CONDITION), None)
        if said is None:
            return
        pool = self.metallb.get(DEFAULT_POOL)
        wrong = [f"{obj['metadata']['name']} waits" for obj in self.waiting()]
        if pool is not None and pool["spec"].get("autoAssign") is False:
            wrong.append("default-pool hands out nothing")
        if self.going:
            wrong.append("an allocation that was deleted is still in use")
        well = (said["status"], said["reason"]) == ("True", "InStep")
        if well == bool(wrong):
            yield Violation(
                "untrue", f"{self.name} says {said['status']} {said['reason']}, and {wrong or 'all is well'}"
            )

    def needless(self) -> Iterator[Violation]:
        """Requests under way although no Service waits."""
        for allocation in self.allocations:
            pending = phase(allocation) in ("", "Pending", "Failed") and not allocation["metadata"].get(
                "deletionTimestamp"
            )
            labels = allocation["metadata"].get("labels") or {}
            growth = labels.get("butler.butlerlabs.dev/allocation-role") == "growth"
            if pending and growth and not self.waiting():
                yield Violation("needless", f"{allocation['metadata']['name']} is asked for, and no Service waits")


def _lives(service: Json) -> bool:
    return not service["metadata"].get("deletionTimestamp")


def _is_platform(service: Json) -> bool:
    return bool((service["metadata"].get("labels") or {}).get(PLATFORM) == "true")


def waits(service: Json) -> bool:
    """Whether MetalLB would serve this Service from default-pool, and it has nothing."""
    spec = service["spec"]
    entries = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    families = spec.get("ipFamilies") or ["IPv4"]
    return bool(
        spec.get("type") == "LoadBalancer"
        and _lives(service)
        and not any(entry.get("ip") or entry.get("hostname") for entry in entries)
        and not spec.get("loadBalancerClass")
        and not asked(service)
        and asked_pool(service) in ("", "default-pool")
        and "IPv4" in families
        and not (spec.get("ipFamilyPolicy") == "RequireDualStack" and len(families) > 1)
    )
