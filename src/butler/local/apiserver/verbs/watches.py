"""Watching: a stream of changes, each a line of JSON, none missing and none twice.

A watch starts from a resourceVersion, or from nothing, in which case the objects that exist come first as ADDED. It
ends when the client leaves, when its time is up, when the server stops, or when the client reads so slowly that
keeping its backlog would cost the others: it then starts again from the last version it saw.
"""

from __future__ import annotations

import asyncio
import copy
import random
from typing import TYPE_CHECKING, Any, Final

from butler.local.apiserver.storage.store import Change, Compacted, Entry, TooSlow
from butler.local.apiserver.verbs.reads import Selection, selection, until_revision
from butler.local.apiserver.views.representations import View
from butler.local.apiserver.wire.messages import JSON, Request, Stream, encode
from butler.local.apiserver.wire.options import ListOptions, list_options, resource_version
from butler.local.apiserver.wire.status import ApiError, expired

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.local.apiserver.cluster import LogicalCluster
    from butler.local.apiserver.resources import Resource
    from butler.local.apiserver.storage.store import Watch

Json = dict[str, Any]

_BOOKMARK_SECONDS: Final = 60.0
_INITIAL_BATCH: Final = 500  # objects put into one chunk
_SHORTEST: Final = 1800.0  # a watch without a limit of its own lasts half an hour to an hour


async def watch(cluster: LogicalCluster, resource: Resource, request: Request) -> Stream:
    options = list_options({**request.query, "watch": "true"})
    wanted = await selection(cluster, resource, request, options)
    view = View(cluster, resource, request, streaming=True)
    version = resource_version(options.resource_version) if options.resource_version else 0
    await until_revision(cluster, version)
    lines = Lines(cluster, resource, wanted, view)
    namespace = request.info.namespace or None
    return Stream(_stream(lines, namespace, options, version), content_type=JSON)


class Lines:
    """Turns changes into lines in one representation; lines that all watchers share are kept with the change."""

    def __init__(self, cluster: LogicalCluster, resource: Resource, wanted: Selection, view: View) -> None:
        self.cluster = cluster
        self.resource = resource
        self.wanted = wanted
        self._view = view
        self._columns_sent = False
        self._shared = wanted.everything and view.plain

    def of_change(self, change: Change) -> bytes | None:
        """The line for a change; None if this watcher is not concerned."""
        if not self._shared:
            return self._filtered(change)
        version = self.resource.api_version
        line = change.encoded.get(version)
        if line is None:
            shown = self.cluster.show(self.resource, change.value, change.revision)
            line = b"".join((b'{"type":"', change.type.encode(), b'","object":', shown, b"}\n"))
            change.encoded[version] = line
        return line

    def _filtered(self, change: Change) -> bytes | None:
        """Objects enter and leave a selection: to the watcher that is being added and deleted."""
        obj = change.object()
        before = change.previous_object()
        now = change.type != "DELETED" and self._matches(obj, change.revision)
        was = before is not None and self._matches(before, change.revision)
        if now:
            return self.of_object("MODIFIED" if was else "ADDED", obj, change.revision)
        if not was:
            return None
        if change.type != "DELETED":
            assert before is not None
            obj = {**before, "metadata": {**before["metadata"], "resourceVersion": str(change.revision)}}
        return self.of_object("DELETED", obj, change.revision)

    def _matches(self, obj: Json, revision: int) -> bool:
        return self.wanted.everything or self.wanted.matches(self._shown(obj, revision))

    def of_object(self, kind: str, obj: Json, revision: int) -> bytes:
        return self.of_shown(kind, self._shown(obj, revision))

    def of_shown(self, kind: str, obj: Json) -> bytes:
        shown = self._view.one(obj, headers=not self._columns_sent)
        self._columns_sent = True
        return encode({"type": kind, "object": shown}) + b"\n"

    def _shown(self, obj: Json, revision: int) -> Json:
        """An object in our version. Changes are shared between watchers, so what is converted is a copy."""
        if self.cluster.stored_form_is_shown(self.resource, revision):
            return obj
        return self.cluster.shown(self.resource, copy.deepcopy(obj), revision)

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        metadata: Json = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return encode({"type": "BOOKMARK", "object": self._view.bookmark(metadata)}) + b"\n"


async def _stream(lines: Lines, namespace: str | None, options: ListOptions, version: int) -> AsyncIterator[bytes]:
    """What a watcher gets to read, from the first line to the last."""
    cluster = lines.cluster
    store, table = cluster.store, cluster.table(lines.resource)
    seconds = options.timeout or random.uniform(_SHORTEST, 2 * _SHORTEST)  # noqa: S311 - spreads reconnects
    deadline = asyncio.get_running_loop().time() + seconds
    whole = _starts_whole(options, version)
    since = store.revision if whole else version or store.revision
    try:
        following = store.watch(table, namespace, since=since)
    except Compacted:
        yield error_line(expired(f"too old resource version: {version} ({store.compacted})"))
        return
    try:
        if whole:
            # taken in the same breath as the watch was opened, so nothing can fall between the two
            entries = list(store.entries(table, namespace))
            for start in range(0, len(entries), _INITIAL_BATCH):
                yield _initial(lines, entries[start : start + _INITIAL_BATCH])
            if options.send_initial_events and options.bookmarks:
                yield lines.bookmark(since, initial_end=True)
        async for line in _follow(lines, following, deadline, bookmarks=options.bookmarks):
            yield line
    except TooSlow:
        return
    finally:
        following.close()


def _initial(lines: Lines, entries: list[Entry]) -> bytes:
    made: list[bytes] = []
    for entry in entries:
        obj = lines.cluster.load(lines.resource, entry)
        if lines.wanted.everything or lines.wanted.matches(obj):
            made.append(lines.of_shown("ADDED", obj))
    return b"".join(made)


def _starts_whole(options: ListOptions, version: int) -> bool:
    """Whether the objects that exist come first."""
    if options.send_initial_events is not None:
        return options.send_initial_events
    return version == 0


async def _follow(lines: Lines, following: Watch, deadline: float, *, bookmarks: bool) -> AsyncIterator[bytes]:
    """Lines as changes come, and a bookmark whenever none came for a while."""
    clock = asyncio.get_running_loop().time
    while (left := deadline - clock()) > 0:
        changes = await following.next_batch(timeout=min(left, _BOOKMARK_SECONDS))
        if changes is None:
            return
        made = [line for change in changes if (line := lines.of_change(change)) is not None]
        if made:
            yield b"".join(made)
        elif not changes and bookmarks:
            yield lines.bookmark(following.progress)


def error_line(error: ApiError) -> bytes:
    return encode({"type": "ERROR", "object": error.status()}) + b"\n"
