"""Tables: what `kubectl get` shows is decided by the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import configmap, deployment, pod, service, widget
from conformance.wire import TABLE, failure

if TYPE_CHECKING:
    from conformance.wire import Api, Object

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"

COLUMNS = {
    "/api/v1/configmaps": "Name Data Age",
    "/api/v1/secrets": "Name Type Data Age",
    "/api/v1/namespaces": "Name Status Age",
    "/api/v1/serviceaccounts": "Name Age",
    "/api/v1/services": "Name Type Cluster-IP External-IP Port(s) Age +Selector",
    "/api/v1/nodes": (
        "Name Status Roles Age Version +Internal-IP +External-IP +OS-Image +Kernel-Version +Container-Runtime"
    ),
    "/api/v1/pods": "Name Ready Status Restarts Age +IP +Node +Nominated_Node +Readiness_Gates",
    "/api/v1/events": ("Last_Seen Type Reason Object +Subobject +Source Message +First_Seen +Count +Name"),
    "/apis/apps/v1/deployments": "Name Ready Up-to-date Available Age +Containers +Images +Selector",
    "/apis/coordination.k8s.io/v1/leases": "Name Holder Age",
    DEFINITIONS: "Name Scope Versions Created_At +Group +Kind +ShortNames +Established",
    f"{RBAC}/clusterroles": "Name Created_At",
    f"{RBAC}/roles": "Name Created_At",
    f"{RBAC}/clusterrolebindings": "Name Role Age +Users +Groups +ServiceAccounts",
    f"{RBAC}/rolebindings": "Name Role Age +Users +Groups +ServiceAccounts",
    f"{ADMISSION}/validatingwebhookconfigurations": "Name Webhooks Age",
    f"{ADMISSION}/mutatingwebhookconfigurations": "Name Webhooks Age",
}


@pytest.mark.parametrize("path", COLUMNS)
async def test_a_built_in_kind_has_its_columns(api: Api, path: str) -> None:
    body = (await api.get(path, accept=TABLE, limit=1)).made
    found = " ".join(
        ("+" if column["priority"] else "") + column["name"].replace(" ", "_") for column in body["columnDefinitions"]
    )
    assert found == COLUMNS[path]


def cells(body: Object) -> dict[str, list[object]]:
    """The cells of each row by name, without the age, which moves."""
    ages = [n for n, column in enumerate(body["columnDefinitions"]) if column["name"] == "Age"]
    rows = [[cell for n, cell in enumerate(row["cells"]) if n not in ages] for row in body["rows"]]
    return {str(row[0]): row[1:] for row in rows}


async def test_a_custom_table_describes_its_columns(api: Api, namespace: str, widgets: str) -> None:
    body = (await api.get(f"{widgets}/namespaces/{namespace}/widgets", accept=TABLE)).made
    assert (body["kind"], body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert body["metadata"]["resourceVersion"]
    name, *others = body["columnDefinitions"]
    assert (name["name"], name["type"], name["format"], name["priority"]) == ("Name", "string", "name", 0)
    path = "Custom resource definition column (in JSONPath format): "
    assert others == [
        {"name": "Size", "type": "integer", "format": "", "description": "How big", "priority": 0},
        {
            "name": "Color",
            "type": "string",
            "format": "",
            "description": f"{path}.spec.color",
            "priority": 0,
        },
        {
            "name": "Phase",
            "type": "string",
            "format": "",
            "description": f"{path}.status.phase",
            "priority": 1,
        },
        {
            "name": "Age",
            "type": "date",
            "format": "",
            "description": f"{path}.metadata.creationTimestamp",
            "priority": 0,
        },
    ]
    assert body["rows"] == []


async def test_a_custom_row_has_what_its_paths_find(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("full", {"size": 3, "color": "red"}))
    await api.merge(f"{path}/full/status", {"status": {"phase": "Done"}})
    await api.post(path, widget("bare"))
    body = (await api.get(path, accept=TABLE)).made
    assert cells(body) == {"full": [3, "red", "Done"], "bare": [None, None, None]}
    age = body["rows"][0]["cells"][-1]
    assert age.endswith("s")


async def test_a_kind_without_columns_shows_its_age(api: Api, namespace: str, gadgets: str) -> None:
    body = (await api.get(f"{gadgets}/namespaces/{namespace}/gadgets", accept=TABLE)).made
    assert [column["name"] for column in body["columnDefinitions"]] == ["Name", "Age"]


@pytest.mark.parametrize("include", ["None", "Metadata", "Object", ""])
async def test_a_row_carries_what_was_asked_for(api: Api, namespace: str, widgets: str, include: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    created = (await api.post(path, widget("one", {"size": 3}))).made
    query = {"includeObject": include} if include else {}
    (row,) = (await api.get(path, accept=TABLE, **query)).made["rows"]
    if include == "None":
        assert row["object"] is None
    elif include == "Object":
        assert row["object"] == created
    else:
        assert row["object"] == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": created["metadata"],
        }


async def test_one_object_is_a_table_of_one_row(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    created = (await api.post(path, widget("one", {"size": 3}))).made
    body = (await api.get(f"{path}/one", accept=TABLE)).made
    assert [row["cells"][:2] for row in body["rows"]] == [["one", 3]]
    assert body["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_a_created_object_can_be_answered_as_a_table(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    answer = await api.post(path, widget("one", {"size": 3}), accept=TABLE)
    assert answer.status == 201
    assert answer.body["kind"] == "Table"


async def test_tables_come_in_pages(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    for name in ("one", "two"):
        await api.post(path, widget(name))
    body = (await api.get(path, accept=TABLE, limit=1)).made
    assert len(body["rows"]) == 1
    assert body["metadata"]["remainingItemCount"] == 1
    body = (await api.get(path, accept=TABLE, limit=1, **{"continue": body["metadata"]["continue"]})).made
    assert body["rows"][0]["cells"][0] == "two"


async def test_configmaps_and_secrets_count_their_keys(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    await api.post(f"{path}/configmaps", configmap("one", {"a": "1", "b": "2"}))
    await api.post(f"{path}/secrets", {"metadata": {"name": "one"}, "stringData": {"a": "1"}})
    assert cells((await api.get(f"{path}/configmaps/one", accept=TABLE)).made) == {"one": [2]}
    assert cells((await api.get(f"{path}/secrets/one", accept=TABLE)).made) == {"one": ["Opaque", 1]}


async def test_services_show_their_addresses_and_ports(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    inner = (await api.post(path, service("inner", selector={"a": "b"}))).made
    outer = (await api.post(path, service("outer", type="LoadBalancer", ports=[{"name": "x", "port": 443}]))).made
    await api.post(path, service("headless", clusterIP="None"))
    port = outer["spec"]["ports"][0]["nodePort"]
    assert cells((await api.get(path, accept=TABLE)).made) == {
        "inner": ["ClusterIP", inner["spec"]["clusterIP"], "<none>", "80/TCP", "a=b"],
        "outer": ["LoadBalancer", outer["spec"]["clusterIP"], "<pending>", f"443:{port}/TCP", "<none>"],
        "headless": ["ClusterIP", "None", "<none>", "80/TCP", "<none>"],
    }
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
    assert (await api.merge(f"{path}/outer/status", status)).status == 200
    assert cells((await api.get(f"{path}/outer", accept=TABLE)).made)["outer"][2] == "192.0.2.7"


async def test_deployments_and_pods_show_their_state(api: Api, namespace: str, pods: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await api.post(path, deployment("one", replicas=3))
    assert cells((await api.get(path, accept=TABLE)).made) == {
        "one": ["0/3", 0, 0, "main", "example.com/app:1", "app=one"]
    }
    assert (await api.post(pods, pod("one"))).status == 201
    assert cells((await api.get(pods, accept=TABLE)).made) == {
        "one": ["0/1", "Pending", "0", "<none>", "<none>", "<none>", "<none>"]
    }


async def test_a_row_carries_an_object_or_not(api: Api, namespace: str) -> None:
    answer = await api.get(f"/api/v1/namespaces/{namespace}/secrets", accept=TABLE, includeObject="Bad")
    assert answer.body == failure(
        400,
        "BadRequest",
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bad": must be '
        "'Metadata', 'Object', 'None', or empty",
    )


async def test_a_table_is_one_choice_among_others(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    first_is_unknown = "application/json;as=Nope;v=v1;g=meta.k8s.io"
    answer = await api.get(path, accept=f"{first_is_unknown},{TABLE},application/json")
    assert answer.made["kind"] == "Table"
    answer = await api.get(path, accept=f"{first_is_unknown},application/json")
    assert answer.made["kind"] == "SecretList"
