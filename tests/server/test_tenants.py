"""Tenants as the API shows them, and what they say when they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
import yaml

from server.contract import read, refused
from server.eight import NAMES, TEAM, eight_tenants
from server.eventually import eventually
from server.objects import HOME
from server.rights import grant, namespace

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")
READ = ["get", "list", "watch"]


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def tenants(api: Api, plane: ControlPlane) -> None:
    await eight_tenants(api, plane)


async def test_tenants_are_listed_filtered_sorted_and_found(api: Api) -> None:
    found = await read(api, "/tenants?sort=-name&limit=3")
    assert found["total"] == 8
    assert [item["name"] for item in found["items"]] == NAMES[:-4:-1]
    rest = await read(api, f"/tenants?sort=-name&limit=10&cursor={found['next']}")
    assert [item["name"] for item in rest["items"]] == NAMES[4::-1]
    nothing = await read(api, "/tenants?phase=Failed")
    assert (nothing["total"], nothing["namespaces"]) == (0, [TEAM])
    assert (await read(api, "/tenants?provider=harvester-production"))["total"] == 8
    assert [item["name"] for item in (await read(api, "/tenants?q=Pay"))["items"]] == ["payments"]
    web = next(item for item in (await read(api, "/tenants"))["items"] if item["name"] == "web")
    assert (web["phase"], web["workersReady"], web["nodeAddresses"], web["elastic"]) == ("Ready", 2, 3, True)


async def test_a_tenant_is_told_in_full(api: Api) -> None:
    found = await read(api, f"/tenants/{TEAM}/web")
    assert {step["type"] for step in found["steps"]} >= {"NetworkReady", "ControlPlaneReady", "WorkersReady"}
    assert [block["type"] for block in found["blocks"]] == ["nodes", "loadbalancer"]
    assert found["loadBalancers"]["held"] == 2
    assert {change["action"] for change in found["changes"]} == {"granted"}
    written = yaml.safe_load(found["yaml"])
    assert set(written) == {"apiVersion", "kind", "metadata", "spec"}
    assert written["metadata"] == {"name": "web", "namespace": TEAM}


async def test_every_address_of_a_tenant_is_told_with_who_has_it(api: Api) -> None:
    found = await read(api, f"/tenants/{TEAM}/web/addresses")
    assert [node["state"] for node in found["nodes"]] == ["in use", "in use", "idle"]
    assert found["loadBalancers"][0]["users"] == ["traefik/traefik"]
    assert found["metallb"]["inStep"] is True
    assert found["unseen"] == []


async def test_a_change_that_kubectl_makes_appears(api: Api, plane: ControlPlane) -> None:
    patch = '{"spec":{"workers":{"replicas":3}}}'
    plane.kubectl("patch", "tenantcluster", "mobile", "-n", TEAM, "--type=merge", "-p", patch)

    async def three() -> None:
        found = await read(api, f"/tenants/{TEAM}/mobile")
        assert (found["tenant"]["workersWanted"], found["tenant"]["workersReady"]) == (3, 3)

    await eventually(three, seconds=60)


async def test_what_hangs_on_an_allocation_is_asked_of_its_tenant(api: Api) -> None:
    found = await read(api, f"/allocations/{HOME}/web-lb/impact")
    assert [(item["kind"], item["name"]) for item in found["inUse"]] == [("Service", "traefik/traefik")]
    assert found["tenantExists"] is True
    assert found["notAsked"] is None
    shown = await read(api, f"/allocations/{HOME}/web-lb")
    assert found["resourceVersion"] == shown["resourceVersion"]


async def test_metallb_of_all_tenants_is_compared_with_what_they_hold(api: Api) -> None:
    found = await read(api, "/drift")
    assert sorted(item["name"] for item in found["items"]) == NAMES
    assert all(item["inStep"] for item in found["items"])
    assert found["notAsked"] == 0


async def test_a_team_sees_its_own_tenants_and_only_what_it_may_know_of_them(api: Api, plane: ControlPlane) -> None:
    grant(plane, "tessa", READ, ["tenantclusters"], namespace=TEAM)
    found = await read(api, "/tenants", user="tessa")
    assert found["total"] == 8
    assert {item["nodeAddresses"] for item in found["items"]} == {None}
    detail = await read(api, f"/tenants/{TEAM}/web", user="tessa")
    assert detail["blocks"] is None
    assert detail["changes"] == []
    asked = await read(api, f"/tenants/{TEAM}/web/addresses", user="tessa")
    assert asked["waiting"] is None
    assert any("you may not read Secret" in item for item in asked["unseen"])
    status, _ = await refused(api, "/drift", user="tessa")
    assert status == 403
    over = await read(api, "/overview", user="tessa")
    assert over["totals"]["tenants"] == 8
    assert over["totals"]["pools"] == over["totals"]["allocations"] == 0
    assert over["hidden"]["kinds"] == ["NetworkPool", "IPAllocation", "TenantCluster", "ProviderConfig"]


async def test_a_user_of_another_namespace_sees_none_of_them(api: Api, plane: ControlPlane) -> None:
    grant(plane, "olaf", READ, ["tenantclusters"], namespace=namespace(plane, "team-other"))
    assert (await read(api, "/tenants", user="olaf")) == {"items": [], "total": 0, "next": None, "namespaces": []}
    for path in (f"/tenants/{TEAM}/web", f"/tenants/{TEAM}/unknown", f"/tenants?namespace={TEAM}"):
        status, problem = await refused(api, path, user="olaf")
        assert status == 403
        assert f"you may not read TenantClusters in namespace {TEAM}" in problem["detail"]
    assert (await read(api, "/search?q=web", user="olaf"))["hits"] == []


async def test_a_tenant_that_is_not_there_and_a_phase_that_is_none(api: Api) -> None:
    status, problem = await refused(api, f"/tenants/{TEAM}/unknown")
    assert (status, problem["type"]) == (404, "urn:butler:problem:not-found")
    for wrong in ("phase=Sleeping", "limit=0", "limit=many", "sort=colour", "cursor=x"):
        status, problem = await refused(api, f"/tenants?{wrong}")
        assert status == 422
        assert problem["detail"].startswith(wrong.partition("=")[0])
    assert (await read(api, "/tenants?colour=blue"))["total"] == 8
