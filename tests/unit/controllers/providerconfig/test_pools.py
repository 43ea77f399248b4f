"""What a provider's pools offer: which are there, what is free, who could be let in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from butler.api.codec import from_json, to_json
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderNetwork
from butler.ipam.free_space import FreeSpace
from butler.rules.provider.room import Supply, survey
from unit.webhooks.given import pool, window

if TYPE_CHECKING:
    from butler.ipam.layout import PoolLayout

RACK = pool("rack", "10.40.0.0/24", **window("10.40.0.33", "10.40.0.64"))
SPARE = pool("spare", "10.50.0.0/24", **window("10.50.0.33", "10.50.0.45"))


def network(*pools: str | dict[str, Any], **settings: Any) -> ProviderNetwork:
    refs = [{"name": text} if isinstance(text, str) else text for text in pools]
    return from_json(ProviderNetwork, {"mode": "ipam", "poolRefs": refs, **settings})


def look(wanted: ProviderNetwork, *pools: NetworkPool) -> Supply:
    """All addresses of the pools are free."""
    there = {item.metadata.name: item for item in pools}

    def holes(_: NetworkPool, layout: PoolLayout) -> dict[int, int]:
        return FreeSpace(layout.usable).lengths()

    return survey(wanted, there.get, holes)


def test_pools_are_added_up() -> None:
    assert look(network("rack"), RACK) == Supply(32, 2, (), (), ())
    assert look(network("rack", "spare"), RACK, SPARE) == Supply(45, 3, (), (), ())


def test_missing_pools_are_named_and_the_others_count() -> None:
    assert look(network("rack", "later"), RACK) == Supply(32, 2, ("later",), (), ())
    found = look(network({"name": "rack", "types": ["loadbalancer"]}, {"name": "later", "types": ["nodes"]}), RACK)
    assert (found.missing, found.unserved, found.tenants) == (("later",), ("nodes",), 0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"metadata": {"deletionTimestamp": "2027-01-15T07:59:59Z"}}, "being deleted"),
        ({"spec": {"cidr": "10.40.0.0/33"}}, "spec.cidr: "),
        ({"status": {"conditions": [{"type": "Ready"}]}}, "10.40.0.0/24 overlaps another"),
    ],
)
def test_a_pool_that_hands_out_nothing_says_why(changes: dict[str, Any], why: str) -> None:
    made = to_json(RACK)
    for part, values in changes.items():
        made[part] = made.get(part, {}) | values
    for condition in made.get("status", {}).get("conditions", ()):
        condition |= {
            "status": "False",
            "reason": "Overlap",
            "message": "10.40.0.0/24 overlaps another",
            "lastTransitionTime": "2027-01-15T07:59:59Z",
        }
    found = look(network("rack"), from_json(NetworkPool, made))
    assert (found.available, found.tenants, found.missing, found.unserved) == (0, 0, (), ())
    assert found.idle[0].startswith(f"rack ({why}")


def test_nodes_go_only_where_the_gateway_is() -> None:
    assert look(network("rack", "spare", gateway="10.50.0.1"), RACK, SPARE).tenants == 2
    assert look(network("rack", "spare", gateway="10.60.0.1"), RACK, SPARE).tenants == 0


def test_priority_decides_which_pool_is_used_up_first() -> None:
    small = network({"name": "rack", "priority": 2}, {"name": "spare", "priority": 1})
    assert look(small, RACK, SPARE).tenants == 3


def test_where_no_pool_exists_no_tenant_fits() -> None:
    nothing_first = {"allocationMode": "elastic", "initialPoolSize": 0}
    only = network({"name": "rack", "types": ["loadbalancer"]}, loadBalancer=nothing_first)
    assert look(only).tenants == 0
