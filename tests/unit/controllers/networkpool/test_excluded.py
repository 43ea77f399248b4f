"""Gateways and DNS servers: which ProviderConfigs exclude which addresses of a pool, and what follows from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.api.codec import from_json
from butler.api.networkpool import ExcludedAddress, NetworkPool, NetworkPoolStatus
from butler.api.providerconfig import ProviderConfig
from butler.ipam.addresses import Range, parse_address
from butler.ipam.layout import InvalidPool, pool_layout, read_layout
from butler.rules.pool.excluded_addresses import excluded_addresses, pools_named_by
from unit.controllers.networkpool.values import allocation, grants, planned, pool, reasons

POOL = pool(cidr="10.0.0.0/28")


def config(name: str = "lab", mode: str = "ipam", **network: Any) -> ProviderConfig:
    spec = {"provider": "local", "network": {"mode": mode, "poolRefs": [{"name": "vlan40"}], **network}}
    return from_json(ProviderConfig, {"metadata": {"name": name, "namespace": "butler-system"}, "spec": spec})


def told(*configs: ProviderConfig, of: NetworkPool = POOL) -> dict[str, str]:
    return {entry.address: entry.reason for entry in excluded_addresses(of, configs)}


def excluding(*addresses: str, of: NetworkPool = POOL) -> NetworkPool:
    listed = tuple(ExcludedAddress(address=address, reason="gateway of ProviderConfig lab") for address in addresses)
    return msgspec.structs.replace(of, status=NetworkPoolStatus(excluded_addresses=listed))


def test_the_gateway_the_pools_own_gateway_and_all_dns_servers_count() -> None:
    lab = config(
        gateway="10.0.0.1", dnsServers=["10.0.0.2", "192.0.2.53"], poolRefs=[{"name": "vlan40", "gateway": "10.0.0.14"}]
    )
    assert told(lab) == {
        "10.0.0.1": "gateway of ProviderConfig lab",
        "10.0.0.2": "DNS server of ProviderConfig lab",
        "10.0.0.14": "gateway of ProviderConfig lab",
    }


def test_one_address_of_several_providers_is_told_once() -> None:
    several = [config(name, gateway="10.0.0.1") for name in ("c", "a", "b")]
    assert told(*several) == {"10.0.0.1": "gateway of ProviderConfig a and gateway of ProviderConfig b and 1 more"}


def test_only_providers_in_ipam_mode_name_pools() -> None:
    assert pools_named_by(config()) == ["vlan40"]
    assert pools_named_by(config(mode="cloud")) == []


@pytest.mark.parametrize("address", ["10.0.1.1", "fd00::1", "nonsense"])
def test_what_is_no_address_of_the_pool_excludes_nothing(address: str) -> None:
    assert told(config(gateway=address)) == {}
    assert read_layout(POOL.spec, excluding(address).status.excluded_addresses) == read_layout(POOL.spec)


def test_no_more_are_listed_than_a_status_may_hold() -> None:
    large = pool(cidr="10.0.0.0/16")
    many = [config(f"p{number:03}", gateway=f"10.0.{number // 250}.{number % 250 + 1}") for number in range(300)]
    assert len(told(*many, of=large)) == 256


def test_a_layout_leaves_them_out_and_every_counter_follows() -> None:
    layout = pool_layout(excluding("10.0.0.1", "10.0.0.8"))
    first = parse_address("10.0.0.0")[1]
    assert layout.usable == (Range(first + 2, first + 7), Range(first + 9, first + 14))
    assert layout.total == 12
    made = planned(excluding("10.0.0.1", "10.0.0.8"))
    assert (made.status.total_ips, made.status.available_ips, made.status.largest_free_block) == (12, 12, 6)
    assert made.status.fragmentation_percent == 0


def test_an_address_outside_the_windows_changes_nothing_but_is_remembered() -> None:
    subject = excluding("10.0.0.1", of=pool("10.0.0.4-10.0.0.9", cidr="10.0.0.0/28"))
    assert pool_layout(subject).total == 6
    assert [entry.address for entry in planned(subject).status.excluded_addresses] == ["10.0.0.1"]


def test_a_pool_of_nothing_else_hands_out_nothing() -> None:
    with pytest.raises(InvalidPool, match="nothing of"):
        pool_layout(excluding("10.0.0.1", of=pool(cidr="10.0.0.1/32")))


def test_nothing_is_granted_on_one_of_them() -> None:
    made = planned(excluding("10.0.0.3"), *(allocation(f"a{number}", 1) for number in range(14)))
    assert len(grants(made)) == 13
    assert "10.0.0.3-10.0.0.3" not in grants(made).values()


def test_a_pin_on_one_of_them_is_refused_with_a_sentence() -> None:
    made = planned(excluding("10.0.0.3"), allocation("a", None, pinned="10.0.0.2-10.0.0.5"))
    assert reasons(made) == {"a": "PinnedRangeConflict"}
    assert made.refusals[0].message == (
        "10.0.0.2-10.0.0.5 is pinned, but 10.0.0.3 is the gateway of ProviderConfig lab:"
        " pin a range without it, or correct the ProviderConfig"
    )


def test_what_was_granted_before_stays_and_is_told() -> None:
    made = planned(excluding("10.0.0.3"), allocation("a", 4, holds="10.0.0.1-10.0.0.4"))
    ready = next(condition for condition in made.status.conditions if condition.type == "Ready")
    assert ready.status == "True"
    assert "10.0.0.3 is the gateway of ProviderConfig lab, and held by a" in ready.message
    assert (made.status.total_ips, made.status.allocated_ips) == (13, 3)
