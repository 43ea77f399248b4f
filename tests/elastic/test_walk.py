"""The walk of the seeds: a fresh tenant, a second Service, a third that is one too many, and back again.

The commands are those that the pages on address management tell an operator to type, typed through a shell.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from elastic.chronicle import ADDRESS_POOL, DEFAULT_POOL
from elastic.stories import story
from ipam.history import ALLOCATION

if TYPE_CHECKING:
    from elastic.estate import Elastic, ElasticTenant
    from ipam.history import Json


@story
def test_the_walk_of_the_seeds(estate: Elastic) -> None:
    place = estate.place()
    walk = place.started("walk")
    first, second, third = place.addresses(16, 18)

    # A fresh tenant.
    assert walk.gets("traefik", namespace="traefik") == [first]
    walk.publishes(f"{first}-{second}")
    assert _published(estate, walk) == f'["{first}-{second}"]'
    assert _services(estate, walk) == [["traefik", "traefik", "LoadBalancer", first]]
    lb, nodes = _roles(estate)
    assert lb == ["walk-lb", "walk", "initial", "Allocated", "2", f"{first}/31"]
    assert nodes[:4] == ["walk-nodes", "walk", "initial", "Allocated"]
    assert _growths(estate) == []

    # A second Service takes the second address.
    walk.add("shop")
    assert walk.gets("shop") == [second]
    assert walk.grown() == {}

    # A third one waits, the tenant grows by one increment, and it is served.
    walk.add("chat")
    assert walk.gets("chat") == [third]
    walk.publishes(f"{first}-{second}", f"{third}-{third}")
    assert _published(estate, walk) == f'["{first}-{second}","{third}-{third}"]'
    assert _ranges(estate) == [["walk-lb", first, second], ["walk-lb-2", third, third]]
    assert _growths(estate) == ["walk-lb-2"]
    assert "walk-lb-2" in _growths(estate, role="")
    assert list(walk.grown().values()) == [1]
    walk.until(lambda: walk.use().get("inUse") == 3, "all three are in use")
    assert walk.use()["lastGrowth"]["addresses"] == 1
    assert walk.use()["platformServices"] == 1
    place.verdict()

    # Deleting it gives the address back after the grace time.
    walk.remove("chat")
    walk.shrinks_to(2)
    walk.publishes(f"{first}-{second}")
    assert _growths(estate) == []
    walk.until(lambda: walk.use().get("lastShrink"), "the shrink is told")
    assert walk.use()["lastShrink"]["addresses"] == 1
    assert [walk.address("traefik", "traefik"), walk.address("shop")] == [first, second]
    for reason in ("LoadBalancerGrowth", "LoadBalancerShrink"):
        (event,) = walk.until(partial(walk.events, reason), reason)
        assert event["type"] == "Normal"
    place.verdict()


@story
def test_a_shrink_goes_step_by_step(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    web.add("chat")
    web.gets("chat")
    web.remove("chat")
    web.shrinks_to(1)
    web.publishes(place.range(16))
    place.verdict()
    marks = [
        mark
        for revision in estate.record.management.written()
        if revision.kind == ALLOCATION and revision.uid in web.grown()
        for mark in ("idleSince", "drainingSince", "releasedAt")
        if ((revision.after or {}).get("status") or {}).get(mark)
        and not ((revision.before or {}).get("status") or {}).get(mark)
    ]
    # Where MetalLB is slow, the new range is idle once before its Service has it.
    assert [mark for mark, _ in groupby(marks)] == ["idleSince", "drainingSince", "releasedAt"]
    pools = [
        revision.after
        for revision in web.side.written()
        if revision.kind == ADDRESS_POOL and revision.key == DEFAULT_POOL
    ]
    states = [(len(pool["spec"]["addresses"]), pool["spec"].get("autoAssign", True)) for pool in pools if pool]
    states = [state for state, _ in groupby(states)]  # MetalLB writes its counts into the pool's status, too
    assert states == [(1, True), (2, True), (2, False), (1, True)]


def _status(obj: Json | None) -> Json:
    return dict((obj or {}).get("status") or {})


# The commands of the page, with <placeholders> filled in.


def _published(estate: Elastic, walk: ElasticTenant) -> str:
    return estate.types(
        f"""kubectl --kubeconfig {walk.kubeconfig()} \\
get ipaddresspool -n metallb-system default-pool -o jsonpath='{{.spec.addresses}}'
"""
    )


def _services(estate: Elastic, walk: ElasticTenant) -> list[list[str]]:
    head, *rows = estate.sees(
        f"kubectl --kubeconfig {walk.kubeconfig()} get services -A --field-selector spec.type=LoadBalancer"
    )
    assert head == ["NAMESPACE", "NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    return [[*row[:3], row[4]] for row in rows]


def _roles(estate: Elastic) -> list[list[str]]:
    head, *rows = estate.sees(
        r"""kubectl get ipallocation -n butler-system \
-o custom-columns='NAME:.metadata.name,TENANT:.metadata.labels.butler\.butlerlabs\.dev/tenant,ROLE:.metadata.labels.butler\.butlerlabs\.dev/allocation-role,PHASE:.status.phase,COUNT:.spec.count,RANGE:.status.cidr'
"""  # noqa: E501 (as printed)
    )
    assert head == ["NAME", "TENANT", "ROLE", "PHASE", "COUNT", "RANGE"]
    return [row for row in rows if row[1] == "walk"]


def _growths(estate: Elastic, role: str = "butler.butlerlabs.dev/tenant=walk,") -> list[str]:
    """The names of growth allocations that hold addresses; Released ones are kept for audit."""
    table = estate.sees(
        rf"""kubectl get ipallocation -n butler-system \
-l {role}butler.butlerlabs.dev/allocation-role=growth
"""
    )
    return [row[0] for row in table if "Allocated" in row]


def _ranges(estate: Elastic) -> list[list[str]]:
    head, *rows = estate.sees(
        r"""kubectl get ipallocation -n butler-system \
-l butler.butlerlabs.dev/tenant=walk \
-o custom-columns='NAME:.metadata.name,START:.status.startAddress,END:.status.endAddress'
"""
    )
    assert head == ["NAME", "START", "END"]
    return [row for row in rows if row[0] != "walk-nodes"]
