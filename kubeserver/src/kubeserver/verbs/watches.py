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

from kubeserver.storage.store import Compacted, Entry, StoredChange, TooSlow
from kubeserver.verbs.reads import Selection, in_turns, selection, until_revision
from kubeserver.views.representations import View
from kubeserver.wire.messages import JSON, Request, Stream, encode
from kubeserver.wire.options import ListOptions, list_options, resource_version
from kubeserver.wire.status import ApiError, expired

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource
    from kubeserver.storage.store import Watch

Json = dict[str, Any]

_BOOKMARK_SECONDS: Final = 60.0
_CHUNK: Final = 256 * 1024  # bytes of changes that are sent at once: a slow client has no more than this buffered
_SHORTEST: Final = 1800.0  # a watch without a limit of its own lasts half an hour to an hour


async def watch(cluster: LogicalCluster, resource: Resource, request: Request) -> Stream:
    options = list_options({**request.query, "watch": "true"})
    wanted = await selection(cluster, resource, request, options)
    view = View(cluster, resource, request, streaming=True)
    version = resource_version(options.resource_version) if options.resource_version else 0
    await until_revision(cluster, version)
    lines = Lines(cluster, resource, wanted, view)
    return Stream(_stream(lines, request, options, version), content_type=JSON)


class Lines:
    """Turns changes into lines in one representation; lines that all watchers share are kept with the change."""

    def __init__(self, cluster: LogicalCluster, resource: Resource, wanted: Selection, view: View) -> None:
        self.cluster = cluster
        self.resource = resource
        self.wanted = wanted
        self._view = view
        self._columns_sent = False
        self.shared = wanted.everything and view.plain

    def of_change(self, change: StoredChange) -> bytes | None:
        """The line for a change; None if this watcher is not concerned."""
        if not self.shared:
            return self._filtered(change)
        version = self.resource.api_version
        line = change.encoded.get(version)
        if line is None:
            line = change.encoded[version] = self._line(change.type, change.value, change.revision)
        return line

    def of_entry(self, entry: Entry) -> bytes | None:
        """The line for an object that was there when the watch began; None if this watcher does not select it."""
        if self.shared:
            return self._line("ADDED", entry.value, entry.revision)
        obj = self.cluster.load(self.resource, entry)
        return self.of_shown("ADDED", obj) if self.wanted.everything or self.wanted.matches(obj) else None

    def _line(self, kind: str, value: bytes, revision: int) -> bytes:
        shown = self.cluster.show(self.resource, value, revision)
        return b"".join((b'{"type":"', kind.encode(), b'","object":', shown, b"}\n"))

    def _filtered(self, change: StoredChange) -> bytes | None:
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


async def _stream(lines: Lines, request: Request, options: ListOptions, version: int) -> AsyncIterator[bytes]:
    """What a watcher gets to read, from the first line to the last."""
    cluster, namespace = lines.cluster, request.info.namespace or None
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
            async for some in in_turns(cluster, request, entries, each=lines.wanted.weight):
                made = [line for entry in some if (line := lines.of_entry(entry)) is not None]
                if made:
                    yield b"".join(made)
            if options.send_initial_events and options.bookmarks:
                yield lines.bookmark(since, initial_end=True)
        async for line in _follow(lines, request, following, deadline, bookmarks=options.bookmarks):
            yield line
    except TooSlow:
        return
    finally:
        following.close()


def _starts_whole(options: ListOptions, version: int) -> bool:
    """Whether the objects that exist come first."""
    if options.send_initial_events is not None:
        return options.send_initial_events
    return version == 0


async def _follow(
    lines: Lines, request: Request, following: Watch, deadline: float, *, bookmarks: bool
) -> AsyncIterator[bytes]:
    """Lines as changes come, and a bookmark whenever nothing was told for a while, whatever others were told of."""
    clock = asyncio.get_running_loop().time
    told = clock()
    while (now := clock()) < deadline:
        changes = await following.next_batch(timeout=max(0.0, min(deadline, told + _BOOKMARK_SECONDS) - now))
        if changes is None:
            return
        if lines.shared:
            for chunk in _chunks([lines.of_change(change) for change in changes]):
                yield chunk
                told = clock()
        else:
            # Decided and encoded for this watcher alone: its user's turn, as a request would be.
            for change in changes:
                await lines.cluster.turns.take(request.caller(lines.cluster.name))
                if (line := lines.of_change(change)) is not None:
                    yield line
                    told = clock()
        if not changes or clock() >= told + _BOOKMARK_SECONDS:
            told = clock()
            if bookmarks:
                yield lines.bookmark(following.progress)


def _chunks(made: list[bytes | None]) -> Iterator[bytes]:
    """Lines put together, not too many bytes of them: what is sent is copied for each watcher."""
    some: list[bytes] = []
    size = 0
    for line in made:
        if line is None:
            continue
        if some and size + len(line) > _CHUNK:
            yield b"".join(some)
            some, size = [], 0
        some.append(line)
        size += len(line)
    if some:
        yield b"".join(some)


def error_line(error: ApiError) -> bytes:
    return encode({"type": "ERROR", "object": error.status()}) + b"\n"
