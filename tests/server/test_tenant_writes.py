"""Tenant clusters, made, changed, entered and deleted through the API."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from butler.kube import config
from butler.kube.client import Client
from butler.kube.resource import NODES
from server.eventually import eventually
from server.objects import GROUP, HOME, create, pool
from server.rights import grant, namespace, reader

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")
CREDENTIALS = """
apiVersion: v1
kind: Config
current-context: harvester
contexts: [{name: harvester, context: {cluster: harvester, user: butler}}]
clusters: [{name: harvester, cluster: {server: "https://harvester.example.com"}}]
users: [{name: butler, user: {token: not-a-real-token}}]
"""


@pytest.fixture(scope="module")
def provider(plane: ControlPlane) -> str:
    """A provider with two pools; tenants start with two load-balancer addresses."""
    secret = {"metadata": {"name": "lab", "namespace": HOME}, "stringData": {"kubeconfig": CREDENTIALS}}
    status, answer = plane.request("POST", f"/api/v1/namespaces/{HOME}/secrets", secret)
    assert status == 201, answer
    create(plane, pool("lab-lb", "172.20.0.0/24"))
    defaults = {"defaults": {"nodesPerTenant": 3}}
    create(plane, pool("lab-nodes", "172.20.4.0/23", tenantAllocation=defaults))
    spec = {
        "provider": "harvester",
        "credentialsRef": {"name": "lab"},
        "harvester": {"namespace": "default", "networkName": "default/workloads"},
        "network": {
            "mode": "ipam",
            "gateway": "172.20.4.1",
            "poolRefs": [
                {"name": "lab-lb", "types": ["loadbalancer"]},
                {"name": "lab-nodes", "types": ["nodes"]},
            ],
            "loadBalancer": {"allocationMode": "elastic", "initialPoolSize": 2, "growthIncrement": 1},
        },
    }
    meta = {"name": "lab", "namespace": HOME}
    create(plane, {"apiVersion": GROUP, "kind": "ProviderConfig", "metadata": meta, "spec": spec})
    return "lab"


def manifest(name: str, team: str, *, workers: int = 1, version: str = "v1.33.2", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": "TenantCluster",
        "metadata": {"name": name, "namespace": team, "labels": {"stage": "test"}},
        "spec": {"kubernetesVersion": version, "workers": {"replicas": workers}, **more},
    }


def stored(plane: ControlPlane, team: str, name: str) -> Any:
    status, found = plane.request("GET", f"/apis/{GROUP}/namespaces/{team}/tenantclusters/{name}")
    assert status == 200, found
    return found


async def version(api: Api, team: str, name: str, **options: Any) -> dict[str, str]:
    shown = await api.get(f"/tenants/{team}/{name}", **options)
    return {"If-Match": f'"{shown["tenant"]["resourceVersion"]}"'}


async def phase(api: Api, team: str, name: str, wanted: str) -> None:
    async def check() -> None:
        assert (await api.get(f"/tenants/{team}/{name}"))["tenant"]["phase"] == wanted

    await eventually(check, seconds=90)


async def made(api: Api, plane: ControlPlane, team: str, name: str) -> None:
    """Make a tenant, and wait until Butler has written into its spec where it goes."""
    status, answer, _ = await api.call("POST", "/tenants", {"manifest": manifest(name, team)})
    assert status == 201, answer

    async def placed() -> None:
        assert "providerConfigRef" in stored(plane, team, name)["spec"]
        assert "providerConfigRef" in (await api.get(f"/tenants/{team}/{name}"))["yaml"]

    await eventually(placed)


async def usable(api: Api, provider: str) -> None:
    async def check() -> None:
        assert (await api.get(f"/providers/{HOME}/{provider}"))["provider"]["ready"]
        pools = (await api.get("/pools?q=lab-"))["items"]
        assert [item["ready"] for item in pools] == [True, True]

    await eventually(check)


async def test_a_tenant_gets_what_was_foretold_and_its_kubeconfig_lets_people_in(
    api: Api, plane: ControlPlane, provider: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    team = namespace(plane, "team-one")
    await usable(api, provider)
    wanted = manifest("web", team, workers=2)
    status, foretold, _ = await api.call("POST", "/tenants/preview", {"manifest": wanted})
    assert (status, foretold["allowed"], foretold["obstacle"]) == (200, True, ""), foretold
    assert {get["type"] for get in foretold["gets"]} == {"nodes", "loadbalancer"}
    status, answer, _ = await api.call("POST", "/tenants", {"manifest": wanted})
    assert (status, answer["name"]) == (201, "web"), answer
    assert (await api.get(f"/tenants/{team}/web"))["tenant"]["workersWanted"] == 2
    status, problem, _ = await api.call("POST", f"/tenants/{team}/web/kubeconfig")
    assert status in (200, 409), problem
    await phase(api, team, "web", "Ready")
    shown = await api.get(f"/tenants/{team}/web")
    had = {(block["type"], block["range"]["start"], block["range"]["end"]) for block in shown["blocks"]}
    assert {(get["type"], get["range"]["start"], get["range"]["end"]) for get in foretold["gets"]} <= had

    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        status, found, headers = await api.call("POST", f"/tenants/{team}/web/kubeconfig")
    assert (status, found["filename"]) == (200, "web.kubeconfig")
    assert headers["Cache-Control"] == "no-store"
    file = tmp_path / "web.kubeconfig"
    file.write_text(found["kubeconfig"])
    async with Client(config.load(file)) as client:
        assert len((await client.list(NODES)).items) == 2
    user = yaml.safe_load(found["kubeconfig"])["users"][0]["user"]
    secrets = [str(value) for key, value in user.items() if "data" in key or key in ("token", "password")]
    assert secrets
    assert not any(secret in caplog.text for secret in secrets)
    assert '"verb":"fetch kubeconfig"' in caplog.text


async def test_scaling_and_upgrading_change_what_was_seen(api: Api, plane: ControlPlane, provider: str) -> None:
    team = namespace(plane, "team-two")
    await usable(api, provider)
    await made(api, plane, team, "shop")
    path = f"/tenants/{team}/shop"
    for action, body in (("scale", {"workers": 2}), ("upgrade", {"version": "v1.34.1"})):
        status, problem, _ = await api.call("POST", f"{path}/{action}", body)
        assert (status, problem["type"]) == (428, "urn:butler:problem:version-needed")
    status, answer, _ = await api.call(
        "POST", f"{path}/scale", {"workers": 2}, headers=await version(api, team, "shop")
    )
    assert status == 200, answer
    assert stored(plane, team, "shop")["spec"]["workers"]["replicas"] == 2
    for action, body, field, words in (
        ("scale", {"workers": 0}, "workers", ""),
        ("scale", {"workers": 100_000}, "workers", ""),
        ("upgrade", {"version": "1.34"}, "version", "v1.34.1"),
        ("upgrade", {"version": "v1.40.0"}, "version", "one minor version at a time"),
        ("upgrade", {"version": "v1.20.0"}, "version", "back"),
    ):
        status, problem, _ = await api.call("POST", f"{path}/{action}", body, headers=await version(api, team, "shop"))
        assert (status, problem["errors"][0]["field"]) == (422, field), problem
        assert words in problem["detail"]
    looked = await version(api, team, "shop")
    outcomes = await asyncio.gather(
        *(api.call("POST", f"{path}/scale", {"workers": number}, headers=looked) for number in (3, 4))
    )
    assert sorted(status for status, _, _ in outcomes) == [200, 412], outcomes
    won = 3 if outcomes[0][0] == 200 else 4
    assert stored(plane, team, "shop")["spec"]["workers"]["replicas"] == won
    status, answer, _ = await api.call(
        "POST", f"{path}/upgrade", {"version": "v1.34.1"}, headers=await version(api, team, "shop")
    )
    assert status == 200, answer
    assert stored(plane, team, "shop")["spec"]["kubernetesVersion"] == "v1.34.1"


async def test_an_edit_of_the_whole_object_loses_nothing(api: Api, plane: ControlPlane, provider: str) -> None:
    team = namespace(plane, "team-three")
    await usable(api, provider)
    await made(api, plane, team, "blog")
    path = f"/tenants/{team}/blog"

    async def looked_after() -> None:
        assert stored(plane, team, "blog")["metadata"].get("finalizers")

    await eventually(looked_after)
    shown = await api.get(path)
    wanted = yaml.safe_load(shown["yaml"])
    status, problem, _ = await api.call("PUT", path, {"manifest": wanted})
    assert (status, problem["type"]) == (428, "urn:butler:problem:version-needed")
    seen = {"If-Match": f'"{shown["tenant"]["resourceVersion"]}"'}
    wanted["spec"]["workers"]["replicas"] = 2
    wanted["metadata"]["labels"] = {"stage": "production", "owner": "blog"}
    before = stored(plane, team, "blog")
    status, answer, _ = await api.call("PUT", path, {"manifest": wanted}, headers=seen)
    assert status == 200, answer
    after = stored(plane, team, "blog")
    assert after["metadata"]["labels"] == {"stage": "production", "owner": "blog"}
    assert after["metadata"]["finalizers"] == before["metadata"]["finalizers"]
    before["spec"]["workers"]["replicas"] = 2
    assert after["spec"] == before["spec"]
    wanted["spec"]["workers"]["replicas"] = 1
    status, problem, _ = await api.call("PUT", path, {"manifest": wanted}, headers=seen)
    assert (status, problem["type"]) == (412, "urn:butler:problem:changed"), "labels count, as the status does not"

    headers = await version(api, team, "blog")
    wanted["spec"]["wrokers"] = {}
    status, problem, _ = await api.call("PUT", path, {"manifest": wanted}, headers=headers)
    assert (status, "wrokers" in problem["detail"]) == (422, True), problem
    del wanted["spec"]["wrokers"]
    wanted["metadata"]["finalizers"] = []
    status, problem, _ = await api.call("PUT", path, {"manifest": wanted}, headers=headers)
    assert (status, problem["errors"][0]["field"]) == (422, "metadata.finalizers"), problem
    del wanted["metadata"]["finalizers"]
    wanted["metadata"]["name"] = "other"
    status, problem, _ = await api.call("PUT", path, {"manifest": wanted}, headers=headers)
    assert (status, problem["errors"][0]["field"]) == (422, "metadata.name"), problem
    wanted = after | {"spec": after["spec"] | {"kubernetesVersion": "v1.33.3"}}
    wanted["metadata"]["resourceVersion"] = headers["If-Match"].strip('"')
    status, answer, _ = await api.call("PUT", path, {"manifest": wanted})
    assert status == 200, (answer, "a manifest as kubectl shows it carries its version")


async def test_manifests_that_are_none_are_refused_by_field(api: Api, plane: ControlPlane, provider: str) -> None:
    team = namespace(plane, "team-four")
    await usable(api, provider)
    good = manifest("calm", team)
    cases: list[tuple[Any, str]] = [
        (good | {"kind": "Pod"}, "kind"),
        (good | {"apiVersion": "v1"}, "apiVersion"),
        (good | {"metadata": {"name": "calm"}}, "metadata.namespace"),
        (good | {"metadata": {"name": "Calm", "namespace": team}}, "metadata.name"),
        (good | {"metadata": {"name": "c" * 60, "namespace": team}}, "metadata.name"),
        (good | {"metadata": {"name": "calm", "namespace": team, "labels": {"a": 1}}}, "metadata.labels"),
        (good | {"spec": []}, "spec"),
    ]
    for body, field in cases:
        for path in ("/tenants", "/tenants/preview"):
            status, problem, _ = await api.call("POST", path, {"manifest": body})
            assert (status, problem["errors"][0]["field"]) == (422, field), problem
    for spec, field in (
        ({"workers": {"replicas": 0}}, "spec.workers.replicas"),
        ({"workers": {"replicas": "two"}}, "spec.workers.replicas"),
        ({"networking": {"podCIDR": "10.0.0.0/8", "serviceCIDR": "10.1.0.0/16"}}, "spec.networking.serviceCIDR"),
    ):
        body = good | {"spec": good["spec"] | spec}
        status, problem, _ = await api.call("POST", "/tenants", {"manifest": body})
        assert status == 422, problem
        assert field in [error["field"] for error in problem["errors"]], problem
        status, shown, _ = await api.call("POST", "/tenants/preview", {"manifest": body})
        assert (status, shown["allowed"]) == (200, False)
        assert field in [error["field"] for error in shown["errors"]], shown
    body = good | {"spec": good["spec"] | {"colour": "red"}}
    status, problem, _ = await api.call("POST", "/tenants", {"manifest": body})
    assert (status, "colour" in problem["detail"]) == (422, True), problem
    status, problem, _ = await api.call("POST", "/tenants", {"manifest": good, "colour": "red"})
    assert (status, "colour" in problem["detail"]) == (422, True), problem
    body = good | {"spec": good["spec"] | {"networking": {"lbPoolSize": 1000}}}
    status, shown, _ = await api.call("POST", "/tenants/preview", {"manifest": body})
    assert (status, bool(shown["obstacle"])) == (200, True), shown


async def test_kubernetes_decides_in_which_namespace_a_user_may_do_what(
    api: Api, plane: ControlPlane, provider: str
) -> None:
    ours, theirs = namespace(plane, "team-ours"), namespace(plane, "team-theirs")
    await usable(api, provider)
    everything = ["get", "list", "watch", "create", "patch", "update", "delete"]
    grant(plane, "tina", everything, ["tenantclusters"], namespace=ours)
    status, shown, _ = await api.call("POST", "/tenants/preview", {"manifest": manifest("app", ours)}, user="tina")
    assert (status, shown["allowed"], shown["gets"]) == (200, True, []), shown
    assert "you may not read NetworkPools" in shown["warnings"][0]
    status, answer, _ = await api.call("POST", "/tenants", {"manifest": manifest("app", ours)}, user="tina")
    assert status == 201, answer
    status, problem, _ = await api.call("POST", "/tenants", {"manifest": manifest("app", theirs)}, user="tina")
    assert status == 403
    assert '"tina"' in problem["detail"]
    assert theirs in problem["detail"]
    status, answer, _ = await api.call("POST", "/tenants", {"manifest": manifest("app", theirs)})
    assert status == 201, answer
    looked = await version(api, theirs, "app")
    for method, path, body in (
        ("POST", f"/tenants/{theirs}/app/scale", {"workers": 2}),
        ("POST", f"/tenants/{theirs}/app/upgrade", {"version": "v1.34.1"}),
        ("POST", f"/tenants/{theirs}/app/kubeconfig", None),
        ("PUT", f"/tenants/{theirs}/app", {"manifest": manifest("app", theirs)}),
        ("DELETE", f"/tenants/{theirs}/app", None),
        ("POST", "/tenants/preview", {"manifest": manifest("app", theirs)}),
        ("POST", f"/tenants/{theirs}/no-such/scale", {"workers": 2}),
    ):
        status, problem, _ = await api.call(method, path, body, user="tina", headers=looked)
        assert status == 403, (path, problem)
    await phase(api, ours, "app", "Ready")
    status, problem, _ = await api.call("POST", f"/tenants/{ours}/app/kubeconfig", user="tina")
    assert status == 403, "a cluster of one's own is not yet its administrator's Secret"
    assert "secrets" in problem["detail"]
    grant(plane, "tim", ["get", "list"], ["tenantclusters"], namespace=ours)
    headers = await version(api, ours, "app", user="tim")
    status, problem, _ = await api.call(
        "POST", f"/tenants/{ours}/app/scale", {"workers": 2}, user="tim", headers=headers
    )
    assert (status, '"tim"' in problem["detail"]) == (403, True), problem


async def test_a_tenant_goes_as_it_was_seen(api: Api, plane: ControlPlane, provider: str) -> None:
    team = namespace(plane, "team-five")
    await usable(api, provider)
    await made(api, plane, team, "old")
    path = f"/tenants/{team}/old"
    status, _, _ = await api.call("DELETE", path)
    assert status == 428
    stale = await version(api, team, "old")
    status, answer, _ = await api.call("POST", f"{path}/scale", {"workers": 2}, headers=stale)
    assert status == 200, answer
    status, _, _ = await api.call("DELETE", path, headers=stale)
    assert status == 412
    await phase(api, team, "old", "Ready")
    status, answer, _ = await api.call("DELETE", path, headers=await version(api, team, "old"))
    assert status == 200, answer
    assert (await api.get(path))["tenant"]["deleting"]
    status, problem, _ = await api.call(
        "POST", f"{path}/scale", {"workers": 3}, headers=await version(api, team, "old")
    )
    assert (status, "being deleted" in problem["detail"]) == (409, True), problem

    async def gone() -> None:
        status, _, _ = await api.call("GET", path)
        assert status == 404

    await eventually(gone, seconds=60)


async def test_a_change_foretells_what_it_would_get_too(api: Api, plane: ControlPlane, provider: str) -> None:
    team = namespace(plane, "team-six")
    await usable(api, provider)
    await made(api, plane, team, "more")
    await phase(api, team, "more", "Ready")
    wanted = yaml.safe_load((await api.get(f"/tenants/{team}/more"))["yaml"])
    status, shown, _ = await api.call("POST", "/tenants/preview", {"manifest": wanted})
    assert (status, shown["allowed"], shown["gets"], shown["obstacle"]) == (200, True, [], ""), shown
    wanted["spec"]["workers"]["replicas"] = 50
    status, shown, _ = await api.call("POST", "/tenants/preview", {"manifest": wanted}, user=reader(plane, "rosa"))
    assert status == 403, "pools alone are not enough"
    status, shown, _ = await api.call("POST", "/tenants/preview", {"manifest": wanted})
    assert status == 200
    assert shown["obstacle"] or shown["gets"], shown


async def test_a_look_ahead_tells_nothing_of_providers_that_the_person_may_not_read(
    api: Api, plane: ControlPlane, provider: str
) -> None:
    """Neither of their own namespace's nor of another's, though they may read all that is in Butler's own."""
    ours, hidden = namespace(plane, "team-looking"), namespace(plane, "team-hidden")
    await usable(api, provider)
    grant(plane, "vera", ["get", "list", "create"], ["tenantclusters"], namespace=ours)
    grant(plane, "vera", ["get", "list"], ["networkpools", "ipallocations", "providerconfigs"], namespace=HOME)
    for where in (ours, hidden):
        broken = {
            "apiVersion": "butler.butlerlabs.dev/v1alpha1",
            "kind": "ProviderConfig",
            "metadata": {"name": "broken"},
            "spec": {
                "provider": "aws",
                "credentialsRef": {"name": "acme-merger-credentials"},
                "aws": {"region": "eu-central-1"},
            },
        }
        path = f"/apis/butler.butlerlabs.dev/v1alpha1/namespaces/{where}/providerconfigs"
        assert plane.request("POST", path, broken)[0] == 201
        wanted = manifest("app", ours)
        wanted["spec"]["providerConfigRef"] = {"name": "broken", "namespace": where}
        status, shown, _ = await api.call("POST", "/tenants/preview", {"manifest": wanted}, user="vera")
        assert status == 200, shown
        assert f"you may not read ProviderConfigs in namespace {where}" in str(shown["warnings"])
        assert (shown["gets"], "acme-merger" in str(shown)) == ([], False)
