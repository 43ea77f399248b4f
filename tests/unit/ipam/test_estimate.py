"""Estimated tenants: agreed with the real allocator, tenant by tenant, and quick for any pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.api.codec import from_json
from butler.api.providerconfig import ProviderNetwork
from butler.ipam import estimate
from butler.ipam.addresses import Range
from butler.ipam.estimate import (
    LOAD_BALANCER,
    MOST,
    NODES,
    Room,
    estimated_tenants,
    first_load_balancer_size,
    in_order,
    room_of,
    wanted_purposes,
)
from butler.ipam.free_space import FreeSpace

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocationType

BOTH = (NODES, LOAD_BALANCER)


def slowly(rooms: list[Room], purposes: tuple[IPAllocationType, ...]) -> int:
    """The oracle: real free spaces, real best fit, one tenant at a time."""
    spaces = []
    for room in rooms:
        extents, at = [], 0
        for length, count in sorted(room.holes.items()):
            for _ in range(count):
                extents.append(Range(at, at + length - 1))
                at += length + 1
        spaces.append(FreeSpace(extents))
    let_in = 0
    while let_in < MOST:
        for purpose in purposes:
            for room, space in zip(rooms, spaces, strict=True):
                size = room.nodes if purpose is NODES else room.load_balancer
                found = space.best_fit(size) if size is not None else None
                if found is not None:
                    space.take(found)
                    break
            else:
                return let_in
        let_in += 1
    return let_in


SIZE = st.one_of(st.none(), st.integers(1, 9))
ROOM = st.builds(
    Room,
    holes=st.dictionaries(st.integers(1, 70), st.integers(1, 5), max_size=6),
    nodes=SIZE,
    load_balancer=SIZE,
)


@settings(max_examples=1500, deadline=None)
@given(rooms=st.lists(ROOM, max_size=3), purposes=st.sampled_from([BOTH, (NODES,), (LOAD_BALANCER,)]))
def test_the_estimate_is_what_the_allocator_would_do(rooms: list[Room], purposes: tuple[IPAllocationType, ...]) -> None:
    assert estimated_tenants(rooms, purposes) == slowly(rooms, purposes)


@pytest.mark.parametrize(
    ("holes", "nodes", "balancer", "fit"),
    [
        ({32: 1}, 5, 8, 2),  # 26 of 32, and 6 are left
        ({32: 1}, 5, 2, 4),
        ({12: 2}, 5, 8, 1),  # 24 are free, but the second tenant finds no 8 in a row
        ({4: 100}, 5, 2, 0),
        ({8: 3, 5: 3}, 5, 8, 3),
        ({}, 5, 2, 0),
    ],
)
def test_tenants_are_counted_by_the_length_of_holes(holes: dict[int, int], nodes: int, balancer: int, fit: int) -> None:
    assert estimated_tenants([Room(holes, nodes, balancer)], BOTH) == fit


def test_a_purpose_that_no_pool_serves_lets_no_tenant_in() -> None:
    assert estimated_tenants([Room({64: 1}, 5, None)], BOTH) == 0
    assert estimated_tenants([Room({64: 1}, 5, None)], (NODES,)) == 12


def test_a_second_pool_takes_over_when_the_first_is_full() -> None:
    first, second = Room({13: 1}, 5, 8), Room({26: 1}, 5, 8)
    assert estimated_tenants([first], BOTH) == 1
    assert estimated_tenants([first, second], BOTH) == 3


def test_an_empty_network_of_any_size_takes_a_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    real = estimate._let_in_many

    def counted(*arguments: Any) -> int:
        nonlocal looks
        looks += 1
        return real(*arguments)

    monkeypatch.setattr(estimate, "_let_in_many", counted)
    assert estimated_tenants([Room({(1 << 24) - 2: 1}, 5, 8)], BOTH) == MOST
    assert estimated_tenants([Room({1 << 16: 1}, 5, 8)], BOTH) == (1 << 16) // 13
    assert estimated_tenants([Room({1 << 16: 1}, 5, None), Room({1 << 12: 1}, None, 8)], BOTH) == 512
    assert estimated_tenants([Room({13: 50_000}, 5, 8)], BOTH) == MOST
    assert looks <= 8


def network(**spec: Any) -> ProviderNetwork:
    return from_json(ProviderNetwork, {"mode": "ipam", "poolRefs": [{"name": "rack"}], **spec})


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ({}, None),
        ({"loadBalancer": {}}, 8),
        ({"loadBalancer": {"defaultPoolSize": 3}}, 3),
        ({"loadBalancer": {"allocationMode": "elastic"}}, 2),
        ({"loadBalancer": {"allocationMode": "elastic", "initialPoolSize": 0}}, 0),
    ],
)
def test_the_first_load_balancer_block_is_by_mode(spec: dict[str, Any], size: int | None) -> None:
    assert first_load_balancer_size(network(**spec)) == size


def test_the_pool_decides_where_the_provider_says_nothing() -> None:
    said_nothing = network()
    room = room_of(said_nothing, said_nothing.pool_refs[0], {9: 1}, nodes_default=5, load_balancer_default=4)
    assert room == Room({9: 1}, 5, 4)


def test_quotas_cut_what_a_tenant_takes() -> None:
    tight = network(quotaPerTenant={"maxNodeIPs": 3, "maxLoadBalancerIPs": 1}, loadBalancer={})
    room = room_of(tight, tight.pool_refs[0], {}, nodes_default=5, load_balancer_default=8)
    assert (room.nodes, room.load_balancer) == (3, 1)


def test_a_pool_without_the_gateway_holds_no_nodes() -> None:
    said_nothing = network()
    reference = said_nothing.pool_refs[0]
    room = room_of(said_nothing, reference, {}, nodes_default=5, load_balancer_default=8, can_hold_nodes=False)
    assert (room.nodes, room.load_balancer) == (None, 8)


def test_pools_serve_what_their_types_say() -> None:
    parted = network(poolRefs=[{"name": "a", "types": ["nodes"]}, {"name": "b", "types": ["loadbalancer"]}])
    rooms = [room_of(parted, ref, {}, nodes_default=5, load_balancer_default=8) for ref in parted.pool_refs]
    assert [(room.nodes, room.load_balancer) for room in rooms] == [(5, None), (None, 8)]


def test_without_a_pool_for_nodes_machines_bring_their_addresses() -> None:
    assert wanted_purposes(network(poolRefs=[{"name": "a", "types": ["loadbalancer"]}])) == (LOAD_BALANCER,)
    none_at_first = {"allocationMode": "elastic", "initialPoolSize": 0}
    assert wanted_purposes(network(loadBalancer=none_at_first)) == (NODES,)
    assert wanted_purposes(network(poolRefs=[{"name": "a", "types": ["nodes"]}])) == (NODES,)
    assert wanted_purposes(network()) == BOTH


def test_pools_are_tried_by_priority_and_as_listed() -> None:
    listed = network(
        poolRefs=[{"name": "c", "priority": 2}, {"name": "a"}, {"name": "b"}, {"name": "d", "priority": -1}]
    )
    assert [reference.name for reference in in_order(listed.pool_refs)] == ["d", "a", "b", "c"]
