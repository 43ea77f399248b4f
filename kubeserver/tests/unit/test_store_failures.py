"""When the disk says no: who is told, what remains, and that it heals.

The order of things is driven with a journal that waits until the test lets it go; the failures are real ones: a
database that may not grow, and a file size limit of the operating system.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubeserver.storage.journal import RESERVE, Journal, Row
from kubeserver.storage.store import Entry, ObjectKey, StorageFailed, Store, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PODS = Table("main", "", "pods")


def pod(name: str) -> ObjectKey:
    return ObjectKey("main", "", "pods", "default", name)


def value(size: int = 100) -> Callable[[int], bytes]:
    return lambda revision: json.dumps({"metadata": {"resourceVersion": str(revision)}, "pad": "x" * size}).encode()


class Gate:
    """Holds every append back until the test says how many may pass, and can make one fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passing = threading.Semaphore(0)
        self.arrived = threading.Semaphore(0)
        self.groups: list[list[int]] = []
        self.fail = False
        original = Journal.append

        def append(journal: Journal, rows: Sequence[Row], assigned: int) -> None:
            if not rows:  # a reservation
                original(journal, rows, assigned)
                return
            self.groups.append([row.revision for row in rows])
            self.arrived.release()
            self.passing.acquire()
            if self.fail:
                self.fail = False
                raise OSError("injected")
            original(journal, rows, assigned)

        monkeypatch.setattr(Journal, "append", append)

    async def next_arrives(self) -> None:
        await asyncio.to_thread(self.arrived.acquire)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


async def test_what_is_decided_during_a_sync_is_written_together_by_the_next(tmp_path: Path, gate: Gate) -> None:
    store = await Store.open(tmp_path)
    watch = store.watch(PODS, since=store.revision)
    first = [store.create(pod(f"a{n}"), value()) for n in range(3)]
    await gate.next_arrives()
    second = []
    for n in range(5):  # five turns of the loop, one group
        second.append(store.create(pod(f"b{n}"), value()))
        await asyncio.sleep(0)
    assert store.revision == 1
    assert store.entries(PODS) == []
    assert len(store.entries_latest(PODS)) == 8
    assert await watch.next_batch(timeout=0) == []
    gate.passing.release()
    await asyncio.gather(*first)
    assert store.count(PODS) == 3
    assert not any(write.done() for write in second)
    gate.passing.release()
    await asyncio.gather(*second)
    assert gate.groups == [[2, 3, 4], [5, 6, 7, 8, 9]]
    batch = await watch.next_batch()
    assert batch is not None
    assert [change.revision for change in batch] == list(range(2, 10))
    await store.close()


async def test_a_write_is_visible_before_its_writer_is_told(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    seen: list[bool] = []
    write = store.create(pod("a"), value())
    write.add_done_callback(lambda done: seen.append(store.get(pod("a")) == done.result()))
    await write
    await asyncio.sleep(0)
    assert seen == [True]
    await store.close()


async def test_a_failed_group_takes_all_that_was_decided_behind_it_along(tmp_path: Path, gate: Gate) -> None:
    store = await Store.open(tmp_path)
    watch = store.watch(PODS, since=store.revision)
    gate.passing.release()
    kept = await store.create(pod("kept"), value())
    await gate.next_arrives()

    doomed = [store.create(pod("a"), value()), store.update(pod("kept"), kept.revision, value())]
    await gate.next_arrives()
    latest = store.latest(pod("a"))
    assert latest is not None
    doomed.append(store.update(pod("a"), latest.revision, value()))
    settling = asyncio.create_task(store.settled(latest.revision))
    await asyncio.sleep(0)
    gate.fail = True
    gate.passing.release(10)
    # The loop has not heard of the failure, and goes on deciding on top of it.
    threading.Event().wait(0.05)
    updated = store.latest(pod("a"))
    assert updated is not None
    doomed.append(store.delete(pod("a"), updated.revision, value()))
    outcomes = await asyncio.gather(*doomed, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StorageFailed] * 4
    with pytest.raises(StorageFailed):
        await settling
    assert store.failure == "injected"

    assert store.entries(PODS) == store.entries_latest(PODS) == [kept]
    assert store.latest(pod("a")) is None
    assert store.revision == kept.revision
    later = await store.create(pod("a"), value())
    assert later.revision > updated.revision + 1, "a revision that a client may have seen is not used again"
    assert store.failure is None
    batch = await watch.next_batch()
    assert batch is not None
    assert [change.revision for change in batch] == [kept.revision, later.revision]
    tried = {revision for group in gate.groups for revision in group}
    assert not {updated.revision, updated.revision + 1} & tried, "what came behind must not even be tried"
    await store.close()
    store = await Store.open(tmp_path)
    assert [entry.revision for entry in store.entries(PODS)] == [later.revision, kept.revision]
    await store.close()


async def test_a_listener_that_fails_stops_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = await Store.open(tmp_path)
    heard: list[int] = []
    listeners = [lambda change: heard[change.revision], lambda change: heard.append(change.revision)]
    store.listeners[pod("any").cluster] = listeners
    entries = await asyncio.gather(*(store.create(pod(f"p{number}"), value()) for number in range(3)))
    assert heard == [entry.revision for entry in entries]
    assert store.count(PODS) == 3
    assert "a listener failed" in caplog.text
    await store.close()


async def test_an_unforeseen_error_is_still_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await Store.open(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", lambda *_: dict[str, str]()["unforeseen"])
        with pytest.raises(StorageFailed, match="unforeseen"):
            await store.create(pod("a"), value())
    await store.create(pod("a"), value())
    await store.close()


async def test_a_full_database_fails_writes_until_there_is_room(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    pages = store._journal._connection.execute("PRAGMA page_count").fetchone()[0]
    store._journal._connection.execute(f"PRAGMA max_page_count = {pages + 40}").fetchall()
    acknowledged: list[Entry] = []

    async def writer(number: int) -> None:
        for turn in range(20):
            entry = await store.create(pod(f"p{number}-{turn}"), value(1500))
            acknowledged.append(entry)

    outcomes = await asyncio.gather(*(writer(number) for number in range(8)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StorageFailed}
    assert "full" in str(outcomes[0])
    assert acknowledged, "some had room"
    assert sorted(acknowledged, key=lambda entry: entry.revision) == sorted(
        store.entries(PODS), key=lambda entry: entry.revision
    )
    assert store.entries_latest(PODS) == store.entries(PODS)
    with pytest.raises(StorageFailed):
        await store.create(pod("more"), value(200_000))
    store._journal._connection.execute("PRAGMA max_page_count = 1000000").fetchall()
    acknowledged.append(await store.create(pod("more"), value(200_000)))
    await store.close()
    store = await Store.open(tmp_path)
    assert {entry.revision for entry in store.entries(PODS)} == {entry.revision for entry in acknowledged}
    await store.close()


async def test_failures_cannot_use_up_the_reserved_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await Store.open(tmp_path)
    store._assigned = store._reserved  # as after very many failed writes
    with pytest.raises(StorageFailed, match="try again"):
        store.create(pod("a"), value())
    await store.compact(store.revision)  # the writer does one thing after the other
    assert (await store.create(pod("a"), value())).revision == RESERVE + 2
    await store.close()


async def test_a_compaction_that_fails_is_reported_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(tmp_path)
    await store.create(pod("a"), value())
    original = Journal.compact

    def broken(journal: Journal, target: int, most: int = 1000) -> int:
        monkeypatch.setattr(Journal, "compact", original)
        raise OSError("injected")

    monkeypatch.setattr(Journal, "compact", broken)
    with pytest.raises(StorageFailed, match="injected"):
        await store.compact(store.revision)
    await store.compact(store.revision)
    assert store.compacted == store.revision
    await store.close()


async def _under_a_file_size_limit(directory: Path) -> dict[str, object]:
    """Run in a process of its own: the limit is on all its files."""
    store = await Store.open(directory)
    first = await store.create(pod("first"), value(1500))
    limit = (directory / "store.db-wal").stat().st_size + 50_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    outcomes = await asyncio.gather(
        *(store.create(pod(f"p{number}"), value(1500)) for number in range(200)), return_exceptions=True
    )
    during = [entry.key.name for entry in store.entries(PODS)]
    failure = store.failure
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    last = await store.create(pod("last"), value(1500))
    await store.close()
    return {
        "outcomes": sorted({type(outcome).__name__ for outcome in outcomes}),
        "during": during,
        "failure": failure,
        "revisions": [first.revision, last.revision],
    }


async def test_a_disk_that_refuses_to_grow_loses_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, __file__, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = json.loads(run.stdout)
    assert told["outcomes"] == ["StorageFailed"]
    assert told["during"] == ["first"]
    assert told["failure"]
    store = await Store.open(tmp_path)
    assert [entry.key.name for entry in store.entries(PODS)] == ["first", "last"]
    assert sorted(entry.revision for entry in store.entries(PODS)) == told["revisions"]
    await store.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_under_a_file_size_limit(Path(sys.argv[1])))))
