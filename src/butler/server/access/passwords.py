"""The local administrator: one account with a generated password, of which only a hash is kept.

Wrong passwords are counted in the account's own record, which all replicas share, before the password is looked at: who
tries many at once is counted many times, and the count cannot be deleted without the account. After a few, each further
try has to wait, twice as long every time. The count is one for all names, and an unknown name takes as long as a
wrong password: an answer never tells which names there are.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from butler.server.access.records import Records, RecordStore, StoredRecord
from butler.server.access.sessions import Identity, end_all, is_reserved

log = logging.getLogger(__name__)
NAME: Final = "butler-console-admin"
USER: Final = "butler:admin"
GROUPS: Final = ("butler:admins",)
LOGIN: Final = "admin"
FREE: Final = 5
"""So many wrong passwords cost nothing but themselves."""
LONGEST_WAIT: Final = timedelta(minutes=15)
LONGEST_PASSWORD: Final = 200
AT_ONCE: Final = 2
"""Hashes that are worked out at the same time: each takes 64 MiB and a good part of a core."""
ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)

hasher = PasswordHasher()


class Tries(msgspec.Struct, frozen=True):
    """Wrong passwords in a row."""

    failures: int = 0
    last: datetime = _BEGINNING


class Admin(msgspec.Struct, frozen=True):
    """The account."""

    login: str
    """What is typed."""
    user: str
    """Who that is to Kubernetes."""
    groups: tuple[str, ...]
    hash: str
    tries: Tries = Tries()


def wait_until(tries: Tries) -> datetime:
    """When the next try is looked at. Pure."""
    if tries.failures < FREE:
        return tries.last
    return tries.last + min(timedelta(seconds=2 ** min(tries.failures - FREE, 20)), LONGEST_WAIT)


class LoginWait(Exception):
    """Too many wrong passwords: nothing was looked at."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Passwords:
    """Checks the password of the local administrator."""

    def __init__(self, store: RecordStore, *, now: Callable[[], datetime]) -> None:
        self._admins = Records(store, "admin", Admin)
        self._now = now
        self._room = asyncio.Semaphore(AT_ONCE)
        self._stranger = hasher.hash(secrets.token_hex(16))

    async def check(self, login: str, password: str) -> Identity | None:
        """Who it is; None for a wrong name or password; raises `Wait`."""
        if len(password) > LONGEST_PASSWORD:
            return None
        account = await self._count()
        known = account is not None and secrets.compare_digest(account.login.encode(), login.encode())
        expected = account.hash if account is not None and known else self._stranger
        async with self._room:
            right = await asyncio.to_thread(_matches, expected, password)
        if account is None or not known or not right:
            return None
        await self._forget_tries(account)
        if is_reserved(account.user, account.groups):
            log.warning("the local administrator is a name that Kubernetes keeps for itself, and is not let in")
            return None
        return Identity(account.user, account.groups, "password")

    async def is_admin(self, login: str) -> bool:
        """Whether it is the account's name, for the audit: what else is typed there may be a password."""
        kept = await self._admins.get(NAME)
        return kept is not None and kept.content.login == login

    async def is_set(self) -> bool:
        return await self._admins.get(NAME) is not None

    async def _count(self) -> Admin | None:
        """Take it for wrong, until it is known to be right; None where there is no account that could be guessed."""
        for _ in range(10):
            kept = await self._admins.get(NAME)
            if kept is None:
                return None
            now, before = self._now(), kept.content.tries
            if before.failures and (until := wait_until(before)) > now:
                raise LoginWait((until - now).total_seconds())
            if await self._write(kept, Tries(before.failures + 1, now)):
                return kept.content
            await asyncio.sleep(secrets.randbelow(50) / 1000)
        raise LoginWait(1.0)  # so many try at once that they cannot be counted

    async def _forget_tries(self, account: Admin) -> None:
        """The password was right: count anew, unless it is another account by now."""
        for _ in range(10):
            kept = await self._admins.get(NAME)
            if kept is None or kept.content.hash != account.hash or await self._write(kept, Tries()):
                return

    async def _write(self, kept: StoredRecord[Admin], tries: Tries) -> bool:
        return await self._admins.replace(kept, msgspec.structs.replace(kept.content, tries=tries)) is not None


async def reset_admin(
    store: RecordStore, *, login: str | None = None, user: str | None = None, groups: tuple[str, ...] = ()
) -> tuple[Admin, str]:
    """The account with a new password, which is told once; what is not given stays as it is, or is as usual.

    The count of wrong passwords begins anew, and sessions that began with the old one end.
    """
    records = Records(store, "admin", Admin)
    kept, password = await records.get(NAME), new_password()
    before = kept.content if kept is not None else Admin(LOGIN, USER, GROUPS, "")
    account = Admin(login or before.login, user or before.user, groups or before.groups, hasher.hash(password))
    await records.renew(NAME, account)
    await end_all(store, "password")
    return account, password


def new_password() -> str:
    """Five groups of five letters and digits that are not mistaken for each other: 123 bits."""
    return "-".join("".join(secrets.choice(ALPHABET) for _ in range(5)) for _ in range(5))


def _matches(expected: str, password: str) -> bool:
    try:
        return hasher.verify(expected, password)
    except (VerificationError, InvalidHashError):
        return False
