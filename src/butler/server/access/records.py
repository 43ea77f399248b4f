"""What access keeps, and where: one sealed Secret each in a namespace of its own, so that every replica knows the same.

A record has a kind (its label), a name, and one JSON document. The namespace holds nothing else, and only the server
needs a right in it: a user who may write Secrets where pools and provider credentials are gains nothing by it.

Each record carries a seal: a keyed hash over its namespace, kind, name, UID and document. A Secret that was made,
copied, renamed or restored by hand is no record, since the API server gives every Secret a UID of its own. What the
seal cannot stop is an old document put back into the very Secret it came from; that takes the right to read Secrets in
this namespace, and the key is one of them.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import msgspec

from butler.api import GROUP
from butler.api.objects import Json
from butler.kube.client import Client
from butler.kube.errors import AlreadyExists, BadAnswer, Conflict, NotFound
from butler.kube.resource import SECRETS
from butler.server.access.keys import SigningKey

T = TypeVar("T", bound=msgspec.Struct)
NAMESPACE: Final = "butler-console"
"""Where records are unless told otherwise."""
LABEL: Final = f"{GROUP}/console"
"""On every record: what it is."""
OWNER_LABEL: Final = f"{GROUP}/console-user"
"""On a session: whose it is, as a hash, since a user's name is no label."""
FIELD: Final = "record"
SEAL: Final = "seal"
PATIENCE: Final = 5.0
"""Seconds: a user waits for the answer, and is not let in without one."""
UNSEALED_FOR: Final = timedelta(minutes=10)
"""A record without a good seal is deleted when it is older: a younger one may be about to get its seal."""


@dataclass(frozen=True, slots=True)
class RecordStore:
    """Where records are kept, and the key that seals them."""

    client: Client
    namespace: str
    key: SigningKey


@dataclass(frozen=True, slots=True)
class StoredRecord(Generic[T]):
    """A record as it was read; `version` makes sure that it is changed or taken only as such."""

    name: str
    uid: str
    version: str
    content: T


class Records(Generic[T]):
    """All records of one kind."""

    def __init__(self, store: RecordStore, kind: str, content: type[T]) -> None:
        self._client = store.client
        self._namespace = store.namespace
        self._key = store.key
        self._kind = kind
        self._content = content

    async def create(self, name: str, content: T, *, owner: str = "") -> StoredRecord[T]:
        """Write a new record; AlreadyExists where there is one. Its UID is known, and so it is sealed, after a first
        write: until then it means nothing."""
        made = await self._client.create(SECRETS, self._secret(name, content, owner=owner), timeout=PATIENCE)
        kept = StoredRecord(name, made["metadata"]["uid"], made["metadata"]["resourceVersion"], content)
        sealed = await self.replace(kept, content, owner=owner)
        if sealed is None:
            with contextlib.suppress(NotFound):
                await self._client.delete(SECRETS, name, self._namespace, uid=kept.uid, timeout=PATIENCE)
            raise BadAnswer(f"Secret {name} was changed by another client while it was being made: try again")
        return sealed

    async def get(self, name: str) -> StoredRecord[T] | None:
        """The record; None when there is none, or something else of that name."""
        try:
            return self._read(await self._client.get(SECRETS, name, self._namespace, timeout=PATIENCE))
        except NotFound:
            return None

    async def list(self, *, owner: str | None = None) -> list[StoredRecord[T]]:
        return [kept for secret in await self._secrets(owner) if (kept := self._read(secret)) is not None]

    async def replace(self, kept: StoredRecord[T], content: T, *, owner: str = "") -> StoredRecord[T] | None:
        """Write it anew; None when another client changed or took it meanwhile."""
        secret = self._secret(kept.name, content, owner=owner)
        secret["metadata"] |= {"uid": kept.uid, "resourceVersion": kept.version}
        secret["data"][SEAL] = self._seal(kept.name, kept.uid, msgspec.json.encode(content))
        try:
            written = await self._client.replace(SECRETS, secret, timeout=PATIENCE)
        except (Conflict, NotFound):
            return None
        return StoredRecord(kept.name, kept.uid, written["metadata"]["resourceVersion"], content)

    async def renew(self, name: str, content: T) -> None:
        """Write it in place of whatever has that name; what was sealed before is no record any more."""
        for _ in range(5):
            await self.remove(name)
            with contextlib.suppress(AlreadyExists):
                await self.create(name, content)
                return
        raise BadAnswer(f"Secret {name} is made by another client again and again: try again")

    async def take(self, kept: StoredRecord[T]) -> bool:
        """Delete exactly what was read. Of all who try at once, one is told True."""
        try:
            await self._client.delete(
                SECRETS, kept.name, self._namespace, resource_version=kept.version, timeout=PATIENCE
            )
        except (NotFound, Conflict):
            return False
        return True

    async def remove(self, name: str) -> bool:
        """Delete it as it is now; False when it was gone already."""
        try:
            await self._client.delete(SECRETS, name, self._namespace, timeout=PATIENCE)
        except NotFound:
            return False
        return True

    async def sweep(self, over: Callable[[T], bool], now: datetime) -> int:
        """Delete the records that are over, and Secrets that say they are records and are not; how many."""
        gone = 0
        for secret in await self._secrets(None):
            kept, meta = self._read(secret), secret["metadata"]
            if kept is not None and over(kept.content):
                gone += await self.take(kept)
            elif kept is None and now - datetime.fromisoformat(meta["creationTimestamp"]) > UNSEALED_FOR:
                gone += await self.remove(meta["name"])
        return gone

    async def _secrets(self, owner: str | None) -> Sequence[Json]:
        selector = f"{LABEL}={self._kind}" + (f",{OWNER_LABEL}={owner_label(owner)}" if owner is not None else "")
        found = await self._client.list(SECRETS, self._namespace, label_selector=selector, timeout=PATIENCE)
        return found.items

    def _secret(self, name: str, content: T, *, owner: str) -> Json:
        labels = {LABEL: self._kind} | ({OWNER_LABEL: owner_label(owner)} if owner else {})
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self._namespace, "labels": labels},
            "type": secret_type(self._kind),
            "data": {FIELD: base64.b64encode(msgspec.json.encode(content)).decode()},
        }

    def _read(self, secret: Json) -> StoredRecord[T] | None:
        meta: dict[str, Any] = secret["metadata"]
        data: dict[str, Any] = secret.get("data") or {}
        if secret.get("type") != secret_type(self._kind) or meta.get("deletionTimestamp"):
            return None
        try:
            raw = base64.b64decode(data.get(FIELD) or "", validate=True)
            if not self._key.is_mark(data.get(SEAL) or "", *self._sealed(meta["name"], meta["uid"], raw)):
                return None
            content = msgspec.json.decode(raw, type=self._content)
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            return None
        return StoredRecord(meta["name"], meta["uid"], meta["resourceVersion"], content)

    def _seal(self, name: str, uid: str, raw: bytes) -> str:
        return self._key.mark(*self._sealed(name, uid, raw))

    def _sealed(self, name: str, uid: str, raw: bytes) -> tuple[bytes, ...]:
        return (self._namespace.encode(), self._kind.encode(), name.encode(), uid.encode(), raw)


def secret_type(kind: str) -> str:
    return f"{GROUP}/console-{kind}"


def owner_label(user: str) -> str:
    return hashlib.sha256(user.encode()).hexdigest()[:40]
