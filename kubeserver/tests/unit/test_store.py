"""What the store promises to one careful caller: revisions, reads and pages."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from kubeserver.storage.store import (
    Compacted,
    Exists,
    Feed,
    Missing,
    ObjectKey,
    Stale,
    StorageFailed,
    Store,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

from unit.stores import PODS, names, pod, value


async def test_every_write_gets_the_next_revision_and_carries_it(store: Store) -> None:
    before = store.revision
    assert before >= 1
    created = await store.create(pod("a"), value(step=1))
    updated = await store.update(pod("a"), created.revision, value(step=2))
    deleted = await store.delete(pod("a"), updated.revision, value(step=2))
    assert [created.revision, updated.revision, deleted.revision] == [before + 1, before + 2, before + 3]
    for entry in (created, updated, deleted):
        assert entry.object()["metadata"]["resourceVersion"] == str(entry.revision)
    assert store.revision == deleted.revision
    assert store.get(pod("a")) is None


async def test_a_second_create_is_refused_with_the_object_in_the_way(store: Store) -> None:
    first = await store.create(pod("a"), value())
    with pytest.raises(Exists) as refused:
        await store.create(pod("a"), value())
    assert refused.value.current == first


async def test_a_write_on_an_old_revision_is_refused_with_the_current_one(store: Store) -> None:
    first = await store.create(pod("a"), value())
    second = await store.update(pod("a"), first.revision, value())
    for write in (store.update, store.delete):
        with pytest.raises(Stale) as refused:
            await write(pod("a"), first.revision, value())
        assert refused.value.current == second
    for write in (store.update, store.delete):
        with pytest.raises(Missing):
            await write(pod("b"), 1, value())


async def test_a_write_under_way_binds_decisions_but_is_not_shown(store: Store) -> None:
    first = store.create(pod("a"), value(step=1))
    assert store.get(pod("a")) is None
    assert store.entries(PODS) == []
    latest = store.latest(pod("a"))
    assert latest is not None
    assert [entry.revision for entry in store.entries_latest(PODS)] == [latest.revision]
    with pytest.raises(Exists):
        store.create(pod("a"), value())
    second = store.update(pod("a"), latest.revision, value(step=2))
    third = store.delete(pod("a"), latest.revision + 1, value(step=2))
    assert store.latest(pod("a")) is None
    assert store.entries_latest(PODS) == []
    assert store.count(PODS) == 0
    again = store.create(pod("a"), value(step=3))
    assert [entry.revision for entry in await asyncio.gather(first, second, third, again)] == [2, 3, 4, 5]
    shown = store.get(pod("a"))
    assert shown is not None
    assert shown.object()["step"] == 3


async def test_an_encoder_that_fails_burns_nothing(store: Store) -> None:
    def broken(revision: int) -> bytes:
        raise KeyError(revision)

    before = store.revision
    with pytest.raises(KeyError):
        store.create(pod("a"), broken)
    assert store.latest(pod("a")) is None
    assert (await store.create(pod("a"), value())).revision == before + 1


async def test_a_writer_that_is_cancelled_has_still_written(store: Store) -> None:
    task = asyncio.ensure_future(store.create(pod("a"), value()))
    await asyncio.sleep(0)
    task.cancel()
    await store.create(pod("b"), value())
    assert names(store.entries(PODS)) == ["default/a", "default/b"]


async def test_lists_are_in_the_byte_order_of_namespace_slash_name(store: Store) -> None:
    keys = [
        pod("b", "a"),
        pod("a", "a"),
        pod("x", "a-b"),
        pod("a.b", "a"),
        pod("a-b", "a"),
        pod("x", "a0"),
        pod("x", "b"),
    ]
    await asyncio.gather(*(store.create(key, value()) for key in keys))
    everything = [entry.key for entry in store.entries(PODS)]
    assert everything == sorted(keys, key=lambda key: f"{key.namespace}/{key.name}".encode())
    assert names(store.entries(PODS, "a")) == ["a/a", "a/a-b", "a/a.b", "a/b"]
    assert store.count(PODS, "a") == 4
    assert store.count(PODS) == 7
    assert names(store.entries_latest(PODS, "b")) == ["b/x"]
    assert store.entries(PODS, "none") == []
    assert store.entries(Table("main", "", "secrets")) == []


async def test_names_that_would_leave_their_place_are_refused(store: Store) -> None:
    for key in (pod("a/b"), pod("a", "b/c"), pod(""), pod("\ud800")):
        with pytest.raises(ValueError, match="not a storable name"):
            store.create(key, value())


async def test_tables_and_clusters_are_apart(store: Store) -> None:
    await store.create(pod("a"), value())
    await store.create(pod("a", cluster="team/dev"), value())
    await store.create(ObjectKey("team/dev", "apps", "deployments", "", "a"), value())
    assert store.count(PODS) == 1
    assert store.tables("team/dev") == [Table("team/dev", "", "pods"), Table("team/dev", "apps", "deployments")]
    watch = store.watch(Table("team/dev", "", "pods"), since=store.revision)
    assert await store.drop_cluster("team/dev") == 2
    assert store.tables() == [PODS]
    change = await anext(watch)
    assert change.type == "DELETED"
    assert change.object()["metadata"]["resourceVersion"] == str(change.revision)


async def test_settled_waits_for_the_write_that_a_decision_was_based_on(store: Store) -> None:
    writing = store.create(pod("a"), value())
    latest = store.latest(pod("a"))
    assert latest is not None
    await store.settled(latest.revision)
    assert store.revision == latest.revision
    assert writing.done()
    with pytest.raises(StorageFailed):
        await store.settled(latest.revision + 1)


async def test_reached_waits_for_a_revision_of_the_future(store: Store) -> None:
    waiting = asyncio.create_task(store.reached(store.revision + 2))
    await store.create(pod("a"), value())
    assert not waiting.done()
    await store.create(pod("b"), value())
    await waiting
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await store.reached(store.revision + 1)


# Pages.


@pytest.mark.parametrize("feed", [Feed, partial(Feed, max_changes=2)], ids=["from memory", "from disk"])
async def test_pages_show_the_list_as_it_was(tmp_path: Path, feed: Callable[[], Feed]) -> None:
    store = await Store.open(tmp_path, feed=feed)
    for name in "abcdef":
        await store.create(pod(name), value(step=1))
    at = store.revision
    first, remaining = await store.page(PODS, revision=at, limit=2)
    assert (names(first), remaining) == (["default/a", "default/b"], 4)
    for name in "bce":
        entry = store.get(pod(name))
        assert entry is not None
        await store.update(entry.key, entry.revision, value(step=2))
    gone = store.get(pod("d"))
    assert gone is not None
    await store.delete(gone.key, gone.revision, value(step=1))
    await store.create(pod("cc"), value(step=2))
    await store.create(pod("d"), value(step=2))
    await store.create(pod("z", "zoo"), value(step=2))
    second, remaining = await store.page(PODS, revision=at, start_after=("default", "b"), limit=3)
    assert (names(second), remaining) == (["default/c", "default/d", "default/e"], 1)
    assert all(entry.object()["step"] == 1 for entry in second)
    assert all(entry.object()["metadata"]["resourceVersion"] == str(entry.revision) for entry in second)
    last, remaining = await store.page(PODS, "default", revision=at, start_after=("default", "e"), limit=3)
    assert (names(last), remaining) == (["default/f"], 0)
    assert await store.page(PODS, "zoo", revision=at) == ([], 0)
    with pytest.raises(ValueError, match="future"):
        await store.page(PODS, revision=store.revision + 1)
    await store.compact(at + 1)
    with pytest.raises(Compacted):
        await store.page(PODS, revision=at, limit=2)
    await store.close()
