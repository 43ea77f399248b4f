"""A cluster that is not built and cannot get its second block gives the first back, and never builds on it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from butler.api.labels import Annotation, Label
from butler.controllers.ipallocation.release import Releases
from butler.controllers.networkpool.metrics import IpamMetrics
from butler.controllers.tenant_caches import Views
from butler.controllers.tenantcluster.bring_up import NoLongerWanted
from butler.controllers.tenantcluster.half_tenants import FOR_YOUNGER_ONES, HalfTenants, is_given_back
from butler.kube.kinds import ADDONS, ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.rules.tenant import addresses
from unit.controllers.tenantcluster.management import View
from unit.controllers.tenantcluster.site import NAMESPACE, Site
from unit.controllers.tenantcluster.values import HOME, NOW, UID, allocation, cluster, pool, started

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from butler.api.ipallocation import IPAllocation

FULL = "all of it is taken"
BORN = NOW - timedelta(hours=1)
MACHINES = ("stewardcontrolplanes", "clusters", "machinedeployments")


def block(found: IPAllocation, *, tenant: str = UID, born: Any = BORN, held: float = 5) -> IPAllocation:
    """An allocation that is granted together with another, and was so many seconds ago."""
    meta = msgspec.structs.replace(
        found.metadata,
        labels=found.metadata.labels | {Label.TENANT_UID.value: tenant},
        annotations={
            Annotation.GRANTED_TOGETHER.value: "nodes,loadbalancer",
            Annotation.TENANT_CREATED.value: born.isoformat(),
        },
    )
    status = found.status
    if status.start_address:
        status = msgspec.structs.replace(status, allocated_at=NOW - timedelta(seconds=held))
    return msgspec.structs.replace(found, metadata=meta, status=status)


def nodes(**more: Any) -> IPAllocation:
    return block(allocation("web-nodes", "nodes", start="10.40.0.10"), **more)


def refused_balancers(**more: Any) -> IPAllocation:
    return block(allocation("web-lb", "loadbalancer", 8, phase="Failed", why=FULL), **more)


def half(site: Site, **more: Any) -> Site:
    """The cluster has its nodes, and no pool has load-balancer addresses for it."""
    site.management.put("networkpools", pool(free=0))
    site.management.put("ipallocations", nodes(**more))
    site.management.put("ipallocations", refused_balancers(**more))
    site.wish(of=msgspec.structs.replace(cluster(), metadata=_born(cluster().metadata)))
    return site


def _born(meta: Any) -> Any:
    return msgspec.structs.replace(meta, creation_timestamp=BORN)


@pytest.fixture
def site() -> Site:
    return Site()


def given_back(site: Site) -> bool:
    """Whether the server has the nodes as Released, whatever a view shows."""
    found = site.management.find("ipallocations", HOME, "web-nodes")
    return found is not None and found["status"]["phase"] == "Released"


def made(site: Site) -> list[str]:
    return [plural for plural in MACHINES if site.management.objects.get(plural)]


async def test_it_gives_back_what_it_cannot_use_and_asks_for_it_again(site: Site) -> None:
    built = await half(site).building.bring_up(site.wished())
    assert site.released() == ["web-nodes"]
    assert site.wished().metadata.annotations[Annotation.GIVES_BACK] == "uid-web-nodes"
    assert built.facts is not None
    assert built.facts.blocked is not None
    assert FULL in built.facts.blocked.message
    assert any("cannot get its other block from pool vlan40" in message for _, message in site.events.found)
    await site.building.bring_up(site.wished())
    again = site.management.find("ipallocations", HOME, f"web-nodes-{UID[:8]}")
    assert again is not None, "it waits for its nodes too, under a name that the record does not have"
    assert again["metadata"]["annotations"][Annotation.GRANTED_TOGETHER] == "nodes,loadbalancer"
    site.management.counts.clear()
    again["status"] = {"phase": "Failed", "conditions": [_refusal("OtherBlockUnavailable")]}
    await site.building.bring_up(site.wished())
    assert [count for count in site.management.counts if not count.startswith("get ")] == [], "it writes at rest"


def _refusal(reason: str) -> dict[str, str]:
    return {
        "type": "Ready", "status": "False", "reason": reason, "message": "as it is",
        "lastTransitionTime": NOW.isoformat(),
    }  # fmt: skip


async def test_it_says_what_it_really_waits_for(site: Site) -> None:
    site.management.put("networkpools", pool(free=0))
    site.management.put(
        "ipallocations",
        block(allocation("web-nodes", "nodes", phase="Failed", why="has room", reason="OtherBlockUnavailable")),
    )
    site.management.put("ipallocations", refused_balancers())
    built = await site.building.bring_up(site.wish())
    assert built.facts is not None
    assert built.facts.blocked is not None
    assert (built.facts.blocked.reason, FULL in built.facts.blocked.message) == ("PoolExhausted", True)


async def test_for_a_moment_the_other_block_may_be_on_its_way(site: Site) -> None:
    await half(site, held=1).building.bring_up(site.wished())
    assert site.released() == []


@pytest.mark.parametrize(("ahead", "keeps"), [(timedelta(seconds=3), True), (timedelta(days=400), False)])
async def test_a_clock_that_was_set_back_keeps_no_cluster_waiting(site: Site, ahead: timedelta, keeps: bool) -> None:
    """Another replica's clock may be a little ahead; a grant that lies far in the future is from before that."""
    await half(site, held=-ahead.total_seconds()).building.bring_up(site.wished())
    assert (site.released() == []) is keeps


@pytest.mark.parametrize("case", ["begun", "started", "hand-made", "its pool has room by now", "paused"])
async def test_it_keeps_what_it_has(site: Site, case: str) -> None:
    half(site)
    if case == "begun":
        site.stands("clusters", "web", NAMESPACE)
    elif case == "started":
        site.wish(of=started(cluster()))
    elif case == "hand-made":
        found = site.management.find("ipallocations", HOME, "web-nodes")
        assert found is not None
        found["metadata"]["labels"] = {}
    elif case == "its pool has room by now":
        site.management.put("networkpools", pool(free=100))
    else:
        site.wish(paused=True)
    await site.building.bring_up(site.wished())
    assert site.released() == []


@pytest.mark.parametrize(("born", "first"), [(BORN - timedelta(hours=1), True), (BORN + timedelta(hours=1), False)])
async def test_the_youngest_gives_back_first(site: Site, born: Any, first: bool) -> None:
    """Another one holds what this one needs, and needs something else that it does not get."""
    half(site)
    rival = allocation("rival-lb", "loadbalancer", 8, start="10.40.0.30")
    site.management.put("ipallocations", block(rival, tenant="rival", born=born))
    lacking = allocation("rival-nodes", "nodes", phase="Failed", why=FULL)
    site.management.put("ipallocations", block(lacking, tenant="rival", born=born))
    await site.building.bring_up(site.wished())
    assert (site.released() == ["web-nodes"]) is first
    site.now += FOR_YOUNGER_ONES
    await site.building.bring_up(site.wished())
    assert "web-nodes" in site.released(), "it waits for a younger one for ever"


async def test_what_was_begun_is_finished_though_the_other_block_came(site: Site) -> None:
    """Another process may be about to release it, and cannot be told not to."""
    half(site)
    found = site.management.find("tenantclusters", "team-a", "web")
    assert found is not None
    found["metadata"]["annotations"] = {Annotation.GIVES_BACK.value: "uid-web-nodes"}
    site.management.put("ipallocations", block(allocation("web-lb", "loadbalancer", start="10.40.0.20")))
    await site.building.bring_up(site.wished())
    assert site.released() == ["web-nodes"]
    assert made(site) == []


# Two processes, of which one has an old view, in which the cluster has both blocks.

STEPS = (
    "apply namespaces",
    "patch tenantclusters",
    "get ipallocations",
    "apply stewardcontrolplanes",
    "apply clusters",
)


def _second(site: Site) -> HalfTenants:
    """Another process, with a view of its own."""
    views = [cast("Any", View(site.management, kind)) for kind in (CLUSTERS, PROVIDERS, POOLS, ALLOCATIONS, ADDONS)]
    found = Views(*views, HOME, site.teams)  # type: ignore[call-arg]
    found.add_indexes()
    releases = Releases(
        cast("Any", site.management),
        found.pools,
        cast("Any", site.events),
        IpamMetrics(CollectorRegistry()),
        lambda: NOW,
    )
    return HalfTenants(cast("Any", site.management), found, releases, lambda: NOW)


def _both_blocks(site: Site) -> None:
    site.management.put("ipallocations", nodes())
    site.management.put("ipallocations", block(allocation("web-lb", "loadbalancer", start="10.40.0.20")))
    site.wish(of=msgspec.structs.replace(cluster(), metadata=_born(cluster().metadata)))


def _lose_the_second(site: Site) -> None:
    site.management.drop("ipallocations", HOME, "web-lb")
    site.management.put("ipallocations", refused_balancers())
    site.management.put("networkpools", pool(free=0))


async def _give_back(site: Site, other: HalfTenants) -> None:
    """What a process with a fresh view does about the cluster, until it has nothing more to do."""
    for _ in range(3):
        views = other._views
        found = views.clusters.get(next(iter(site.management.objects["tenantclusters"])))
        assert found is not None
        provider = next(iter(views.providers.values()))
        plan = addresses.plan(
            found, provider, views.pools_by_name(), views.allocations_for(found), views.is_allocation, HOME
        )
        await other.give_back(found, plan)


@pytest.mark.parametrize("given_back_before", [False, True])
@pytest.mark.parametrize("asleep_before", STEPS)
async def test_who_sleeps_while_a_block_is_given_back_builds_nothing_on_it(
    site: Site, asleep_before: str, given_back_before: bool
) -> None:
    _both_blocks(site)
    if given_back_before:  # an earlier block of this cluster, so that the allocations are asked for as well
        found = site.management.find("tenantclusters", "team-a", "web")
        assert found is not None
        found["metadata"]["annotations"] = {Annotation.GIVES_BACK.value: "uid-of-an-earlier-block"}
    for view in (site.views.clusters, site.views.allocations, site.views.pools):
        view.freeze()  # type: ignore[attr-defined]
    wanted = site.wished()
    slept = False

    def sleep(verb: str, plural: str) -> None:
        nonlocal slept
        if f"{verb} {plural}" == asleep_before and not slept:
            slept = True
            _lose_the_second(site)
            _at_once(_give_back(site, _second(site)))

    site.management.before = sleep
    _at_once(site.building.bring_up(wanted))
    assert slept or asleep_before == "get ipallocations"
    assert not (given_back(site) and made(site)), (
        f"built on addresses that were given back, asleep before {asleep_before}"
    )


def _at_once(work: Coroutine[None, None, Any]) -> None:
    """Do all of it here and now: nothing in memory ever waits. What stops it is of no interest."""
    try:
        work.send(None)
    except StopIteration:
        return
    except Exception as error:
        print(error)
        return
    raise AssertionError("it waits for something")


@pytest.mark.parametrize("asleep_before", ["patch tenantclusters", "get clusters", "patch ipallocations"])
@pytest.mark.parametrize("nth", [1, 2])
async def test_who_sleeps_while_a_cluster_is_built_gives_nothing_back(site: Site, asleep_before: str, nth: int) -> None:
    """The builder has the old view, in which both blocks are there."""
    _both_blocks(site)
    for view in (site.views.clusters, site.views.allocations, site.views.pools):
        view.freeze()  # type: ignore[attr-defined]
    wanted = site.wished()
    _lose_the_second(site)
    seen = 0

    def sleep(verb: str, plural: str) -> None:
        nonlocal seen
        seen += f"{verb} {plural}" == asleep_before
        if f"{verb} {plural}" == asleep_before and seen == nth:
            _at_once(site.building.bring_up(wanted))

    site.management.before = sleep
    await _give_back(site, _second(site))
    assert seen or asleep_before == "patch ipallocations"
    assert not (given_back(site) and made(site)), f"gave back what is built on, asleep before {asleep_before}"


@pytest.mark.parametrize("phase", ["Allocated", "Released", None])
async def test_a_block_that_was_given_back_before_the_last_one_is_known_by_itself(
    site: Site, phase: str | None
) -> None:
    """The mark names one block only, so who sees a mark asks for its own blocks."""
    marked = msgspec.structs.replace(
        cluster(),
        metadata=msgspec.structs.replace(cluster().metadata, annotations={Annotation.GIVES_BACK.value: "later"}),
    )
    site.management.put("ipallocations", nodes())
    found = site.management.find("ipallocations", HOME, "web-nodes")
    assert found is not None
    if phase is None:
        site.management.drop("ipallocations", HOME, "web-nodes")
    else:
        found["status"]["phase"] = phase
    assert await is_given_back(cast("Any", site.management), marked, [nodes()]) is (phase != "Allocated")


# What the search through all orders of events found (tests/model/blocks.py).


def _annotate(site: Site, uid: str) -> None:
    found = site.management.find("tenantclusters", "team-a", "web")
    assert found is not None
    site.management.put(
        "tenantclusters",
        {**found, "metadata": {**found["metadata"], "annotations": {Annotation.GIVES_BACK.value: uid}}},
    )


async def test_a_namespace_whose_maker_died_does_not_keep_a_block_that_is_given_back(site: Site) -> None:
    half(site)
    _annotate(site, "uid-web-nodes")
    site.stands("namespaces", NAMESPACE, "")
    await site.building.bring_up(site.wished())
    assert site.released() == ["web-nodes"]


async def test_a_mark_is_not_replaced_as_long_as_the_block_that_it_names_is_held(site: Site) -> None:
    """Another process is about to release it, and who builds would no longer know."""
    half(site)
    site.management.put("ipallocations", block(allocation("web-nodes-2", "nodes", start="10.40.0.40")))
    _annotate(site, "uid-web-nodes-2")
    site.views.allocations.freeze()  # type: ignore[attr-defined]
    held = addresses.plan(
        site.wished(),
        next(iter(site.views.providers.values())),
        site.views.pools_by_name(),
        [nodes(), refused_balancers()],
        site.views.is_allocation,
        HOME,
    )
    await _second(site).give_back(site.wished(), held)
    assert site.wished().metadata.annotations[Annotation.GIVES_BACK] == "uid-web-nodes-2"
    assert not given_back(site)


async def test_who_slept_leaves_the_namespace_of_a_cluster_alone_that_was_built_with_other_blocks(site: Site) -> None:
    _both_blocks(site)
    for view in (site.views.clusters, site.views.allocations, site.views.pools):
        view.freeze()  # type: ignore[attr-defined]
    wanted = site.wished()
    slept = False

    def sleep(verb: str, plural: str) -> None:
        nonlocal slept
        if (verb, plural) == ("apply", "namespaces") and not slept:
            slept = True
            site.management.drop("ipallocations", HOME, "web-nodes")
            _annotate(site, "uid-web-nodes")
            site.stands("namespaces", NAMESPACE, "")

    site.management.before = sleep
    _at_once(site.building.bring_up(wanted))
    left = site.management.find("namespaces", "", NAMESPACE)
    assert slept
    assert left is not None
    assert "deletionTimestamp" not in left["metadata"]
    assert made(site) == []


async def test_who_sees_a_cluster_with_nodes_that_it_no_longer_has_makes_nothing_with_them(site: Site) -> None:
    """It gave them back, got others, and is built: this process has heard of the cluster, and not of the addresses."""
    _both_blocks(site)
    site.wish(of=started(cluster()))
    site.stands("namespaces", NAMESPACE, "")
    site.views.allocations.freeze()  # type: ignore[attr-defined]
    site.management.drop("ipallocations", HOME, "web-nodes")
    with pytest.raises(NoLongerWanted):
        await site.building.bring_up(site.wished())
    assert made(site) == []


async def test_a_cluster_says_that_it_is_built_before_anything_is_made_though_others_write_it_too(site: Site) -> None:
    _both_blocks(site)
    told: list[Any] = []
    edited = False

    def edit(verb: str, plural: str) -> None:
        nonlocal edited
        found = site.management.find("tenantclusters", "team-a", "web")
        assert found is not None
        if (verb, plural) == ("apply", "namespaces") and not edited:
            edited = True
            site.management.put(
                "tenantclusters", {**found, "metadata": {**found["metadata"], "labels": {"team": "blue"}}}
            )
        if (verb, plural) == ("apply", "clusters"):
            told.append(found["status"]["tenantNamespace"])

    site.management.before = edit
    await site.building.bring_up(site.wished())
    assert (edited, told) == (True, [NAMESPACE])
