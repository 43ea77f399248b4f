"""What the store promises to those who watch it, and when it forgets the past."""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial
from typing import TYPE_CHECKING

import pytest

from kubeserver.storage.retention import Mark, horizon, worth_a_mark
from kubeserver.storage.store import (
    Compacted,
    Feed,
    ObjectKey,
    Retention,
    Store,
    Table,
    TooSlow,
)

if TYPE_CHECKING:
    from pathlib import Path

from unit.stores import PODS, eventually, pod, value

# Watches.


async def test_a_watch_shows_each_change_once_in_order_with_what_was_before(store: Store) -> None:
    watch = store.watch(PODS, since=store.revision)
    created = await store.create(pod("a"), value(step=1))
    await store.create(ObjectKey("main", "", "secrets", "default", "s"), value())
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
    await store.create(ObjectKey("main", "", "secrets", "default", "s"), value())
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
