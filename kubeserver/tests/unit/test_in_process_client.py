"""The server without a socket, as a test of another project would use it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import Any

from kubeserver import in_process

WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}}
                        },
                    }
                },
            }
        ],
    },
}
PATH = "/apis/example.com/v1/namespaces/home/widgets"


def widget(name: str, size: int = 1) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


async def test_objects_of_a_definition_are_created_validated_and_listed() -> None:
    async with in_process(definitions=[WIDGETS], namespaces=["home"]) as client:
        status, created = await client.request("POST", PATH, widget("one"))
        assert (status, created["metadata"]["generation"]) == (201, 1)
        status, refusal = await client.request("POST", PATH, widget("none", size=0))
        assert (status, refusal["reason"]) == (422, "Invalid")
        status, found = await client.request("GET", PATH, query={"labelSelector": "!missing"})
        assert [item["metadata"]["name"] for item in found["items"]] == ["one"]


async def test_a_watch_tells_what_happens_and_ends_when_it_is_closed() -> None:
    async with in_process(definitions=[WIDGETS], namespaces=["home"]) as client:
        _, listed = await client.request("GET", PATH)
        since = {"resourceVersion": listed["metadata"]["resourceVersion"]}
        async with aclosing(client.watch(PATH, query=since)) as events:
            await client.request("POST", PATH, widget("one"))
            assert (await anext(events))["type"] == "ADDED"
            await client.request("DELETE", f"{PATH}/one")
            deleted = await anext(events)
            assert (deleted["type"], deleted["object"]["metadata"]["name"]) == ("DELETED", "one")


async def test_history_can_be_read_after_it_left_memory_and_is_compacted_as_on_a_disk() -> None:
    async with in_process(namespaces=["home"]) as client:
        path = "/api/v1/namespaces/home/configmaps"
        for number in range(3):
            await client.request("POST", path, {"metadata": {"name": f"a{number}"}})
        status, page = await client.request("GET", path, query={"limit": "1"})
        rest = {"limit": "5", "continue": page["metadata"]["continue"]}
        await client.request("DELETE", f"{path}/a2")
        status, found = await client.request("GET", path, query=rest)
        assert (status, [item["metadata"]["name"] for item in found["items"]]) == (200, ["a1", "a2"])
        store = client.server._store
        await store.compact(store.revision)
        status, refusal = await client.request("GET", path, query=rest)
        assert (status, refusal["reason"]) == (410, "Expired")


def test_it_runs_in_no_thread() -> None:
    async def main() -> set[str]:
        async with in_process(definitions=[WIDGETS], namespaces=["home"]) as client:
            await client.request("POST", PATH, widget("one"))
            return {thread.name for thread in threading.enumerate()}

    assert not any(name.startswith(("kubeserver", "asyncio")) for name in asyncio.run(main()))


async def test_another_user_has_only_the_rights_that_rbac_gives() -> None:
    async with in_process(definitions=[WIDGETS], namespaces=["home"]) as client:
        status, refusal = await client.acting_as("jane", "developers").request("GET", PATH)
        assert status == 403
        assert 'User "jane" cannot list resource "widgets"' in refusal["message"]


async def test_a_logical_cluster_has_objects_of_its_own() -> None:
    async with in_process(namespaces=["home"]) as client:
        await client.server.add_cluster("team", "one")
        status, found = await client.request("GET", "/clusters")
        assert (status, [item["name"] for item in found["items"]]) == (200, ["one"])
