"""A running tenant as rows: all that MetalLB may announce, and every node, each address once."""

from __future__ import annotations

import pytest

from butler.api.objects import Key
from butler.ipam.addresses import Family
from butler.reports.exchange.adoption import adopt
from butler.reports.tenant.address_use import announced_in, uses_in
from butler.rules.loadbalancer.service import Balancer
from butler.tenant.inventory import Inventory, NodeAddress, PoolEntry
from unit.reports.exchange_estate import addresses, shown

WEB = Key("t", "web")


def rows(used: Inventory) -> list[tuple[str, str, str]]:
    found = adopt(WEB, used).contents
    assert not found.bad
    return [(row.where, str(row.type), shown(row.addresses)) for row in found.rows]


def test_all_pools_and_all_nodes_become_rows() -> None:
    used = Inventory(
        (PoolEntry("extra", "10.40.0.32/30"), PoolEntry("default-pool", "10.40.0.20-10.40.0.21")),
        (NodeAddress("n1", "10.40.0.40"), NodeAddress("n2", "10.40.0.41")),
    )
    assert rows(used) == [
        ("IPAddressPool default-pool", "loadbalancer", "10.40.0.20-10.40.0.21"),
        ("IPAddressPool extra", "loadbalancer", "10.40.0.32-10.40.0.35"),
        ("Node n1", "nodes", "10.40.0.40"),
        ("Node n2", "nodes", "10.40.0.41"),
    ]


def test_what_is_said_twice_is_written_down_once() -> None:
    used = Inventory(
        (PoolEntry("extra", "10.40.0.20-10.40.0.25"), PoolEntry("default-pool", "10.40.0.22-10.40.0.23")),
        (NodeAddress("n1", "10.40.0.40"), NodeAddress("n2", "10.40.0.40")),
    )
    assert rows(used) == [
        ("IPAddressPool default-pool", "loadbalancer", "10.40.0.22-10.40.0.23"),
        ("IPAddressPool extra", "loadbalancer", "10.40.0.20-10.40.0.21"),
        ("IPAddressPool extra", "loadbalancer", "10.40.0.24-10.40.0.25"),
        ("Node n1", "nodes", "10.40.0.40"),
    ]


def test_a_node_inside_what_metallb_announces_cannot_be_true() -> None:
    used = Inventory((PoolEntry("default-pool", "10.40.0.20-10.40.0.25"),), (NodeAddress("n1", "10.40.0.22"),))
    (bad,) = adopt(WEB, used).contents.bad
    assert bad.where == "Node n1"
    assert "is in IPAddressPool default-pool too, as loadbalancer of the same tenant" in bad.message


def test_ipv6_is_left_alone_and_said() -> None:
    used = Inventory((PoolEntry("default-pool", "fd00::/120"),), (NodeAddress("n1", "fd00::1"),))
    found = adopt(WEB, used)
    assert not found.contents.rows
    assert found.notes == ("2 IPv6 entries are left alone: pools hand out IPv4 only",)


def test_other_pools_and_a_missing_metallb_are_said() -> None:
    (note,) = adopt(WEB, Inventory((PoolEntry("extra", "10.40.0.20-10.40.0.20"),))).notes
    assert "IPAddressPool extra" in note
    assert adopt(WEB, Inventory(has_metallb=False)).notes == ("t/web has no MetalLB: only its nodes are looked at",)


@pytest.mark.parametrize("text", ["banana", "10.40.0.0/33", "10.40.0.9-10.40.0.1", "10.40.0.1", "10.0.0.0/8", "a-b-c"])
def test_an_entry_that_makes_no_sense_is_told(text: str) -> None:
    (bad,) = adopt(WEB, Inventory((PoolEntry("p", text),))).contents.bad
    assert bad.message.startswith(f"{text}: ")


def test_uses_are_found_by_address_whichever_tenant_has_them() -> None:
    used = Inventory(
        (PoolEntry("default-pool", "10.40.0.20-10.40.0.29"), PoolEntry("p", "rubbish")),
        (NodeAddress("n1", "10.40.0.21"), NodeAddress("n2", "10.40.0.99"), NodeAddress("n3", "fd00::1")),
        (Balancer("shop", "web", "u", ("10.40.0.20", "fd00::2")), Balancer("shop", "none", "v")),
    )
    found = uses_in(addresses("10.40.0.20-10.40.0.30"), Family.V4, {WEB: used})
    assert [str(use) for use in found] == ["Service shop/web (10.40.0.20)", "Node n1 (10.40.0.21)"]
    (entry,) = announced_in(addresses("10.40.0.29"), Family.V4, {WEB: used})
    assert (entry.pool, entry.entry) == ("default-pool", "10.40.0.20-10.40.0.29")
