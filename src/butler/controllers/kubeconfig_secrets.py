"""The Secrets with tenants' kubeconfigs, read once or not at all where two need them.

A new tenant's kubeconfig is copied for Cluster API, and a little later the tenant is followed with it. Secrets are
not kept in caches, so each would read it. But the watch that tells of a Secret brings its contents along: those of a
cluster that comes up are kept for the two, and where they were not, who reads it first keeps it for the other. The
second takes it away. Nothing is kept for long, nor in a process that does not lead.

`RecentResults` does not fit: what is kept here is taken once and then gone, counts only in the version that is asked
for, and is dropped when its time is over, since kubeconfigs should not stay in memory unused.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from butler.api.objects import key_of, version_of
from butler.kube.resource import SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Json, Key
    from butler.kube.client import Client

KEPT: Final = 600.0
"""Seconds that a Secret is kept for the one who needs it next."""
TIDY_EVERY: Final = 60.0


class KubeconfigSecrets:
    """Reads them. `clock` is monotonic."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._leads = False
        self._kept: dict[Key, tuple[float, Json]] = {}

    async def while_leading(self) -> None:
        """Keep what is seen from now on, until cancelled."""
        self._leads = True
        try:
            while True:
                await asyncio.sleep(TIDY_EVERY)
                self._drop_old()
        finally:
            self._leads = False
            self._kept.clear()

    def saw(self, secret: Json) -> None:
        """A watch told of a Secret that will be needed."""
        if self._leads:
            self._keep(key_of(secret), secret)

    async def look(self, key: Key, version: str) -> Json:
        """The Secret in this version or a newer one; it is kept for the one who takes it."""
        self._drop_old()
        _, kept = self._kept.get(key, (0.0, None))
        if kept is not None and version_of(kept) == version:
            return kept
        secret = await self._client.get(SECRETS, key.name, key.namespace)
        self._keep(key, secret)
        return secret

    async def take(self, key: Key, version: str) -> Json:
        """The same, by the one who needs it last."""
        self._drop_old()
        _, kept = self._kept.pop(key, (0.0, None))
        if kept is not None and version_of(kept) == version:
            return kept
        return await self._client.get(SECRETS, key.name, key.namespace)

    def _keep(self, key: Key, secret: Json) -> None:
        self._drop_old()
        self._kept.pop(key, None)
        self._kept[key] = (self._clock(), secret)

    def _drop_old(self) -> None:
        """They stand in the order in which they came."""
        while self._kept:
            key, (since, _) = next(iter(self._kept.items()))
            if self._clock() - since < KEPT:
                return
            del self._kept[key]
