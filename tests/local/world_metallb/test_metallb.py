"""MetalLB's stand-in on tenants: Services get, keep, lose and change addresses as MetalLB's controller would do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butler.kube.errors import Invalid
from butler.kube.resource import NAMESPACES
from local.world_metallb.estate import ADDONS as _ADDONS
from local.world_metallb.estate import ensure_namespace, until

if TYPE_CHECKING:
    from local.world_metallb.estate import Estate


async def test_services_get_the_first_free_addresses_and_show_their_pool(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10-10.0.0.11")
        await tenant.add_service("a")
        await tenant.until_addresses(a="10.0.0.10")
        await tenant.add_service("b")
        await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
        await tenant.add_service("c")
        failed = 'Failed to allocate IP for "default/c": no available IPs'
        await until(lambda: _told(tenant.events("c"), ("Warning", "AllocationFailed", failed)))
        service = await tenant.service("a")
        assert service["metadata"]["annotations"]["metallb.io/ip-allocated-from-pool"] == "default-pool"
        assert ("Normal", "IPAllocated", 'Assigned IP ["10.0.0.10"]') in await tenant.events("a")
        await tenant.delete_service("a")
        await tenant.until_addresses(b="10.0.0.11", c="10.0.0.10")


async def test_a_service_whose_address_leaves_the_pool_is_moved_and_told(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10-10.0.0.11")
        await tenant.add_service("a")
        await tenant.add_service("b")
        await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
        await tenant.set_pool("10.0.0.11-10.0.0.12")
        await tenant.until_addresses(a="10.0.0.12", b="10.0.0.11")
        text = 'current IP for "default/a" not allowed by config, will attempt for new IP assignment: '
        told = ("Normal", "ClearAssignment", text + '["10.0.0.10"] is not allowed in config')
        await until(lambda: _told(tenant.events("a"), told))
        await tenant.delete_pool()
        await tenant.until_addresses(a=None, b=None)
        assert "annotations" not in (await tenant.service("a"))["metadata"]


async def test_a_pool_without_addresses_is_refused_and_one_that_makes_no_sense_changes_nothing(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10/31")
        await tenant.add_service("a")
        await tenant.until_addresses(a="10.0.0.10")
        with pytest.raises(Invalid):
            await tenant.set_pool()
        await tenant.set_pool("10.0.0.11/32", name="overlaps")
        await tenant.set_pool("10.0.0.11-10.0.0.9", name="reversed")
        await tenant.add_service("b")
        await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")


async def test_requests_are_met_or_refused_with_the_reason(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10-10.0.0.19")
        await tenant.set_pool("10.1.0.10-10.1.0.19", name="special", autoAssign=False)
        await tenant.add_service("by-spec", loadBalancerIP="10.0.0.15")
        await tenant.add_service("by-annotation", annotations={"metallb.io/loadBalancerIPs": "10.1.0.17"})
        await tenant.add_service("by-pool", annotations={"metallb.universe.tf/address-pool": "special"})
        await tenant.add_service("taken", loadBalancerIP="10.0.0.15")
        await tenant.add_service("outside", loadBalancerIP="10.9.9.9")
        await tenant.add_service("other-class", loadBalancerClass="example.com/other")
        await tenant.until_addresses(
            by_spec="10.0.0.15",
            by_annotation="10.1.0.17",
            by_pool="10.1.0.10",
            taken=None,
            outside=None,
            other_class=None,
        )
        reason = 'Failed to allocate IP for "default/outside": ["10.9.9.9"] is not allowed in config'
        await until(lambda: _told(tenant.events("outside"), ("Warning", "AllocationFailed", reason)))
        await tenant.change_service("by-spec", {"spec": {"loadBalancerIP": "10.0.0.16"}})
        await tenant.until_addresses(
            by_spec="10.0.0.16", by_annotation="10.1.0.17", by_pool="10.1.0.10", taken="10.0.0.15", outside=None,
            other_class=None,
        )  # fmt: skip
        await tenant.change_service("by-annotation", {"spec": {"type": "ClusterIP"}})
        await until(lambda: _no_annotations(tenant.service("by-annotation")))


async def test_services_share_an_address_by_key_as_long_as_their_ports_differ(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10-10.0.0.19")
        shared = {"metallb.io/allow-shared-ip": "together"}
        await tenant.add_service("web", annotations=shared, ports=(80,))
        await tenant.until_addresses(web="10.0.0.10")
        await tenant.add_service("tls", annotations=shared, ports=(443,))
        await tenant.add_service("other", annotations=shared, ports=(80,))
        await tenant.until_addresses(web="10.0.0.10", tls="10.0.0.10", other="10.0.0.11")
        # The one that changes moves, not the one that was there.
        await tenant.change_service("tls", {"spec": {"ports": [{"name": "p80", "port": 80}]}})
        await tenant.until_addresses(web="10.0.0.10", tls="10.0.0.12", other="10.0.0.11")


async def test_pools_may_be_for_namespaces_by_name_and_by_label(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await ensure_namespace(tenant.client, "named")
        await ensure_namespace(tenant.client, "labelled")
        await tenant.set_pool("10.0.0.0/24", avoidBuggyIPs=True)
        await tenant.set_pool("10.1.0.0/24", name="named", allocateTo={"namespaces": ["named"]})
        selector = {"namespaceSelectors": [{"matchLabels": {"tier": "gold"}}]}
        await tenant.set_pool("10.2.0.0/24", name="labelled", allocateTo=selector)
        await tenant.add_service("a")
        await tenant.add_service("b", namespace="named")
        await tenant.add_service("c", namespace="labelled")
        await tenant.until_addresses(a="10.0.0.1", b="10.1.0.0", c="10.0.0.2")
        await tenant.client.patch(NAMESPACES, "labelled", {"metadata": {"labels": {"tier": "gold"}}})
        await tenant.add_service("d", namespace="labelled")
        await tenant.until_addresses(a="10.0.0.1", b="10.1.0.0", c="10.0.0.2", d="10.2.0.0")


async def test_a_restart_moves_nobody_and_writes_nothing(estate: Estate) -> None:
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10-10.0.0.12")
        for name in ("a", "b", "c"):
            await tenant.add_service(name)
        await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11", c="10.0.0.12")
        await tenant.delete_service("a")
        await tenant.add_service("zz")
        await tenant.until_addresses(b="10.0.0.11", c="10.0.0.12", zz="10.0.0.10")
    await tenant.add_service("early")  # waits while nobody is there, and comes first by name
    before = {name: await tenant.service(name) for name in ("b", "c", "zz")}
    async with estate.world():
        await until(lambda: _told(tenant.events("early"), ("Warning", "AllocationFailed", "")))
        assert {name: await tenant.service(name) for name in ("b", "c", "zz")} == before


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


async def _told(events: object, wanted: tuple[str, str, str]) -> bool:
    return any(
        (kind, reason) == wanted[:2] and wanted[2] in message
        for kind, reason, message in await events  # type: ignore[misc]
    )


async def _no_annotations(service: object) -> bool:
    found = await service  # type: ignore[misc]
    return "metallb.io/ip-allocated-from-pool" not in found["metadata"].get("annotations", {})
