"""Where each provider's objects carry addresses, and which one a machine gets."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from butler.local.world.addresses import DHCP, choose, offered


@pytest.mark.parametrize(
    ("kind", "spec", "found"),
    [
        ("ProxmoxCluster", {"ipv4Config": {"addresses": ["10.0.0.5"]}}, ("10.0.0.5",)),
        (
            "ProxmoxCluster",
            {"ipv4Config": {"addresses": ["10.0.0.254-10.0.1.1", "10.0.2.0/30"]}},
            ("10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1", "10.0.2.1", "10.0.2.2"),
        ),
        ("ProxmoxCluster", {"ipv6Config": {"addresses": ["fd00::1-fd00::2"]}}, ("fd00::1", "fd00::2")),
        (
            "HarvesterCluster",
            {"vmNetworkConfig": {"ipPool": {"rangeStart": "10.0.0.5", "rangeEnd": "10.0.0.6"}}},
            ("10.0.0.5", "10.0.0.6"),
        ),
        ("ProxmoxCluster", {}, None),
        ("HarvesterCluster", {"vmNetworkConfig": {}}, None),
        ("NutanixCluster", {}, None),
        ("AWSCluster", {"region": "eu-1"}, None),
    ],
)
def test_what_a_provider_offers(kind: str, spec: dict[str, Any], found: tuple[str, ...] | None) -> None:
    assert offered({"kind": kind, "spec": spec}, {}) == found


def test_a_machine_gets_the_first_address_that_is_free() -> None:
    offer = ("10.0.0.5", "10.0.0.6")
    assert choose(offer, set().__contains__, "web-1") == "10.0.0.5"
    assert choose(offer, {"10.0.0.5"}.__contains__, "web-1") == "10.0.0.6"


def test_a_machine_gets_none_when_all_are_held() -> None:
    offer = ("10.0.0.5", "10.0.0.6")
    assert choose(offer, set(offer).__contains__, "web-1") is None


def test_dhcp_never_gives_an_address_twice() -> None:
    held: set[str] = set()
    for number in range(500):
        address = choose(None, held.__contains__, f"web-{number % 7}")
        assert address is not None
        assert address not in held
        assert ipaddress.ip_address(address) in DHCP
        held.add(address)
