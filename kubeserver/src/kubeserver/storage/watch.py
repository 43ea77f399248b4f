"""Watching: every change of a table after a revision, in order, none missing, none twice.

The newest changes of a table stand in its `Feed`, one list that all its watchers read. A `Watch` is nothing but a
place in that list: delivering to a hundred watchers copies nothing, and a watcher that stops reading holds no
memory. The feed is short. A watcher that starts before it, or falls behind it, reads the journal on disk in
pieces, as fast as its client takes them, until it meets the feed again. Only when the journal itself no longer
reaches back that far does the watch end, with `Compacted` at the start or `TooSlow` on the way.

A watch must never show what is not on disk: only committed changes are published to a feed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Protocol

from kubeserver.storage.records import Compacted, StoredChange, Table, TooSlow

if TYPE_CHECKING:
    from collections.abc import Iterator

# How far back a feed reaches. Beyond this a watcher costs a read of the journal, nothing worse.
FEED_CHANGES = 4096
FEED_BYTES = 8 << 20
# For how many changes per table decoded and encoded forms are kept; each is about ten times its JSON.
REMEMBERED = 128
# How many watchers are woken before others get a turn on the loop: each writes to its client at once. Of a large
# change fewer: so many bytes in all.
WOKEN_AT_ONCE = 32
WOKEN_BYTES = 512 * 1024


class WatchHistory(Protocol):
    """What a watch needs from the store behind it."""

    @property
    def revision(self) -> int: ...

    async def history(
        self, table: Table, namespace: str | None, *, after: int, upto: int
    ) -> tuple[list[StoredChange], int]:
        """Some committed changes in order, and the revision up to which they are all."""
        ...


class Feed:
    """The newest changes of one table, for all its watchers.

    Changes are numbered from the beginning of the process; `first` is the number of `changes[0]`. All committed
    changes after revision `floor` are here.
    """

    __slots__ = (
        "_bytes",
        "_limits",
        "changes",
        "closed",
        "finished",
        "first",
        "floor",
        "recently_used",
        "sleepers",
        "waking",
    )

    def __init__(self, max_changes: int = FEED_CHANGES, max_bytes: int = FEED_BYTES) -> None:
        self.changes: list[StoredChange] = []
        self.first = 0
        self.floor = 0
        self.closed = False
        self.finished = False  # nothing will be added; what is here may still be read
        self.recently_used: deque[StoredChange] = deque(maxlen=REMEMBERED)
        # who waits for a change, by the namespace they watch (None: all)
        self.sleepers: dict[str | None, set[Watch]] = {}
        self.waking: deque[Watch] = deque()  # who is told of a change, in turns
        self._bytes = 0
        self._limits = (max_changes, max_bytes)

    @classmethod
    def ended(cls) -> Feed:
        """A closed feed: it cannot be watched any more."""
        feed = cls()
        feed.closed = True
        return feed

    def publish(self, change: StoredChange) -> None:
        """Add a committed change and wake those who wait for it."""
        self.changes.append(change)
        self._bytes += _weight(change)
        max_changes, max_bytes = self._limits
        if len(self.changes) > max_changes or self._bytes > max_bytes:
            self._trim()
        if self.sleepers:
            under_way = bool(self.waking)
            for namespace in (None, change.key.namespace):
                self.waking.extend(self.sleepers.pop(namespace, ()))
            if not under_way:
                self._wake_some()

    def number_after(self, revision: int) -> int:
        """The number of the first change after `revision`, which must not be before `floor`."""
        return self.first + bisect_right(self.changes, revision, key=_revision)

    def after(self, revision: int) -> list[StoredChange]:
        return self.changes[self.number_after(revision) - self.first :]

    def finish(self) -> None:
        """End all watches when they have read what is here."""
        self.finished = True
        self._wake_all()

    def close(self) -> None:
        """End all watches: the store is closing."""
        self.closed = True
        self._wake_all()

    def _wake_some(self) -> None:
        largest = max((len(change.value) for change in self.changes[-WOKEN_AT_ONCE:]), default=0)
        at_once = max(1, min(WOKEN_AT_ONCE, WOKEN_BYTES // (largest + 1)))
        for _ in range(min(at_once, len(self.waking))):
            self.waking.popleft().wake()
        if self.waking:
            asyncio.get_running_loop().call_soon(self._wake_some)

    def _wake_all(self) -> None:
        for watches in self.sleepers.values():
            for watch in watches:
                watch.wake()
        self.sleepers.clear()

    def _trim(self) -> None:
        # An eighth at a time, because removing from the front of a list moves the rest.
        max_changes, max_bytes = self._limits
        keep_changes, keep_bytes = max_changes - max_changes // 8, max_bytes - max_bytes // 8
        gone = 0
        while gone < len(self.changes) and (len(self.changes) - gone > keep_changes or self._bytes > keep_bytes):
            self._bytes -= _weight(self.changes[gone])
            gone += 1
        self.floor = self.changes[gone - 1].revision
        self.first += gone
        del self.changes[:gone]


class Watch:
    """One watcher's place. Read it with `async for`, or with `next_batch` to get many changes at once."""

    def __init__(self, history: WatchHistory, feed: Feed, table: Table, namespace: str | None, *, since: int) -> None:
        self.table = table
        self.namespace = namespace or None
        self._closed = False
        self._history = history
        self._feed = feed
        self._position = since  # everything up to here was delivered, or is in _backlog
        self._backlog: deque[StoredChange] = deque()  # read from the journal, not yet delivered
        self._next: int | None = None  # the place in the feed; None while behind it
        self._alarm: asyncio.Future[None] | None = None

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed or self._feed.closed

    @property
    def progress(self) -> int:
        """The revision up to which everything was delivered: what a bookmark may say."""
        if self._backlog:
            return self._backlog[0].revision - 1
        if self._reaches_feed() and not self._pending_in_feed() and not self._feed.finished:
            self._position = max(self._position, self._history.revision)
        return self._position

    def close(self) -> None:
        """End the iteration, now; may be called from another task."""
        self._closed = True
        self._backlog.clear()
        self.wake()

    def wake(self) -> None:
        if self._alarm is not None and not self._alarm.done():
            self._alarm.set_result(None)

    async def next_batch(self, limit: int = 256, *, timeout: float | None = None) -> list[StoredChange] | None:
        """The next changes, at least one. None: the watch has ended. Empty: the time is up.

        Cancelling this loses nothing: a change counts as delivered only when it is returned.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not self.closed:
            if self._backlog:
                return [self._backlog.popleft() for _ in range(min(limit, len(self._backlog)))]
            if not self._reaches_feed():
                await self._read_journal()
                continue
            if found := self._from_feed(limit):
                return found
            if self._feed.finished:
                return None
            if deadline is not None and loop.time() >= deadline:
                return []
            await self._sleep(loop, deadline)
        return None

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> StoredChange:
        found = await self.next_batch(1)
        if not found:
            raise StopAsyncIteration
        return found[0]

    def _reaches_feed(self) -> bool:
        """Whether what comes next is in the feed; finds the place there if so."""
        if self._next is not None and self._next < self._feed.first:
            self._next = None
        if self._next is None and self._position >= self._feed.floor:
            self._next = self._feed.number_after(self._position)
        return self._next is not None

    def _unread(self) -> Iterator[StoredChange]:
        assert self._next is not None
        feed = self._feed
        while self._next - feed.first < len(feed.changes):
            change = feed.changes[self._next - feed.first]
            yield change
            # Only now is it passed, so that a reader who stops here will find it again.
            self._next += 1
            self._position = max(self._position, change.revision)

    def _pending_in_feed(self) -> bool:
        return any(self._concerns(change) for change in self._unread())

    def _from_feed(self, limit: int) -> list[StoredChange]:
        found: list[StoredChange] = []
        for change in self._unread():
            if len(found) == limit:
                break
            if self._concerns(change):
                found.append(change)
        return found

    def _concerns(self, change: StoredChange) -> bool:
        # A watch may begin in the future (a revision the client got elsewhere): what comes before it is not shown.
        return (self.namespace is None or change.key.namespace == self.namespace) and change.revision > self._position

    async def _read_journal(self) -> None:
        asked = self._position
        try:
            changes, upto = await self._history.history(
                self.table, self.namespace, after=asked, upto=self._history.revision
            )
        except Compacted as gone:
            raise TooSlow(gone.requested, gone.compacted) from None
        if not self.closed:
            self._backlog.extend(changes)
            self._position = upto

    async def _sleep(self, loop: asyncio.AbstractEventLoop, deadline: float | None) -> None:
        sleepers = self._feed.sleepers.setdefault(self.namespace, set())
        sleepers.add(self)
        self._alarm = loop.create_future()
        timer = None if deadline is None else loop.call_at(deadline, self.wake)
        try:
            await self._alarm
        finally:
            self._alarm = None
            sleepers.discard(self)
            if not sleepers and self._feed.sleepers.get(self.namespace) is sleepers:
                del self._feed.sleepers[self.namespace]
            if timer is not None:
                timer.cancel()


def _revision(change: StoredChange) -> int:
    return change.revision


def _weight(change: StoredChange) -> int:
    return len(change.value) + len(change.previous or b"")
