"""Sessions: who is in, kept where every replica sees it, and over the moment that a user ends them.

A browser holds a random token in a cookie; the record is called after its hash. An answer of Kubernetes is good for
`REMEMBER` seconds: that is how long a session that was ended elsewhere may live on in another replica.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from butler.kube.errors import KubeError
from butler.kube.recent_results import RecentResults
from butler.server.access.keys import derived_token, token_id
from butler.server.access.person import Person, Via
from butler.server.access.records import Records, RecordStore, StoredRecord

log = logging.getLogger(__name__)
PURPOSE: Final = "session"
REMEMBER: Final = 3.0
MOST_REMEMBERED: Final = 10_000
MOST_OF_ONE: Final = 50
"""Sessions of one person: with one more, the oldest ends."""
AUTHENTICATED: Final = "system:authenticated"
RESERVED: Final = "system:"
"""How names begin that Kubernetes keeps for itself."""


class SessionRecord(msgspec.Struct, frozen=True):
    """A session as it is kept."""

    user: str
    groups: tuple[str, ...]
    via: Via
    created: datetime
    expires: datetime
    """However busy it is."""
    seen: datetime
    """About when it was last used."""
    user_agent: str


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a session lasts."""

    idle: timedelta = timedelta(hours=8)
    longest: timedelta = timedelta(hours=12)
    """Groups are those of the login until then: who was taken out of one at the provider stays in it here."""

    def end(self, record: SessionRecord) -> datetime:
        return min(record.expires, record.seen + self.idle)

    @property
    def worth_writing(self) -> timedelta:
        """A use is written down when the last one that was is older than this: not every request is a write."""
        return min(self.idle / 20, timedelta(minutes=5))


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a user is to Kubernetes, as one of the logins found out."""

    user: str
    groups: tuple[str, ...]
    via: Via


def is_reserved(user: str, groups: tuple[str, ...]) -> bool:
    """Whether Kubernetes keeps the user or one of the groups for itself. Pure."""
    return any(name.lower().startswith(RESERVED) for name in (user, *groups) if name != AUTHENTICATED)


class Sessions:
    """All sessions of all replicas.

    Only a one-time link lets a user be what Kubernetes keeps for itself, and only a server that takes `links` knows
    such sessions: whatever a record says, elsewhere no user is `system:masters`.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        lifetime: Lifetime,
        now: Callable[[], datetime],
        links: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = Records(store, "session", SessionRecord)
        self._key = store.key
        self._links = links
        self._lifetime = lifetime
        self._now = now
        self._known = RecentResults(REMEMBER, most=MOST_REMEMBERED, never_older=True, clock=clock)
        self._writing: set[asyncio.Task[None]] = set()

    async def begin(self, identity: Identity, user_agent: str) -> tuple[str, Person]:
        """Begin a session: the token for their cookie, and who they are from now on."""
        token, now = self._key.token(PURPOSE), self._now()
        groups = tuple(dict.fromkeys((*identity.groups, AUTHENTICATED)))
        expires = now + self._lifetime.longest
        record = SessionRecord(identity.user, groups, identity.via, now, expires, now, _printable(user_agent)[:200])
        random = self._key.secret_of(PURPOSE, token)
        assert random is not None
        await self._records.create(_name(token_id(random)), record, owner=record.user)
        await self._end_oldest(record.user)
        return token, self._person(record, random)

    async def find(self, token: str) -> Person | None:
        """Whose session it is; None when it is over, or never was."""
        random = self._key.secret_of(PURPOSE, token)
        if random is None:
            return None
        kept = await self._recall(token_id(random))
        if kept is None or not self._is_good(kept.content):
            return None
        self._note_use(kept)
        return self._person(kept.content, random)

    async def still(self, person: Person) -> bool:
        """Whether their session goes on; asked of streams that are open for long."""
        kept = await self._recall(person.session)
        return kept is not None and self._is_good(kept.content)

    def _is_good(self, record: SessionRecord) -> bool:
        trusted = self._links if record.via == "link" else not is_reserved(record.user, record.groups)
        return trusted and self._lifetime.end(record) > self._now()

    async def of(self, person: Person) -> list[tuple[str, SessionRecord, datetime]]:
        """Their sessions, newest first: what each is called, the record, and when it ends."""
        now, found = self._now(), await self._records.list(owner=person.user)
        theirs = [(_id(kept.name), kept.content) for kept in found if kept.content.user == person.user]
        alive = [(name, record, self._lifetime.end(record)) for name, record in theirs]
        return sorted(
            (session for session in alive if session[2] > now), key=lambda pair: pair[1].created, reverse=True
        )

    async def end(self, person: Person, session: str) -> bool:
        """End one of the person's own sessions; False when they have none of that name."""
        kept = await self._records.get(_name(session)) if _is_id(session) else None
        if kept is None or kept.content.user != person.user:
            return False
        self._known.forget(session)
        ended = await self._records.remove(kept.name)
        self._known.forget(session)  # a request may have come while it was being deleted
        return ended

    async def sweep(self) -> int:
        now = self._now()
        return await self._records.sweep(lambda record: self._lifetime.end(record) <= now, now)

    async def _end_oldest(self, user: str) -> None:
        found = sorted(await self._records.list(owner=user), key=lambda kept: kept.content.created, reverse=True)
        for kept in found[MOST_OF_ONE:]:
            await self._records.take(kept)

    async def _recall(self, session: str) -> StoredRecord[SessionRecord] | None:
        return await self._known.of(session, lambda: self._records.get(_name(session)))

    def _note_use(self, kept: StoredRecord[SessionRecord]) -> None:
        now = self._now()
        if now - kept.content.seen < self._lifetime.worth_writing:
            return
        used = _seen_at(kept, now)
        self._known.put(_id(kept.name), used)  # so that the next request does not write it again
        task = asyncio.create_task(self._write_use(kept, used.content))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write_use(self, kept: StoredRecord[SessionRecord], used: SessionRecord) -> None:
        # With the version that was read: a session that was ended meanwhile does not come back.
        try:
            await self._records.replace(kept, used, owner=used.user)
        except KubeError as error:
            log.info("session %s was not marked as in use: %s", _id(kept.name), error)
        self._known.forget(_id(kept.name))

    def _person(self, record: SessionRecord, random: bytes) -> Person:
        return Person(
            user=record.user,
            groups=record.groups,
            via=record.via,
            session=token_id(random),
            since=record.created,
            expires_at=self._lifetime.end(record),
            csrf_token=derived_token(random, "csrf"),
        )


async def end_all(store: RecordStore, via: Via) -> int:
    """End every session that began in one way, such as with a password that is no longer good."""
    records = Records(store, "session", SessionRecord)
    return sum([await records.remove(kept.name) for kept in await records.list() if kept.content.via == via])


def _seen_at(kept: StoredRecord[SessionRecord], seen: datetime) -> StoredRecord[SessionRecord]:
    return replace(kept, content=msgspec.structs.replace(kept.content, seen=seen))


def _name(session: str) -> str:
    return f"butler-console-session-{session}"


def _id(name: str) -> str:
    return name.rpartition("-")[2]


def _is_id(text: str) -> bool:
    return len(text) == 40 and all(letter in "0123456789abcdef" for letter in text)


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())
