"""Pools that were admitted a moment ago: the cache may not show them yet, and the next one must not overlap them.

What is here is a hint and never a verdict. A pool that was admitted may not have been stored, because it was a dry run
or because another webhook refused it; a caller that finds it here asks the server for it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from butler.ipam.range_index import RangeIndex
from butler.rules.pool.admission import networks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Key
    from butler.ipam.addresses import Range

MEMORY_SECONDS: Final = 15.0
"""A cache that is further behind shows in the health of the process."""


class AdmittedPools:
    """The networks of pools that one process admitted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Key, tuple[float, tuple[Range, ...]]] = {}
        self._networks: RangeIndex[Key] = RangeIndex()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, key: Key, networks: Sequence[Range]) -> None:
        self._forget(key)
        self._known[key] = (self._clock(), tuple(networks))
        for network in dict.fromkeys(networks):
            self._networks.add(network, key)

    def touching(self, network: Range) -> list[Key]:
        return [key for _, key in self._networks.touching(network)]

    def forget_shown(self, cached: Callable[[Key], NetworkPool | None]) -> None:
        """Forget the oldest, up to one that the cache does not show yet and that is still recent enough."""
        now = self._clock()
        while self._known:
            key, (admitted, networks) = next(iter(self._known.items()))
            pool = cached(key)
            is_shown = pool is not None and set(networks) <= set(networks_of(pool))
            if not is_shown and now - admitted < MEMORY_SECONDS:
                return
            self._forget(key)

    def _forget(self, key: Key) -> None:
        known = self._known.pop(key, None)
        for network in dict.fromkeys(known[1]) if known is not None else ():
            self._networks.remove(network, key)
