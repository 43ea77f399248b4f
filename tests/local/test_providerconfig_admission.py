"""ProviderConfigs at the door, seen with the real kubectl: by the schema and by Butler's webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from butler.kube import config
from butler.kube.client import Client
from local.terminal import network_pool
from local.test_admission import Terminal, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from local.terminal import Kubectl

Json = dict[str, Any]
UUID = "7a2c8a40-5f9e-4d0c-9b0a-3f1d7c6e5b21"


@pytest.fixture
async def terminal(kubectl: Kubectl) -> AsyncIterator[Terminal]:
    found = Terminal(kubectl)
    async with (
        Client(config.load(kubectl.control_plane.kubeconfig)) as client,
        serving(client, found, home_namespace=kubectl.namespace),
    ):
        yield found


def provider(name: str = "prism", **spec: Any) -> Json:
    block = {"endpoint": "https://prism.example.com", "clusterUUID": UUID, "subnetUUID": UUID}
    wanted = {"provider": "nutanix", "credentialsRef": {"name": "login"}, "nutanix": block, **spec}
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": name},
        "spec": wanted,
    }


def ipam(*pools: str, **network: Any) -> Json:
    return {"mode": "ipam", "poolRefs": [{"name": pool} for pool in pools], "gateway": "10.40.0.1", **network}


def cluster(name: str, provider: str, namespace: str) -> Json:
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "TenantCluster",
        "metadata": {"name": name},
        "spec": {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": provider, "namespace": namespace},
            "workers": {"replicas": 1, "machineTemplate": {"os": {"type": "flatcar"}}},
        },
    }


async def test_what_cannot_work_is_refused_with_the_field(terminal: Terminal) -> None:
    bad = provider()
    bad["spec"]["nutanix"]["clusterUUID"] = "prod"
    said = await terminal.refused("create", "-f", "-", stdin=bad)
    assert "spec.nutanix.clusterUUID: Invalid value: \"prod\": 'prod' is no UUID" in said
    await terminal.create(network_pool("rack", "10.40.0.0/24", reserved=[{"cidr": "10.40.0.0/28"}]))
    said = await terminal.refused("create", "-f", "-", stdin=provider(network=ipam("rack", gateway="10.60.0.1")))
    assert "10.60.0.1 lies in none of the pools for nodes (rack 10.40.0.0/24)" in said
    team = provider(scope={"type": "team"})
    assert "scope team needs the team that may use this provider" in await terminal.refused(
        "create", "-f", "-", stdin=team
    )
    clouds = provider(provider="aws", network=ipam("rack"), aws={"region": "eu-central-1"})
    del clouds["spec"]["nutanix"]
    assert "provider aws manages addresses itself: use mode cloud" in await terminal.refused(
        "create", "-f", "-", stdin=clouds
    )
    assert "provider nutanix needs its settings here" in await terminal.refused(
        "create", "-f", "-", stdin={**provider(), "spec": {"provider": "nutanix", "credentialsRef": {"name": "x"}}}
    )


async def test_files_may_be_applied_in_any_order(terminal: Terminal) -> None:
    _, warnings = await terminal.run("create", "-f", "-", stdin=provider(network=ipam("rack")))
    assert f"there is no NetworkPool rack in namespace {terminal.namespace} yet" in warnings
    await terminal.create(network_pool("rack", "10.40.0.0/24", reserved=[{"cidr": "10.40.0.0/28"}]))
    _, warnings = await terminal.run("apply", "-f", "-", stdin=provider(network=ipam("rack", dnsServers=["10.40.0.2"])))
    assert "NetworkPool" not in warnings


async def test_a_provider_in_use_cannot_be_deleted(terminal: Terminal) -> None:
    await terminal.create(provider(), cluster("web", "prism", terminal.namespace))
    said = await terminal.refused("delete", "providerconfig", "prism")
    used_by = f"TenantCluster {terminal.namespace}/web"
    assert f"ProviderConfig prism is used by {used_by}: delete these clusters first" in said
    await terminal.run("delete", "tenantcluster", "web")
    await terminal.run("delete", "providerconfig", "prism")


async def test_an_edit_that_clusters_will_feel_is_warned_about(terminal: Terminal) -> None:
    await terminal.create(
        network_pool("rack", "10.40.0.0/24", reserved=[{"cidr": "10.40.0.0/28"}]),
        network_pool("spare", "10.50.0.0/24"),
        provider(network=ipam("rack", "spare")),
        cluster("web", "prism", terminal.namespace),
    )
    _, warnings = await terminal.run("apply", "-f", "-", stdin=provider(network=ipam("rack", "spare"), limits={}))
    assert "no longer" not in warnings
    narrow = provider(network=ipam("rack"), scope={"type": "team", "teamRef": {"name": "payments"}})
    _, warnings = await terminal.run("replace", "-f", "-", stdin=narrow)
    assert f"TenantCluster {terminal.namespace}/web will no longer have access" in warnings
