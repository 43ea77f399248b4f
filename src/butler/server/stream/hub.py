"""The live stream: everything that changes, to every client that may see it, over a WebSocket.

    cache -> Feed -> `_moved`: noted, without a place in time yet
    a moment later   `_flush`: each change gets its version and goes into the past; what it touched is shown once,
                     encoded once, and put into the queue of every listener who may see it
    beside it        `_flush_pools`: a pool with thousands of allocations takes long to show, and nothing else waits
    each listener    a task that sends, one that listens for the end, one that asks again who may see what

The first change is told at once, and the next ones after a pause of 50 ms, or four times as long as the telling took: a
burst of changes to a pool is one frame about the pool, and frames never take more than a fifth of a processor to make.
Handlers of a cache run before the cache has moved its position; `_flush` runs after, so the position is then at or past
every change that was noted.

A position moves on with the last frame of a flush, when all that was touched has been told, pools too: who is cut off
in between hears the rest again. Who reads too slowly has the queue replaced by `reset`. Nothing here is needed by
another replica: a position tells it all. The WebSocket itself is in `routes/stream.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Final, NamedTuple, cast

import msgspec

from butler.api.objects import version_of
from butler.server.access.person import Person
from butler.server.cache.cluster_state import KIND_NAMES, ClusterState, KindName, StateChange, number_of
from butler.server.cache.list_items import ListItems
from butler.server.cursor import decode_cursor, encode_cursor
from butler.server.models.common import Model
from butler.server.models.stream import Beat, Changed, Frame, Hello, Reset, StreamKind
from butler.server.permissions import UserPermissions
from butler.server.stream.changes import Past, StreamPosition, Touch, fed_by, merged, resumed
from butler.server.stream.items import item, touched
from butler.server.stream.permissions import Named, StreamPermissions, see

log = logging.getLogger(__name__)
MOST_QUEUED: Final = 2_000
"""Frames that wait for one listener."""
PAUSE: Final = 0.05
GLANCE: Final = 1.0


class StreamPlace(NamedTuple):
    """Where in time a client is: texts for clients to send back."""

    position: str
    heard: str


NOWHERE: Final = StreamPlace("", "")


class Told:
    """A frame, encoded once; the place goes in as it is sent, and is the same for most."""

    def __init__(self, frame: Frame) -> None:
        self._head = f'{{"type":"{frame.__struct_config__.tag}"'
        text, begins = msgspec.json.encode(frame).decode(), self._head + _placed(NOWHERE)
        if not text.startswith(begins):
            raise ValueError(f"a frame begins with its type and no place, not with {text[:60]}")
        self._tail = text[len(begins) :]
        self._made = (NOWHERE, "")

    def at(self, place: StreamPlace) -> str:
        if self._made[0] != place:
            self._made = (place, self._head + _placed(place) + self._tail)
        return self._made[1]


def _placed(place: StreamPlace) -> str:
    return f',"position":"{place.position}","heard":"{place.heard}"'


Telling = tuple[Touch, dict[Hashable, Told]]
"""What is told of an object, for each way in which listeners see its kind."""


def _way(touch: Touch, seen: StreamPermissions) -> Hashable:
    """All that a frame depends on, beside the object: who has the same is told the same."""
    return seen.look(touch.kind), seen.named(touch)


class Listener:
    """One open stream: who it is for, and what waits to be sent."""

    def __init__(self, person: Person, asked: Iterable[KindName]) -> None:
        self.person = person
        self.asked = tuple(asked)
        self.seen = StreamPermissions({}, (), frozenset())
        self.wake = asyncio.Event()
        self.look = asyncio.Event()
        self.blocked_since: float | None = None
        self.queue: deque[str] = deque()
        self.held: list[tuple[list[Told], StreamPlace, StreamPlace]] | None = None

    def hear(
        self, lost: Iterable[KindName], tellings: Iterable[Telling], before: StreamPlace, after: StreamPlace
    ) -> None:
        """Of what all listeners are told, queue what this listener may see."""
        frames: list[Told] = []
        if mine := set(lost) & self.seen.words.keys():
            frames.append(_reset(mine))
        for touch, told in tellings:
            if self.seen.shows(touch):
                found = told.get(_way(touch, self.seen))
                # It came in, or was told something else, while this was being made: let it ask.
                frames.append(found if found is not None else _reset([touch.kind]))
            elif self.seen.is_unsure(touch):
                self.look.set()
        self.take(frames, before, after)

    def release(self, frames: list[Told], before: StreamPlace, after: StreamPlace) -> None:
        """Queue these, then what was held back meanwhile."""
        held, self.held = self.held or [], None
        for pair in [(frames, before, after), *held]:
            self.take(*pair)

    def take(self, frames: list[Told], before: StreamPlace, after: StreamPlace) -> None:
        """Queue frames, the last of them with the new position."""
        if self.held is not None:
            self.held.append((frames, before, after))
            return
        if len(self.queue) + len(frames) > MOST_QUEUED:
            self.queue.clear()
            frames = [_reset(self.seen.words)]
        if frames:
            self.queue.extend(frame.at(before) for frame in frames[:-1])
            self.queue.append(frames[-1].at(after))
            self.wake.set()


def _reset(kinds: Iterable[KindName]) -> Told:
    return Told(Reset(**NOWHERE._asdict(), kinds=[kind for kind in KIND_NAMES if kind in set(kinds)]))


class StreamHub:
    """All listeners of this replica, and what they are told. Build it before the operator runs."""

    def __init__(self, state: ClusterState, permissions: UserPermissions, list_items: ListItems) -> None:
        self.listeners: set[Listener] = set()
        self._state = state
        self._permissions = permissions
        self._list_items = list_items
        self._noted: dict[KindName, list[StateChange]] = {kind: [] for kind in KIND_NAMES}
        self._pasts = {kind: Past() for kind in KIND_NAMES}
        self._lists = dict.fromkeys(KIND_NAMES, 0)
        self._versions: dict[str, int] = dict.fromkeys(KIND_NAMES, 0)
        self._positions: dict[tuple[tuple[str, str], ...], str] = {}
        self._changed: dict[str, int] = {}  # up to where each source has changed, which may be before its position
        self._heard = encode_cursor(self._changed)
        self._placed = self._versions
        self._objects: Counter[str] = Counter()  # in each namespace
        self._pools: list[Touch] = []
        self._pools_under_way = False
        self._wake = asyncio.Event()
        self._pools_wake = asyncio.Event()
        state.on_change(self._moved)

    # What happens.

    def _moved(self, moved: StateChange) -> None:
        self._noted[moved.kind].append(moved)
        self._objects[moved.change.key.namespace] += (moved.change.old is None) - (moved.change.new is None)
        self._wake.set()

    async def run(self) -> None:
        """Tell of changes until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._again_and_again(self._wake, self._flush))
            group.create_task(self._again_and_again(self._pools_wake, self._flush_pools))

    async def _again_and_again(self, wake: asyncio.Event, flush: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                # Now and then without a change: a cache may have listed anew and found none.
                async with asyncio.timeout(GLANCE):
                    await wake.wait()
            wake.clear()
            began = loop.time()
            try:
                await flush()
            except Exception:  # one object that cannot be shown must not silence all others for ever
                log.exception("the live stream could not tell of a change: all clients are asked to load again")
                self._tell(KIND_NAMES, [])
            await asyncio.sleep(max(PAUSE, 4 * (loop.time() - began)))

    async def _flush(self) -> None:
        """Tell of everything but pools."""
        versions, touches, anew = self._place()
        lost = fed_by(anew)
        wanted = [touch for touch in touches if touch.kind not in lost]
        tellings = [(touch, await self._told(touch)) for touch in wanted if touch.kind != "pool"]
        self._pools += [touch for touch in wanted if touch.kind == "pool"]
        self._placed = versions
        self._tell(lost, tellings, None if self._pools or self._pools_under_way else versions)
        if self._pools:
            self._pools_wake.set()

    async def _flush_pools(self) -> None:
        """Tell of pools; then everything up to here has been told."""
        if not self._pools:
            return
        touches, self._pools, versions = merged(self._pools), [], self._placed
        self._pools_under_way = True
        try:
            tellings = [(touch, await self._told(touch)) for touch in touches]
        finally:
            self._pools_under_way = False
        self._tell((), tellings, versions)

    def _place(self) -> tuple[dict[str, int], list[Touch], set[KindName]]:
        """Give every change its place in time: up to where, what was touched, and which sources were listed anew."""
        versions: dict[str, int] = {}
        touches: list[Touch] = []
        anew: set[KindName] = set()
        for source, cache in self._state.caches.items():
            noted, self._noted[source] = self._noted[source], []
            version = versions[source] = number_of(cache.position)
            if cache.lists != self._lists[source]:
                # What came and went before that list was never told: no client may go on from before it.
                self._lists[source] = cache.lists
                self._pasts[source].begin(version)
                self._state.forget_counts()
                anew.add(source)
                continue
            if noted:
                self._changed[source] = version
            for moved in noted:
                found = tuple(touched(self._state, self._list_items, moved))
                touches += found
                # An answer to a write may be taken in ahead of the position.
                at = version if moved.change.new is None else max(version, number_of(version_of(moved.change.new)))
                self._pasts[source].add(at, found)
        self._heard = encode_cursor(self._changed)
        return versions, merged(touches), anew

    def _tell(self, lost: Iterable[KindName], tellings: list[Telling], versions: dict[str, int] | None = None) -> None:
        before = {listener: self.place(listener.seen) for listener in self.listeners}
        if versions is not None and versions != self._versions:
            self._versions = versions
            self._positions.clear()
        for listener in self.listeners:
            listener.hear(lost, tellings, before[listener], self.place(listener.seen))

    async def _told(self, touch: Touch, *listeners: Listener) -> dict[Hashable, Told]:
        """A frame for each way in which listeners see an object; most often there is one way, or no listener."""
        among = listeners or self.listeners
        ways = {_way(touch, listener.seen): listener.seen for listener in among if listener.seen.shows(touch)}
        return {
            way: self._frame(touch, await item(self._state, self._list_items, touch, seen), seen.named(touch))
            for way, seen in ways.items()
        }

    def _frame(self, touch: Touch, shown: Model | None, named: Named) -> Told:
        frame = Changed(
            **NOWHERE._asdict(),
            kind=touch.kind,
            namespace=touch.key.namespace,
            name=touch.key.name,
            item=cast("Any", shown),
            pools=list(named.pools),
            tenants=list(named.tenants),
        )
        return Told(frame)

    def place(self, seen: StreamPermissions) -> StreamPlace:
        """Up to where a client has been told of everything, and what has been heard of, as of the last flush."""
        words = tuple(seen.words.items())
        if words not in self._positions:
            self._positions[words] = encode_cursor(StreamPosition(self._versions, dict(words)))
        return StreamPlace(self._positions[words], self._heard)

    # Who listens.

    def _inhabited(self) -> frozenset[str]:
        """The namespaces that anything is in."""
        return frozenset(name for name, count in self._objects.items() if count) | {self._state.home}

    async def join(self, listener: Listener, since: str | None) -> None:
        """Greet a listener, tell it what it has missed, and keep it informed from now on."""
        listener.seen = seen = await see(self._permissions, listener.person, listener.asked, self._inhabited())
        hello, place = Told(Hello(**NOWHERE._asdict(), kinds=list[StreamKind](seen.kinds))), self.place(seen)
        if since is None:
            listener.take([hello], place, place)
            self.listeners.add(listener)
            return
        known = decode_cursor(since, StreamPosition)
        found = resumed(self._pasts, known, seen.words)
        listener.held = []  # what happens while the past is told comes after it
        self.listeners.add(listener)
        frames = [hello, *([_reset(found.reset)] if found.reset else [])]
        for touch in found.touches:
            frames += (await self._told(touch, listener)).values()
        # Who is cut off before hearing all of it must come back with what they had.
        listener.release(frames, place._replace(position=since) if known is not None else place, place)

    def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)

    async def look_again(self, listener: Listener) -> None:
        """Ask anew what a listener may see, and have it load again what it sees more or less of."""
        seen = await see(self._permissions, listener.person, listener.asked, self._inhabited())
        changed = listener.seen.differs(seen)
        listener.seen = seen
        if changed:
            place = self.place(seen)
            listener.take([_reset(changed)], place, place)

    def beat(self, listener: Listener) -> str:
        return Told(Beat(**NOWHERE._asdict())).at(self.place(listener.seen))
