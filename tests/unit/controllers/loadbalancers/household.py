"""The cluster web with its tenant, the controller of its addresses, and the pool that these come from.

Time passes when a test says so (`live`), and the world answers in between: the pool grants what it can, and MetalLB
serves. `restart` is another process that finds what the last one left.
"""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec
from prometheus_client import CollectorRegistry

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType
from butler.api.meta import LocalObjectReference
from butler.api.objects import Key
from butler.controllers.ipallocation.release import Releases
from butler.controllers.kubeconfig_secrets import KubeconfigSecrets
from butler.controllers.loadbalancers.allocations import Ledger
from butler.controllers.loadbalancers.controller import LoadBalancerController
from butler.controllers.loadbalancers.deletions import Deletions
from butler.controllers.loadbalancers.draining import A_SECOND, Draining
from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
from butler.controllers.loadbalancers.publisher import Publisher
from butler.controllers.loadbalancers.service_record import ServiceRecord
from butler.controllers.loadbalancers.status_writer import LoadBalancerStatusWriter
from butler.controllers.networkpool.metrics import IpamMetrics
from butler.controllers.service_looks import ServiceLooks
from butler.controllers.tenant_caches import Views
from butler.ipam.addresses import Family, Range, address_text, parse_address
from butler.ipam.free_space import FreeSpace
from butler.kube.errors import KubeError
from butler.kube.kinds import ADDONS, ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.resource import SECRETS
from butler.kube.timeline import Timeline
from butler.providers.teams import NAMESPACE_HEADS, Teams
from butler.rules.loadbalancer.settings import LoadBalancerSettings
from butler.rules.loadbalancer.usage import asked_count, granted_range
from unit.controllers.loadbalancers.following import Feeds
from unit.controllers.loadbalancers.tenant import Tenant
from unit.controllers.tenantcluster.management import Management, View, refusal
from unit.controllers.tenantcluster.site import NAMESPACE, Notes
from unit.controllers.tenantcluster.values import HOME, NOW, UID, cluster, pool, provider
from unit.rules.loadbalancer.balancers import lb

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.controller import After

KEY = Key("team-a", "web")
SECRET = "web-admin-kubeconfig"
ELASTIC: dict[str, Any] = {"allocationMode": "elastic", "growthIncrement": 2}
FIRST = parse_address("10.40.0.20")[1]


class Killed(BaseException):
    """The process ends here: nothing of it goes on, whatever it catches."""


class Books(Management):
    """A management cluster that minds versions in deletions too."""

    async def delete(self, resource: Any, name: str, namespace: str = "", *, uid: str, **more: Any) -> dict[str, Any]:
        found, version = self.find(resource.plural, namespace, name), more.get("resource_version")
        if found is not None and version and found["metadata"]["resourceVersion"] != version:
            raise refusal(409, "Conflict", "another version")
        return await super().delete(resource, name, namespace, uid=uid)


class Household:
    """Everything. Addresses come from 10.40.0.20 on, `room` of them."""

    def __init__(self, *, room: int = 20, initial: int = 2, **of_provider: Any) -> None:
        self.management, self.tenant = Books(), Tenant()
        self.log = self.tenant.log
        """What was asked of either side, in order."""
        self.management.before = lambda verb, plural: self.log.append(f"{verb} {plural} here")
        self.now, self.monotonic, self.room = NOW, 1000.0, room
        self.told: list[Key] = []
        of_provider.setdefault("balancers", ELASTIC)
        self.management.put("providerconfigs", provider(**of_provider))
        self.management.put("secrets", {"metadata": {"name": SECRET, "namespace": NAMESPACE}})
        self.wish()
        if initial:
            self.management.put("ipallocations", lb(count=initial))
        self.settings = LoadBalancerSettings(grace=timedelta(minutes=10), settle=2.0)
        self.identity = 0
        self.answer()
        self.restart()

    def wish(self, *, uid: str = UID, **spec: Any) -> None:
        """Write the TenantCluster down."""
        found = cluster(uid=uid, **spec)
        status = msgspec.structs.replace(found.status, kubeconfig_secret_ref=LocalObjectReference(name=SECRET))
        self.management.put("tenantclusters", msgspec.structs.replace(found, status=status))

    def restart(self) -> None:
        """Another process, that knows nothing but what stands somewhere."""
        self.identity += 1
        self.events, self.registry, self.feeds = Notes(), CollectorRegistry(), Feeds(self.tenant)
        clusters, providers, pools, allocations, addons = (
            cast("Any", View(self.management, kind)) for kind in (CLUSTERS, PROVIDERS, POOLS, ALLOCATIONS, ADDONS)
        )
        self.teams = Teams(cast("Any", View(self.management, NAMESPACE_HEADS)))
        self.views = Views(clusters, providers, pools, allocations, addons, HOME, self.teams)
        self.views.add_indexes()
        client, events, clock = cast("Any", self.management), cast("Any", self.events), self._clock
        metrics = LoadBalancerMetrics(self.registry)
        releases = Releases(client, self.views.pools, cast("Any", Notes()), IpamMetrics(CollectorRegistry()), clock)
        ledger = Ledger(client, self.views.allocations, releases, HOME)
        publisher = Publisher(ledger, events, metrics, self.settings, clock, self._monotonic)
        tokens = (f"process-{self.identity}-{number}" for number in itertools.count(1))
        self.draining = Draining(
            ledger, publisher, events, metrics, self.settings, lambda: next(tokens), clock, self._monotonic
        )
        deletions = Deletions(ledger, events, clock, self._monotonic)
        self.timeline = Timeline()
        self.looks = ServiceLooks(clusters, self.timeline, clock, self._monotonic)
        writer = LoadBalancerStatusWriter(client, self.views.clusters, events, clock, self._monotonic)
        self.controller = LoadBalancerController(
            client,
            self.views,
            cast("Any", self.feeds),
            cast("Any", View(self.management, SECRETS)),
            KubeconfigSecrets(client, self._monotonic),
            ledger,
            publisher,
            self.draining,
            deletions,
            writer,
            ServiceRecord(self.views.clusters, events, metrics, self._monotonic),
            metrics,
            self.settings,
            self.told.append,
            clock,
            self._monotonic,
            self.looks,
        )

    def _clock(self) -> datetime:
        return self.now.replace(microsecond=0)

    def _monotonic(self) -> float:
        return self.monotonic

    # What goes on.

    async def look(self) -> After | None:
        """One look; and where it waits for a second to pass that MetalLB's signs count, the next one too."""
        after = await self.controller.reconcile(KEY)
        if after is not None and abs(after.seconds - A_SECOND) < 0.01:
            self.pass_(A_SECOND + 0.001)
            after = await self.controller.reconcile(KEY)
        return after

    def doubt(self, controller: LoadBalancerController | None = None) -> None:
        """Something happened to a Service that speaks of another pool than the one that MetalLB was told."""
        for states in (controller or self.controller)._states.values():
            states.pool.doubt = True

    async def live(self, seconds: float) -> int:
        """Let so much time pass, with all that happens in it; how often the tenant was looked at."""
        until, looks = self.monotonic + seconds, 0
        while True:
            pause = await self._look_and_recover(seconds)
            looks += 1
            assert looks < 400, "it never comes to rest"
            self.check()
            if self.answer():
                continue
            if self.monotonic + pause > until:
                self.pass_(until - self.monotonic)
                return looks
            self.pass_(pause)

    async def _look_and_recover(self, otherwise: float) -> float:
        """As the queue does: what fails is tried again."""
        try:
            after = await self.look()
        except (KubeError, TimeoutError):
            return 1.0
        except Killed:
            self.restart()
            return 1.0
        return after.seconds if after else otherwise

    def check(self) -> None:
        """What must hold at every instant: nothing is announced that is not held, nothing used that was given back."""
        held = [
            allocation for allocation in self.allocations() if allocation.status.phase is IPAllocationPhase.ALLOCATED
        ]
        announced = set(self.tenant.addresses)
        assert announced <= {_entry(allocation) for allocation in held}, "the pool has what the tenant does not hold"
        served = [
            balancer for balancer in self.tenant.balancers() if not balancer.class_name
        ]  # others are not MetalLB's
        used = {parse_address(address)[1] for service in served for address in service.addresses}
        ranges = [found for allocation in held if (found := granted_range(allocation)) is not None]
        assert all(any(span.first <= address <= span.last for span in ranges) for address in used), "in use, not held"
        assert self.tenant.moved == []

    def pass_(self, seconds: float) -> None:
        self.monotonic += seconds
        self.now += timedelta(seconds=seconds)

    def answer(self) -> bool:
        """What pool and MetalLB do about it; whether anything changed."""
        granted = self._grant()
        return self.tenant.serve() or granted

    def _grant(self) -> bool:
        found = self.allocations()
        taken = [held for allocation in found if (held := granted_range(allocation)) is not None]
        free = FreeSpace.without([Range(FIRST, FIRST + self.room - 1)], taken)
        changed = False
        for allocation in found:
            if allocation.status.phase is IPAllocationPhase.PENDING or (
                allocation.status.phase is IPAllocationPhase.FAILED and free.best_fit(asked_count(allocation))
            ):
                changed = True
                self.management.put("ipallocations", _answered(allocation, free))
        if free.largest != self.longest_run:
            changed = True
            self.management.put("networkpools", pool(free=free.largest))
        return changed

    # What there is.

    @property
    def longest_run(self) -> int | None:
        found = self.management.find("networkpools", HOME, "vlan40")
        return found.get("status", {}).get("largestFreeBlock", 0) if found else None

    def allocations(self) -> list[IPAllocation]:
        return cast("list[IPAllocation]", View(self.management, ALLOCATIONS).values())

    def allocation(self, name: str) -> IPAllocation:
        return next(item for item in self.allocations() if item.metadata.name == name)

    def phases(self) -> dict[str, str]:
        return {allocation.metadata.name: allocation.status.phase.value for allocation in self.allocations()}

    def marked(self) -> list[str]:
        held = (
            allocation for allocation in self.allocations() if allocation.status.phase is IPAllocationPhase.ALLOCATED
        )
        return [allocation.metadata.name for allocation in held if allocation.status.draining_since]

    def cluster(self) -> TenantCluster:
        found = self.views.clusters.get(KEY)
        assert found is not None
        return found

    def reason(self) -> str:
        found = find_condition(self.cluster().status.conditions, ConditionType.LOAD_BALANCERS_READY)
        return found.reason if found else ""

    def said(self) -> str:
        found = find_condition(self.cluster().status.conditions, ConditionType.LOAD_BALANCERS_READY)
        return found.message if found else ""

    def count(self, name: str) -> float:
        return self.registry.get_sample_value(f"butler_load_balancer_{name}") or 0.0

    def at(self, seconds: float) -> datetime:
        return NOW + timedelta(seconds=seconds)


def _entry(allocation: IPAllocation) -> str:
    return f"{allocation.status.start_address}-{allocation.status.end_address}"


def _answered(request: IPAllocation, free: FreeSpace) -> IPAllocation:
    count = asked_count(request)
    found = free.best_fit(count)
    if found is None:
        status = msgspec.structs.replace(request.status, phase=IPAllocationPhase.FAILED)
        return msgspec.structs.replace(request, status=status)
    free.take(found)
    status = msgspec.structs.replace(
        request.status,
        phase=IPAllocationPhase.ALLOCATED,
        start_address=address_text(found.first, Family.V4),
        end_address=address_text(found.last, Family.V4),
        allocated_count=count,
    )
    return msgspec.structs.replace(request, status=status)
