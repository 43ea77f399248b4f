"""One-time links: the user who has one is let in once, within minutes, as the person for whom it was made.

The link is taken by deleting its record exactly as it was read: of two who come at once, one is let in.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from butler.kube.client import Client
from butler.kube.resource import CONFIGMAPS, untyped
from butler.server.access.keys import token_id
from butler.server.access.records import Records, RecordStore
from butler.server.access.sessions import Identity

PURPOSE: Final = "link"
GOOD_FOR: Final = timedelta(minutes=10)
ADDRESS: Final = "butler-console-address"
"""ConfigMap in which a server on this machine says where it is, for `butleradm server link`."""
REVIEWS: Final = untyped("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class _Link(msgspec.Struct, frozen=True):
    user: str
    groups: tuple[str, ...]
    expires: datetime


class Links:
    """All links that were made and not used yet."""

    def __init__(self, store: RecordStore, *, now: Callable[[], datetime]) -> None:
        self._client = store.client
        self._records = Records(store, "link", _Link)
        self._key = store.key
        self._now = now

    async def make(self) -> str:
        """A token that lets its holder in as the user that this client is to Kubernetes: no user gains rights by it."""
        me = await self._client.create(REVIEWS, {})
        info = me.get("status", {}).get("userInfo", {})
        token = self._key.token(PURPOSE)
        random = self._key.secret_of(PURPOSE, token)
        assert random is not None
        made = _Link(info["username"], tuple(info.get("groups") or ()), self._now() + GOOD_FOR)
        await self._records.create(_name(random), made)
        return token

    async def take(self, token: str) -> Identity | None:
        """Use a link up; None for one that is unknown, used, or too old."""
        random = self._key.secret_of(PURPOSE, token)
        kept = await self._records.get(_name(random)) if random is not None else None
        if kept is None or not await self._records.take(kept) or kept.content.expires <= self._now():
            return None
        return Identity(kept.content.user, kept.content.groups, "link")

    async def sweep(self) -> None:
        now = self._now()
        await self._records.sweep(lambda link: link.expires <= now, now)


def link_of(url: str, token: str) -> str:
    return f"{url}/link?token={token}"


async def publish_address(client: Client, namespace: str, url: str) -> None:
    """Say where the console is. Beside the records: who could change it would get to see new links."""
    await client.apply(
        CONFIGMAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": ADDRESS, "namespace": namespace},
            "data": {"url": url},
        },
        force=True,
    )


def _name(random: bytes) -> str:
    return f"butler-console-link-{token_id(random)}"
