"""The Secrets with tenants' kubeconfigs, read once where two need them.

A new tenant's kubeconfig is copied for Cluster API, and a little later the tenant is followed with it. Secrets are
not kept in caches, so each would read it. Who reads it first keeps it for the other, who takes it: at most so long.

`RecentResults` does not fit: what is kept here is taken once and then gone, counts only in the version that is asked
for, and is dropped when its time is over, since kubeconfigs should not stay in memory unused.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from butler.api.objects import version_of
from butler.kube.resource import SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Json, Key
    from butler.kube.client import Client

KEPT: Final = 600.0
"""Seconds that a Secret is kept for the one who needs it next."""


class KubeconfigSecrets:
    """Reads them. `clock` is monotonic."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[Key, tuple[float, Json]] = {}

    async def read_and_keep(self, key: Key) -> Json:
        """The Secret as it is now; it is kept for the one who takes it next."""
        secret = await self._client.get(SECRETS, key.name, key.namespace)
        self._drop_old()
        self._kept.pop(key, None)
        self._kept[key] = (self._clock(), secret)
        return secret

    async def take(self, key: Key, version: str) -> Json:
        """The Secret in this version or a newer one: what was kept, or else as it is now."""
        self._drop_old()
        _, kept = self._kept.pop(key, (0.0, None))
        if kept is not None and version_of(kept) == version:
            return kept
        return await self._client.get(SECRETS, key.name, key.namespace)

    def _drop_old(self) -> None:
        """They stand in the order in which they were read."""
        for key, (since, _) in list(self._kept.items()):
            if self._clock() - since < KEPT:
                return
            del self._kept[key]
