"""Taking a cluster down: what addresses wait for, and that nothing hangs without a word."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from butler.api.conditions import find_condition
from butler.api.labels import Annotation, ConditionType, Label
from butler.api.tenantcluster import DeletionStage
from butler.rules.tenant.settings import TenantSettings
from unit.controllers.tenantcluster.management import refusal
from unit.controllers.tenantcluster.site import NAMESPACE, Site
from unit.controllers.tenantcluster.values import UID, allocation, cluster

if TYPE_CHECKING:
    from butler.api.meta import Condition

MINUTE = timedelta(minutes=1)
WEBHOOK_IS_GONE = refusal(500, "InternalError", 'failed calling webhook "validation.cluster.x-k8s.io"')


@pytest.fixture
def site() -> Site:
    return Site()


async def look(site: Site, *, after: timedelta = timedelta(0)) -> Condition | None:
    """One look; what the status then says, None when the cluster was let go."""
    site.now += after
    torn = await site.teardown.take_down(site.wished())
    if torn.status is None:
        await site.teardown.let_go(site.wished())
        return None
    site.said(torn.status)
    found = find_condition(torn.status.conditions, ConditionType.DELETING)
    assert found is not None
    return found


def stage(site: Site) -> DeletionStage:
    assert site.wished().status.deletion is not None
    return site.wished().status.deletion.stage


async def test_addresses_are_held_while_a_machine_is_there_and_go_when_the_namespace_has_gone(site: Site) -> None:
    site.wish(going=True)
    site.stands("namespaces", NAMESPACE, "")
    site.stands("clusters")
    site.stands("machines", "m1")
    for plural, namespace, name in (
        ("clusters", NAMESPACE, "web"),
        ("machines", NAMESPACE, "m1"),
        ("namespaces", "", NAMESPACE),
    ):
        assert await look(site) is not None
        assert site.released() == []
        site.management.drop(plural, namespace, name)
    await look(site)
    assert site.released() == ["web-lb", "web-nodes"]
    assert await look(site) is None
    assert site.tenants.forgotten == [UID]


async def test_where_a_cluster_is_that_never_came_up_another_process_learns_from_cluster_api(site: Site) -> None:
    """Its status does not say so yet, and the process that had heard of it was killed: an API server that answers
    would be waited for until the time limit."""
    site.wish(going=True)
    site.stands("clusters", spec={"controlPlaneEndpoint": {"host": "10.40.0.20", "port": 6443}})
    site.tenants.left = "1 load balancer (default/web)"
    assert await look(site) is not None
    assert stage(site) is DeletionStage.LOAD_BALANCERS
    assert site.views.endpoint_of(UID) == "https://10.40.0.20:6443"


async def test_load_balancers_of_a_cluster_that_never_got_an_endpoint_are_not_waited_for(site: Site) -> None:
    site.wish(going=True)
    site.stands("clusters")
    site.tenants.left = "the tenant's API server"
    assert await look(site) is not None
    assert stage(site) is DeletionStage.CLUSTER_API


@pytest.mark.parametrize("unserved", [False, True])
async def test_without_a_cluster_to_ask_the_tenant_is_still_waited_for(site: Site, unserved: bool) -> None:
    """That Cluster API says nothing is no proof that nothing runs there."""
    site.wish(going=True)
    if unserved:
        site.management.unserved.add("clusters")
    site.tenants.left = "the tenant's API server"
    assert await look(site) is not None
    assert stage(site) is DeletionStage.LOAD_BALANCERS


async def test_addresses_of_another_cluster_of_that_name_are_not_touched(site: Site) -> None:
    earlier = allocation("web-nodes-2", "nodes", start="10.40.0.40")
    body = site.management.put("ipallocations", earlier)
    body["metadata"]["labels"][Label.TENANT_UID] = "another"
    site.wish(going=True)
    await look(site)
    assert await look(site) is None
    assert "web-nodes-2" not in site.released()


async def test_a_cluster_that_was_paused_is_handed_back_to_cluster_api_which_would_not_delete_it(site: Site) -> None:
    site.wish(going=True)
    site.stands("clusters", spec={"paused": True})
    await look(site)
    found = site.management.find("clusters", NAMESPACE, "web")
    assert found is not None
    assert found["spec"]["paused"] is False
    assert found["metadata"]["deletionTimestamp"]


async def test_a_refusal_is_told_in_the_status_and_does_not_end_the_stage(site: Site) -> None:
    site.wish(going=True)
    site.stands("clusters")
    site.management.refuses["delete", "clusters"] = WEBHOOK_IS_GONE
    said = await look(site)
    assert said is not None
    assert "ClusterAPI: waits for the API server, which refuses" in said.message
    assert "validation.cluster.x-k8s.io" in said.message
    assert site.released() == []
    del site.management.refuses["delete", "clusters"]
    said = await look(site)
    assert said is not None
    assert "Cluster API to delete Cluster" in said.message


async def test_force_gets_past_a_refusal_that_lasts_but_not_past_a_hiccup(site: Site) -> None:
    site.wish(going=True, of=cluster(annotations={Annotation.FORCE_DELETE: "web"}))
    site.stands("clusters")
    site.management.refuses["delete", "clusters"] = WEBHOOK_IS_GONE
    await look(site)
    await look(site, after=timedelta(seconds=30))
    assert stage(site) is DeletionStage.CLUSTER_API
    assert site.released() == []
    await look(site, after=MINUTE)
    assert site.released() == ["web-lb", "web-nodes"]
    assert "ForcedDeletion" in site.events.reasons()


async def test_what_was_released_by_force_says_so_for_as_long_as_it_is_kept(site: Site) -> None:
    site.wish(going=True, of=cluster(annotations={Annotation.FORCE_DELETE: "web"}))
    site.stands("machines", "m1")
    site.stands("namespaces", NAMESPACE, "")
    await look(site)
    for item in site.views.allocations.values():
        ready = find_condition(item.status.conditions, ConditionType.READY)
        assert ready is not None
        assert Annotation.FORCE_DELETE in ready.message


async def test_unchecked_force_lets_the_cluster_go_and_its_addresses_not() -> None:
    """Without admission, a user who may write the cluster can claim that running machines are gone."""
    site = Site(TenantSettings(force_is_checked=False))
    site.wish(going=True, of=cluster(annotations={Annotation.FORCE_DELETE: "web"}))
    site.stands("machines", "m1")
    site.stands("namespaces", NAMESPACE, "")
    assert await look(site) is None, "the object goes"
    assert site.released() == []
    assert any(f"held until namespace {NAMESPACE} is gone" in message for _, message in site.events.found)


async def test_unchecked_force_releases_what_surely_is_not_used() -> None:
    site = Site(TenantSettings(force_is_checked=False))
    site.wish(going=True, of=cluster(annotations={Annotation.FORCE_DELETE: "web"}))
    await look(site)
    assert site.released() == ["web-lb", "web-nodes"]


@pytest.mark.parametrize("plural", ["clusters", "machines"])
async def test_a_kind_that_is_not_served_says_nothing_about_machines(site: Site, plural: str) -> None:
    site.wish(going=True)
    site.stands("namespaces", NAMESPACE, "")
    site.management.unserved.add(plural)
    for _ in range(3):
        said = await look(site, after=20 * MINUTE)
        assert said is not None
    assert site.released() == []


async def test_a_404_that_names_nothing_is_no_proof_that_the_namespace_is_gone(site: Site) -> None:
    site.wish(going=True)
    site.management.unserved.add("namespaces")
    said = await look(site)
    assert said is not None
    assert stage(site) is DeletionStage.NAMESPACE
    assert site.released() == []


async def test_a_stall_is_told_once_and_not_at_every_look(site: Site) -> None:
    site.wish(going=True)
    site.stands("machines", "m1")
    await look(site)
    for _ in range(5):
        await look(site, after=20 * MINUTE)
    assert site.events.reasons() == ["DeletionStalled"]


async def test_credentials_outside_the_namespace_go_too_and_no_others(site: Site) -> None:
    site.wish(going=True)
    ours, theirs = {Label.TENANT_UID.value: UID}, {Label.TENANT_UID.value: "another"}
    for name, labels in (("ours", ours), ("theirs", theirs)):
        site.management.put("secrets", {"metadata": {"name": name, "namespace": "capa-system", "labels": labels}})
        site.management.put("awsclusterstaticidentities", {"metadata": {"name": name, "labels": labels}})
    await look(site)
    await look(site)
    for plural in ("secrets", "awsclusterstaticidentities"):
        assert [key.name for key in site.management.objects[plural]] == ["theirs"]
