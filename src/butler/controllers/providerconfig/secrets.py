"""Hearing of changes to the Secrets that ProviderConfigs name, and of no others.

Each named Secret is watched alone, by its name. That needs no right to read all Secrets, and no Secret's content is
kept or even decoded here: what comes in is dropped except for the metadata. The controller reads the Secret anew.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from butler.api.schema import Part
from butler.kube.cache import Cache
from butler.kube.metrics import Metrics
from butler.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Change, Key
    from butler.kube.client import Client


class _Head(Part):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class SecretHead(Part):
    """As much of a Secret as is looked at here."""

    metadata: _Head


HEADS: Final = Resource("", "v1", "secrets", "Secret", SecretHead)


class SecretWatches:
    """Calls `changed` with each ProviderConfig whose Secret appears, changes or goes."""

    def __init__(self, client: Client, changed: Callable[[Key], None]) -> None:
        self._client = client
        self._changed = changed
        self._metrics = Metrics()  # of its own: these watches would overwrite each other's numbers
        self._named: dict[Key, Key] = {}
        """The Secret of each ProviderConfig."""
        self._watches: dict[Key, asyncio.Task[Any]] = {}

    def follow(self, config: Key, secret: Key | None) -> None:
        """Hear of this Secret, and no longer of the one before; None: of none."""
        before = self._named.get(config)
        if before == secret:
            return
        if secret is None:
            del self._named[config]
        else:
            self._named[config] = secret
            if secret not in self._watches:
                self._watches[secret] = asyncio.create_task(self._watch(secret), name=f"secret {secret}")
        if before is not None and before not in self._named.values():
            self._watches.pop(before).cancel()

    async def run(self) -> None:
        """Until cancelled; then every watch ends."""
        try:
            await asyncio.Event().wait()
        finally:
            watches = list(self._watches.values())
            self._named.clear()
            self._watches.clear()
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(self, secret: Key) -> None:
        cache = Cache(
            self._client,
            HEADS,
            namespace=secret.namespace,
            field_selector=f"metadata.name={secret.name}",
            metrics=self._metrics,
        )

        def tell(_: Change[SecretHead]) -> None:
            for config, named in list(self._named.items()):
                if named == secret:
                    self._changed(config)

        cache.on_change(tell)
        await cache.run()
