"""Installing addons on hand-made tenants: what appears there, in which order, what fails, and what goes again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from butler.api.conditions import condition_holds, find_condition
from butler.api.labels import ConditionType, Finalizer
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, NAMESPACES, NODES, SERVICES
from butler.local.world.addons import DAEMON_SETS, FAIL
from butler.tenant.addons import platform_version
from local.world_metallb.estate import ADDONS, CLUSTERS, TEAM, ensure_namespace, until

if TYPE_CHECKING:
    from local.world_metallb.estate import Estate, Tenant


async def ready(tenant: Tenant, name: str, namespace: str) -> tuple[int, int]:
    found = await tenant.client.get(DEPLOYMENTS, name, namespace)
    return found["status"].get("readyReplicas", 0), found["spec"]["replicas"]


async def daemons(tenant: Tenant, name: str, namespace: str) -> int:
    found = await tenant.client.get(DAEMON_SETS, name, namespace)
    return int(found["status"].get("numberReady", 0))


async def test_the_default_set_is_installed_with_cilium_first_and_traefik_gets_an_address(estate: Estate) -> None:
    async with estate.world(addon_seconds=0.1):
        tenant = await estate.add_tenant(nodes=2)
        names = [await estate.add_addon(text) for text in ("traefik", "metallb", "cert-manager", "longhorn", "cilium")]
        for name in names:
            addon = await estate.until_phase(name, "Installed")
            assert condition_holds(addon.status.conditions, ConditionType.INSTALLED)
            assert addon.status.installed_version == platform_version(addon.spec.addon)
            assert addon.metadata.finalizers == (Finalizer.TENANT_ADDON,)
        cilium = (await estate.addon("payments-cilium")).status.last_transition_time
        assert cilium is not None
        for name in names:
            when = (await estate.addon(name)).status.last_transition_time
            assert when is not None
            assert cilium <= when
        assert await daemons(tenant, "cilium", "kube-system") == 2
        assert await ready(tenant, "longhorn-ui", "longhorn-system") == (2, 2)
        assert await ready(tenant, "metallb-controller", "metallb-system") == (1, 1)
        assert await tenant.exists(CUSTOM_RESOURCE_DEFINITIONS, "certificates.cert-manager.io")
        await tenant.set_pool("10.92.90.49-10.92.90.50")
        await tenant.until_addresses(traefik="10.92.90.49")
        service = await tenant.service("traefik", "traefik")
        assert [port["port"] for port in service["spec"]["ports"]] == [80, 443]
        assert service["metadata"]["labels"]["butler.butlerlabs.dev/platform-lb"] == "true"


async def test_an_addon_waits_and_says_for_what(estate: Estate) -> None:
    async with estate.world():
        name = await estate.add_addon("cert-manager")
        addon = await estate.until_phase(name, "Pending")
        assert addon.status.message == "There is no TenantCluster payments in namespace team-a."
        tenant = await estate.add_tenant(nodes=0)
        await _until_message(estate, name, "Cluster payments has no nodes yet.")
        await estate.add_addon("cilium", annotations={FAIL: "no kernel"})
        await _until_message(estate, name, "The pod network of cluster payments (addon cilium) is not installed yet.")
        await tenant.add_node("node-0")
        # No addon waits for one that was deleted.
        await estate.client.delete(ADDONS, "payments-cilium", TEAM)
        await estate.until_phase(name, "Installed")


async def test_daemon_sets_follow_the_nodes(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.add_tenant(nodes=1)
        await estate.until_phase(await estate.add_addon("cilium"), "Installed")
        await tenant.add_node("node-9")
        await until(lambda: _is(daemons(tenant, "cilium", "kube-system"), 2))
        await tenant.client.delete(NODES, "node-0")
        await until(lambda: _is(daemons(tenant, "cilium", "kube-system"), 1))


async def test_a_failure_is_shown_and_ends_when_its_cause_goes(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.add_tenant()
        name = await estate.add_addon("traefik", annotations={FAIL: "timed out waiting for the condition"})
        addon = await estate.until_phase(name, "Failed")
        assert addon.status.message == "timed out waiting for the condition"
        condition = find_condition(addon.status.conditions, ConditionType.INSTALLED)
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "Failed")
        assert not await tenant.exists(NAMESPACES, "traefik")
        await estate.client.patch(ADDONS, name, {"metadata": {"annotations": {FAIL: None}}}, TEAM)
        await estate.until_phase(name, "Installed")


async def test_a_cluster_that_refuses_an_object_makes_the_addon_fail_with_its_words(estate: Estate) -> None:
    async with estate.world():
        await estate.add_tenant()
        values = {"service": {"type": "Carousel"}}
        name = await estate.add_addon("traefik", values=values)
        addon = await estate.until_phase(name, "Failed")
        assert "Carousel" in (addon.status.message or "")
        await estate.client.patch(ADDONS, name, {"spec": {"values": {"service": {"type": "NodePort"}}}}, TEAM)
        await estate.until_phase(name, "Installed")


async def test_what_a_failed_installation_left_goes_with_the_addon(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.add_tenant()
        name = await estate.add_addon("traefik", values={"service": {"type": "Carousel"}})
        await estate.until_phase(name, "Failed")
        assert await tenant.exists(DEPLOYMENTS, "traefik", "traefik")
        await estate.client.delete(ADDONS, name, TEAM)
        await estate.until_gone(name)
        assert not await tenant.exists(DEPLOYMENTS, "traefik", "traefik")


async def test_a_new_version_or_new_values_are_an_upgrade(estate: Estate) -> None:
    async with estate.world(addon_seconds=1.0):
        tenant = await estate.add_tenant()
        name = await estate.add_addon("traefik", version="32.1.1")
        assert (await estate.until_phase(name, "Installed")).status.installed_version == "32.1.1"
        await estate.client.patch(ADDONS, name, {"spec": {"version": "34.3.0"}}, TEAM)
        assert (await estate.until_phase(name, "Upgrading")).status.installed_version == "32.1.1"
        assert (await estate.until_phase(name, "Installed")).status.installed_version == "34.3.0"
        deployment = await tenant.client.get(DEPLOYMENTS, "traefik", "traefik")
        assert deployment["metadata"]["labels"]["helm.sh/chart"] == "traefik-34.3.0"
        values = {"service": {"enabled": False}, "deployment": {"replicas": 3}}
        await estate.client.patch(ADDONS, name, {"spec": {"values": values}}, TEAM)
        await estate.until_phase(name, "Upgrading")
        await estate.until_phase(name, "Installed")
        assert await ready(tenant, "traefik", "traefik") == (3, 3)
        assert not await tenant.exists(SERVICES, "traefik", "traefik")


async def test_deleting_an_addon_takes_its_objects_away_but_not_the_namespace(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10/32")
        await tenant.add_service("a")
        await tenant.until_addresses(a="10.0.0.10")
        await estate.client.delete(ADDONS, "payments-metallb", TEAM)
        await estate.until_gone("payments-metallb")
        assert not await tenant.exists(DEPLOYMENTS, "metallb-controller", "metallb-system")
        assert await tenant.exists(NAMESPACES, "metallb-system")
        # No controller is left that could take the address away.
        await tenant.add_service("b")
        await asyncio.sleep(0.3)
        assert await tenant.addresses() == {"a": ["10.0.0.10"], "b": []}


async def test_an_addon_of_a_tenant_that_is_gone_just_goes(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        unborn = await estate.add_addon("traefik", "unknown")
        await estate.until_phase(unborn, "Pending")
        await estate.remove_control_plane(tenant.key)
        await estate.client.delete(CLUSTERS, "payments", TEAM)
        for name in ("payments-metallb", unborn):
            await estate.client.delete(ADDONS, name, TEAM)
            await estate.until_gone(name)


async def test_an_unknown_addon_gets_a_namespace_and_a_deployment(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.add_tenant()
        name = await estate.add_addon("podinfo", version="6.7.1", values={"replicaCount": 2})
        await estate.until_phase(name, "Installed")
        assert await ready(tenant, "podinfo", "podinfo") == (2, 2)


async def test_what_a_stop_left_half_done_is_finished_by_the_next_start(estate: Estate) -> None:
    async with estate.world(addon_seconds=600.0):
        tenant = await estate.add_tenant()
        name = await estate.add_addon("traefik")
        await estate.until_phase(name, "Installing")
    # Helm may have got so far, or a user may have created it first.
    await ensure_namespace(tenant.client, "traefik")
    async with estate.world():
        await estate.until_phase(name, "Installed")
        assert await ready(tenant, "traefik", "traefik") == (1, 1)
    await estate.client.delete(ADDONS, name, TEAM)
    async with estate.world():
        await estate.until_gone(name)
        assert not await tenant.exists(DEPLOYMENTS, "traefik", "traefik")


async def test_at_rest_nothing_is_written_and_after_a_restart_only_that_pools_were_read(
    estate: Estate,
) -> None:
    async with estate.world():
        tenant = await estate.add_tenant()
        for addon in ("cilium", "metallb", "traefik"):
            await estate.until_phase(await estate.add_addon(addon), "Installed")
        await tenant.set_pool("10.0.0.10/32")
        await tenant.until_addresses(traefik="10.0.0.10")
        await asyncio.sleep(0.3)  # events of the last step
        store = estate.plane._store
        before = store.revision
        await asyncio.sleep(1.0)
        assert store.revision == before
    async with estate.world() as operator:
        await until(lambda: _is(_ready(operator), True))
        await asyncio.sleep(1.0)
        assert store.revision == before + 1
        assert await tenant.refusal() == ""


async def _until_message(estate: Estate, name: str, message: str) -> None:
    async def said() -> bool:
        return (await estate.addon(name)).status.message == message

    await until(said, message)


async def _is(asked: object, wanted: object) -> bool:
    return bool(await asked == wanted)  # type: ignore[misc]


async def _ready(operator: object) -> bool:
    return not operator.why_unready()  # type: ignore[attr-defined]
