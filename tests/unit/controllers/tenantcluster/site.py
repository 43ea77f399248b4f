"""One cluster, `web`, with all that looks after it, on a management cluster in memory."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import msgspec
from prometheus_client import CollectorRegistry

from butler.api.labels import Annotation, Finalizer
from butler.api.objects import Key, namespace_of
from butler.controllers.ipallocation.release import Releases
from butler.controllers.networkpool.metrics import IpamMetrics
from butler.controllers.tenant_caches import Views
from butler.controllers.tenantcluster.bring_up import Building
from butler.controllers.tenantcluster.build_slots import Turnstile
from butler.controllers.tenantcluster.foreign_objects import (
    BY_NAMESPACE,
    ForeignObjects,
    NotServed,
    packed,
    resource_of_kind,
)
from butler.controllers.tenantcluster.half_tenants import HalfTenants
from butler.controllers.tenantcluster.metrics import TenantMetrics
from butler.controllers.tenantcluster.restored import built_as
from butler.controllers.tenantcluster.status_writer import StatusWriter
from butler.controllers.tenantcluster.teardown import Teardown
from butler.kube.kinds import ADDONS, ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.metrics import Metrics
from butler.providers.teams import NAMESPACE_HEADS, Teams
from butler.rules.tenant.settings import TenantSettings
from butler.rules.tenant.status_urgency import StatusUrgency
from unit.controllers.tenantcluster.management import Management, View
from unit.controllers.tenantcluster.values import HOME, NOW, UID, allocation, cluster, pool, provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.capi.naming import Kind

NAMESPACE = f"web-{UID[:8]}"
PROXMOX: dict[str, Any] = {
    "kind": "proxmox",
    "proxmox": {
        "endpoint": "https://pve.example.com:8006",
        "nodes": ["pve1"],
        "storage": "local-lvm",
        "templateID": 9000,
    },
    "credentialsRef": {"name": "login"},
}


def proxmox() -> ProviderConfig:
    found = provider(**PROXMOX)
    network = msgspec.structs.replace(found.spec.network, dns_servers=("10.40.0.2",))
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, network=network))


class PackedView(View):
    """Objects as ForeignObjects keeps them."""

    def get(self, key: Key) -> Any:
        found = super().get(key)
        return None if found is None else packed(found)

    def by(self, index: str, value: Any) -> list[Any]:
        return [packed(item) for item in super().by(index, value)]


class FakeLive(ForeignObjects):
    """ForeignObjects, with views of the management cluster in place of watches."""

    def __init__(self, management: Management, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(cast("Any", management), lambda _: None, Metrics(), clock)
        self._management = management
        self.views: dict[str, View] = {}

    async def view(self, kind: Kind) -> Any:
        resource = resource_of_kind(kind)
        if kind.plural in self._management.unserved:
            raise NotServed(resource, absent=True)
        if kind.plural not in self.views:
            self.views[kind.plural] = PackedView(self._management, resource)
            self.views[kind.plural].index(BY_NAMESPACE, lambda obj: [namespace_of(obj)])
        return self.views[kind.plural]


class FakeTenants:
    """The tenant's side: no load balancers, no kubeconfig, unless a test says so."""

    def __init__(self) -> None:
        self.left = ""
        self.kubeconfig_secret: str | None = None
        self.forgotten: list[str] = []

    async def balancers_left(self, _: TenantCluster) -> str:
        return self.left

    async def kubeconfig(self, _: TenantCluster, __: str | None) -> str | None:
        return self.kubeconfig_secret

    @asynccontextmanager
    async def talk_to(self, _: TenantCluster) -> AsyncIterator[Any]:
        yield None

    async def forget(self, uid: str) -> None:
        self.forgotten.append(uid)


class Credentials:
    async def of(self, _: object) -> tuple[Key, dict[str, str]]:
        return Key(HOME, "login"), {"username": "butler@pve!capi", "password": "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"}


class Notes:
    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def record(self, _obj: Any, _resource: Any, reason: str, message: str, _type: str = "Normal") -> None:
        self.found.append((reason, message))

    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.found]


class Site:
    """Everything about one cluster. `now` is turned by tests."""

    def __init__(self, settings: TenantSettings | None = None) -> None:
        settings = settings or TenantSettings(force_is_checked=True)
        self.management = Management()
        self.now = NOW
        self.monotonic = 1000.0
        self.events = Notes()
        self.tenants = FakeTenants()
        self.live = FakeLive(self.management)
        clusters, providers, pools, allocations, addons = (
            cast("Any", View(self.management, kind)) for kind in (CLUSTERS, PROVIDERS, POOLS, ALLOCATIONS, ADDONS)
        )
        self.teams = Teams(cast("Any", View(self.management, NAMESPACE_HEADS)))
        self.views = Views(clusters, providers, pools, allocations, addons, HOME, self.teams)
        self.views.add_indexes()
        self.turnstile = Turnstile(lambda: self.monotonic, lambda _: None)
        client, events = cast("Any", self.management), cast("Any", self.events)
        telling, told = (
            StatusUrgency(lambda: self.monotonic, self.views.on_their_way),
            TenantMetrics(CollectorRegistry()),
        )
        writer = StatusWriter(client, clusters, events, told, telling, self._clock)
        releases = Releases(client, self.views.pools, events, IpamMetrics(CollectorRegistry()), self._clock)
        self.building = Building(
            client,
            self.views,
            self.live,
            cast("Any", Credentials()),
            cast("Any", self.tenants),
            lambda _: "",
            HOME,
            self._clock,
            self.turnstile,
            writer,
            HalfTenants(client, self.views, releases, self._clock),
            releases,
        )
        self.teardown = Teardown(
            client, self.views, self.live, cast("Any", self.tenants), releases, events, settings, self._clock
        )
        for kind, found in (
            ("providerconfigs", proxmox()),
            ("networkpools", pool()),
            ("ipallocations", allocation("web-nodes", "nodes", start="10.40.0.10")),
            ("ipallocations", allocation("web-lb", "loadbalancer", start="10.40.0.20")),
        ):
            self.management.put(kind, found)

    def _clock(self) -> datetime:
        return self.now

    def wish(self, *, going: bool = False, of: TenantCluster | None = None, **spec: Any) -> TenantCluster:
        """Write the TenantCluster down, with its finalizer; `going`: being deleted."""
        wanted = of or cluster(**spec)
        body = self.management.put("tenantclusters", wanted)
        body["metadata"].setdefault("finalizers", []).append(Finalizer.TENANT_CLUSTER.value)
        body["metadata"].setdefault("annotations", {}).setdefault(Annotation.BUILT_AS.value, built_as(wanted))
        if going:
            body["metadata"]["deletionTimestamp"] = NOW.isoformat()
        return self.wished()

    def wished(self) -> TenantCluster:
        found = self.views.clusters.get(Key("team-a", "web"))
        assert found is not None
        return found

    def said(self, status: Any) -> None:
        """The status was written."""
        self.management.put("tenantclusters", msgspec.structs.replace(self.wished(), status=status))

    def stands(self, plural: str, name: str = "web", namespace: str = NAMESPACE, **more: Any) -> None:
        """An object of the cluster is there; it has a finalizer, so that it goes when a test lets it."""
        metadata: dict[str, Any] = {"name": name, "finalizers": ["test"]}
        if namespace:
            metadata["namespace"] = namespace
        self.management.put(plural, {"metadata": metadata, **more})

    def released(self) -> list[str]:
        return sorted(
            item.metadata.name for item in self.views.allocations.values() if item.status.phase.value == "Released"
        )
