"""The secret in the path by which the admission server knows its caller.

A webhook configuration has no room for a password, but it has a path, and only administrators may read it. So the path
ends in a secret: a client that asks under another one is a stranger and gets no information.

API servers repeat the whole URL to the author of a write when they do not get through to a webhook. So a secret is not
kept for long: it changes at every start and every hour. There are always two that are good, the one that is registered
and the one that comes next, so that a replica which has not heard of a change yet knows the new one already. The one
before stays good for two minutes, in which every API server hears of the new configuration.

On one machine the secrets live in the memory of the one process. Replicas share them through a Secret, by
compare-and-swap.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from butler.kube.errors import AlreadyExists, Conflict, NotFound
from butler.kube.resource import SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.kube.client import Client

PREFIX: Final = "/admission"
"""Also the whole path of versions that had no secret."""
CHANGE_AFTER: Final = datetime.timedelta(hours=1)
FRESH: Final = datetime.timedelta(minutes=5)
"""Younger than that, a start changes nothing: the replicas of a Deployment start together."""
LAST_GOOD: Final = datetime.timedelta(minutes=2)
_ATTEMPTS: Final = 5
# API servers take segments of a path that could be host names, and nothing else.
_SECRET: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Paths:
    """The secrets that are good now."""

    current: str = field(repr=False)
    coming: str = field(repr=False)
    last: str = field(repr=False)
    changed_at: datetime.datetime

    @classmethod
    def anew(cls, now: datetime.datetime) -> Paths:
        return cls(_random(), _random(), _random(), now)

    def changed(self, now: datetime.datetime) -> Paths:
        return Paths(self.coming, _random(), self.current, now)

    @property
    def path(self) -> str:
        """What API servers are to ask."""
        return f"{PREFIX}/{self.current}"

    def knows(self, path: str, now: datetime.datetime) -> bool:
        """Whether who asks under this path was told it by the webhook configuration."""
        good = [self.current, self.coming]
        if now - self.changed_at < LAST_GOOD:
            good.append(self.last)
        asked = path.encode(errors="replace")
        # All are compared, and each in full: the time that it takes says nothing about them.
        matches = [hmac.compare_digest(f"{PREFIX}/{secret}".encode(), asked) for secret in good]
        return any(matches)


class PathSource(Protocol):
    """Where the secrets come from. Asked again and again."""

    async def fetch(self) -> Paths:
        """Those that are good now."""


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class OwnPaths:
    """The secrets of this process alone."""

    def __init__(self, clock: Callable[[], datetime.datetime] = _now) -> None:
        self._clock = clock
        self._paths: Paths | None = None

    async def fetch(self) -> Paths:
        now = self._clock()
        if self._paths is None:
            self._paths = Paths.anew(now)
        elif now - self._paths.changed_at >= CHANGE_AFTER:
            self._paths = self._paths.changed(now)
        return self._paths


class SharedPaths:
    """The secrets of all replicas, in a Secret. A replica that finds them old changes them."""

    def __init__(
        self, client: Client, namespace: str, name: str, clock: Callable[[], datetime.datetime] = _now
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._is_started = False

    async def fetch(self) -> Paths:
        for attempt in range(_ATTEMPTS):
            try:
                found = await self._agree()
            except (AlreadyExists, Conflict):
                if attempt + 1 == _ATTEMPTS:
                    raise
                continue  # another replica was quicker: take what it made
            self._is_started = True
            return found
        raise AssertionError

    async def _agree(self) -> Paths:
        now = self._clock()
        try:
            secret = await self._client.get(SECRETS, self._name, self._namespace)
        except NotFound:
            made = Paths.anew(now)
            await self._client.create(SECRETS, self._as_secret(made), self._namespace)
            return made
        found = _read(secret.get("data"))
        age = now - found.changed_at if found is not None else None
        if found is not None and age is not None and age < (CHANGE_AFTER if self._is_started else FRESH):
            return found
        changed = found.changed(now) if found is not None else Paths.anew(now)
        await self._client.replace(SECRETS, {**secret, "data": self._as_secret(changed)["data"]})
        return changed

    def _as_secret(self, paths: Paths) -> dict[str, Any]:
        data = {
            "current": paths.current,
            "coming": paths.coming,
            "last": paths.last,
            "changedAt": paths.changed_at.isoformat(),
        }
        return {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "Opaque",
            "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
        }


def _read(data: Any) -> Paths | None:
    """The secrets in a Secret's data; None where they make no sense, and new ones are made."""
    try:
        text = {name: base64.b64decode(data[name], validate=True).decode() for name in ("current", "coming", "last")}
        changed_at = datetime.datetime.fromisoformat(base64.b64decode(data["changedAt"], validate=True).decode())
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    if changed_at.tzinfo is None or not all(_SECRET.fullmatch(secret) for secret in text.values()):
        return None
    return Paths(text["current"], text["coming"], text["last"], changed_at)


def _random() -> str:
    return secrets.token_hex(32)
