"""A management cluster with tenants made by hand: logical clusters, their kubeconfig Secrets, their TenantClusters.

The embedded server and the stand-ins run in the test's own process, so that a test can stop and start the stand-ins
and count what the server was asked to write.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from butler.api.objects import Key
from butler.api.tenantaddon import TenantAddon
from butler.api.tenantcluster import TenantCluster
from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import AlreadyExists, NotFound
from butler.kube.operator import Operator
from butler.kube.resource import EVENTS, NAMESPACES, NODES, SECRETS, SERVICES, resource_of
from butler.local.control_plane import ControlPlane, start
from butler.local.world.addons import add_addons
from butler.local.world.metallb import HOME, IP_ADDRESS_POOLS, add_metallb
from butler.local.world.metallb_signs import CONFIGURATION_STATES, counts_shown
from butler.local.world.settings import WorldSettings
from butler.local.world.tenants import COMPONENT, ENTRY, SUFFIX, TenantConnections

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from butler.local.world.metallb_allocator import Counts

Json = dict[str, Any]
TEAM = "team-a"
ADDONS = resource_of(TenantAddon)
CLUSTERS = resource_of(TenantCluster)
PATIENCE = 60.0


async def until(holds: Callable[[], Awaitable[Any]], what: str = "") -> Any:
    """Ask until the answer is true, and return it; a generous limit, and the last answer if it never is."""
    found: Any = None
    for _ in range(int(PATIENCE / 0.05)):
        found = await holds()
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"never came true: {what or holds}; last seen: {found!r}")


class Tenant:
    """One tenant cluster, seen through its own kubeconfig."""

    def __init__(self, key: Key, client: Client) -> None:
        self.key = key
        self.client = client

    async def add_node(self, name: str) -> None:
        await self.client.create(NODES, {"metadata": {"name": name}})

    async def set_pool(self, *addresses: str, name: str = "default-pool", **spec: Any) -> None:
        pool = {"metadata": {"name": name, "namespace": HOME}, "spec": {"addresses": list(addresses), **spec}}
        await self.client.apply(IP_ADDRESS_POOLS, pool, force=True, field_manager="test")

    async def delete_pool(self, name: str = "default-pool") -> None:
        await self.client.delete(IP_ADDRESS_POOLS, name, HOME)

    async def add_service(
        self,
        name: str,
        *,
        namespace: str = "default",
        ports: tuple[int, ...] = (80,),
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> None:
        service = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": annotations or {},
                "labels": labels or {},
            },
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": name},
                "ports": [{"name": f"p{port}", "port": port} for port in ports],
                **spec,
            },
        }
        await self.client.create(SERVICES, service)

    async def change_service(self, name: str, patch: Json, namespace: str = "default") -> None:
        await self.client.patch(SERVICES, name, patch, namespace)

    async def delete_service(self, name: str, namespace: str = "default") -> None:
        await self.client.delete(SERVICES, name, namespace)

    async def service(self, name: str, namespace: str = "default") -> Json:
        return await self.client.get(SERVICES, name, namespace)

    async def addresses(self) -> dict[str, list[str]]:
        """What every Service of type LoadBalancer shows."""
        listed = await self.client.list(SERVICES)
        return {
            obj["metadata"]["name"]: [
                entry["ip"] for entry in obj.get("status", {}).get("loadBalancer", {}).get("ingress") or ()
            ]
            for obj in listed.items
            if obj["spec"].get("type") == "LoadBalancer"
        }

    async def until_addresses(self, **wanted: str | None) -> None:
        """Wait until exactly these Services exist and show exactly these addresses; None: no address."""
        expected = {name.replace("_", "-"): [] if ip is None else ip.split(",") for name, ip in wanted.items()}

        async def match() -> bool:
            seen.update(now=await self.addresses())
            return bool(seen["now"] == expected)

        seen: dict[str, Any] = {}
        try:
            await until(match)
        except AssertionError:
            raise AssertionError(f"wanted {expected}, there is {seen['now']}") from None

    async def events(self, service: str) -> list[tuple[str, str, str]]:
        """Type, reason and message of every event about a Service."""
        listed = await self.client.list(EVENTS)
        return [
            (obj["type"], obj["reason"], obj["message"])
            for obj in listed.items
            if (obj["involvedObject"]["kind"], obj["involvedObject"]["name"]) == ("Service", service)
        ]

    async def counts(self) -> dict[str, Counts]:
        """What the status of every pool says."""
        return {
            obj["metadata"]["name"]: counts_shown(obj) for obj in (await self.client.list(IP_ADDRESS_POOLS, HOME)).items
        }

    async def refusal(self) -> str:
        """Why MetalLB refuses its pools, by its own account."""
        try:
            state = await self.client.get(CONFIGURATION_STATES, "controller", HOME)
        except NotFound:
            return "it has not told yet"
        found = [condition["message"] for condition in state.get("status", {}).get("conditions") or ()]
        return str(found[0]).removeprefix("configuration error: ") if found else "it has not told yet"

    async def exists(self, resource: Any, name: str, namespace: str = "") -> bool:
        try:
            await self.client.get(resource, name, namespace)
        except NotFound:
            return False
        return True


class Estate:
    """The management cluster and what lives on it."""

    def __init__(self, plane: ControlPlane, client: Client) -> None:
        self.plane = plane
        self.client = client
        self._tenants: list[Tenant] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path) -> AsyncIterator[Estate]:
        plane = await start(directory)
        try:
            async with Client(config.load(plane.kubeconfig)) as client:
                estate = cls(plane, client)
                await client.create(NAMESPACES, {"metadata": {"name": TEAM}})
                try:
                    yield estate
                finally:
                    for tenant in estate._tenants:
                        await tenant.client.close()
        finally:
            await plane.stop()

    @asynccontextmanager
    async def world(self, **settings: Any) -> AsyncIterator[Operator]:
        """The stand-ins, running; leaving the block stops them as a process would be."""
        operator = Operator(self.client, "butler-world")
        tenants = TenantConnections(operator)
        chosen = WorldSettings(addon_seconds=settings.pop("addon_seconds", 0.0), **settings)
        add_metallb(operator, tenants, chosen)
        add_addons(operator, tenants, chosen)
        running = asyncio.create_task(operator.run(handle_signals=False))
        try:
            yield operator
        finally:
            operator.stop()
            await running

    async def add_tenant(self, name: str = "payments", *, nodes: int = 1) -> Tenant:
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "none"},
            "workers": {"replicas": max(nodes, 1)},
        }
        cluster = await self.client.create(CLUSTERS, {"metadata": {"name": name, "namespace": TEAM}, "spec": spec})
        key = Key(f"{name}-{cluster.metadata.uid[:8]}", name)
        await self.client.create(NAMESPACES, {"metadata": {"name": key.namespace}})
        tenant = await self.add_control_plane(key)
        await self.client.patch(
            CLUSTERS, name, {"status": {"tenantNamespace": key.namespace}}, TEAM, subresource="status"
        )
        for number in range(nodes):
            await tenant.add_node(f"node-{number}")
        return tenant

    async def add_control_plane(self, key: Key) -> Tenant:
        """What Steward does: an API server, and the Secret with the way in."""
        path = await self.plane.add_cluster(*key)
        secret = {
            "metadata": {
                "name": key.name + SUFFIX,
                "namespace": key.namespace,
                "labels": {COMPONENT[0]: COMPONENT[1]},
            },
            "data": {ENTRY: base64.b64encode(path.read_bytes()).decode()},
        }
        await self.client.create(SECRETS, secret)
        tenant = Tenant(key, Client(config.load(path), field_manager="test"))
        self._tenants.append(tenant)
        return tenant

    async def remove_control_plane(self, key: Key) -> None:
        await self.client.delete(SECRETS, key.name + SUFFIX, key.namespace)
        await self.plane.remove_cluster(*key)

    async def add_addon(self, addon: str, cluster: str = "payments", **more: Any) -> str:
        name = f"{cluster}-{addon}"
        meta = {"name": name, "namespace": TEAM, "annotations": more.pop("annotations", {})}
        spec = {"clusterRef": {"name": cluster}, "addon": addon, **more}
        await self.client.create(ADDONS, {"metadata": meta, "spec": spec})
        return name

    async def addon(self, name: str) -> TenantAddon:
        return await self.client.get(ADDONS, name, TEAM)

    async def until_phase(self, name: str, phase: str) -> TenantAddon:
        async def reached() -> TenantAddon | None:
            seen.append(await self.addon(name))
            current = seen[-1].status.observed_generation == seen[-1].metadata.generation
            return seen[-1] if current and seen[-1].status.phase.value == phase else None

        seen: list[TenantAddon] = []
        try:
            found: TenantAddon = await until(reached)
        except AssertionError:
            raise AssertionError(f"{name} never became {phase}: {seen[-1].status}") from None
        return found

    async def until_gone(self, name: str) -> None:
        async def gone() -> bool:
            try:
                await self.addon(name)
            except NotFound:
                return True
            return False

        await until(gone, f"{name} gone")

    async def with_metallb(self, name: str = "payments") -> Tenant:
        """A tenant on which MetalLB is installed, as its addon leaves it; the stand-ins must be running."""
        tenant = await self.add_tenant(name)
        await self.until_phase(await self.add_addon("metallb", name), "Installed")
        return tenant


async def ensure_namespace(client: Client, name: str, labels: dict[str, str] | None = None) -> None:
    with suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels or {}}})
