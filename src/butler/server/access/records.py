"""What access keeps, and where: one Secret each in Butler's own namespace, so that every replica knows the same.

A record has a kind (its label), a name, and one JSON document. Whoever may write Secrets in that namespace can let
themselves in as anybody; they could also mint tokens of Butler's own service accounts there, so nothing is lost by it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from butler.api import GROUP
from butler.kube.client import Client
from butler.kube.errors import AlreadyExists, BadAnswer, Conflict, NotFound
from butler.kube.resource import SECRETS, Json

T = TypeVar("T", bound=msgspec.Struct)
LABEL: Final = f"{GROUP}/console"
"""On every record: what it is."""
OWNER_LABEL: Final = f"{GROUP}/console-user"
"""On a session: whose it is, as a hash, since a user's name is no label."""
FIELD: Final = "record"
PATIENCE: Final = 5.0
"""Seconds: somebody waits for the answer, and nobody is let in without one."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """A record as it was read; `version` makes sure that it is changed or taken only as such."""

    name: str
    version: str
    content: T


class Records(Generic[T]):
    """All records of one kind."""

    def __init__(self, client: Client, home: str, kind: str, content: type[T]) -> None:
        self._client = client
        self._home = home
        self._kind = kind
        self._content = content

    async def create(self, name: str, content: T, *, owner: str = "") -> Kept[T]:
        made = await self._client.create(SECRETS, self._secret(name, content, owner=owner), timeout=PATIENCE)
        return Kept(name, made["metadata"]["resourceVersion"], content)

    async def get(self, name: str) -> Kept[T] | None:
        """The record; None when there is none, or something else of that name."""
        try:
            return self._read(await self._client.get(SECRETS, name, self._home, timeout=PATIENCE))
        except NotFound:
            return None

    async def list(self, *, owner: str | None = None) -> list[Kept[T]]:
        selector = f"{LABEL}={self._kind}" + (f",{OWNER_LABEL}={owner_label(owner)}" if owner is not None else "")
        found = await self._client.list(SECRETS, self._home, label_selector=selector, timeout=PATIENCE)
        return [kept for each in found.items if (kept := self._read(each)) is not None]

    async def replace(self, kept: Kept[T], content: T, *, owner: str = "") -> bool:
        """Write it anew; False when somebody else changed or took it meanwhile."""
        secret = self._secret(kept.name, content, owner=owner)
        secret["metadata"]["resourceVersion"] = kept.version
        try:
            await self._client.replace(SECRETS, secret, timeout=PATIENCE)
        except (Conflict, NotFound):
            return False
        return True

    async def put(self, name: str, content: T) -> None:
        """Write it, whether there is one or not."""
        for _ in range(5):
            try:
                await self.create(name, content)
                return
            except AlreadyExists:
                found = await self._client.get(SECRETS, name, self._home, timeout=PATIENCE)
                kept = Kept(name, found["metadata"]["resourceVersion"], content)
                if await self.replace(kept, content):
                    return
        raise BadAnswer(f"Secret {name} changes all the time")

    async def take(self, kept: Kept[T]) -> bool:
        """Delete exactly what was read. Of all who try at once, one is told True."""
        try:
            await self._client.delete(SECRETS, kept.name, self._home, resource_version=kept.version, timeout=PATIENCE)
        except (NotFound, Conflict):
            return False
        return True

    async def remove(self, name: str) -> bool:
        """Delete it as it is now; False when it was gone already."""
        try:
            await self._client.delete(SECRETS, name, self._home, timeout=PATIENCE)
        except NotFound:
            return False
        return True

    def _secret(self, name: str, content: T, *, owner: str) -> Json:
        labels = {LABEL: self._kind} | ({OWNER_LABEL: owner_label(owner)} if owner else {})
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self._home, "labels": labels},
            "type": f"{GROUP}/console-{self._kind}",
            "data": {FIELD: base64.b64encode(msgspec.json.encode(content)).decode()},
        }

    def _read(self, secret: Json) -> Kept[T] | None:
        meta: dict[str, Any] = secret["metadata"]
        if (meta.get("labels") or {}).get(LABEL) != self._kind or meta.get("deletionTimestamp"):
            return None
        try:
            raw = base64.b64decode((secret.get("data") or {}).get(FIELD) or "", validate=True)
            return Kept(meta["name"], meta["resourceVersion"], msgspec.json.decode(raw, type=self._content))
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            return None


def owner_label(user: str) -> str:
    return hashlib.sha256(user.encode()).hexdigest()[:40]
