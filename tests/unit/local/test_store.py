"""What the store promises to one careful caller: revisions, reads, pages, watches, compaction, opening."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
from functools import partial
from typing import TYPE_CHECKING

import pytest

from butler.local.apiserver.storage.retention import Mark, horizon, worth_a_mark
from butler.local.apiserver.storage.store import (
    Compacted,
    Entry,
    Exists,
    Feed,
    Key,
    Missing,
    Retention,
    Stale,
    StorageFailed,
    Store,
    StoreRefused,
    Table,
    TooSlow,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

PODS = Table("main", "", "pods")


def pod(name: str, namespace: str = "default", cluster: str = "main") -> Key:
    return Key(cluster, "", "pods", namespace, name)


def value(**fields: object) -> Callable[[int], bytes]:
    return lambda revision: json.dumps({"metadata": {"resourceVersion": str(revision)}, **fields}).encode()


def names(entries: list[Entry]) -> list[str]:
    return [entry.key.path for entry in entries]


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited five seconds in vain")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path)
    yield opened
    await opened.close()


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
    await store.create(Key("team/dev", "apps", "deployments", "", "a"), value())
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


# Watches.


async def test_a_watch_shows_each_change_once_in_order_with_what_was_before(store: Store) -> None:
    watch = store.watch(PODS, since=store.revision)
    created = await store.create(pod("a"), value(step=1))
    await store.create(Key("main", "", "secrets", "default", "s"), value())
    updated = await store.update(pod("a"), created.revision, value(step=2))
    deleted = await store.delete(pod("a"), updated.revision, value(step=2))
    seen = [await anext(watch) for _ in range(3)]
    assert [(change.type, change.revision) for change in seen] == [
        ("ADDED", created.revision),
        ("MODIFIED", updated.revision),
        ("DELETED", deleted.revision),
    ]
    assert [change.previous for change in seen] == [None, created.value, updated.value]
    assert seen[2].object()["metadata"]["resourceVersion"] == str(deleted.revision)
    assert watch.progress == store.revision


async def test_a_watch_of_one_namespace_sleeps_through_the_others(store: Store) -> None:
    watch = store.watch(PODS, "mine", since=store.revision)
    waiting = asyncio.create_task(watch.next_batch())
    await asyncio.sleep(0)
    await store.create(pod("a", "yours"), value())
    assert not waiting.done()
    assert watch.progress == store.revision
    await store.create(pod("a", "mine"), value())
    batch = await waiting
    assert batch is not None
    assert [change.key.path for change in batch] == ["mine/a"]


async def test_progress_never_passes_what_was_not_delivered(store: Store) -> None:
    watch = store.watch(PODS, since=store.revision)
    start = watch.progress
    await asyncio.gather(*(store.create(pod(f"p{n}"), value()) for n in range(5)))
    assert watch.progress == start
    batch = await watch.next_batch(2)
    assert batch is not None
    assert watch.progress == batch[-1].revision == start + 2
    await watch.next_batch()
    await store.create(Key("main", "", "secrets", "default", "s"), value())
    assert watch.progress == store.revision


async def test_a_watch_from_the_past_reads_the_journal_and_meets_the_present(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, feed=partial(Feed, max_changes=8))
    start = store.revision
    await asyncio.gather(*(store.create(pod(f"p{n:04}"), value()) for n in range(1500)))
    watch = store.watch(PODS, since=start + 100)
    seen = [(await anext(watch)).revision for _ in range(700)]
    assert watch.progress == seen[-1]
    await asyncio.gather(*(store.create(pod(f"q{n:04}"), value()) for n in range(100)))
    seen += [(await anext(watch)).revision for _ in range(800)]
    assert seen == list(range(start + 101, start + 1601))
    assert await watch.next_batch(timeout=0.01) == []
    assert watch.progress == store.revision
    await store.close()


async def test_a_watch_may_begin_at_any_revision(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, feed=partial(Feed, max_changes=8))
    for n in range(30):
        await store.create(pod(f"p{n}"), value())
    for since in range(store.revision + 1):
        watch, seen = store.watch(PODS, since=since), []
        while found := await watch.next_batch(3, timeout=0):
            seen += [change.revision for change in found]
        assert seen == list(range(max(2, since + 1), store.revision + 1)), f"since {since}"
    await store.close()


async def test_a_watch_that_falls_out_of_the_feed_misses_nothing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, feed=partial(Feed, max_changes=8))
    watch = store.watch(PODS, since=store.revision)
    seen: list[int] = []
    for turn in range(6):
        await asyncio.gather(*(store.create(pod(f"p{turn}-{n}"), value()) for n in range(3 + 5 * turn)))
        seen.append((await anext(watch)).revision)
        assert watch.progress == seen[-1]
    while found := await watch.next_batch(timeout=0):
        seen += [change.revision for change in found]
    assert seen == list(range(2, store.revision + 1))
    await store.close()


async def test_a_watch_survives_a_restart_of_the_store(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    start = store.revision
    entry = await store.create(pod("a"), value(step=1))
    await store.update(pod("a"), entry.revision, value(step=2))
    await store.close()
    store = await Store.open(tmp_path)
    changes = await store.watch(PODS, since=start).next_batch()
    assert changes is not None
    assert [(change.type, change.previous) for change in changes] == [("ADDED", None), ("MODIFIED", entry.value)]
    await store.close()


async def test_a_watch_ends_when_it_or_the_store_is_closed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    one, two = store.watch(PODS, since=store.revision), store.watch(PODS, since=store.revision)
    waiting = [asyncio.create_task(watch.next_batch()) for watch in (one, two)]
    await asyncio.sleep(0)
    one.close()
    assert await waiting[0] is None
    assert not waiting[1].done()
    await store.close()
    assert await waiting[1] is None
    assert two.closed
    assert await store.watch(Table("main", "", "secrets"), since=store.revision).next_batch() is None
    assert [change async for change in two] == []


async def test_cancelling_a_wait_loses_no_change(store: Store) -> None:
    watch = store.watch(PODS, since=store.revision)
    revisions: list[int] = []
    for turn in range(20):
        writing = store.create(pod(f"p{turn}"), value())
        waiting = asyncio.create_task(watch.next_batch())
        for _ in range(turn % 4):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            revisions += [change.revision for change in waiting.result() or ()]
        await writing
    while found := await watch.next_batch(timeout=0):
        revisions += [change.revision for change in found]
    assert revisions == list(range(2, 22))


async def test_a_watch_that_begins_in_the_future_skips_what_comes_before(store: Store) -> None:
    watch = store.watch(PODS, since=store.revision + 2)
    for name in "abc":
        await store.create(pod(name), value())
    assert (await anext(watch)).key.name == "c"


async def test_watchers_share_one_decoding_and_old_ones_are_dropped(store: Store) -> None:
    one, two = store.watch(PODS, since=store.revision), store.watch(PODS, since=store.revision)
    await store.create(pod("a"), value())
    first, second = await anext(one), await anext(two)
    assert first is second
    assert first.object() is second.object()
    first.encoded["v1"] = b"line"
    assert second.encoded["v1"] == b"line"
    await asyncio.gather(*(store.create(pod(f"p{n}"), value()) for n in range(200)))
    remembered = [first]
    while found := await one.next_batch(timeout=0):
        for change in found:
            assert change.object()["metadata"]["resourceVersion"] == str(change.revision)
        remembered += found
    assert not first.encoded, "a change that left the recently used ones must not keep its lines"
    assert sum(change._object is not None for change in remembered) <= 128


# Compaction.


async def test_compaction_forgets_history_and_keeps_objects(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, feed=partial(Feed, max_changes=2))
    start = store.revision
    kept = await store.create(pod("kept"), value())
    for round_ in range(5):
        entry = await store.create(pod("a"), value(round=round_))
        entry = await store.update(pod("a"), entry.revision, value(round=round_))
        await store.delete(pod("a"), entry.revision, value(round=round_))
    at = store.revision
    last = await store.create(pod("b"), value())
    await store.compact(at)
    assert store.compacted == at
    with pytest.raises(Compacted) as gone:
        store.watch(PODS, since=start)
    assert gone.value.compacted == at
    assert (await anext(store.watch(PODS, since=at))).revision == last.revision
    with sqlite3.connect(tmp_path / "store.db") as file:
        rows = [row[0] for row in file.execute("SELECT revision FROM log ORDER BY revision")]
    file.close()
    assert rows == [kept.revision, last.revision]
    with pytest.raises(ValueError, match="future"):
        await store.compact(store.revision + 1)
    await store.compact(at - 1)
    await store.close()


async def test_revisions_go_on_after_everything_was_deleted_and_compacted(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    entry = await store.create(pod("a"), value())
    gone = await store.delete(pod("a"), entry.revision, value())
    await store.compact(gone.revision)
    await store.close()
    store = await Store.open(tmp_path)
    assert store.revision == gone.revision
    assert store.compacted == gone.revision
    assert (await store.create(pod("a"), value())).revision == gone.revision + 1
    await store.close()


async def test_a_watch_that_reads_too_slowly_is_told_so(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, feed=partial(Feed, max_changes=4))
    watch = store.watch(PODS, since=store.revision)
    for n in range(20):
        await store.create(pod(f"p{n}"), value())
    await store.compact(store.revision - 1)
    with pytest.raises(TooSlow):
        await watch.next_batch()
    await store.close()


async def test_history_is_compacted_by_itself_when_it_is_old(tmp_path: Path) -> None:
    clock = [0.0]
    store = await Store.open(tmp_path, retention=Retention(seconds=160), clock=lambda: clock[0])
    for _ in range(20):
        name = f"p{clock[0]}"
        await store.create(pod(name), value())
        clock[0] += 10
    await eventually(lambda: store.compacted > 0)
    assert store.revision - store.compacted >= 16
    await store.close()


async def test_history_is_compacted_by_itself_when_it_is_long(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, retention=Retention(seconds=1e9, changes=160))
    entry = await store.create(pod("a"), value())
    for _ in range(500):
        entry = await store.update(pod("a"), entry.revision, value())
    await eventually(lambda: store.compacted >= store.revision - 200)
    assert store.revision - store.compacted >= 160
    await store.close()


def test_the_horizon_keeps_the_time_unless_the_size_forbids() -> None:
    keep = Retention(seconds=100, changes=50, bytes=1000)
    marks = [Mark(0, 10, 0, 0), Mark(50, 20, 10, 100), Mark(90, 30, 20, 200)]
    assert horizon(marks, Mark(99, 40, 30, 300), keep) == 0
    assert horizon(marks, Mark(100, 40, 30, 300), keep) == 10
    assert horizon(marks, Mark(99, 40, 60, 300), keep) == 20
    assert horizon(marks, Mark(99, 40, 30, 1200), keep) == 30
    assert not worth_a_mark(marks[0], Mark(1, 11, 1, 10), keep)
    assert worth_a_mark(marks[0], Mark(1, 14, 4, 10), keep)


# Opening.


async def test_a_store_reopens_with_what_it_had(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "deep" / "data")
    for name in "ab":
        await store.create(pod(name), value(name=name))
    entry = store.get(pod("a"))
    assert entry is not None
    await store.update(pod("a"), entry.revision, value(name="changed"))
    before, revision = store.entries(PODS), store.revision
    await store.close()
    await store.close()
    store = await Store.open(tmp_path / "deep" / "data")
    assert store.entries(PODS) == before
    assert store.revision == revision, "a clean restart skips no revisions"
    await store.close()


async def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = await Store.open(tmp_path / "data")
        await store.create(pod("a"), value())
        for file in (tmp_path / "data").iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        await store.close()
    finally:
        os.umask(old)


async def test_a_directory_in_use_is_refused_with_the_owner(tmp_path: Path, store: Store) -> None:
    with pytest.raises(StoreRefused, match=rf"in use by another process \(pid {os.getpid()}\)"):
        await Store.open(tmp_path)
    await store.create(pod("a"), value())


async def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("a shopping list" * 100)
    with pytest.raises(StoreRefused, match="not a database"):
        await Store.open(tmp_path)
    assert (tmp_path / "store.db").read_text().startswith("a shopping list")
    (tmp_path / "store.db").unlink()
    other = sqlite3.connect(tmp_path / "store.db")
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    with pytest.raises(StoreRefused, match="not written by Butler"):
        await Store.open(tmp_path)


async def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    await (await Store.open(tmp_path)).close()
    file = sqlite3.connect(tmp_path / "store.db")
    file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(StoreRefused, match="newer Butler"):
        await Store.open(tmp_path)


async def test_a_damaged_value_is_refused_and_not_served(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await store.create(pod("a"), value(note="the original text"))
    await store.close()
    content = (tmp_path / "store.db").read_bytes()
    assert b"the original text" in content
    (tmp_path / "store.db").write_bytes(content.replace(b"the original text", b"the 0riginal text"))
    with pytest.raises(StoreRefused, match="damaged: revision 2 does not match"):
        await Store.open(tmp_path)
    (tmp_path / "store.db").write_bytes(content)
    store = await Store.open(tmp_path)
    assert store.count(PODS) == 1
    await store.close()


async def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await asyncio.gather(*(store.create(pod(f"p{n}"), value(pad="x" * 2000)) for n in range(200)))
    await store.close()
    content = (tmp_path / "store.db").read_bytes()
    (tmp_path / "store.db").write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreRefused, match="damaged"):
        await Store.open(tmp_path)


async def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreRefused, match="cannot be used"):
        await Store.open(tmp_path / "file")


async def test_a_store_without_its_tables_is_refused(tmp_path: Path) -> None:
    await (await Store.open(tmp_path)).close()
    file = sqlite3.connect(tmp_path / "store.db")
    file.execute("DROP TABLE log")
    file.close()
    with pytest.raises(StoreRefused, match="damaged: no such table"):
        await Store.open(tmp_path)
    with pytest.raises(StoreRefused, match="damaged"):  # and the lock was released
        await Store.open(tmp_path)


async def test_a_closed_store_takes_no_writes(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    pending = store.create(pod("a"), value())
    await store.close()
    assert (await pending).revision == 2, "what was submitted before is written"
    with pytest.raises(StorageFailed, match="closed"):
        store.create(pod("b"), value())


async def test_an_idle_store_does_not_gather_marks(tmp_path: Path) -> None:
    clock = [0.0]
    store = await Store.open(tmp_path, retention=Retention(seconds=16), clock=lambda: clock[0])
    await store.create(pod("a"), value())
    for _ in range(100):
        clock[0] += 1
        store._mark()
        await store.compact(store.compacted)
        await asyncio.sleep(0.001)
    assert len(store._marks) <= 20
    await store.close()


async def test_watches_of_a_table_end_after_what_happened_and_new_ones_go_on(store: Store) -> None:
    watch = store.watch(PODS, since=store.revision)
    first = await store.create(pod("a"), value())
    store.end_watches(PODS)
    second = await store.create(pod("b"), value())
    shown = [change.revision async for change in watch]
    assert shown == [first.revision]
    resumed = store.watch(PODS, since=first.revision)
    assert (await anext(resumed)).revision == second.revision
    before = store.watch(PODS, since=first.revision - 1)
    assert [(await anext(before)).revision for _ in range(2)] == [first.revision, second.revision]
