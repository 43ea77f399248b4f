"""The addresses that a cluster would get, before it is made or changed."""

from __future__ import annotations

from butler.reports.estate import Estate
from butler.reports.plan.preview import of_a_change, of_a_new_cluster
from unit.controllers.tenantcluster.values import HOME, NOW, allocation, cluster, pool, provider


def test_a_new_cluster_sees_the_ranges_that_its_pools_would_grant() -> None:
    estate = Estate(HOME, (pool(free=254, defaults=(4, 2)),), (), (provider(),))
    found = of_a_new_cluster(estate, cluster("new", replicas=3), NOW)
    assert [(block.purpose.value, block.text, block.pool) for block in found.gets] == [
        ("nodes", "10.40.0.2-10.40.0.5", "vlan40"),
        ("loadbalancer", "10.40.0.6-10.40.0.7", "vlan40"),
    ]
    assert (found.provider, found.obstacle) == ("lab", "")


def test_a_pool_without_room_is_foreseen_as_a_wait() -> None:
    estate = Estate(HOME, (pool("vlan40", "10.40.0.0/29", free=6, defaults=(3, 8)),), (), (provider(),))
    found = of_a_new_cluster(estate, cluster("new", replicas=3), NOW)
    assert found.waits
    assert "no load-balancer addresses" in found.obstacle


def test_what_could_never_work_is_foreseen_as_an_obstacle_that_does_not_pass() -> None:
    estate = Estate(HOME, (pool(free=254),), (), (provider(),))
    far = {"loadBalancerPool": {"start": "10.1.1.1", "end": "10.1.1.2"}}
    found = of_a_new_cluster(estate, cluster("new", networking=far), NOW)
    assert (found.waits, found.gets) == (False, ())
    assert "lies in no pool" in found.obstacle
    nowhere = of_a_new_cluster(estate, cluster("new", on="elsewhere"), NOW)
    assert (nowhere.provider, nowhere.waits) == ("", False)


def test_a_change_shows_only_what_comes_on_top() -> None:
    held = (
        allocation("web-nodes", "nodes", 3, start="10.40.0.1"),
        allocation("web-lb", "loadbalancer", 2, start="10.40.0.10"),
    )
    on = provider(balancers={"defaultPoolSize": 2})
    estate = Estate(HOME, (pool(free=200),), held, (on,), (cluster(replicas=3),))
    assert of_a_change(estate, cluster(replicas=3), NOW).gets == ()
    found = of_a_change(estate, cluster(replicas=5), NOW)
    assert [(block.allocation, block.size) for block in found.gets] == [("web-nodes-2", 2)]
    harvester = provider(kind="harvester", balancers={"defaultPoolSize": 2})
    fixed = of_a_change(Estate(HOME, estate.pools, held, (harvester,)), cluster(replicas=5), NOW)
    assert "Harvester takes one block" in fixed.obstacle
    assert not fixed.waits
