"""Strategic merge patches of built-in kinds: lists merge by their keys, and directives say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import deployment, service
from conformance.wire import STRATEGIC_PATCH, failure, unexplained

if TYPE_CHECKING:
    from conformance.wire import Api, Object


async def a_deployment(api: Api, namespace: str) -> str:
    body = deployment("one")
    body["spec"]["template"]["spec"] = {
        "containers": [
            {"name": "main", "image": "main:1", "env": [{"name": "A", "value": "1"}], "args": ["x", "y"]},
            {"name": "side", "image": "side:1"},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd", "zone": "a"},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    assert (await api.post(path, body)).status == 201
    return f"{path}/one"


async def patched(api: Api, path: str, pod_spec: Object) -> Any:
    body = {"spec": {"template": {"spec": pod_spec}}}
    return (await api.patch(path, body, STRATEGIC_PATCH)).made["spec"]["template"]["spec"]


async def test_containers_merge_by_name(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(api, path, {"containers": [{"name": "main", "image": "main:2"}]})
    assert {container["name"]: container["image"] for container in spec["containers"]} == {
        "main": "main:2",
        "side": "side:1",
    }
    main = next(container for container in spec["containers"] if container["name"] == "main")
    assert main["args"] == ["x", "y"]


async def test_a_new_element_is_added(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(api, path, {"containers": [{"name": "new", "image": "new:1"}]})
    assert [container["name"] for container in spec["containers"]] == ["new", "main", "side"]


async def test_nested_lists_merge_too(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(api, path, {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]})
    main = next(container for container in spec["containers"] if container["name"] == "main")
    assert {item["name"]: item["value"] for item in main["env"]} == {"A": "1", "B": "2"}


async def test_lists_without_a_key_are_replaced(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(
        api,
        path,
        {"containers": [{"name": "main", "args": ["z"]}], "tolerations": [{"key": "new", "operator": "Exists"}]},
    )
    main = next(container for container in spec["containers"] if container["name"] == "main")
    assert main["args"] == ["z"]
    assert [toleration["key"] for toleration in spec["tolerations"]] == ["new"]


async def test_an_element_can_be_deleted_by_its_key(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(api, path, {"containers": [{"$patch": "delete", "name": "side"}]})
    assert [container["name"] for container in spec["containers"]] == ["main"]


async def test_a_list_can_be_replaced_on_demand(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(api, path, {"containers": [{"$patch": "replace"}, {"name": "only", "image": "only:1"}]})
    assert [container["name"] for container in spec["containers"]] == ["only"]


async def test_a_map_can_be_replaced_on_demand(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(api, path, {"nodeSelector": {"$patch": "replace", "disk": "hdd"}})
    assert spec["nodeSelector"] == {"disk": "hdd"}


async def test_a_map_merges_and_null_removes(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(api, path, {"nodeSelector": {"zone": None, "new": "x"}})
    assert spec["nodeSelector"] == {"disk": "ssd", "new": "x"}


async def test_the_order_of_elements_can_be_set(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    spec = await patched(
        api,
        path,
        {
            "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
            "containers": [{"name": "main", "image": "main:3"}],
        },
    )
    assert [container["name"] for container in spec["containers"]] == ["side", "main"]


async def test_keys_can_be_kept(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    body = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert (await api.patch(path, body, STRATEGIC_PATCH)).made["spec"]["strategy"] == {"type": "Recreate"}


async def test_service_ports_merge_by_port(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    ports = [{"name": "http", "port": 80}, {"name": "tls", "port": 443}]
    await api.post(path, service("one", ports=ports))
    body = {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}
    answer = (await api.patch(f"{path}/one", body, STRATEGIC_PATCH)).made
    assert {port["port"]: port["targetPort"] for port in answer["spec"]["ports"]} == {80: 8080, 443: 443}


async def test_finalizers_are_a_set(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, {"metadata": {"name": "one", "finalizers": ["example.com/a"]}})
    body = {"metadata": {"finalizers": ["example.com/b"]}}
    answer = (await api.patch(f"{path}/one", body, STRATEGIC_PATCH)).made
    assert sorted(answer["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}
    answer = (await api.patch(f"{path}/one", body, STRATEGIC_PATCH)).made
    assert "finalizers" not in answer["metadata"]


async def test_owner_references_merge_by_uid(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = (await api.post(path, {"metadata": {"name": "owner"}})).made
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    await api.post(path, {"metadata": {"name": "one", "ownerReferences": [reference]}})
    body = {"metadata": {"ownerReferences": [{"uid": reference["uid"], "controller": True}]}}
    answer = (await api.patch(f"{path}/one", body, STRATEGIC_PATCH)).made
    assert answer["metadata"]["ownerReferences"] == [reference | {"controller": True}]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
            "map: map[image:x] does not contain declared merge key: name",
        ),
        ({"spec": {"strategy": {"$patch": "dance"}}}, "unknown patch type: dance in map: map[$patch:dance]"),
    ],
    ids=["no key", "unknown directive"],
)
async def test_a_strategic_patch_that_cannot_be_done_is_an_error(
    api: Api, namespace: str, patch: object, message: str
) -> None:
    path = await a_deployment(api, namespace)
    answer = await api.patch(path, patch, STRATEGIC_PATCH)
    assert answer.body == unexplained(500, message)


async def test_a_malformed_strategic_patch_is_a_bad_request(api: Api, namespace: str) -> None:
    path = await a_deployment(api, namespace)
    answer = await api.patch(path, "nonsense", STRATEGIC_PATCH)
    assert answer.body == failure(400, "BadRequest", "invalid JSON patch")
