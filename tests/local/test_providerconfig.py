"""ProviderConfigs on real API servers, with a Nutanix on the loopback interface: what users see, and what it costs.

Everything happens in a namespace of its own, which stands for butler-system. The provider is a real HTTPS server
that knows one password.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from butler.api.ipallocation import IPAllocation
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.controllers.networkpool.setup import add_ipam
from butler.controllers.providerconfig.settings import ProviderSettings
from butler.controllers.providerconfig.setup import add_providers
from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import NotFound
from butler.kube.operator import Operator
from butler.kube.resource import EVENTS, SECRETS, resource_of
from butler.rules.pool.settings import IpamSettings
from local.terminal import network_pool
from unit.providers.given import PASSWORD, UUID, Appliance, appliance
from unit.providers.given import kubeconfig as given_kubeconfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from local.terminal import Kubectl

Json = dict[str, Any]
CONFIGS = resource_of(ProviderConfig)
CLUSTERS = resource_of(TenantCluster)
ALLOCATIONS = resource_of(IPAllocation)
WRITES = ("create", "patch", "update", "apply", "delete")
PATIENCE = 60.0


class Site:
    """One namespace with a provider in it, seen from outside."""

    def __init__(self, client: Client, kubectl: Kubectl, prism: Appliance) -> None:
        self.client = client
        self.kubectl = kubectl
        self.namespace = kubectl.namespace
        self.prism = prism
        self.writes: Counter[str] = Counter()

    @asynccontextmanager
    async def butler(self, **settings: Any) -> AsyncIterator[None]:
        """Butler at work, until the end of the block."""
        times = {"capacity_every": 0.1, **settings}
        async with Client(self.client.transport.connection, observe=self._count) as own:
            operator = Operator(own, "butler-test", stop_within=4.0)
            add_ipam(operator, IpamSettings(namespace=self.namespace, home_namespace=self.namespace))
            add_providers(operator, ProviderSettings(namespace=self.namespace, home_namespace=self.namespace, **times))
            running = asyncio.create_task(operator.run(handle_signals=False))
            try:
                yield
            finally:
                operator.stop()
                await running

    def _count(self, verb: str, resource: str, code: str, _seconds: float) -> None:
        if verb in WRITES and code.startswith("2"):
            self.writes[resource.partition(".")[0]] += 1

    async def type(self, *arguments: str, **options: Any) -> str:
        """kubectl beside a running event loop."""
        return await asyncio.to_thread(self.kubectl, *arguments, **options)

    async def create(self, *objects: Json) -> None:
        for obj in objects:
            await self.type("create", "-f", "-", stdin=obj)

    async def secret(self, password: str = PASSWORD, **more: str) -> None:
        """Create the Secret, or change it."""
        values = {"username": "butler", "password": password, "ca.pem": self.prism.ca.decode(), **more}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.type("apply", "-f", "-", stdin={**_named("v1", "Secret", "login"), "data": data})

    def provider(self, name: str = "prism", *, url: str = "", **spec: Any) -> Json:
        block = {"endpoint": url or self.prism.url, "clusterUUID": UUID, "subnetUUID": UUID}
        wanted = {"provider": "nutanix", "credentialsRef": {"name": "login"}, "nutanix": block, **spec}
        return {**_named("butler.butlerlabs.dev/v1alpha1", "ProviderConfig", name), "spec": wanted}

    async def until(self, is_so: Callable[[ProviderConfig], object], what: str, name: str = "prism") -> ProviderConfig:
        found: ProviderConfig | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.client.get(CONFIGS, name, self.namespace)
                    if is_so(found):
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            pytest.fail(f"not so: {what}; {found.status if found else 'gone'}")

    async def exists(self, name: str) -> bool:
        try:
            await self.client.get(CONFIGS, name, self.namespace)
        except NotFound:
            return False
        return True

    async def condition(self, kind: str, status: str, reason: str, name: str = "prism") -> str:
        """Wait until a condition says this; its message."""

        def look(found: ProviderConfig) -> bool:
            return (status, reason) in [(e.status, e.reason) for e in found.status.conditions if e.type == kind]

        found = await self.until(look, f"{kind}={status} {reason}", name)
        return next(item.message for item in found.status.conditions if item.type == kind)

    async def events(self, reason: str) -> list[Json]:
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = (await self.client.list(EVENTS, self.namespace)).items
                if found := [obj for obj in listed if obj["reason"] == reason]:
                    return found
                await asyncio.sleep(0.05)


def _named(version: str, kind: str, name: str) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def ipam(*pools: str, **network: Any) -> Json:
    return {"mode": "ipam", "poolRefs": [{"name": pool} for pool in pools], **network}


@pytest.fixture
async def site(kubectl: Kubectl, tmp_path: Path) -> AsyncIterator[Site]:
    async with (
        appliance(tmp_path / "prism") as prism,
        Client(config.load(kubectl.control_plane.kubeconfig)) as client,
    ):
        right = "Basic " + base64.b64encode(f"butler:{PASSWORD}".encode()).decode()

        def me(request: web.Request, _: bytes) -> web.Response:
            return web.Response(status=200 if request.headers["Authorization"] == right else 401)

        prism.answers["GET /api/nutanix/v3/users/me"] = me
        build = {"resources": {"config": {"build": {"version": "pc.2024.3"}, "service_list": ["PRISM_CENTRAL"]}}}
        entities = [{"metadata": {"uuid": UUID}, "status": build}]
        prism.on("POST /api/nutanix/v3/clusters/list", {"entities": entities, "metadata": {"total_matches": 1}})
        yield Site(client, kubectl, prism)


async def test_a_provider_becomes_ready_and_is_left_alone(site: Site) -> None:
    await site.secret()
    async with site.butler(look_every=0.3):
        await site.create(site.provider())
        await site.condition("Ready", "True", "Ready")
        found = await site.until(lambda item: item.status.provider_version, "its version is known")
        assert found.status.provider_version == "pc.2024.3"
        assert (found.status.ready, found.status.validated, found.status.capacity) == (True, True, None)
        assert found.status.last_probe_time is not None
        assert found.status.last_validation_time is not None
        assert await site.condition("Reachable", "True", "Accepted") == "Prism Central accepts the credentials"
        rows = await asyncio.to_thread(site.kubectl.table, "get", "providerconfigs")
        assert rows[1][:5] == ["prism", "nutanix", "platform", "true", "true"]
        assert (await site.events("ProviderReady"))[0]["type"] == "Normal"
        # It is asked again and again, and nothing is written about it.
        written, asked = site.writes["providerconfigs"], len(site.prism.asked)
        async with asyncio.timeout(PATIENCE):
            while len(site.prism.asked) < asked + 8:  # noqa: ASYNC110 (the state of a server is polled)
                await asyncio.sleep(0.05)
        assert site.writes["providerconfigs"] == written == 2  # the finalizer and the status


async def test_a_secret_is_noticed_when_it_comes_changes_and_goes(site: Site) -> None:
    async with site.butler():
        await site.create(site.provider())
        where = f"Secret {site.namespace}/login"
        missing = f"{where} does not exist: create it with username and password"
        assert await site.condition("CredentialsValid", "False", "SecretNotFound") == missing
        assert await site.condition("Ready", "False", "SecretNotFound") == missing
        await site.condition("Reachable", "Unknown", "NotAsked")
        assert (await site.events("CredentialsInvalid"))[0]["message"] == missing

        await site.type("create", "secret", "generic", "login", "--from-literal=user=butler")
        said = await site.condition("CredentialsValid", "False", "Malformed")
        assert said == f"{where}: keys username and password are missing (it has user): add them"
        await site.secret("guessed-wrong")
        said = await site.condition("CredentialsValid", "False", "Refused")
        assert said == "Prism Central does not accept username and password: correct them in the Secret"
        await site.condition("Reachable", "False", "Refused")
        asked = len(site.prism.asked)
        found = await site.client.get(CONFIGS, "prism", site.namespace)
        assert (found.status.ready, found.status.validated) == (False, True)

        await site.secret()
        await site.condition("Ready", "True", "Ready")
        assert len(site.prism.asked) == asked + 2
        await site.client.delete(SECRETS, "login", site.namespace)
        await site.condition("Ready", "False", "SecretNotFound")


async def test_providers_may_share_a_secret_and_turn_to_another(site: Site) -> None:
    await site.secret()
    async with site.butler():
        await site.create(site.provider("one"), site.provider("two"))
        for name in ("one", "two"):
            await site.condition("Ready", "True", "Ready", name)
        await site.type("patch", "providerconfig", "two", "--type=merge", "-p", _pointing_at("other"))
        missing = await site.condition("Ready", "False", "SecretNotFound", "two")
        assert missing.startswith(f"Secret {site.namespace}/other does not exist")
        await site.secret("guessed-wrong")
        await site.condition("Ready", "False", "Refused", "one")
        await site.condition("Ready", "False", "SecretNotFound", "two")
        await site.type("patch", "providerconfig", "two", "--type=merge", "-p", _pointing_at("login"))
        await site.condition("Ready", "False", "Refused", "two")
        await site.secret()
        for name in ("one", "two"):
            await site.condition("Ready", "True", "Ready", name)


async def test_a_provider_that_cannot_be_reached_is_no_obstacle(site: Site) -> None:
    await site.secret()
    async with site.butler(look_every=0.3):
        await site.create(site.provider(url="https://127.0.0.1:1"))
        assert await site.condition("Ready", "True", "Ready")
        said = await site.condition("Reachable", "False", "Unreachable")
        assert said == "127.0.0.1:1 cannot be reached: connection refused"


async def test_capacity_follows_the_pools(site: Site) -> None:
    await site.secret()
    elastic = {"allocationMode": "elastic", "initialPoolSize": 2}
    network = ipam("rack", "spare", gateway="10.40.0.1", loadBalancer=elastic)
    async with site.butler():
        await site.create(site.provider(network=network))
        missing = "no pool for nodes and load balancers exists: create NetworkPool rack, NetworkPool spare"
        assert await site.condition("Ready", "False", "PoolNotFound") == missing
        assert await site.condition("PoolAvailable", "False", "PoolNotFound") == missing

        window = {"tenantAllocation": {"start": "10.40.0.33", "end": "10.40.0.64"}}
        await site.create(network_pool("rack", "10.40.0.0/24", **window))
        await site.condition("Ready", "True", "Ready")
        said = await site.condition("PoolAvailable", "True", "PoolAvailable")
        assert said == "free addresses are there; spare does not exist"
        found = await site.until(lambda item: item.status.capacity, "capacity is known")
        assert _capacity(found) == (32, 4)  # 5 nodes and 2 for load balancers each

        # Eight in the middle: two holes of 12, which three tenants share.
        await site.create(_allocation("pinned", startAddress="10.40.0.45", endAddress="10.40.0.52"))
        await site.until(lambda item: _capacity(item) == (24, 3), "what is held is not free")
        await site.create(_allocation("rest-a", startAddress="10.40.0.33", endAddress="10.40.0.44"))
        await site.create(_allocation("rest-b", startAddress="10.40.0.53", endAddress="10.40.0.64"))
        said = await site.condition("PoolAvailable", "False", "PoolExhausted")
        assert said == "no address is free; spare does not exist"
        assert (await site.client.get(CONFIGS, "prism", site.namespace)).status.ready


async def test_a_rush_for_addresses_costs_few_writes(site: Site) -> None:
    await site.secret()
    await site.create(network_pool("rack", "10.40.0.0/22"), site.provider(network=ipam("rack", gateway="10.40.0.1")))
    every = 2.0
    async with site.butler(capacity_every=every):
        # Without the network's own address, the broadcast address and the gateway.
        await site.until(lambda item: _capacity(item) == (1021, 78), "all is free")
        before, clock = site.writes["providerconfigs"], asyncio.get_running_loop().time
        began = clock()
        for number in range(100):  # one after the other, so that there is always something new to count
            await site.client.create(ALLOCATIONS, _allocation(f"web-{number}"), site.namespace)
        await site.until(lambda item: _capacity(item) == (1021 - 500, 40), "what is held is not free")
        most = (clock() - began) / every + 2
        assert site.writes["providerconfigs"] - before <= most
        assert site.writes["networkpools"] >= 10  # each of which changed what there was to count


async def test_a_team_scope_is_shown_and_a_foreign_secret_refused(site: Site) -> None:
    await site.secret()
    async with site.butler():
        await site.create(
            site.provider(
                scope={"type": "team", "teamRef": {"name": "payments"}},
                credentialsRef={"name": "login", "namespace": site.namespace},
            )
        )
        await site.condition("Ready", "True", "Ready")
        rows = await asyncio.to_thread(site.kubectl.table, "get", "providerconfigs")
        assert rows[1][:3] == ["prism", "nutanix", "team"]
        unusable = site.provider("typo")
        unusable["spec"]["nutanix"]["clusterUUID"] = "prod"
        await site.create(unusable)
        said = await site.condition("Ready", "False", "ValidationFailed", "typo")
        assert said == "spec.nutanix.clusterUUID: 'prod' is no UUID: Prism shows it next to the name"


async def test_deletion_waits_for_the_clusters(site: Site) -> None:
    await site.secret()
    cluster = {
        "metadata": {"name": "web"},
        "spec": {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "prism", "namespace": site.namespace},
            "workers": {"replicas": 1, "machineTemplate": {"os": {"type": "flatcar"}}},
        },
    }
    async with site.butler():
        await site.create(site.provider())
        await site.client.create(CLUSTERS, cluster, site.namespace)
        await site.condition("Ready", "True", "Ready")
        await site.type("delete", "providerconfig", "prism", "--wait=false")
        said = await site.condition("Ready", "False", "Deleting")
        in_use = f"it is being deleted, and goes once no cluster uses it: TenantCluster {site.namespace}/web"
        assert said == in_use
        assert (await site.events("DeletionBlocked"))[0]["message"] == in_use
        await site.client.delete(CLUSTERS, "web", site.namespace)
        async with asyncio.timeout(PATIENCE):
            while await site.exists("prism"):  # noqa: ASYNC110 (the state of a server is polled)
                await asyncio.sleep(0.05)


def _pointing_at(secret: str) -> str:
    return json.dumps({"spec": {"credentialsRef": {"name": secret}}})


def _capacity(found: ProviderConfig) -> tuple[int | None, int | None] | None:
    capacity = found.status.capacity
    return (capacity.available_ips, capacity.estimated_tenants) if capacity else None


def _allocation(name: str, **pinned: str) -> Json:
    spec = {
        "poolRef": {"name": "rack"},
        "tenantClusterRef": {"name": name, "namespace": "elsewhere"},
        "type": "nodes",
        **({"pinnedRange": pinned} if pinned else {"count": 5}),
    }
    return {**_named("butler.butlerlabs.dev/v1alpha1", "IPAllocation", name), "spec": spec}


# Whose Secret, and for whom. No webhook is asked here.


async def test_a_secret_of_another_namespace_is_sent_nowhere_unless_it_says_so(site: Site) -> None:
    """Its owner decides; and no other user learns whether there is one at all."""
    vault = await asyncio.to_thread(site.kubectl.control_plane.fresh_namespace, "vault")
    values = {"username": "butler", "password": PASSWORD, "ca.pem": site.prism.ca.decode()}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    basic = {**_named("v1", "Secret", "login"), "type": "kubernetes.io/basic-auth", "data": data}
    await site.type("--namespace", vault, "create", "-f", "-", stdin=basic)
    async with site.butler():
        said = {}
        for name in ("login", "absent"):
            await site.create(site.provider(name, credentialsRef={"name": name, "namespace": vault}))
            said[name] = await site.condition("CredentialsValid", "False", "SecretNotAllowed", name)
        assert said["login"] == (
            f"Secret {vault}/login: it lies in another namespace and does not allow it: annotate it with"
            f" butler.butlerlabs.dev/provider-configs={site.namespace}/login, or copy it to namespace {site.namespace}"
        )
        assert said["absent"] == said["login"].replace("login", "absent")
        assert site.prism.asked == []
        allowed = f"butler.butlerlabs.dev/provider-configs=other/x,{site.namespace}/login"
        await site.type("--namespace", vault, "annotate", "secret", "login", allowed)
        await site.condition("Ready", "True", "Ready", "login")
        assert site.prism.asked


async def test_credentials_go_to_the_hosts_that_their_secret_names_and_no_others(site: Site) -> None:
    await site.secret()
    await site.type("annotate", "secret", "login", "butler.butlerlabs.dev/hosts=prism.example.com")
    async with site.butler():
        await site.create(site.provider())
        said = await site.condition("CredentialsValid", "False", "SecretNotAllowed")
        assert "its annotation butler.butlerlabs.dev/hosts does not name 127.0.0.1, where this ProviderConfig" in said
        assert site.prism.asked == []
        hosts = "butler.butlerlabs.dev/hosts=prism.example.com, 127.0.0.1"
        await site.type("annotate", "--overwrite", "secret", "login", hosts)
        await site.condition("Ready", "True", "Ready")


async def test_a_kubeconfig_is_for_the_server_that_it_names(site: Site) -> None:
    """Not for one that the author of a ProviderConfig chooses."""
    kubeconfig = base64.b64encode(given_kubeconfig("https://harvester.example.com")).decode()
    await site.create({**_named("v1", "Secret", "harvester"), "data": {"kubeconfig": kubeconfig}})
    block = {"namespace": "default", "networkName": "default/vms", "endpoint": site.prism.url}
    spec = {"provider": "harvester", "credentialsRef": {"name": "harvester"}, "harvester": block}
    async with site.butler():
        await site.create({**_named("butler.butlerlabs.dev/v1alpha1", "ProviderConfig", "harvester"), "spec": spec})
        said = await site.condition("CredentialsValid", "False", "SecretNotAllowed", "harvester")
        assert "its kubeconfig is for another server than spec.harvester.endpoint: leave the endpoint out" in said
        assert site.prism.asked == []
