"""What people did through this API: how it is written down, and how it is read again.

Twice. A line of JSON on the logger `butler.audit` is the record: one for every write, whatever came of it, in the order
in which they ended. An Event on the object is the courtesy: `kubectl describe` and every replica's activity page show
it. `record` writes both, `parsed` reads an Event back.

Controllers have their Events combined and thinned out; what a person did is never combined, as two edits are two
edits. Each person has an allowance that is not used up by hand, and a much smaller one for what was refused. Who may do
nothing to an object leaves a line and no Event: they must not fill the Events of others. What does not fit is told in
the server's log.

Kubernetes lets every client write Events that has the right to: where it matters who did something, believe the lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import logging.handlers
import os
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Final, Literal

import msgspec

from butler.api.labels import Annotation
from butler.api.objects import Json
from butler.api.printable import in_json, one_line
from butler.kube.client import Client
from butler.kube.errors import KubeError
from butler.kube.resource import EVENTS, BadName
from butler.server.rate_limit import Limit

log = logging.getLogger(__name__)
lines = logging.getLogger("butler.audit")
lines.setLevel(logging.INFO)  # a record that needs to be switched on is none

COMPONENT: Final = "butler-console"
DONE: Final = "ChangedByPerson"
REFUSED: Final = "RefusedToPerson"
UNKNOWN: Final = "PerhapsChangedByPerson"

LONGEST: Final = 1024
BUFFER: Final = 2_000
WRITE_TIMEOUT: Final = 10.0
_FULL: Final = 10 * 1024 * 1024  # bytes of a file, where files are changed here
MOST_PEOPLE: Final = 4_096

Outcome = Literal["done", "refused", "unknown"]
_REASONS: Final[dict[Outcome, str]] = {"done": DONE, "refused": REFUSED, "unknown": UNKNOWN}
_OUTCOMES: Final[dict[str, Outcome]] = {reason: outcome for outcome, reason in _REASONS.items()}


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the record. Nothing in it is secret."""

    time: datetime
    user: str
    groups: tuple[str, ...]
    via: str
    session: str
    verb: str
    kind: str
    namespace: str
    name: str
    detail: str
    outcome: Outcome
    status: int
    """What the person was answered, as HTTP has it."""
    message: str
    """Why it was refused, or why that is not known; empty when it was done."""


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What an Event tells of a person's deed."""

    actor: str
    verb: str
    outcome: Outcome
    message: str


def write_line(entry: AuditEntry) -> None:
    """One line of the record, which a terminal may show."""
    lines.info("%s", in_json(msgspec.json.encode(entry).decode()))


def event_of(entry: AuditEntry, about: Json) -> Json:
    """The Event that tells of it. Pure. `about` is how an Event names its object."""
    when = entry.time.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {
            "generateName": f"{entry.name[:200]}.console-",
            "namespace": entry.namespace or "default",
            "annotations": {Annotation.ACTOR: entry.user},
        },
        "involvedObject": about,
        "reason": _REASONS[entry.outcome],
        "message": shortened(_sentence(entry)),
        "type": "Normal" if entry.outcome == "done" else "Warning",
        "action": entry.verb,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }


def parsed(event: Json) -> Audited | None:
    """What an Event tells of a person's deed; None for one of a controller. Pure."""
    actor = ((event.get("metadata") or {}).get("annotations") or {}).get(Annotation.ACTOR)
    outcome = _OUTCOMES.get(str(event.get("reason")))
    component = event.get("reportingComponent") or (event.get("source") or {}).get("component")
    if not isinstance(actor, str) or not actor or outcome is None or component != COMPONENT:
        return None
    return Audited(
        actor=actor, verb=str(event.get("action") or ""), outcome=outcome, message=str(event.get("message") or "")
    )


def _sentence(entry: AuditEntry) -> str:
    what = f"{entry.verb} {entry.detail}".strip()
    if entry.outcome == "done":
        return f"{entry.user}: {what}"
    word = "refused" if entry.outcome == "refused" else "outcome unknown"
    return f"{entry.user}: {what}: {word} ({entry.status}): {entry.message}"


def shortened(text: str) -> str:
    """Text from outside for the record: a single request cannot fill it, or mislead its readers."""
    return one_line(text, LONGEST)


def _open_private(path: str) -> TextIOWrapper:
    return open(path, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600))


class _PrivateFile(logging.handlers.WatchedFileHandler):
    """A file that is made for its owner alone, at first and after every rotation."""

    def _open(self) -> TextIOWrapper:
        return _open_private(self.baseFilename)


class _PrivateFiles(logging.handlers.RotatingFileHandler):
    """The same, and a new one is begun when it is full."""

    def _open(self) -> TextIOWrapper:
        return _open_private(self.baseFilename)


def attach_file(path: Path, *, kept: int = 0) -> logging.Handler:
    """Write the lines to a file, too, for its owner's eyes alone.

    It may be moved away by log rotation at any time; where nothing else does that, so many old ones are `kept`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handler: logging.Handler = (
        _PrivateFiles(path, maxBytes=_FULL, backupCount=kept, encoding="utf-8")
        if kept
        else _PrivateFile(path, encoding="utf-8")
    )
    handler.setFormatter(logging.Formatter("%(message)s"))
    lines.addHandler(handler)
    return handler


class AuditTrail:
    """Writes records. Events are written behind the back of the request, one after the other."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._done = Limit(burst=200, per_second=1 / 10, most=MOST_PEOPLE, clock=clock)
        self._refused = Limit(burst=20, per_second=1 / 60, most=MOST_PEOPLE, clock=clock)
        self._waiting: deque[Json] = deque()
        self._task: asyncio.Task[None] | None = None

    def record(self, entry: AuditEntry, about: Json | None) -> None:
        """Write it down, and as an Event `about` an object unless there is none. Returns at once, and never fails."""
        write_line(entry)
        if about is None:
            return
        allowance = self._done if entry.outcome == "done" else self._refused
        if len(self._waiting) >= BUFFER or allowance.take(entry.user) > 0:
            log.warning("no Event tells what %r did to %s %r: there are too many", entry.user, entry.kind, entry.name)
            return
        self._waiting.append(event_of(entry, about))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_out())

    async def _write_out(self) -> None:
        while self._waiting:
            event = self._waiting.popleft()
            try:
                await self._client.create(EVENTS, event, timeout=WRITE_TIMEOUT)
            except (KubeError, BadName) as error:  # such as for a namespace that is not there, or cannot be
                log.info("no Event tells of %r: %s", event["involvedObject"].get("name"), error)

    async def close(self, wait: float = 2.0) -> None:
        """Write what is left, but for no longer than that."""
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._task, wait)
