"""The current objects of one table, in the order in which Kubernetes lists them.

A shelf has two layers. `entries` is what is on disk, and all that a client may be shown. `pending` lies on
top of it: writes that are decided but not yet on disk; the next decision about the same object must build on
them, or two writers could both win. A shelf never does I/O and never waits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

from kubeserver.storage.records import Entry, ObjectKey, StoredChange, Table

if TYPE_CHECKING:
    import asyncio

    from kubeserver.storage.watch import Feed


class PendingWrite:
    """One decided change on its way to the disk."""

    __slots__ = ("deletes", "entry", "future", "path", "previous", "shelf")

    def __init__(
        self,
        shelf: Shelf,
        path: str,
        entry: Entry,
        previous: Entry | None,
        future: asyncio.Future[Entry],
        *,
        deletes: bool,
    ) -> None:
        self.shelf = shelf
        self.path = path
        self.entry = entry
        self.previous = previous
        self.future = future
        self.deletes = deletes


class Shelf:
    """One table: its committed entries sorted by path, the writes under way, and the feed of its changes."""

    __slots__ = ("entries", "feed", "paths", "pending", "table")

    def __init__(self, table: Table, feed: Feed) -> None:
        self.table = table
        self.feed = feed
        self.entries: dict[str, Entry] = {}
        self.paths: list[str] = []
        self.pending: dict[str, PendingWrite] = {}

    def latest(self, path: str) -> Entry | None:
        """The entry as the next decision must see it."""
        write = self.pending.get(path)
        if write is not None:
            return None if write.deletes else write.entry
        return self.entries.get(path)

    def span(self, namespace: str | None) -> tuple[int, int]:
        """Where the paths of one namespace (or of all, for None) begin and end."""
        if not namespace:
            return 0, len(self.paths)
        # "0" is the character after "/", so this is the first string behind everything in the namespace.
        return bisect_left(self.paths, namespace + "/"), bisect_left(self.paths, namespace + "0")

    def committed(self, namespace: str | None) -> list[Entry]:
        first, end = self.span(namespace)
        entries = self.entries
        if first == 0 and end == len(self.paths):
            return [entries[path] for path in self.paths]
        return [entries[path] for path in self.paths[first:end]]

    def decided(self, namespace: str | None) -> list[Entry]:
        """As `committed`, with the writes under way applied."""
        if not self.pending:
            return self.committed(namespace)
        first, end = self.span(namespace)
        found = {path: self.entries[path] for path in self.paths[first:end]}
        for path, write in self.pending.items():
            if namespace and write.entry.key.namespace != namespace:
                continue
            if write.deletes:
                found.pop(path, None)
            else:
                found[path] = write.entry
        return [found[path] for path in sorted(found)]

    def put(self, path: str, entry: Entry) -> Entry | None:
        """Make `entry` the committed one; returns the one before it."""
        previous = self.entries.get(path)
        if previous is None:
            # Names are mostly made in ascending order, and then this is an append.
            if not self.paths or path > self.paths[-1]:
                self.paths.append(path)
            else:
                insort(self.paths, path)
        self.entries[path] = entry
        return previous

    def take(self, path: str) -> Entry | None:
        """Remove and return the committed entry."""
        previous = self.entries.pop(path, None)
        if previous is not None:
            del self.paths[bisect_left(self.paths, path)]
        return previous

    def apply(self, path: str, entry: Entry, *, deletes: bool) -> StoredChange:
        """Make a change on disk visible here; the caller publishes the returned change."""
        previous = self.take(path) if deletes else self.put(path, entry)
        return StoredChange(
            "DELETED" if deletes else "ADDED" if previous is None else "MODIFIED",
            entry.key,
            entry.revision,
            entry.value,
            previous=previous.value if previous is not None else None,
            previous_revision=previous.revision if previous is not None else 0,
            recently_used=self.feed.recently_used,
        )


def page_of(
    entries: list[Entry],
    undone: dict[str, Entry | None],
    start_after: str | None,
    limit: int | None,
) -> tuple[list[Entry], int]:
    """One page of a list as it was earlier, and how many entries come after it.

    `entries` is the list now; `undone` says for each path that changed since what was there before (None: nothing).
    """
    if undone:
        past: dict[str, Entry] = {entry.key.path: entry for entry in entries}
        for path, before in undone.items():
            if before is None:
                past.pop(path, None)
            else:
                past[path] = before
        entries = [past[path] for path in sorted(past)]
    first = 0
    if start_after is not None:
        first = bisect_right(entries, start_after, key=lambda entry: entry.key.path)
    end = len(entries) if not limit else min(len(entries), first + limit)
    return entries[first:end], len(entries) - end


def path_of(key: ObjectKey) -> str:
    """The path of a key that is fit to be stored."""
    # A lone surrogate, which JSON can spell, has no UTF-8.
    if "/" in key.name or "/" in key.namespace or not key.name or any("\ud800" <= c <= "\udfff" for c in key.path):
        raise ValueError(f"not a storable name: {key.namespace!r} {key.name!r}")
    return key.path
