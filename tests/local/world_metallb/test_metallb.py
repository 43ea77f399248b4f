"""Services get, keep, lose and change addresses: stories that the stand-in and the real MetalLB both tell."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from butler.kube.errors import Invalid
from butler.kube.resource import NAMESPACES, SERVICES
from local.world_metallb.estate import ADDONS as _ADDONS
from local.world_metallb.estate import until

if TYPE_CHECKING:
    from local.world_metallb.estate import Estate, Tenant
    from local.world_metallb.served import Served

FROM_POOL = "metallb.io/ip-allocated-from-pool"


async def test_services_get_the_first_free_addresses_and_show_their_pool(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.11")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    await tenant.add_service("b")
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
    await tenant.add_service("c")
    await told(tenant, "c", "Warning", "AllocationFailed", 'Failed to allocate IP for "default/c": no available IPs')
    assert (await tenant.service("a"))["metadata"]["annotations"][FROM_POOL] == "default-pool"
    await told(tenant, "a", "Normal", "IPAllocated", 'Assigned IP ["10.0.0.10"]')
    await tenant.delete_service("a")
    await tenant.until_addresses(b="10.0.0.11", c="10.0.0.10")


async def test_a_service_whose_address_leaves_the_pool_is_moved_and_told(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.11")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    await tenant.add_service("b")
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
    await tenant.set_pool("10.0.0.11-10.0.0.12")
    await tenant.until_addresses(a="10.0.0.12", b="10.0.0.11")
    text = 'current IP for "default/a" not allowed by config, will attempt for new IP assignment: '
    await told(tenant, "a", "Normal", "ClearAssignment", text + '["10.0.0.10"] is not allowed in config')
    await tenant.delete_pool()
    await tenant.until_addresses(a=None, b=None)
    assert FROM_POOL not in (await tenant.service("a"))["metadata"].get("annotations", {})


async def test_pools_that_make_no_sense_change_nothing_until_they_are_put_right(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10/31")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    await tenant.set_pool("10.0.0.11/32", name="overlaps")
    await tenant.set_pool("10.0.0.11-10.0.0.9", name="reversed")
    await tenant.add_service("b")
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
    await tenant.set_pool("10.0.0.20/31")  # not taken over either, while the others are there
    await tenant.add_service("c")
    await told(tenant, "c", "Warning", "AllocationFailed", "no available IPs")
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11", c=None)
    await tenant.delete_service("b")
    await tenant.until_addresses(a="10.0.0.10", c="10.0.0.11")
    await tenant.delete_pool("reversed")
    await tenant.delete_service("c")
    await tenant.delete_pool("overlaps")
    await tenant.until_addresses(a="10.0.0.20")


async def test_requests_are_met_or_refused_with_the_reason(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    await tenant.set_pool("10.1.0.10-10.1.0.19", name="special", autoAssign=False)
    await tenant.add_service("by-spec", loadBalancerIP="10.0.0.15")
    await tenant.until_addresses(by_spec="10.0.0.15")
    await tenant.add_service("by-annotation", annotations={"metallb.io/loadBalancerIPs": "10.1.0.17"})
    await tenant.add_service("by-pool", annotations={"metallb.universe.tf/address-pool": "special"})
    await tenant.add_service("taken", loadBalancerIP="10.0.0.15")
    await tenant.add_service("outside", loadBalancerIP="10.9.9.9")
    await tenant.add_service("other-class", loadBalancerClass="example.com/other")
    others = {"by_annotation": "10.1.0.17", "by_pool": "10.1.0.10", "outside": None, "other_class": None}
    await tenant.until_addresses(by_spec="10.0.0.15", taken=None, **others)
    reason = 'Failed to allocate IP for "default/outside": ["10.9.9.9"] is not allowed in config'
    await told(tenant, "outside", "Warning", "AllocationFailed", reason)
    await told(tenant, "taken", "Warning", "AllocationFailed", "address also in use by default/by-spec")
    await told(tenant, "by-pool", "Warning", "deprecatedAnnotation", "metallb.universe.tf/address-pool")
    # A Service that moves frees an address, but MetalLB does not retry the Services that wait for it. It does when a
    # Service stops being served.
    await tenant.change_service("by-spec", {"spec": {"loadBalancerIP": "10.0.0.16"}})
    await tenant.until_addresses(by_spec="10.0.0.16", taken=None, **others)
    await tenant.change_service("by-annotation", {"spec": {"type": "ClusterIP"}})
    del others["by_annotation"]
    await tenant.until_addresses(by_spec="10.0.0.16", taken="10.0.0.15", **others)
    await until(lambda: _no_annotations(tenant.service("by-annotation")))
    await tenant.delete_service("by-annotation")


async def test_a_pool_that_does_not_give_by_itself_takes_nothing_away_and_gives_when_asked(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.12")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    before = await tenant.service("a")
    await tenant.set_pool("10.0.0.10-10.0.0.12", autoAssign=False)
    refused_one = await refused(tenant, "b")
    await tenant.add_service("by-address", loadBalancerIP="10.0.0.12")
    await tenant.add_service("by-pool", annotations={"metallb.io/address-pool": "default-pool"})
    await tenant.until_addresses(a="10.0.0.10", by_address="10.0.0.12", by_pool="10.0.0.11", **{refused_one: None})
    await tenant.add_service("full", annotations={"metallb.io/address-pool": "default-pool"})
    await told(tenant, "full", "Warning", "AllocationFailed", '["<nil>"] is not allowed in config')
    await served.restart()
    await tenant.add_service("late")
    await told(tenant, "late", "Warning", "AllocationFailed", "no available IPs")
    assert await tenant.service("a") == before


async def test_whom_a_pool_is_for_and_what_it_avoids_also_decides_who_keeps_an_address(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.0-10.0.0.1")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.0")
    await tenant.set_pool("10.0.0.0-10.0.0.1", avoidBuggyIPs=True)
    await tenant.until_addresses(a="10.0.0.1")
    await tenant.set_pool("10.0.0.0-10.0.0.1", serviceAllocation={"namespaces": ["elsewhere"]})
    await tenant.until_addresses(a=None)
    await told(tenant, "a", "Normal", "ClearAssignment", "pool default-pool not compatible for ip assignment")
    await tenant.set_pool("10.0.0.0-10.0.0.1", serviceAllocation={"priority": 5})
    await tenant.until_addresses(a="10.0.0.0")


async def test_services_share_an_address_by_key_as_long_as_their_ports_differ(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    shared = {"metallb.io/allow-shared-ip": "together"}
    await tenant.add_service("web", annotations=shared, ports=(80,))
    await tenant.until_addresses(web="10.0.0.10")
    await tenant.add_service("tls", annotations=shared, ports=(443,))
    await tenant.until_addresses(web="10.0.0.10", tls="10.0.0.10")
    await tenant.add_service("other", annotations=shared, ports=(80,))
    await tenant.until_addresses(web="10.0.0.10", tls="10.0.0.10", other="10.0.0.11")
    # The one that changes moves, not the one that was there.
    await tenant.change_service("tls", {"spec": {"ports": [{"name": "p80", "port": 80}]}})
    await tenant.until_addresses(web="10.0.0.10", tls="10.0.0.12", other="10.0.0.11")


async def test_pools_may_be_for_namespaces_by_name_and_by_label(served: Served) -> None:
    tenant = served.tenant
    named = served.control_plane.fresh_namespace("named")
    labelled = served.control_plane.fresh_namespace("labelled")
    await tenant.set_pool("10.0.0.0/24", avoidBuggyIPs=True)
    await tenant.set_pool("10.1.0.0/24", name="named", serviceAllocation={"namespaces": [named]})
    selector = {"namespaceSelectors": [{"matchLabels": {"tier": "gold"}}]}
    await tenant.set_pool("10.2.0.0/24", name="labelled", serviceAllocation=selector)
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.1")
    await tenant.add_service("b", namespace=named)
    await tenant.add_service("c", namespace=labelled)
    await tenant.until_addresses(a="10.0.0.1", b="10.1.0.0", c="10.0.0.2")
    await tenant.client.patch(NAMESPACES, labelled, {"metadata": {"labels": {"tier": "gold"}}})
    await until(lambda: _given_gold(tenant, labelled))


async def _given_gold(tenant: Tenant, namespace: str) -> bool:
    """Whether a new Service there is given an address of the pool for such namespaces; the change takes a moment."""
    await tenant.add_service("d", namespace=namespace)
    await until(lambda: _has_address(tenant, "d"))
    given = (await tenant.addresses())["d"]
    await tenant.delete_service("d", namespace)
    return given == ["10.2.0.0"]


async def _has_address(tenant: Tenant, name: str) -> bool:
    return bool((await tenant.addresses())[name])


async def test_a_service_that_is_being_deleted_is_served_until_it_is_gone(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    await tenant.change_service("a", {"metadata": {"finalizers": ["example.com/hold"]}})
    await tenant.delete_service("a")
    nothing = {"status": {"loadBalancer": {"ingress": None}}}
    await tenant.client.patch(SERVICES, "a", nothing, "default", subresource="status")
    await tenant.until_addresses(a="10.0.0.10")
    await tenant.change_service("a", {"metadata": {"finalizers": None}})
    await tenant.add_service("b")
    await until(lambda: _has_address(tenant, "b"))


async def test_a_hostname_that_another_program_wrote_is_replaced_by_an_address(served: Served) -> None:
    tenant = served.tenant
    await tenant.add_service("a", externalIPs=["192.0.2.9"])
    host = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}}}
    await tenant.client.patch(SERVICES, "a", host, "default", subresource="status")
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    await until(lambda: _shows_only(tenant, "a", "10.0.0.10"))


async def _shows_only(tenant: Tenant, name: str, address: str) -> bool:
    ingress = (await tenant.service(name))["status"]["loadBalancer"].get("ingress") or []
    return [(entry.get("ip"), entry.get("hostname")) for entry in ingress] == [(address, None)]


async def test_a_restart_moves_no_service_and_writes_nothing(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.12")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    await tenant.add_service("b")
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
    await tenant.add_service("c")
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11", c="10.0.0.12")
    await tenant.delete_service("a")
    await tenant.until_addresses(b="10.0.0.11", c="10.0.0.12")
    await tenant.add_service("zz")
    await tenant.until_addresses(b="10.0.0.11", c="10.0.0.12", zz="10.0.0.10")
    before = {name: await tenant.service(name) for name in ("b", "c", "zz")}
    await served.metallb.stop()
    await tenant.add_service("early")  # waits while no controller runs, and comes first by name
    await served.metallb.start()
    await told(tenant, "early", "Warning", "AllocationFailed", "")
    await asyncio.sleep(0.2)
    assert {name: await tenant.service(name) for name in ("b", "c", "zz")} == before


async def test_the_stand_in_refuses_a_pool_without_addresses_as_the_webhook_does(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        with pytest.raises(Invalid):
            await tenant.set_pool()


async def test_a_tenant_that_is_made_anew_under_its_name_starts_from_nothing(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10/32")
        await tenant.add_service("a")
        await tenant.until_addresses(a="10.0.0.10")
        await estate.remove_control_plane(tenant.key)
        again = await estate.add_control_plane(tenant.key)
        await again.add_node("node-0")
        # The addon is not installed anew by itself, so its definitions and namespace come by hand.
        await estate.client.patch(_ADDONS, "payments-metallb", {"spec": {"version": "0.14.8"}}, "team-a")
        await estate.until_phase("payments-metallb", "Installed")
        await again.set_pool("10.0.0.10/32")
        await again.add_service("b")
        await again.until_addresses(b="10.0.0.10")


async def refused(tenant: Tenant, name: str) -> str:
    """Add a Service that gets nothing. One that comes before MetalLB has heard of its pool's change gets an address."""
    while True:
        await tenant.add_service(name)

        async def answered(name: str = name) -> list[str]:
            return [reason for _, reason, _ in await tenant.events(name)]

        if "AllocationFailed" in await until(answered):
            await told(tenant, name, "Warning", "AllocationFailed", "no available IPs")
            return name
        await tenant.delete_service(name)
        name += "b"


async def told(tenant: Tenant, service: str, kind: str, reason: str, text: str) -> None:
    """Wait for an event about a Service."""

    async def seen() -> bool:
        found[:] = await tenant.events(service)
        return any((pair[0], pair[1]) == (kind, reason) and text in pair[2] for pair in found)

    found: list[tuple[str, str, str]] = []
    try:
        await until(seen)
    except AssertionError:
        raise AssertionError(f"{service} was never told {reason} {text!r}, but {found}") from None


async def _no_annotations(service: object) -> bool:
    found = await service  # type: ignore[misc]
    return FROM_POOL not in found["metadata"].get("annotations", {})
