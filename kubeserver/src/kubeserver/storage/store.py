"""The storage of the embedded API server: objects by key, one revision counter, history, watches.

One loop thread decides, one writer thread puts decisions on disk (writer.py), one file keeps them (journal.py).
A write runs like this:

    create/update/delete   checks against `latest`, takes the next revision, encodes: all at once, without an
                           await, so nothing can come between a caller's decision and its submission
    (the same turn ends)   what was decided goes to the writer as one group
    (the disk has synced)  the group becomes visible: `get` and `entries` show it, watches deliver it, `revision`
                           moves, and only then do the futures of its writers resolve

A client must not be shown what could still be lost: reads answer from the committed state only. Decisions must not be
made on it, because the next write of the same object may be under way: they use `latest` and `entries_latest`.

If the disk refuses a group, it and everything decided behind it fails with StorageFailed and leaves no trace;
later writes are tried anew. All current values are in memory, as JSON bytes; history is on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kubeserver.storage.journal import Journal, row
from kubeserver.storage.records import (
    Compacted,
    Entry,
    Exists,
    Missing,
    ObjectKey,
    Stale,
    StorageFailed,
    StoredChange,
    StoreError,
    StoreRefused,
    Table,
    TooSlow,
)
from kubeserver.storage.retention import Mark, Retention, horizon, worth_a_mark
from kubeserver.storage.shelf import PendingWrite, Shelf, page_of, path_of
from kubeserver.storage.watch import Feed, Watch
from kubeserver.storage.writer import Compaction, Group, InlineWriter, JournalWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    # a caller that waits for a revision
    Waiting = tuple[int, asyncio.Future[None]]

__all__ = [
    "Compacted",
    "Entry",
    "Exists",
    "Feed",
    "Missing",
    "ObjectKey",
    "Retention",
    "Stale",
    "StorageFailed",
    "Store",
    "StoreError",
    "StoreRefused",
    "StoredChange",
    "Table",
    "TooSlow",
    "Watch",
    "restamped",
]

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
# How many objects of a dropped cluster are deleted at a time, leaving room for other writers.
DROP_TOGETHER = 500


class Store:
    """All objects of all logical clusters of one data directory. Use it from the loop that opened it."""

    def __init__(
        self, journal: Journal, retention: Retention, clock: Callable[[], float], feed: Callable[[], Feed]
    ) -> None:
        self.revision: int = journal.start  # newest committed: what lists report
        self.compacted: int = journal.compacted  # history up to here is gone
        self.failure: str | None = None  # why the last write failed; None once one has succeeded again
        # by logical cluster: told of every committed change there, in order
        self.listeners: dict[str, list[Callable[[StoredChange], None]]] = {}
        self._journal = journal
        self._retention = retention
        self._clock = clock
        self._feed = feed
        self._shelves: dict[tuple[str, ...], Shelf] = {}
        self._assigned: int = journal.start
        self._reserved = journal.reserved
        self._epoch = 0
        self._under_way: deque[PendingWrite] = deque()  # decided, in order of revision
        self._group: Group | None = None  # decided in this turn of the loop
        self._settling: list[Waiting] = []
        self._awaited: list[Waiting] = []
        self._compacting: list[Waiting] = []
        self._changes = self._bytes = 0  # committed since the start
        self._marks: deque[Mark] = deque()
        self._closed = False
        newest = journal.compacted
        for item in journal.replay():
            key = self._own(ObjectKey(*item[1:6]))
            shelf = self._shelf(key)
            change = shelf.apply(key.path, Entry(key, item.revision, item.value), deletes=item.deleted)
            if item.revision > self.compacted:
                shelf.feed.publish(change)
            self.revision = self._assigned = max(self.revision, item.revision)
            newest = max(newest, item.revision)
        self.skipped = range(newest + 1, journal.start)
        """Revisions that were left out because the journal had not been closed."""

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
        feed: Callable[[], Feed] = Feed,
    ) -> Store:
        """Open or create the store in `directory`; raises StoreRefused with a sentence that says why not."""
        journal = await asyncio.to_thread(Journal.open, directory)
        try:
            store = await asyncio.to_thread(cls, journal, retention or Retention(), clock, feed)
            writer = JournalWriter(journal, asyncio.get_running_loop(), store)
            store._start(writer, ThreadPoolExecutor(max_workers=1, thread_name_prefix="kubeserver-store-reader"))  # noqa: SLF001 - our own
            writer.start()
        except BaseException:
            journal.close(None)
            raise
        return store

    @classmethod
    def in_memory(cls, *, retention: Retention | None = None, clock: Callable[[], float] = time.monotonic) -> Store:
        """A new store that ends with the process: no folder, no thread, and writes are done when a turn ends."""
        journal = Journal.in_memory()
        store = cls(journal, retention or Retention(), clock, Feed)
        store._start(InlineWriter(journal, store), None)
        return store

    def _start(self, writer: JournalWriter | InlineWriter, reading: ThreadPoolExecutor | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = self._journal.reader()
        self._reading = reading
        self._writer = writer
        self._marks.append(self._now())
        self._housekeeping = self._loop.create_task(self._keep_house(), name="kubeserver-store-housekeeping")

    def end_all_watches(self) -> None:
        """End all watches, and those that are still to come; their readers see the end of the stream."""
        for shelf in self._shelves.values():
            shelf.feed.close()
        self._feed = Feed.ended

    def end_watches(self, table: Table) -> None:
        """End the watches of a table once they have shown what happened so far; new ones may begin."""
        shelf = self._shelves.get(table)
        if shelf is not None and not shelf.feed.closed:
            shelf.feed.finish()
            shelf.feed = self._feed()
            shelf.feed.floor = self.revision

    @property
    def assigned(self) -> int:
        """The newest revision that was given out, be it on disk yet or not."""
        return self._assigned

    async def close(self) -> None:
        """Finish what is under way, end all watches, and release the directory."""
        if self._closed:
            return
        self._hand_over()
        self._closed = True
        self.end_all_watches()
        self._housekeeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._housekeeping
        if self._reading is None:
            self._writer.stop(self._assigned)
        else:
            await asyncio.to_thread(self._reading.shutdown)
            self._reader.close()
            await asyncio.to_thread(self._writer.stop, self._assigned)
        await asyncio.sleep(0)  # what the writer said last is now heard
        self._fail_waiting("the store was closed")

    # Reading.

    def get(self, key: ObjectKey) -> Entry | None:
        """The object as it is on disk."""
        shelf = self._shelves.get(key[:3])
        return shelf.entries.get(key.path) if shelf is not None else None

    def latest(self, key: ObjectKey) -> Entry | None:
        """The object including a write under way: what a decision has to be based on, never what is shown."""
        shelf = self._shelves.get(key[:3])
        return shelf.latest(key.path) if shelf is not None else None

    def entries(self, table: Table, namespace: str | None = None) -> list[Entry]:
        """All objects as they are on disk, as of `revision`, in the order of Kubernetes' lists."""
        shelf = self._shelves.get(table)
        return shelf.committed(namespace) if shelf is not None else []

    def entries_latest(self, table: Table, namespace: str | None = None) -> list[Entry]:
        """As `entries`, including writes under way: for decisions."""
        shelf = self._shelves.get(table)
        return shelf.decided(namespace) if shelf is not None else []

    def count(self, table: Table, namespace: str | None = None) -> int:
        shelf = self._shelves.get(table)
        if shelf is None:
            return 0
        first, end = shelf.span(namespace)
        return end - first

    def tables(self, cluster: str | None = None) -> list[Table]:
        """The tables that hold objects, in one logical cluster or in all."""
        return sorted(
            shelf.table
            for shelf in self._shelves.values()
            if (shelf.entries or shelf.pending) and cluster in (None, shelf.table.cluster)
        )

    async def page(
        self,
        table: Table,
        namespace: str | None = None,
        *,
        revision: int,
        start_after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> tuple[list[Entry], int]:
        """Part of a list as it was at `revision`, after (namespace, name), and how many come after the part.

        Raises Compacted if that state is gone, ValueError if there has been no such revision yet.
        """
        if revision > self.revision:
            raise ValueError(f"revision {revision} is in the future: the newest is {self.revision}")
        self._refuse_unknown(revision)
        # Taken before any await: from here on the past of `now` is what it is.
        now, upto = self.entries(table, namespace), self.revision
        shelf = self._shelves.get(table)
        undone: dict[str, Entry | None] = {}
        if shelf is not None and revision >= shelf.feed.floor:
            for change in shelf.feed.after(revision):
                if not namespace or change.key.namespace == namespace:
                    before = change.previous
                    was = None if before is None else Entry(change.key, change.previous_revision, before)
                    undone.setdefault(change.key.path, was)
        elif shelf is not None:
            found = await self._read(lambda: self._reader.before(table, namespace, revision=revision, upto=upto))
            undone = {key.path: was and Entry(key, *was) for key, was in found.items()}
        after = None if start_after is None else ObjectKey(*table, *start_after).path
        return page_of(now, undone, after, limit)

    # Watching.

    def watch(self, table: Table, namespace: str | None = None, *, since: int) -> Watch:
        """All changes after `since`; raises Compacted if some of them are gone."""
        self._refuse_unknown(since)
        return Watch(self, self._shelf(table).feed, table, namespace, since=since)

    def _refuse_unknown(self, revision: int) -> None:
        """Raise Compacted for a revision whose successors are not all here.

        Neither are those of a revision that was skipped after a crash: a client that has seen it has seen what this
        file does not have, because the file was put back from a backup.
        """
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        if revision in self.skipped:
            raise Compacted(revision, self.skipped.stop)

    async def history(
        self, table: Table, namespace: str | None, *, after: int, upto: int
    ) -> tuple[list[StoredChange], int]:
        """Some changes in (after, upto] from the journal, and the revision up to which they are all."""
        return await self._read(lambda: self._reader.changes(table, namespace, after=after, upto=upto))

    async def _read(self, question: Callable[[], Answer]) -> Answer:
        """Ask the journal, in the reader's thread where there is one."""
        if self._closed:
            raise StorageFailed("the store is closed")
        try:
            if self._reading is None:
                return question()
            return await self._loop.run_in_executor(self._reading, question)
        except sqlite3.Error as error:
            raise StorageFailed(f"history could not be read: {error}") from error

    # Writing. Each of these checks and submits when it is called; the future resolves when the disk has it.

    def create(self, key: ObjectKey, encode: Callable[[int], bytes]) -> asyncio.Future[Entry]:
        """Store a new object; `encode` gets the revision and returns the value. Raises Exists."""
        path, shelf = path_of(key), self._shelf(key)
        current = shelf.latest(path)
        if current is not None:
            raise Exists(current)
        return self._submit(shelf, path, self._own(key), None, encode, deletes=False)

    def update(self, key: ObjectKey, expected_revision: int, encode: Callable[[int], bytes]) -> asyncio.Future[Entry]:
        """Replace the object if it is still at `expected_revision`. Raises Stale or Missing."""
        return self._change(key, expected_revision, encode, deletes=False)

    def delete(self, key: ObjectKey, expected_revision: int, encode: Callable[[int], bytes]) -> asyncio.Future[Entry]:
        """Remove the object if it is still at `expected_revision`. Raises Stale or Missing.

        `encode` returns the last state with the revision of the deletion: what watchers are shown.
        """
        return self._change(key, expected_revision, encode, deletes=True)

    async def drop_cluster(self, cluster: str, encode: Callable[[Entry, int], bytes] | None = None) -> int:
        """Delete all objects of a logical cluster, also those that are created meanwhile; returns how many."""

        def last_state(entry: Entry) -> Callable[[int], bytes]:
            return lambda revision: encode(entry, revision) if encode else restamped(entry.value, revision)

        dropped = 0
        while tables := self.tables(cluster):
            for table in tables:
                while doomed := self.entries_latest(table)[:DROP_TOGETHER]:
                    writes = [self.delete(item.key, item.revision, last_state(item)) for item in doomed]
                    await asyncio.gather(*writes)
                    dropped += len(writes)
            await self.settled(self._assigned)
        return dropped

    def end_cluster(self, cluster: str) -> None:
        """End the watches of a logical cluster that was dropped, and let go of what it took."""
        for shelf in [pair for pair in self._shelves.values() if pair.table.cluster == cluster]:
            if not shelf.entries and not shelf.pending:
                del self._shelves[shelf.table]
            shelf.feed.close()

    async def settled(self, revision: int) -> None:
        """Return when the write that got `revision` (see `latest`) is on disk; raises StorageFailed."""
        if revision <= self.revision:
            return
        if not any(write.entry.revision >= revision for write in self._under_way):
            raise StorageFailed(self.failure or "the write was lost")
        future: asyncio.Future[None] = self._loop.create_future()
        self._settling.append((revision, future))
        await future

    async def reached(self, revision: int) -> None:
        """Return when `revision` or a later one is on disk, however long that takes."""
        if revision <= self.revision:
            return
        waiting: Waiting = (revision, self._loop.create_future())
        self._awaited.append(waiting)
        try:
            await waiting[1]
        finally:
            with contextlib.suppress(ValueError):
                self._awaited.remove(waiting)

    async def compact(self, revision: int) -> None:
        """Forget the history before `revision`; objects as they are now stay, of course."""
        if revision > self.revision:
            raise ValueError(f"revision {revision} is in the future: the newest is {self.revision}")
        if revision <= self.compacted:
            return
        if self._closed:
            raise StorageFailed("the store is closed")
        future: asyncio.Future[None] = self._loop.create_future()
        self._compacting.append((revision, future))
        self._writer.submit(Compaction(revision))
        await future

    def _change(
        self, key: ObjectKey, expected: int, encode: Callable[[int], bytes], *, deletes: bool
    ) -> asyncio.Future[Entry]:
        path, shelf = key.path, self._shelves.get(key[:3])
        current = shelf.latest(path) if shelf is not None else None
        if shelf is None or current is None:
            raise Missing(key)
        if current.revision != expected:
            raise Stale(current, expected)
        return self._submit(shelf, path, current.key, current, encode, deletes=deletes)

    def _submit(
        self,
        shelf: Shelf,
        path: str,
        key: ObjectKey,
        previous: Entry | None,
        encode: Callable[[int], bytes],
        *,
        deletes: bool,
    ) -> asyncio.Future[Entry]:
        if self._closed:
            raise StorageFailed("the store is closed")
        revision = self._assigned + 1
        if revision > self._reserved:
            self._writer.submit(Group(self._epoch, self._assigned))
            raise StorageFailed("too many writes are under way; try again")
        entry = Entry(key, revision, encode(revision))
        self._assigned = revision
        write = PendingWrite(shelf, path, entry, previous, self._loop.create_future(), deletes=deletes)
        shelf.pending[path] = write
        self._under_way.append(write)
        group = self._group
        if group is None:
            group = self._group = Group(self._epoch, revision)
            self._loop.call_soon(self._hand_over)
        group.assigned = revision
        group.rows.append(row(entry, previous.revision if previous is not None else 0, deleted=deletes))
        group.bytes += len(entry.value)
        return write.future

    def _hand_over(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            self._writer.submit(group)

    # What the writer says.

    def committed(self, count: int, reserved: int) -> None:
        """The next `count` writes are on disk: show them."""
        self._reserved = reserved
        written = [self._under_way.popleft() for _ in range(count)]
        for write in written:
            shelf, entry = write.shelf, write.entry
            if shelf.pending.get(write.path) is write:
                del shelf.pending[write.path]
            change = shelf.apply(write.path, entry, deletes=write.deletes)
            self.revision = entry.revision
            shelf.feed.publish(change)
            for listener in self.listeners.get(entry.key.cluster, ()):
                try:
                    listener(change)
                except Exception:  # what is on disk has to become visible, whatever a listener makes of it
                    log.exception("a listener failed on %r", change)
            self._bytes += len(entry.value)
        if count:
            self.failure = None
        self._changes += count
        for write in written:
            if not write.future.done():
                write.future.set_result(write.entry)
        if self._settling:
            self._settling = _resolved(self._settling, self.revision)
        if self._awaited:
            self._awaited = _resolved(self._awaited, self.revision)
        if worth_a_mark(self._marks[-1], self._now(), self._retention):
            self._mark()

    def failed(self, reason: str, epoch: int) -> None:
        """The disk refused: everything under way did not happen."""
        self._epoch = epoch
        self.failure = reason
        lost, self._under_way = self._under_way, deque()
        self._group = None
        for write in lost:
            write.shelf.pending.pop(write.path, None)
        for write in lost:
            if not write.future.done():
                write.future.set_exception(StorageFailed(f"the write could not be stored: {reason}"))
        settling, self._settling = self._settling, []
        _fail(settling, f"the write could not be stored: {reason}")

    def _now(self) -> Mark:
        return Mark(self._clock(), self.revision, self._changes, self._bytes)

    def _mark(self) -> None:
        """Remember how far we are, and let go of what has become too old or too much."""
        now = self._now()
        if (upto := horizon(self._marks, now, self._retention)) > self.compacted:
            self._writer.submit(Compaction(upto))
        # A mark of what is gone says nothing any more; without writes there is one mark and not one per moment.
        self._marks = deque(mark for mark in self._marks if mark.revision > max(upto, self.compacted))
        self._marks.append(now)

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(self._retention.seconds / 16)
            self._mark()

    def compacted_upto(self, upto: int, failure: str | None) -> None:
        """History up to `upto` is gone from the disk."""
        self.compacted = upto
        self._compacting = _resolved(self._compacting, upto)
        if failure is not None:
            compacting, self._compacting = self._compacting, []
            _fail(compacting, f"history could not be compacted: {failure}")

    def _fail_waiting(self, reason: str) -> None:
        for waiting in (self._settling, self._awaited, self._compacting):
            _fail(waiting, reason)
            waiting.clear()

    # Shelves.

    def _shelf(self, key: ObjectKey | Table) -> Shelf:
        shelf = self._shelves.get(key[:3])
        if shelf is None:
            table = Table(*(sys.intern(part) for part in key[:3]))
            shelf = self._shelves[table] = Shelf(table, self._feed())
        return shelf

    def _own(self, key: ObjectKey) -> ObjectKey:
        """The key with the strings it shares with its neighbours held only once."""
        return ObjectKey(*self._shelf(key).table, sys.intern(key.namespace), key.name)


def restamped(value: bytes, revision: int) -> bytes:
    """The same object with `revision` as its resourceVersion."""
    decoded = msgspec.json.decode(value)
    decoded.setdefault("metadata", {})["resourceVersion"] = str(revision)
    return msgspec.json.encode(decoded)


def _resolved(waiting: list[Waiting], upto: int) -> list[Waiting]:
    """Tell those who waited for `upto` or earlier; returns the others."""
    for target, future in waiting:
        if target <= upto and not future.done():
            future.set_result(None)
    return [(target, future) for target, future in waiting if target > upto]


def _fail(waiting: list[Waiting], reason: str) -> None:
    for _, future in waiting:
        if not future.done():
            future.set_exception(StorageFailed(reason))
