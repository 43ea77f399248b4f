"""Bringing a cluster up: what is never made, what is told, and who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from butler.api.labels import Annotation, ConditionType, Finalizer
from butler.controllers.tenantcluster import bring_up as building
from butler.controllers.tenantcluster.bring_up import NoLongerWanted
from butler.controllers.tenantcluster.build_slots import ANY_MOMENT
from butler.controllers.tenantcluster.foreign_objects import NAMESPACE as NAMESPACES
from butler.kube.errors import KubeError
from unit.controllers.tenantcluster.management import refusal
from unit.controllers.tenantcluster.site import NAMESPACE, Site
from unit.controllers.tenantcluster.values import HOME, NOW, allocation, cluster, provider, started

if TYPE_CHECKING:
    from butler.controllers.tenantcluster.bring_up import Built

MADE = ("stewardcontrolplanes", "clusters", "machinedeployments", "proxmoxclusters", "proxmoxmachinetemplates")


@pytest.fixture
def site() -> Site:
    return Site()


def made(site: Site) -> list[str]:
    return [plural for plural in MADE if site.management.objects.get(plural)]


async def test_with_addresses_everything_is_made(site: Site) -> None:
    built = await site.building.bring_up(site.wish())
    assert built.facts is not None
    assert built.facts.blocked is None
    assert made(site) == list(MADE)


async def test_at_rest_nothing_is_written(site: Site) -> None:
    await site.building.bring_up(site.wish())
    site.management.counts.clear()
    await site.building.bring_up(site.wished())
    assert [count for count in site.management.counts if count.split()[0] not in ("get", "list")] == []


async def test_node_addresses_are_on_record_before_machines_are_asked_for(site: Site) -> None:
    recorded: list[bool] = []

    def look(verb: str, plural: str) -> None:
        if (verb, plural) == ("apply", "machinedeployments"):
            nodes = site.management.find("ipallocations", HOME, "web-nodes")
            recorded.append(nodes is not None and Annotation.GRANTED in nodes["metadata"].get("annotations", {}))

    site.management.before = look
    await site.building.bring_up(site.wish())
    assert recorded == [True]
    assert not site.management.counts["get ipallocations"], "the record was the question"


# A controller that sleeps through a deletion.


def ends(site: Site, *, replaced: bool = False) -> None:
    """The whole deletion, by another process: addresses are free afterwards."""
    site.management.objects["tenantclusters"].clear()
    site.management.objects["namespaces"].clear()
    if replaced:
        site.management.put("tenantclusters", cluster(uid="11111111-0000-0000-0000-000000000000"))


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("asleep_before", ["apply namespaces", "patch tenantclusters", "apply stewardcontrolplanes"])
async def test_who_sleeps_through_a_deletion_makes_no_machines(site: Site, asleep_before: str, replaced: bool) -> None:
    """Wherever the process stands still: its view shows the cluster as wanted throughout."""
    wanted = site.wish()
    site.views.clusters.freeze()  # type: ignore[attr-defined]
    slept = False

    def sleep(verb: str, plural: str) -> None:
        nonlocal slept
        if f"{verb} {plural}" == asleep_before and not slept:
            slept = True
            ends(site, replaced=replaced)

    site.management.before = sleep
    with pytest.raises(Exception):  # noqa: B017, PT011  # which one is of no interest
        await site.building.bring_up(wanted)
    assert slept
    assert made(site) == []
    assert not site.management.objects["namespaces"], "an empty namespace would be left behind for ever"


async def test_a_namespace_without_an_answer_about_its_cluster_is_asked_about_before_anything_is_made_in_it(
    site: Site,
) -> None:
    """The server took the namespace and then failed to answer; meanwhile the cluster went, unseen by our view."""
    wanted = site.wish()
    site.views.clusters.freeze()  # type: ignore[attr-defined]
    site.management.refuses["patch", "tenantclusters"] = refusal(500, "InternalError", "the server is overloaded")
    with pytest.raises(KubeError):
        await site.building.bring_up(wanted)
    site.management.refuses.clear()
    site.management.objects["tenantclusters"].clear()
    with pytest.raises(NoLongerWanted):
        await site.building.bring_up(wanted)
    assert made(site) == []


async def test_who_slept_does_not_bring_back_the_namespace_that_its_view_still_shows(site: Site) -> None:
    """Its labels are to change, so it would be applied; it is gone, so it would be created."""
    wanted = site.wish()
    site.stands("namespaces", NAMESPACE, "")
    (await site.live.view(NAMESPACES)).freeze()
    ends(site)
    with pytest.raises(NoLongerWanted):
        await site.building.bring_up(wanted)
    assert made(site) == []
    assert not site.management.objects["namespaces"]


async def test_a_namespace_with_machines_in_it_is_left_to_the_deletion(site: Site) -> None:
    wanted = site.wish()
    site.stands("namespaces", NAMESPACE, "")
    found = site.management.find("tenantclusters", "team-a", "web")
    assert found is not None
    found["metadata"]["deletionTimestamp"] = NOW.isoformat()
    with pytest.raises(NoLongerWanted):
        await site.building.bring_up(wanted)
    left = site.management.find("namespaces", "", NAMESPACE)
    assert left is not None
    assert "deletionTimestamp" not in left["metadata"]


# Finalizer.


async def test_a_finalizer_that_was_taken_away_comes_back_even_while_the_cluster_may_not_grow(site: Site) -> None:
    site.management.put("providerconfigs", provider(limits={"maxNodesPerTeam": 1}, kind="proxmox"))
    site.wish(of=started(cluster()))
    found = site.management.find("tenantclusters", "team-a", "web")
    assert found is not None
    found["metadata"]["finalizers"] = []
    built = await site.building.bring_up(site.wished())
    assert built.facts is not None
    assert built.facts.blocked is not None
    assert Finalizer.TENANT_CLUSTER in site.wished().metadata.finalizers


# The default provider.


async def test_a_cluster_stays_where_it_was_put_when_the_default_changes(site: Site) -> None:
    await site.building.bring_up(site.wish(on=None))
    site.management.put("providerconfigs", provider("default", kind="nutanix"))
    site.management.put("providerconfigs", provider("another", kind="nutanix"))
    site.management.counts.clear()
    built = await site.building.bring_up(site.wished())
    assert built.facts is not None
    assert built.facts.blocked is None
    assert "nutanixclusters" not in site.management.objects
    assert [count for count in site.management.counts if count.split()[0] not in ("get", "list")] == []


async def test_a_cluster_that_was_not_built_yet_follows_the_default(site: Site) -> None:
    site.management.objects["ipallocations"].clear()
    await site.building.bring_up(site.wish(on=None))
    assert site.wished().spec.provider_config_ref is None


# Kinds that are not there.


def blocker(built: Built) -> str:
    assert built.facts is not None
    assert built.facts.blocked is not None
    return built.facts.blocked.message


@pytest.mark.parametrize("plural", ["machines", "machinesets", "clusters", "stewardcontrolplanes", "proxmoxclusters"])
@pytest.mark.parametrize("paused", [False, True])
async def test_a_missing_kind_is_told_and_never_an_error(site: Site, plural: str, paused: bool) -> None:
    site.management.unserved.add(plural)
    for wanted in (cluster(paused=paused), started(cluster(paused=paused))):
        built = await site.building.bring_up(site.wish(of=wanted))
        if not paused and plural != "machinesets":
            assert f"the API server has no {plural}" in blocker(built)


# Addresses.


async def test_a_request_that_the_server_will_not_take_is_told(site: Site) -> None:
    site.management.objects["ipallocations"].clear()
    site.management.refuses["create", "ipallocations"] = refusal(403, "Forbidden", "exceeded quota: ipallocations")
    built = await site.building.bring_up(site.wish())
    assert built.facts is not None
    assert built.facts.blocked is not None
    assert built.facts.blocked.condition is ConditionType.NETWORK_READY
    assert "exceeded quota" in built.facts.blocked.message


async def test_a_refused_request_that_was_granted_meanwhile_is_kept(site: Site) -> None:
    site.management.put("ipallocations", allocation("web-nodes", "nodes", phase="Failed", of="gone"))
    wanted = site.wish()
    site.views.allocations.freeze()  # type: ignore[attr-defined]
    site.management.put("ipallocations", allocation("web-nodes", "nodes", start="10.40.0.10"))
    site.management.refuses["delete", "ipallocations"] = refusal(409, "Conflict", "another version")
    await site.building.bring_up(wanted)
    assert site.management.find("ipallocations", HOME, "web-nodes") is not None


async def test_machines_that_wait_for_their_tenant_are_looked_after_soon(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines without a bootstrap template wait until the tenant gives them a token, and nothing wakes them."""
    whole = building.objects
    monkeypatch.setattr(building, "objects", lambda blueprint: whole(blueprint)[:-1])
    built = await site.building.bring_up(site.wish())
    assert "machinedeployments" not in made(site)
    assert built.again == building.A_WHILE


async def test_a_tenant_that_hangs_holds_no_place_in_the_turnstile(site: Site) -> None:
    inside: list[int] = []

    async def slow(_: object, __: object) -> str:
        inside.append(site.turnstile._inside)
        return "web-admin-kubeconfig"

    site.tenants.kubeconfig = slow  # type: ignore[assignment]
    await site.building.bring_up(site.wish())
    assert inside == [0]


async def test_between_two_answers_nothing_is_written_unless_the_second_is_slow(site: Site) -> None:
    """When hundreds come at once, each has one block for a moment: that is not worth two writes each."""
    site.management.put("ipallocations", allocation("web-lb", "loadbalancer", phase="Pending"))
    wanted = site.wish()
    wanted = msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(wanted.metadata, finalizers=()))
    site.turnstile.asked(wanted.metadata.uid)
    site.management.counts.clear()
    assert (await site.building.bring_up(wanted)).facts is None
    assert not site.management.counts
    site.monotonic += ANY_MOMENT
    slow = (await site.building.bring_up(wanted)).facts
    assert slow is not None
    assert slow.blocked is not None
    assert "web-lb" in slow.blocked.message
    assert site.management.counts, "by now it has the finalizer, should it be deleted while it waits"
