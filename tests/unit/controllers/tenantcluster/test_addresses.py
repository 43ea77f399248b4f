"""Which IPAllocations a cluster asks for, drops and counts on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from butler.api.labels import ConditionType, Finalizer, Label
from butler.ipam.addresses import parse_range
from butler.rules.tenant.addresses import Addresses, plan
from unit.controllers.tenantcluster.values import HOME, UID, allocation, cluster, pool, provider

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.rules.blocked import Blocked

Json = dict[str, Any]
NODES = allocation("web-nodes", "nodes", 5, start="10.40.0.10")
BALANCERS = allocation("web-lb", "loadbalancer", 8, start="10.40.0.50")
FULL = "needs 5 addresses in a row, and the longest free run has 0"


def planned(
    subject: TenantCluster | None = None,
    on: ProviderConfig | None = None,
    pools: Iterable[NetworkPool] = (pool(),),
    own: Iterable[IPAllocation] = (),
    taken: Iterable[str] = (),
) -> Addresses:
    own = list(own)
    names = {item.metadata.name for item in own} | set(taken)
    by_name = {item.metadata.name: item for item in pools}
    return plan(subject or cluster(), on or provider(), by_name, own, names.__contains__, HOME)


def asked(found: Addresses) -> list[tuple[str, str, str, int | None]]:
    """What is asked for: name, type, pool, count."""
    return [
        (item.metadata.name, item.spec.type.value, item.spec.pool_ref.name, item.spec.count) for item in found.create
    ]


def sizes(found: Addresses) -> tuple[int | None, ...]:
    return tuple(item.spec.count for item in found.create)


def refusal(found: Addresses) -> Blocked:
    """A refusal that asks for nothing, and is no wait."""
    assert found.blocked is not None
    assert not found.create
    assert not found.blocked.waits
    return found.blocked


def wait(found: Addresses) -> Blocked:
    assert found.blocked is not None
    assert found.blocked.waits
    return found.blocked


# How many.


@pytest.mark.parametrize(
    ("subject", "on", "defaults", "expected"),
    [
        # The pool's defaults, or 5 and 8 where it has none.
        (cluster(replicas=3), provider(), None, (5, 8)),
        (cluster(replicas=3), provider(), (6, 4), (6, 4)),
        # More workers than the default: as many addresses as workers.
        (cluster(replicas=9), provider(), (6, 4), (9, 4)),
        # The provider's number goes before the pool's.
        (cluster(), provider(balancers={"defaultPoolSize": 3}), (6, 4), (6, 3)),
        (cluster(), provider(balancers={"allocationMode": "elastic", "initialPoolSize": 1}), (6, 4), (6, 1)),
        # The cluster's own number goes before all.
        (cluster(networking={"lbPoolSize": 12}), provider(balancers={"defaultPoolSize": 3}), (6, 4), (6, 12)),
        # Defaults are cut to the quota.
        (cluster(replicas=2), provider(quota={"maxNodeIPs": 3}), (6, 4), (3, 4)),
        (cluster(), provider(quota={"maxLoadBalancerIPs": 2}), (6, 4), (6, 2)),
        (cluster(), provider(quota={"maxLoadBalancerIPs": 2}, balancers={"defaultPoolSize": 9}), None, (5, 2)),
        # None to start with.
        (cluster(), provider(balancers={"allocationMode": "elastic", "initialPoolSize": 0}), None, (5,)),
    ],
)
def test_how_many_addresses_a_new_cluster_asks_for(
    subject: TenantCluster, on: ProviderConfig, defaults: tuple[int, int] | None, expected: tuple[int, ...]
) -> None:
    assert sizes(planned(subject, on, [pool(defaults=defaults)])) == expected


def test_both_blocks_are_asked_for_at_once() -> None:
    found = planned()
    assert asked(found) == [("web-nodes", "nodes", "vlan40", 5), ("web-lb", "loadbalancer", "vlan40", 8)]
    assert "5 node addresses are being asked for from pool vlan40" in wait(found).message


def test_every_request_is_labelled_finalized_and_says_whose_it_is() -> None:
    for item in planned(cluster(team="a")).create:
        assert item.metadata.namespace == HOME
        assert item.metadata.finalizers == (Finalizer.IP_ALLOCATION,)
        assert item.spec.tenant_cluster_ref.name == "web"
        assert item.spec.tenant_cluster_ref.namespace == "team-a"
        assert item.metadata.labels == {
            Label.NETWORK_POOL: "vlan40",
            Label.TENANT: "web",
            Label.TENANT_UID: UID,
            Label.TEAM: "a",
            Label.ALLOCATION_TYPE: item.spec.type,
            Label.ALLOCATION_ROLE: "initial",
        }


def test_a_team_with_a_name_that_no_label_takes_is_left_out_of_the_labels() -> None:
    assert Label.TEAM not in planned(cluster(team="x" * 64)).create[0].metadata.labels


# Refusals.


@pytest.mark.parametrize(
    ("subject", "on", "words"),
    [
        (cluster(replicas=4), provider(quota={"maxNodeIPs": 3}), "spec.workers.replicas: 4 node addresses are needed"),
        (
            cluster(networking={"lbPoolSize": 9}),
            provider(quota={"maxLoadBalancerIPs": 8}),
            "spec.networking.lbPoolSize: 9 load-balancer addresses are needed, and one tenant may hold 8",
        ),
        (
            cluster(networking={"loadBalancerPool": {"start": "10.40.0.60", "end": "10.40.0.69"}}),
            provider(quota={"maxLoadBalancerIPs": 8}),
            "spec.networking.loadBalancerPool: 10 load-balancer addresses are needed",
        ),
    ],
)
def test_what_the_cluster_names_is_refused_above_the_quota(
    subject: TenantCluster, on: ProviderConfig, words: str
) -> None:
    found = refusal(planned(subject, on))
    assert found.condition == ConditionType.QUOTA_SATISFIED
    assert words in found.message


def test_a_lowered_quota_refuses_more_and_leaves_alone_what_is_there() -> None:
    low = provider(quota={"maxNodeIPs": 2, "maxLoadBalancerIPs": 2})
    subject = cluster(replicas=5, networking={"lbPoolSize": 8})
    assert planned(subject, low, own=[NODES, BALANCERS]).blocked is None
    found = planned(cluster(replicas=6, networking={"lbPoolSize": 8}), low, own=[NODES, BALANCERS])
    assert "6 node addresses are needed, and one tenant may hold 2" in refusal(found).message
    assert found.nodes is not None, "what there is stays known"


@pytest.mark.parametrize(
    ("networking", "field"),
    [({"lbPoolSize": 4}, "lbPoolSize"), ({"loadBalancerPool": {"start": "1.1.1.1", "end": "1.1.1.2"}}, "Pool")],
)
def test_pools_are_refused_where_the_cloud_has_the_addresses(networking: Json, field: str) -> None:
    found = refusal(planned(cluster(networking=networking), provider(mode="cloud", gateway=None)))
    assert field in found.message
    assert "cloud mode" in found.message


def test_a_cloud_needs_no_addresses_of_ours() -> None:
    assert planned(on=provider(mode="cloud", gateway=None)) == Addresses()


def test_machines_with_addresses_need_a_gateway() -> None:
    assert "spec.network.gateway" in refusal(planned(on=provider(gateway=None))).message


@pytest.mark.parametrize("gateway", ["10.99.0.1", "fd00::1", "::0a28:0001"])
def test_a_gateway_outside_of_all_pools_is_refused_with_the_pools(gateway: str) -> None:
    """The last one is 10.40.0.1 as a number, and another address all the same."""
    assert "vlan40 10.40.0.0/24" in refusal(planned(on=provider(gateway=gateway))).message


def test_nodes_come_only_from_the_pool_that_the_gateway_lies_in() -> None:
    on = provider(pools=({"name": "far", "priority": 1}, {"name": "vlan40", "priority": 2}))
    found = planned(on=on, pools=[pool("far", "10.99.0.0/24"), pool()])
    assert [pair[2] for pair in asked(found)] == ["vlan40", "far"]


def test_a_pool_with_a_gateway_of_its_own_takes_machines_when_the_first_is_full() -> None:
    on = provider(pools=({"name": "vlan40"}, {"name": "vlan41", "gateway": "10.41.0.1"}))
    full, other = pool(free=1), pool("vlan41", "10.41.0.0/24")
    assert {pair[2] for pair in asked(planned(on=on, pools=[full, other]))} == {"vlan41"}


@pytest.mark.parametrize(("most", "asked_for"), [(None, 6), (12, 4), (9, 1)])
def test_an_elastic_pool_that_is_enlarged_grows_by_the_increment_as_far_as_the_quota_leaves(
    most: int | None, asked_for: int
) -> None:
    on = provider(
        balancers={"allocationMode": "elastic", "growthIncrement": 6},
        quota={"maxLoadBalancerIPs": most} if most else None,
    )
    found = planned(cluster(networking={"lbPoolSize": 9}), on, own=[NODES, BALANCERS])
    assert [item.spec.count for item in found.create] == [asked_for]


def test_harvester_takes_one_block_of_node_addresses_so_no_second_is_asked_for() -> None:
    found = planned(cluster(replicas=9), provider(kind="harvester"), own=[NODES, BALANCERS])
    assert "Harvester takes one block, and this cluster's has 5" in refusal(found).message
    assert planned(cluster(replicas=5), provider(kind="harvester"), own=[NODES, BALANCERS]).blocked is None


def test_machines_that_are_added_stay_in_the_network_of_the_first() -> None:
    on = provider(pools=({"name": "vlan40"}, {"name": "vlan41", "gateway": "10.41.0.1"}))
    pools = [pool(free=1), pool("vlan41", "10.41.0.0/24")]
    found = planned(cluster(replicas=9), on, pools=pools, own=[NODES, BALANCERS])
    assert [pair[2] for pair in asked(found)] == ["vlan40"], "it waits there, rather than being split over two networks"
    assert found.nodes is not None
    assert found.nodes.gateway == "10.40.0.1"


def test_where_no_pool_is_for_nodes_the_network_gives_them_their_addresses() -> None:
    on = provider(pools=({"name": "vlan40", "types": ["loadbalancer"]},), gateway=None)
    assert [pair[1] for pair in asked(planned(on=on))] == ["loadbalancer"]


@pytest.mark.parametrize(
    ("networking", "words"),
    [
        (None, ""),
        ({"lbPoolSize": 4}, "spec.networking.lbPoolSize: no pool of the provider is for load balancers"),
        ({"loadBalancerPool": {"start": "10.40.0.60", "end": "10.40.0.61"}}, "spec.networking.loadBalancerPool: no"),
    ],
)
def test_where_no_pool_is_for_load_balancers_none_are_asked_for(networking: Json | None, words: str) -> None:
    found = planned(cluster(networking=networking), provider(pools=({"name": "vlan40", "types": ["nodes"]},)))
    if words:
        assert words in refusal(found).message
    else:
        assert [pair[1] for pair in asked(found)] == ["nodes"]


# Which pool.

TWO = provider(pools=({"name": "b", "priority": 2}, {"name": "a", "priority": 1}))
A, B = pool("a", "10.40.0.0/25"), pool("b", "10.40.0.128/25")
LB_ONLY: tuple[Json, ...] = ({"name": "a", "types": ["loadbalancer"]}, {"name": "b", "types": ["loadbalancer"]})
BOTH = provider(pools=LB_ONLY, gateway=None)


def lb_pool(*pools: NetworkPool, on: ProviderConfig = BOTH, subject: TenantCluster | None = None) -> str:
    return planned(subject, on, pools).create[-1].spec.pool_ref.name


def test_the_lower_priority_goes_first_and_equal_ones_keep_the_order_of_the_list() -> None:
    assert lb_pool(A, B, on=TWO) == "a"
    assert lb_pool(A, B) == "a"
    assert lb_pool(B, A, on=provider(pools=LB_ONLY[::-1], gateway=None)) == "b"


def test_a_pool_without_a_long_enough_run_is_passed_over() -> None:
    assert lb_pool(pool("a", free=7), pool("b", free=8)) == "b"
    assert lb_pool(pool("a", free=8), pool("b", free=100)) == "a"


def test_each_pools_own_default_counts_in_the_comparison() -> None:
    small = pool("b", free=4, defaults=(5, 4))
    found = planned(on=BOTH, pools=[pool("a", free=7), small])
    assert asked(found) == [("web-lb", "loadbalancer", "b", 4)]


def test_a_pool_that_is_not_ready_or_not_there_is_passed_over() -> None:
    assert lb_pool(pool("a", ready=False), B) == "b"
    assert lb_pool(B) == "b"


def test_where_no_pool_can_hold_it_it_waits_at_the_first_that_exists() -> None:
    assert lb_pool(pool("a", free=0), pool("b", free=0)) == "a"
    assert lb_pool(pool("b", free=0)) == "b"
    assert lb_pool() == "a"


# Requests under way.


def refused(count: int = 8, of: str = "a", **more: Any) -> IPAllocation:
    return allocation("web-lb", "loadbalancer", count, phase="Failed", of=of, why=FULL, **more)


def test_nothing_is_asked_for_while_something_waits() -> None:
    own = [allocation("web-nodes", "nodes"), allocation("web-lb", "loadbalancer", 8)]
    found = planned(own=own)
    assert not found.create
    assert wait(found).message == "IPAllocation web-nodes waits for pool vlan40"


def test_a_refused_request_waits_with_the_pools_own_words_and_those_of_the_others() -> None:
    found = planned(on=BOTH, pools=[pool("a", free=0), pool("b", free=3)], own=[refused()])
    assert not found.create
    assert not found.drop
    assert wait(found).reason == "PoolExhausted"
    assert wait(found).message == (
        f"no load-balancer addresses: pool a: {FULL}; pool b has no run of free addresses longer than 3"
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [([], "pool b does not exist"), ([pool("b", ready=False)], "pool b is not ready")],
)
def test_the_message_says_why_each_other_pool_does_not_help(other: list[NetworkPool], words: str) -> None:
    assert words in wait(planned(on=BOTH, pools=[pool("a", free=0), *other], own=[refused()])).message


def test_a_refused_request_moves_to_another_pool_as_soon_as_one_can_hold_it() -> None:
    found = planned(on=BOTH, pools=[pool("a", free=0), B], own=[refused()])
    assert [item.metadata.name for item in found.drop] == ["web-lb"]
    assert not found.create, "not before it is gone"


def test_it_is_asked_for_there_only_when_it_is_gone() -> None:
    pools = [pool("a", free=0), B]
    for phase in ("Failed", "Released"):
        found = planned(on=BOTH, pools=pools, own=[allocation("web-lb", "loadbalancer", phase=phase, deleting=True)])
        assert not found.create
        assert "IPAllocation web-lb is being deleted" in wait(found).message
    assert asked(planned(on=BOTH, pools=pools)) == [("web-lb", "loadbalancer", "b", 8)]


def test_it_stays_where_it_is_when_its_own_pool_gained_room() -> None:
    found = planned(on=BOTH, pools=[pool("a", free=8), B], own=[refused()])
    assert not found.drop


def test_it_moves_up_to_a_pool_of_higher_rank_that_gained_room() -> None:
    assert planned(on=BOTH, pools=[A, pool("b", free=0)], own=[refused(of="b")]).drop


def test_a_request_at_a_pool_that_is_no_longer_the_providers_is_dropped() -> None:
    assert planned(on=BOTH, pools=[pool("a", free=0), pool("b", free=0)], own=[refused(of="gone")]).drop


def test_a_request_that_is_still_being_decided_is_left_alone() -> None:
    own = [allocation("web-lb", "loadbalancer", 8, of="a")]
    assert not planned(on=BOTH, pools=[pool("a", free=0), B], own=own).drop


def test_a_refused_request_of_another_size_is_asked_for_anew() -> None:
    full = [pool("a", free=0), pool("b", free=0)]
    for subject, dropped in ((cluster(networking={"lbPoolSize": 4}), True), (cluster(), False)):
        assert bool(planned(subject, BOTH, full, [refused()]).drop) is dropped


def test_a_refusal_without_a_condition_still_says_something() -> None:
    own = [allocation("web-lb", "loadbalancer", 8, phase="Failed", of="a")]
    assert "refused without a word" in wait(planned(on=BOTH, pools=[pool("a", free=0)], own=own)).message


# Growth.


def test_more_workers_than_addresses_get_a_further_block_of_what_is_missing() -> None:
    found = planned(cluster(replicas=7), own=[NODES, BALANCERS])
    assert asked(found) == [("web-nodes-2", "nodes", "vlan40", 2)]
    assert found.create[0].metadata.labels[Label.ALLOCATION_ROLE] == "growth"
    assert found.nodes is not None


def test_a_cluster_that_is_not_built_gives_back_further_blocks_too_and_asks_for_none_meanwhile() -> None:
    balancers = allocation("web-lb", "loadbalancer", 8, phase="Failed", why=FULL)
    more = allocation("web-nodes-2", "nodes", 2, start="10.40.0.90", growth=True)
    both = planned(cluster(replicas=7), pools=[pool(free=0)], own=[NODES, more, balancers])
    assert [block.metadata.name for block in both.give_back] == ["web-nodes", "web-nodes-2"]
    left = planned(cluster(replicas=7), pools=[pool(free=5)], own=[more, balancers])
    assert [block.metadata.name for block in left.give_back] == ["web-nodes-2"]
    assert left.create == (), "it would have to give that back, too, and so on"


def test_a_raised_pool_size_gets_a_further_block_of_what_is_missing() -> None:
    subject = cluster(networking={"lbPoolSize": 12})
    assert asked(planned(subject, own=[NODES, BALANCERS])) == [("web-lb-2", "loadbalancer", "vlan40", 4)]


def test_what_is_held_suffices_and_nothing_is_given_back() -> None:
    for replicas in (1, 3, 5):
        found = planned(cluster(replicas=replicas), own=[NODES, BALANCERS])
        assert (found.create, found.drop, found.blocked) == ((), (), None)
    assert planned(cluster(networking={"lbPoolSize": 2}), own=[NODES, BALANCERS]).blocked is None


def test_a_pools_changed_defaults_do_not_grow_what_is_there() -> None:
    assert not planned(pools=[pool(defaults=(20, 20))], own=[NODES, BALANCERS]).create


def test_growth_that_is_no_longer_needed_is_dropped() -> None:
    more = allocation("web-nodes-2", "nodes", 4, phase="Failed", growth=True, why=FULL)
    found = planned(cluster(replicas=5), pools=[pool(free=0)], own=[NODES, BALANCERS, more])
    assert found.drop == (more,)
    assert not planned(cluster(replicas=9), pools=[pool(free=0)], own=[NODES, BALANCERS, more]).drop


def test_a_third_block_counts_the_first_two() -> None:
    more = allocation("web-nodes-2", "nodes", 2, start="10.40.0.90", growth=True)
    assert asked(planned(cluster(replicas=9), own=[NODES, more, BALANCERS])) == [("web-nodes-3", "nodes", "vlan40", 2)]


# Elastic pools: another controller asks for more.

ELASTIC = provider(balancers={"allocationMode": "elastic", "initialPoolSize": 2})
GROWING = allocation("web-lb-2", "loadbalancer", 4, phase="Failed", growth=True, why=FULL)


def test_growth_that_follows_demand_is_neither_waited_for_nor_touched() -> None:
    for item in (GROWING, allocation("web-lb-2", "loadbalancer", 4, growth=True)):
        found = planned(on=ELASTIC, pools=[pool(free=0)], own=[NODES, BALANCERS, item])
        assert (found.create, found.drop, found.blocked) == ((), (), None)


def test_a_cluster_that_starts_without_any_does_not_wait_for_its_first_growth_either() -> None:
    nothing_first = provider(balancers={"allocationMode": "elastic", "initialPoolSize": 0})
    found = planned(on=nothing_first, pools=[pool(free=0)], own=[NODES, GROWING])
    assert (found.create, found.drop, found.blocked) == ((), (), None)


def test_it_is_waited_for_when_the_cluster_itself_wants_more() -> None:
    subject = cluster(networking={"lbPoolSize": 20})
    found = planned(subject, ELASTIC, [pool(free=0)], [NODES, BALANCERS, GROWING])
    assert not found.create
    assert not found.drop
    assert wait(found)


def test_an_elastic_cluster_still_waits_for_what_it_starts_with() -> None:
    first = allocation("web-lb", "loadbalancer", 2, phase="Failed", why=FULL)
    assert FULL in wait(planned(on=ELASTIC, pools=[pool(free=0)], own=[NODES, first])).message


# Hand-picked ranges.

PICKED = cluster(networking={"loadBalancerPool": {"start": "10.40.0.60", "end": "10.40.0.63"}})


def test_a_hand_picked_range_is_asked_for_exactly() -> None:
    found = planned(PICKED)
    pinned = found.create[1].spec.pinned_range
    assert pinned is not None
    assert (pinned.start_address, pinned.end_address) == ("10.40.0.60", "10.40.0.63")
    assert found.create[1].spec.count is None


def test_a_hand_picked_range_goes_to_the_pool_that_it_lies_in() -> None:
    on = provider(pools=({"name": "far"}, {"name": "vlan40", "priority": 1}))
    pools = [pool("far", "10.99.0.0/24"), pool()]
    assert planned(PICKED, on, pools).create[1].spec.pool_ref.name == "vlan40"


def test_a_hand_picked_range_outside_of_all_pools_is_refused_and_nodes_are_not_asked_for_either() -> None:
    subject = cluster(networking={"loadBalancerPool": {"start": "10.99.0.60", "end": "10.99.0.63"}})
    assert "10.99.0.60-10.99.0.63 lies in no pool (vlan40 10.40.0.0/24)" in refusal(planned(subject)).message


def test_a_hand_picked_range_that_one_request_cannot_hold_is_refused() -> None:
    subject = cluster(networking={"loadBalancerPool": {"start": "10.0.0.0", "end": "10.1.0.0"}})
    found = planned(subject, pools=[pool(cidr="10.0.0.0/8")], on=provider(gateway="10.0.0.1"))
    assert "has 65537 addresses, and may have 65536" in refusal(found).message


def test_the_longest_range_that_one_request_can_hold_is_taken() -> None:
    subject = cluster(networking={"loadBalancerPool": {"start": "10.0.0.0", "end": "10.0.255.255"}})
    assert planned(subject, pools=[pool(cidr="10.0.0.0/8")], on=provider(gateway="10.0.0.1")).create


def test_a_hand_picked_range_waits_for_a_pool_that_is_yet_to_come_and_not_at_one_that_it_cannot_lie_in() -> None:
    on = provider(pools=({"name": "vlan40"}, {"name": "to-come"}))
    subject = cluster(networking={"loadBalancerPool": {"start": "10.99.0.60", "end": "10.99.0.63"}})
    assert planned(subject, on).create[1].spec.pool_ref.name == "to-come"


def test_a_hand_picked_range_that_is_held_is_not_asked_for_again() -> None:
    own = [NODES, allocation("web-lb", "loadbalancer", 4, start="10.40.0.60")]
    assert planned(PICKED, own=own) == planned(own=own)


def test_a_range_that_is_picked_later_is_asked_for_beside_what_is_held() -> None:
    found = planned(PICKED, own=[NODES, BALANCERS])
    assert [(item.metadata.name, item.spec.count) for item in found.create] == [("web-lb-2", None)]
    limited = provider(quota={"maxLoadBalancerIPs": 10})
    assert "12 load-balancer addresses" in refusal(planned(PICKED, limited, own=[NODES, BALANCERS])).message


def test_a_waiting_request_gives_way_to_a_range_that_is_picked_later() -> None:
    own = [NODES, allocation("web-lb", "loadbalancer", 8, phase="Failed", why=FULL)]
    assert planned(PICKED, own=own, pools=[pool(free=0)]).drop


# Names.


def test_a_name_that_another_has_gets_a_piece_of_the_uid() -> None:
    assert [pair[0] for pair in asked(planned(taken=["web-nodes"]))] == ["web-nodes-0f1e2d3c", "web-lb"]


def test_retained_records_of_this_very_cluster_are_gone_around() -> None:
    taken = ["web-lb", "web-lb-0f1e2d3c", "web-lb-0f1e2d3c-2"]
    assert asked(planned(taken=taken))[1][0] == "web-lb-0f1e2d3c-3"


def test_a_released_record_holds_nothing_and_keeps_its_name() -> None:
    record = allocation("web-nodes", "nodes", 5, start="10.40.0.10", phase="Released")
    found = planned(own=[record, BALANCERS])
    assert asked(found) == [("web-nodes-0f1e2d3c", "nodes", "vlan40", 5)]
    assert found.nodes is None


def test_a_record_that_goes_after_its_time_disturbs_no_cluster() -> None:
    old = allocation("web-lb-2", "loadbalancer", 2, start="10.40.0.90", phase="Released", deleting=True)
    assert planned(own=[NODES, BALANCERS, old]).blocked is None


# What there is.


def test_what_was_granted_is_told_the_first_block_first() -> None:
    more = allocation("a-more", "nodes", 2, start="10.40.0.90", growth=True, age=99)
    found = planned(own=[more, BALANCERS, NODES])
    assert found.nodes is not None
    assert [span.first & 255 for span in found.nodes.ranges] == [10, 90]
    assert (found.nodes.prefix_length, found.nodes.gateway, found.nodes.size) == (24, "10.40.0.1", 7)
    assert found.load_balancers == (parse_range("10.40.0.50", "10.40.0.57")[1],)
    assert (found.node_allocation, found.load_balancer_allocation) == ("web-nodes", "web-lb")


def test_what_is_being_deleted_is_no_longer_built_on() -> None:
    surplus = allocation("web-nodes-2", "nodes", 2, start="10.40.0.90", growth=True, deleting=True)
    found = planned(own=[NODES, BALANCERS, surplus])
    assert found.blocked is None
    assert found.nodes is not None
    assert found.nodes.size == 5


def test_addresses_of_a_pool_that_cannot_be_seen_do_not_turn_machines_to_dhcp() -> None:
    assert (
        "pool vlan40, which the cluster's node addresses are from"
        in refusal(planned(pools=[], own=[NODES, BALANCERS])).message
    )


def test_a_gateway_that_was_moved_away_from_the_nodes_is_refused() -> None:
    on = provider(pools=("vlan40", "other"), gateway="10.41.0.1")
    found = planned(on=on, pools=[pool(), pool("other", "10.41.0.0/24")], own=[NODES, BALANCERS])
    assert "does not lie in pool vlan40" in refusal(found).message


def test_a_grant_that_cannot_be_read_is_named_and_not_asked_for_again() -> None:
    broken = msgspec.structs.replace(NODES, status=msgspec.structs.replace(NODES.status, end_address="x"))
    assert "IPAllocation web-nodes is Allocated, but" in refusal(planned(own=[broken, BALANCERS])).message


def test_the_order_in_which_allocations_are_listed_does_not_matter() -> None:
    own = [NODES, BALANCERS, GROWING, allocation("web-nodes-2", "nodes", 2, start="10.40.0.90", growth=True)]
    assert planned(own=own) == planned(own=own[::-1])


def test_a_load_balancer_range_that_was_deleted_serves_until_it_is_released() -> None:
    """Else the cluster would ask for another one at once, and be held up for as long as a Service uses the old one."""
    going = allocation("web-lb", "loadbalancer", 8, start="10.40.0.50", deleting=True)
    found = planned(own=[NODES, going])
    assert (found.create, found.blocked) == ((), None)
    assert found.load_balancers == (parse_range("10.40.0.50", "10.40.0.57")[1],)
