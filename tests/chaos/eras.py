"""A record that survives what breaks every watch: an API server that is killed, and an etcd that goes back.

A watch cannot be resumed over either: the server no longer knows the version, or knows another history under the same
numbers. So the record is a list of eras. An era begins with a list (its objects are given, not judged), is whole until
its end, and is judged by itself. Between two eras hold the few rules that need no watch: after a plain restart an
allocation still has the range that it had; after a restore nothing is overlapping that did not overlap in the
snapshot.
"""

from __future__ import annotations

import contextlib
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from ipam.history import ALLOCATION, Gap, History, Json, Witness
from ipam.invariants import check
from ipam.oracle import Span, meet, number, text
from ipam.story import Violation
from tenants.rules import machines_keep_their_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


LAG = 3.0
"""Seconds that one watch may be behind another, on a machine that is busy with many other things."""


@dataclass(frozen=True)
class Held:
    """What an allocation holds."""

    name: str
    owner: str
    span: Span


class Eras:
    """The current era and the verdict on all before it."""

    def __init__(self, new_witness: Callable[[], Witness]) -> None:
        self._new_witness = new_witness
        self._watching = AsyncExitStack()
        self.witness = new_witness()
        self.violations: list[Violation] = []
        self.revisions = 0
        self.count = 0

    async def begin(self, why: str, broke_at: float | None = None) -> None:
        """A new era; `why` says what ended the last one, and `broke_at` when its server was killed."""
        before = holdings(self.witness.state(ALLOCATION).values()) if self.count else {}
        await self.end(broke_at)
        self.count += 1
        self.witness = self._new_witness()
        await self._watching.enter_async_context(self.witness.watching())
        now = holdings(self.witness.state(ALLOCATION).values())
        self.violations += overlapping(now)
        if why != "restore":
            self.violations += changed_unseen(before, now)

    async def end(self, broke_at: float | None = None) -> None:
        """Judge what the era shows. Where its watches broke with the server, it ends before that."""
        history = self.witness.history
        if broke_at is not None:
            history = surely_whole(history, broke_at - LAG)
        await self._watching.aclose()
        self._watching = AsyncExitStack()
        self.violations += judged(history)
        self.revisions += len(history.revisions)

    async def finish(self) -> History:
        """The whole record of the current era, up to now."""
        return await self.witness.finish()


def surely_whole(history: History, moment: float) -> History:
    """The record up to the first revision that was received after a moment.

    When a server is killed, the watch of one kind may have told what came last while that of another had not: a pool
    would speak of an allocation that the record does not have.
    """
    late = [revision.version for revision in history.revisions if revision.seconds >= moment]
    end = max(min(late, default=sys.maxsize), history.began + 1)
    return History([revision for revision in history.revisions if revision.version < end], history.began)


def judged(history: History) -> list[Violation]:
    """The rules of safety over one era."""
    try:
        return [*check(history), *machines_keep_their_addresses(history)]
    except Gap as gap:
        return [Violation("record", str(gap))]


def holdings(allocations: Iterable[Json]) -> dict[str, Held]:
    """By UID: what is Allocated."""
    found = {}
    for allocation in allocations:
        status, meta = allocation.get("status") or {}, allocation["metadata"]
        if status.get("phase") == "Allocated":
            owner = str((meta.get("labels") or {}).get("butler.butlerlabs.dev/tenant-uid") or meta["uid"])
            with contextlib.suppress(ValueError, KeyError):  # a status that makes no sense is told elsewhere
                span = number(status["startAddress"]), number(status["endAddress"])
                found[meta["uid"]] = Held(meta["name"], owner, span)
    return found


def overlapping(held: Mapping[str, Held]) -> list[Violation]:
    """S1 of a state."""
    return [
        Violation("S1", f"{one.name} holds {text(one.span)} and {two.name} holds {text(two.span)}")
        for one, two in combinations(held.values(), 2)
        if meet(one.span, two.span)
    ]


def changed_unseen(before: Mapping[str, Held], now: Mapping[str, Held]) -> list[Violation]:
    """S3 of what is known from before and after a restart of the server."""
    return [
        Violation("S3", f"{now[uid].name} held {text(before[uid].span)} and holds {text(now[uid].span)}")
        for uid in before.keys() & now.keys()
        if before[uid].span != now[uid].span
    ]
