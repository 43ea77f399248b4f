"""Group commit: the thread that puts decided writes on disk.

The loop hands over what it decided in one turn; while this thread waits for the disk to sync one group, the next
one gathers in the queue. So a sync costs the same for one write and for hundreds, and the loop never waits for it.

Order is the contract. Groups are written in the order of their revisions, and the loop is told in that order.
When one fails, all that were decided behind it were decided on top of something that does not exist: they fail
with it. The *epoch* makes that airtight. Each group carries the epoch the loop knew when it decided; a failure
begins a new one, and groups of an older epoch are dropped unwritten until the loop has learned of the failure.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kubeserver.storage.journal import Journal, Row

# A group is no longer than this, so that the first in it does not wait for too many behind it.
GROUP_BYTES = 8 << 20
# When this thread comes back from the disk it needs the GIL. The loop lets go of it often but briefly, and with
# the default of 5 ms it would starve this thread: 50 times fewer writes on a busy server, measured.
SWITCH_SECONDS = 50e-6


class Audience(Protocol):
    """Who is told, on the loop, in order."""

    def committed(self, count: int, reserved: int) -> None: ...

    def failed(self, reason: str, epoch: int) -> None: ...

    def compacted_upto(self, upto: int, failure: str | None) -> None: ...


@dataclass(slots=True)
class Group:
    """Writes decided in one turn of the loop; `assigned` is the highest revision given out."""

    epoch: int
    assigned: int
    rows: list[Row] = field(default_factory=list)
    bytes: int = 0


@dataclass(slots=True)
class Compaction:
    target: int


@dataclass(slots=True)
class Stop:
    assigned: int


class JournalWriter:
    """Owns the journal from `start` to `stop`."""

    def __init__(self, journal: Journal, loop: asyncio.AbstractEventLoop, audience: Audience) -> None:
        self._journal = journal
        self._loop = loop
        self._audience = audience
        self._queue: SimpleQueue[Group | Compaction | Stop] = SimpleQueue()
        self._epoch = 0
        self._compact_to = journal.compacted
        self._stop: Stop | None = None
        self._thread = threading.Thread(target=self._run, name="kubeserver-store-writer", daemon=True)

    def start(self) -> None:
        if sys.getswitchinterval() > SWITCH_SECONDS:
            sys.setswitchinterval(SWITCH_SECONDS)
        self._thread.start()

    def submit(self, order: Group | Compaction) -> None:
        self._queue.put(order)

    def stop(self, assigned: int) -> None:
        """Write what was submitted, close the journal, and return. Blocks: call it in another thread."""
        self._queue.put(Stop(assigned))
        self._thread.join()

    def _run(self) -> None:
        assigned: int | None = None
        try:
            while self._stop is None:
                self._write(self._gather())
                if self._journal.compacted < self._compact_to and self._stop is None:
                    self._compact()
            assigned = self._stop.assigned
        except RuntimeError:
            pass  # the loop is gone, and with it all callers that waited for an answer
        finally:
            self._journal.close(assigned)

    def _gather(self) -> list[Group]:
        """All orders that are there; waits for one if there is nothing to do. Returns those to be written."""
        groups: list[Group] = []
        size = 0
        idle = self._journal.compacted >= self._compact_to
        while self._stop is None and size < GROUP_BYTES:
            try:
                order = self._queue.get(block=idle and not groups)
            except Empty:
                break
            if isinstance(order, Group):
                if order.epoch == self._epoch:
                    groups.append(order)
                    size += order.bytes
            elif isinstance(order, Compaction):
                self._compact_to = max(self._compact_to, order.target)
                idle = False
            else:
                self._stop = order
        return groups

    def _write(self, groups: list[Group]) -> None:
        if not groups:
            return
        rows = groups[0].rows if len(groups) == 1 else [row for group in groups for row in group.rows]
        try:
            self._journal.append(rows, groups[-1].assigned)
        except Exception as error:  # whatever it is, a caller waits for an answer
            self._epoch += 1
            self._tell(self._audience.failed, str(error), self._epoch)
        else:
            self._tell(self._audience.committed, len(rows), self._journal.reserved)

    def _compact(self) -> None:
        try:
            upto = self._journal.compact(self._compact_to)
        except Exception as error:  # the same
            self._compact_to = self._journal.compacted  # the next one will try again
            self._tell(self._audience.compacted_upto, self._journal.compacted, str(error))
        else:
            self._tell(self._audience.compacted_upto, upto, None)

    def _tell(self, what: Callable[..., None], *words: object) -> None:
        self._loop.call_soon_threadsafe(what, *words)


class InlineWriter:
    """As `JournalWriter`, without a thread: for a journal in memory, where nothing has to be waited for."""

    def __init__(self, journal: Journal, audience: Audience) -> None:
        self._journal = journal
        self._audience = audience

    def submit(self, order: Group | Compaction) -> None:
        if isinstance(order, Compaction):
            while self._journal.compacted < order.target:
                self._journal.compact(order.target)
            self._audience.compacted_upto(self._journal.compacted, None)
            return
        self._journal.append(order.rows, order.assigned)
        self._audience.committed(len(order.rows), self._journal.reserved)

    def stop(self, assigned: int) -> None:
        self._journal.close(assigned)
