"""What the provider and the cluster say about a tenant's addresses."""

from __future__ import annotations

from butler.rules.loadbalancer.policy import terms_of
from unit.controllers.tenantcluster.values import cluster, provider


def test_an_elastic_provider_says_how_many_at_a_time_and_how_many_in_all() -> None:
    found = terms_of(
        cluster(networking={"lbPoolSize": 3}),
        provider(quota={"maxLoadBalancerIPs": 9}, balancers={"allocationMode": "elastic", "growthIncrement": 4}),
    )
    assert (found.elastic, found.increment, found.most, found.least) == (True, 4, 9, 3)


def test_addresses_are_fixed_unless_the_provider_says_elastic() -> None:
    assert not terms_of(cluster(), provider()).elastic
    assert not terms_of(cluster(), provider(balancers={"allocationMode": "static"})).elastic
    assert terms_of(cluster(), provider()).most is None


def test_pools_come_in_the_order_of_their_priority_and_only_those_for_load_balancers() -> None:
    """The original took them as listed."""
    found = terms_of(
        cluster(),
        provider(
            pools=(
                {"name": "last", "priority": 20},
                {"name": "nodes", "priority": 1, "types": ["nodes"]},
                {"name": "first", "priority": 10, "types": ["loadbalancer"]},
            )
        ),
    )
    assert found.pools == ("first", "last")


def test_the_class_that_metallb_serves_is_the_addons_own_value() -> None:
    def served(value: object) -> str:
        addon = {"provider": "metallb", "version": "0.15.3", "values": {"loadBalancerClass": value}}
        return terms_of(cluster(addons={"loadBalancer": addon}), provider()).served_class

    assert served("metallb") == "metallb"
    assert served(7) == ""
    assert terms_of(cluster(), provider()).served_class == ""
