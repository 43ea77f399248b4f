"""Watches: where they start, what they tell, how they end."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from conformance.kinds import configmap, widget
from conformance.wire import PARTIAL, TABLE, failure, invalid, unexplained

if TYPE_CHECKING:
    from conformance.wire import Api, Object

END_OF_INITIAL = {"k8s.io/initial-events-end": "true"}


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def version(api: Api, path: str) -> str:
    found: str = (await api.get(path)).made["metadata"]["resourceVersion"]
    return found


async def test_a_watch_from_a_list_tells_what_happens_next(api: Api, namespace: str) -> None:
    path = maps(namespace)
    await api.post(path, configmap("before"))
    async with api.watch(path, resourceVersion=await version(api, path)) as watch:
        created = (await api.post(path, configmap("one"))).made
        changed = (await api.merge(f"{path}/one", {"data": {"key": "new"}})).made
        await api.delete(f"{path}/one")
        assert await watch.next_change() == {"type": "ADDED", "object": created}
        assert await watch.next_change() == {"type": "MODIFIED", "object": changed}
        event = await watch.next_change()
    assert event["type"] == "DELETED"
    assert event["object"]["data"] == {"key": "new"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


async def test_a_watch_replays_what_happened_since(api: Api, namespace: str) -> None:
    path = maps(namespace)
    start = await version(api, path)
    await api.post(path, configmap("one"))
    await api.post(path, configmap("two"))
    await api.delete(f"{path}/one")
    async with api.watch(path, resourceVersion=start) as watch:
        assert await watch.names(3) == [("ADDED", "one"), ("ADDED", "two"), ("DELETED", "one")]


async def test_a_custom_resource_can_be_watched(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    async with api.watch(path, resourceVersion=await version(api, path)) as watch:
        created = (await api.post(path, widget("one", {"size": 1}))).made
        assert await watch.next_change() == {"type": "ADDED", "object": created}
        changed = (await api.merge(f"{path}/one/status", {"status": {"phase": "Done"}})).made
        assert await watch.next_change() == {"type": "MODIFIED", "object": changed}


@pytest.mark.parametrize("start", [{}, {"resourceVersion": "0"}, {"resourceVersion": ""}], ids=str)
async def test_a_watch_from_nowhere_begins_with_what_exists(api: Api, namespace: str, start: Object) -> None:
    path = maps(namespace)
    await api.post(path, configmap("one"))
    await api.post(path, configmap("two"))
    await version(api, path)
    async with api.watch(path, **start) as watch:
        assert sorted(await watch.names(2)) == [("ADDED", "one"), ("ADDED", "two")]
        await api.post(path, configmap("three"))
        assert await watch.names(1) == [("ADDED", "three")]


async def test_all_namespaces_can_be_watched(api: Api, namespace: str, unique: str) -> None:
    start = await version(api, "/api/v1/configmaps")
    query = {"labelSelector": f"only={unique}"}
    async with api.watch("/api/v1/configmaps", resourceVersion=start, **query) as watch:
        await api.post(maps(namespace), configmap("one", labels={"only": unique}))
        event = await watch.next_change()
        assert event["object"]["metadata"]["namespace"] == namespace


async def test_one_object_can_be_watched_by_name(api: Api, namespace: str) -> None:
    path = maps(namespace)
    query = {"fieldSelector": "metadata.name=two"}
    async with api.watch(path, resourceVersion=await version(api, path), **query) as watch:
        await api.post(path, configmap("one"))
        await api.post(path, configmap("two"))
        assert await watch.names(1) == [("ADDED", "two")]


async def test_the_path_of_one_object_is_not_watched_but_got(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one"))
    for path in (f"{maps(namespace)}/one", f"/api/v1/namespaces/{namespace}"):
        answer = await api.get(path, watch="true", timeoutSeconds="1")
        assert answer.body["metadata"]["name"] in ("one", namespace)


async def test_an_object_that_comes_to_match_is_added(api: Api, namespace: str) -> None:
    path = maps(namespace)
    await api.post(path, configmap("one", labels={"color": "red"}))
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, labelSelector="color=blue") as watch:
        await api.merge(f"{path}/one", {"metadata": {"labels": {"color": "blue"}}})
        assert await watch.names(1) == [("ADDED", "one")]


async def test_an_object_that_ceases_to_match_is_deleted(api: Api, namespace: str) -> None:
    path = maps(namespace)
    await api.post(path, configmap("one", labels={"color": "blue"}))
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, labelSelector="color=blue") as watch:
        changed = (await api.merge(f"{path}/one", {"metadata": {"labels": {"color": "red"}}})).made
        event = await watch.next_change()
    assert event["type"] == "DELETED"
    # What it was while it still matched, at the version of the change that took it away.
    assert event["object"]["metadata"]["labels"] == {"color": "blue"}
    assert event["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


async def test_changes_of_what_does_not_match_are_not_told(api: Api, namespace: str) -> None:
    path = maps(namespace)
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, labelSelector="color=blue") as watch:
        await api.post(path, configmap("one", labels={"color": "red"}))
        await api.merge(f"{path}/one", {"data": {"a": "b"}})
        await api.delete(f"{path}/one")
        await api.post(path, configmap("two", labels={"color": "blue"}))
        assert await watch.names(1) == [("ADDED", "two")]


async def test_initial_events_end_with_a_bookmark(api: Api, namespace: str) -> None:
    path = maps(namespace)
    for name in ("one", "two"):
        await api.post(path, configmap(name))
    newest = int(await version(api, path))
    async with api.watch(
        path,
        sendInitialEvents="true",
        allowWatchBookmarks="true",
        resourceVersionMatch="NotOlderThan",
    ) as watch:
        assert sorted(await watch.names(2)) == [("ADDED", "one"), ("ADDED", "two")]
        bookmark = await watch.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "ConfigMap"
        assert bookmark["object"]["metadata"]["annotations"] == END_OF_INITIAL
        assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= newest
        await api.post(path, configmap("three"))
        assert await watch.names(1) == [("ADDED", "three")]


async def test_initial_events_of_nothing_are_a_bookmark(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    async with api.watch(
        path,
        sendInitialEvents="true",
        allowWatchBookmarks="true",
        resourceVersionMatch="NotOlderThan",
    ) as watch:
        bookmark = await watch.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "Widget"
    assert bookmark["object"]["metadata"]["annotations"] == END_OF_INITIAL


async def test_initial_events_can_be_declined(api: Api, namespace: str) -> None:
    path = maps(namespace)
    await api.post(path, configmap("before"))
    start = await version(api, path)
    async with api.watch(
        path,
        sendInitialEvents="false",
        allowWatchBookmarks="true",
        resourceVersion=start,
        resourceVersionMatch="NotOlderThan",
    ) as watch:
        await api.post(path, configmap("after"))
        assert await watch.names(1) == [("ADDED", "after")]


async def test_initial_events_need_a_version_match(api: Api, namespace: str) -> None:
    answer = await api.get(maps(namespace), watch="true", sendInitialEvents="true")
    assert answer.body == invalid(
        "ListOptions",
        "",
        (
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        group="meta.k8s.io",
    )


async def test_initial_events_are_for_watches(api: Api, namespace: str) -> None:
    answer = await api.get(
        maps(namespace), sendInitialEvents="true", resourceVersionMatch="NotOlderThan", resourceVersion="1"
    )
    assert answer.body == invalid(
        "ListOptions",
        "",
        (
            "FieldValueForbidden",
            "sendInitialEvents",
            "Forbidden: sendInitialEvents is forbidden for list",
        ),
        group="meta.k8s.io",
    )


async def test_a_version_match_is_not_for_plain_watches(api: Api, namespace: str) -> None:
    answer = await api.get(maps(namespace), watch="true", resourceVersion="1", resourceVersionMatch="NotOlderThan")
    assert answer.body == invalid(
        "ListOptions",
        "",
        (
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        group="meta.k8s.io",
    )


async def test_a_version_that_is_gone_is_an_expired_event(api: Api, namespace: str, widgets: str) -> None:
    # The history of a custom resource begins with its definition, so version 1 is before its time.
    async with api.watch(f"{widgets}/namespaces/{namespace}/widgets", resourceVersion="1") as watch:
        event = await watch.next()
        assert event["type"] == "ERROR"
        message = event["object"]["message"]
        assert message.startswith("too old resource version: 1 (")
        assert event["object"] == failure(410, "Expired", message)
        assert await watch.end() == []


async def test_a_garbage_version_cannot_be_watched(api: Api, namespace: str) -> None:
    answer = await api.get(maps(namespace), watch="true", resourceVersion="garbage")
    assert answer.body == unexplained(
        500,
        'resourceVersion: Invalid value: "garbage": strconv.ParseUint: parsing "garbage": invalid syntax',
    )


async def test_a_watch_ends_in_its_time(api: Api, namespace: str) -> None:
    path = maps(namespace)
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, timeoutSeconds=1) as watch:
        assert await watch.end(10) == []


async def test_a_bookmark_tells_of_versions_that_were_not_shown(api: Api, namespace: str) -> None:
    path = maps(namespace)
    start = await version(api, path)
    query: Object = {"labelSelector": "never=true", "allowWatchBookmarks": "true", "timeoutSeconds": 5}
    async with api.watch(path, resourceVersion=start, **query) as watch:
        unseen = (await api.post(path, configmap("one"))).made["metadata"]["resourceVersion"]
        events = await watch.end(20)
    assert {event["type"] for event in events} == {"BOOKMARK"}
    bookmark = events[-1]["object"]
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("ConfigMap", "v1")
    assert int(bookmark["metadata"]["resourceVersion"]) >= int(unseen)


@pytest.mark.slow
@pytest.mark.timeout(150)
async def test_a_bookmark_comes_each_minute_whatever_is_not_shown(api: Api, namespace: str) -> None:
    """Clients take a watch that is silent for longer for a dead one."""
    path = maps(namespace)
    start = await version(api, path)
    await api.post(path, configmap("one"))

    async def go_on() -> None:
        for number in itertools.count():
            await api.merge(f"{path}/one", {"data": {"number": str(number)}})
            await asyncio.sleep(5)

    query: Object = {"labelSelector": "never=true", "allowWatchBookmarks": "true", "timeoutSeconds": 300}
    async with api.watch(path, resourceVersion=start, **query) as watch:
        others = asyncio.create_task(go_on())
        try:
            assert (await watch.next(85))["type"] == "BOOKMARK"
        finally:
            others.cancel()


async def test_a_watch_is_a_stream_of_json(api: Api, namespace: str) -> None:
    path = maps(namespace)
    answer = await api.get(path, watch="true", timeoutSeconds=1, resourceVersion=await version(api, path))
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Transfer-Encoding"] == "chunked"


async def test_metadata_alone_can_be_watched(api: Api, namespace: str) -> None:
    path = maps(namespace)
    async with api.watch(path, accept=PARTIAL, resourceVersion=await version(api, path)) as watch:
        created = (await api.post(path, configmap("one"))).made
        event = await watch.next_change()
    assert event["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": created["metadata"],
    }


async def test_a_watch_can_send_tables(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    async with api.watch(path, accept=TABLE, resourceVersion=await version(api, path)) as watch:
        for name in ("one", "two"):
            await api.post(path, widget(name, {"size": 4}))
        first, second = await watch.next_change(), await watch.next_change()
    assert first["object"]["kind"] == "Table"
    assert [column["name"] for column in first["object"]["columnDefinitions"]][:2] == ["Name", "Size"]
    assert first["object"]["rows"][0]["cells"][:2] == ["one", 4]
    # Only the first event of a watch describes the columns.
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][:2] == ["two", 4]
