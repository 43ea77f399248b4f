"""How a client that knows nothing finds out what a server serves."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import pytest

from conformance.wire import failure

if TYPE_CHECKING:
    from conformance.wire import Api, Object

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KINDS = {
    "/api/v1": {
        "configmaps", "events", "namespaces", "namespaces/finalize", "namespaces/status", "nodes",
        "nodes/status", "pods", "pods/status", "secrets", "serviceaccounts", "serviceaccounts/token",
        "services", "services/status",
    },
    "/apis/apps/v1": {"deployments", "deployments/scale", "deployments/status"},
    "/apis/rbac.authorization.k8s.io/v1": {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
    "/apis/coordination.k8s.io/v1": {"leases"},
    "/apis/events.k8s.io/v1": {"events"},
    "/apis/apiextensions.k8s.io/v1": {"customresourcedefinitions", "customresourcedefinitions/status"},
    "/apis/admissionregistration.k8s.io/v1": {
        "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
    },
    "/apis/authorization.k8s.io/v1": {"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
}  # fmt: skip


async def test_api_names_the_core_version(api: Api) -> None:
    answer = await api.get("/api")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.body["kind"] == "APIVersions"
    assert answer.body["versions"] == ["v1"]


async def test_apis_names_every_group_with_its_preferred_version(api: Api, widgets: str) -> None:
    body = (await api.get("/apis")).body
    assert (body["kind"], body["apiVersion"]) == ("APIGroupList", "v1")
    groups = {group["name"]: group for group in body["groups"]}
    expected = {path.split("/")[2] for path in [*KINDS, widgets] if path.startswith("/apis/")}
    assert expected <= set(groups)
    assert groups["apps"]["versions"] == [{"groupVersion": "apps/v1", "version": "v1"}]
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}


async def test_one_group_can_be_asked_for(api: Api) -> None:
    assert (await api.get("/apis/apps")).body == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
    }


@pytest.mark.parametrize("path", KINDS)
async def test_a_version_lists_its_resources(api: Api, path: str) -> None:
    body = (await api.get(path)).made
    assert body["kind"] == "APIResourceList"
    assert body["groupVersion"] == path.removeprefix("/apis/").removeprefix("/api/")
    assert KINDS[path] <= {resource["name"] for resource in body["resources"]}


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        (
            "/api/v1",
            {
                "name": "configmaps",
                "singularName": "configmap",
                "namespaced": True,
                "kind": "ConfigMap",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["cm"],
            },
        ),
        (
            "/api/v1",
            {
                "name": "namespaces",
                "singularName": "namespace",
                "namespaced": False,
                "kind": "Namespace",
                "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
                "shortNames": ["ns"],
            },
        ),
        (
            "/apis/apps/v1",
            {
                "name": "deployments",
                "singularName": "deployment",
                "namespaced": True,
                "kind": "Deployment",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["deploy"],
                "categories": ["all"],
            },
        ),
        (
            "/apis/apps/v1",
            {
                "name": "deployments/scale",
                "singularName": "",
                "namespaced": True,
                "group": "autoscaling",
                "version": "v1",
                "kind": "Scale",
                "verbs": ["get", "patch", "update"],
            },
        ),
        (
            "/apis/authorization.k8s.io/v1",
            {
                "name": "selfsubjectaccessreviews",
                "singularName": "selfsubjectaccessreview",
                "namespaced": False,
                "kind": "SelfSubjectAccessReview",
                "verbs": ["create"],
            },
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else None,
)
async def test_a_built_in_resource_is_described(api: Api, path: str, resource: Object) -> None:
    found = {item["name"]: item for item in (await api.get(path)).body["resources"]}[resource["name"]]
    found.pop("storageVersionHash", None)
    assert found == resource


async def test_a_custom_resource_is_described(api: Api, widgets: str) -> None:
    resources = (await api.get(widgets)).body["resources"]
    for resource in resources:
        resource.pop("storageVersionHash", None)
    verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    found = {resource["name"]: resource for resource in resources}
    assert found["widgets"] == {
        "name": "widgets",
        "singularName": "widget",
        "namespaced": True,
        "kind": "Widget",
        "verbs": verbs,
        "shortNames": ["wd"],
        "categories": ["conforming"],
    }
    assert found["widgets/status"] == {
        "name": "widgets/status",
        "singularName": "",
        "namespaced": True,
        "kind": "Widget",
        "verbs": ["get", "patch", "update"],
    }
    assert found["widgets/scale"] == {
        "name": "widgets/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }


async def test_aggregated_discovery_of_the_core(api: Api) -> None:
    answer = await api.get("/api", accept=AGGREGATED)
    assert answer.headers["Content-Type"] == AGGREGATED
    assert answer.headers["Vary"] == "Accept"
    body = answer.body
    assert (body["kind"], body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    assert [item["metadata"] for item in body["items"]] == [{}]
    (version,) = body["items"][0]["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    secrets = next(resource for resource in version["resources"] if resource["resource"] == "secrets")
    assert secrets == {
        "resource": "secrets",
        "responseKind": {"group": "", "version": "", "kind": "Secret"},
        "scope": "Namespaced",
        "singularResource": "secret",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }


async def test_aggregated_discovery_has_subresources_inside(api: Api) -> None:
    body = (await api.get("/apis", accept=AGGREGATED)).body
    apps = next(item for item in body["items"] if item["metadata"].get("name") == "apps")
    deployments = next(
        resource for resource in apps["versions"][0]["resources"] if resource["resource"] == "deployments"
    )
    assert deployments["scope"] == "Namespaced"
    assert deployments["shortNames"] == ["deploy"]
    assert deployments["categories"] == ["all"]
    assert {subresource["subresource"]: subresource["verbs"] for subresource in deployments["subresources"]} == {
        "scale": ["get", "patch", "update"],
        "status": ["get", "patch", "update"],
    }
    scale = next(subresource for subresource in deployments["subresources"] if subresource["subresource"] == "scale")
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


async def test_aggregated_discovery_shows_custom_resources(api: Api, widgets: str) -> None:
    group = widgets.split("/")[2]

    async def found() -> Object | None:
        body = (await api.get("/apis", accept=AGGREGATED)).body
        for item in body["items"]:
            if item["metadata"].get("name") == group:
                resources = item["versions"][0]["resources"]
                return next((r for r in resources if r["resource"] == "widgets"), None)
        return None

    resource = await found()
    assert resource is not None
    assert resource["responseKind"] == {"group": group, "version": "v1", "kind": "Widget"}
    assert resource["categories"] == ["conforming"]
    assert [subresource["subresource"] for subresource in resource["subresources"]] == ["status", "scale"]


async def test_the_first_acceptable_form_of_discovery_is_given(api: Api) -> None:
    plain = await api.get("/apis", accept="application/json")
    assert plain.body["kind"] == "APIGroupList"
    unknown_first = await api.get(
        "/apis", accept=f"application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,{AGGREGATED}"
    )
    assert unknown_first.body["kind"] == "APIGroupDiscoveryList"


async def test_an_unknown_group_is_plainly_not_found(api: Api) -> None:
    answer = await api.get("/apis/unknown.example.com")
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_an_unknown_version_of_a_known_group_is_not_found(api: Api, widgets: str) -> None:
    answer = await api.get(widgets.replace("/v1", "/v9"))
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_version_says_which_kubernetes_it_is(api: Api) -> None:
    body = (await api.get("/version")).made
    assert re.fullmatch(r"v1\.\d+\.\d+.*", body["gitVersion"])
    assert body["major"] == "1"
    assert body["minor"] == body["gitVersion"].split(".")[1]
    assert {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"} <= set(body)


async def test_an_answer_tells_the_servers_time(api: Api) -> None:
    told = parsedate_to_datetime((await api.get("/version")).headers["Date"])
    assert abs((datetime.now(UTC) - told).total_seconds()) < 60


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_health_is_one_word(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.text) == (200, "ok")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/version"])
async def test_health_and_version_need_no_credentials(stranger: Api, path: str) -> None:
    assert (await stranger.get(path)).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_verbose_health_lists_the_checks(api: Api, path: str) -> None:
    lines = (await api.get(path, verbose="")).text.splitlines()
    assert "[+]ping ok" in lines
    assert lines[-1] == f"{path.strip('/')} check passed"


async def test_discovery_is_closed_to_strangers(stranger: Api) -> None:
    answer = await stranger.get("/apis")
    assert answer.status == 403
    assert answer.body == failure(
        403,
        "Forbidden",
        'forbidden: User "system:anonymous" cannot get path "/apis"',
    ) | {"details": {}}
