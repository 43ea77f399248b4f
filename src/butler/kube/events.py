"""Telling people what happened to an object: core/v1 Events, as `kubectl describe` shows them.

Recording never blocks and never fails: `record` only puts a note into a bounded buffer, and a task of its own
writes it out. Many notes become few writes: a repeated one bumps the count of the Event that exists, more than ten
different messages of one reason on one object in ten minutes are combined into one, and each reason on an object
has a small allowance that refills slowly: a thousand deletions must not silence the one warning that the pool is full.
What does not fit is counted and dropped: an Event is a courtesy, not a record.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from butler.api.printable import one_line
from butler.kube.errors import ApiError, KubeError, NotFound
from butler.kube.metrics import Metrics
from butler.kube.objects import object_reference
from butler.kube.resource import EVENTS, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import EventType, Json
    from butler.kube.client import Client

log = logging.getLogger(__name__)

COMBINE_AFTER = 10
COMBINE_WINDOW = 600.0
ALLOWANCE = 25.0
REFILL_PER_SECOND = 1 / 300
REMEMBERED = 4096
MESSAGE_LIMIT = 1024
WRITE_TIMEOUT = 10.0
COMBINED = "(combined from similar events): "


class _Subject(NamedTuple):
    """What an Event is about."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class _Note:
    reference: Json
    type: EventType
    reason: str
    message: str
    at: float


@dataclass(slots=True)
class _Series:
    """All that is remembered of one reason on one object."""

    messages: set[str] = field(default_factory=set)
    began: float = 0.0


@dataclass(slots=True)
class _Written:
    """An Event that exists on the server, as far as we know."""

    name: str
    count: int


class EventRecorder:
    """Writes Events in the name of one component. `wall` gives Unix seconds."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        buffer: int = 1000,
        wall: Callable[[], float] = time.time,
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance or component
        self._buffer: deque[_Note] = deque()
        self._most = buffer
        self._wall = wall
        self._dropped = (metrics or Metrics()).events_dropped
        self._serial = 0  # keeps the names of events of one moment apart
        self._arrived = asyncio.Event()
        self._written_out = asyncio.Event()
        self._written_out.set()
        self._series: OrderedDict[tuple[_Subject, str, str], _Series] = OrderedDict()
        self._existing: OrderedDict[tuple[_Subject, str, str, str], _Written] = OrderedDict()
        self._allowances: OrderedDict[tuple[_Subject, str], tuple[float, float]] = OrderedDict()

    def record(
        self,
        obj: object,
        resource: Resource[Any],
        reason: str,
        message: str,
        type: EventType = "Normal",  # noqa: A002
    ) -> None:
        """Note that something happened to an object. Returns at once."""
        if len(self._buffer) >= self._most:
            self._dropped.labels("buffer_full").inc()
            return
        note = _Note(object_reference(obj, resource), type, reason, _shortened(message), self._wall())
        self._buffer.append(note)
        self._written_out.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Write out what is recorded until cancelled."""
        while True:
            while self._buffer:
                note = self._buffer.popleft()
                try:
                    await self._write(note)
                except Exception:
                    self._dropped.labels("failure").inc()
                    log.exception("an event about %s could not be written", note.reference.get("name"))
            self._written_out.set()
            self._arrived.clear()
            await self._arrived.wait()

    async def flush(self, timeout: float) -> None:
        """Wait until everything recorded so far is written, but not for longer than `timeout`."""
        try:
            async with asyncio.timeout(timeout):
                await self._written_out.wait()
        except TimeoutError:
            log.info("%d events were not written before the end", len(self._buffer))

    async def _write(self, note: _Note) -> None:
        reference = note.reference
        subject = _Subject(
            reference["kind"], reference.get("namespace", ""), reference["name"], reference.get("uid", "")
        )
        if not self._allowed((subject, note.reason), note.at):
            self._dropped.labels("rate").inc()
            return
        message = self._combined(subject, note)
        # Combined events share one Event whatever they say, so the message is no part of their identity.
        same = (subject, note.type, note.reason, COMBINED if message.startswith(COMBINED) else message)
        try:
            if (known := self._existing.get(same)) is not None:
                try:
                    await self._bump(known, subject, note, message)
                except NotFound:  # it lived out its hour
                    del self._existing[same]
                    await self._create(same, subject, note, message)
            else:
                await self._create(same, subject, note, message)
        except ApiError as error:
            self._dropped.labels("refused").inc()
            log.info("an event about %s was refused: %s", note.reference["name"], error)
        except KubeError as error:
            self._dropped.labels("unreachable").inc()
            log.info("an event about %s is lost: %s", note.reference["name"], error)

    def _allowed(self, topic: tuple[_Subject, str], now: float) -> bool:
        tokens, since = self._allowances.get(topic, (ALLOWANCE, now))
        tokens = min(ALLOWANCE, tokens + max(0.0, now - since) * REFILL_PER_SECOND)
        _remember(self._allowances, topic, (max(0.0, tokens - 1), now))
        return tokens >= 1

    def _combined(self, subject: _Subject, note: _Note) -> str:
        key = (subject, note.type, note.reason)
        series = self._series.get(key)
        if series is None or note.at - series.began > COMBINE_WINDOW:
            series = _Series(began=note.at)
        _remember(self._series, key, series)
        if len(series.messages) < COMBINE_AFTER:
            series.messages.add(note.message)
        return note.message if note.message in series.messages else _shortened(COMBINED + note.message)

    async def _create(self, same: Any, subject: _Subject, note: _Note, message: str) -> None:
        when = _timestamp(note.at)
        self._serial += 1
        event: Json = {
            # Names as Kubernetes gives them: the object's, and the time in nanoseconds as hexadecimal.
            "metadata": {
                "name": f"{subject.name[:230]}.{int(note.at * 1e9) + self._serial:x}",
                "namespace": _home(subject),
            },
            "involvedObject": note.reference,
            "reason": note.reason,
            "message": message,
            "type": note.type,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
        }
        made = await self._client.create(EVENTS, event, timeout=WRITE_TIMEOUT)
        _remember(self._existing, same, _Written(made["metadata"]["name"], 1))

    async def _bump(self, known: _Written, subject: _Subject, note: _Note, message: str) -> None:
        patch = {"count": known.count + 1, "lastTimestamp": _timestamp(note.at), "message": message}
        await self._client.patch(EVENTS, known.name, patch, _home(subject), timeout=WRITE_TIMEOUT)
        known.count += 1


def _home(subject: _Subject) -> str:
    return subject.namespace or "default"


def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shortened(message: str) -> str:
    """A message may quote others: it is made safe to print, too."""
    return one_line(message, MESSAGE_LIMIT)


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
