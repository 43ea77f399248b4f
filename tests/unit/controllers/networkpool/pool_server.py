"""The API server that the register of claims talks to: pools, allocations, and the ConfigMap of claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api_server import ApiServer
from butler.api.networkpool import NetworkPool
from butler.api.objects import Json, Key
from butler.kube.kinds import ALLOCATIONS, POOLS
from butler.kube.resource import CONFIGMAPS
from butler.rules.pool.claims import CLAIMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from butler.api.ipallocation import IPAllocation
    from butler.ipam.addresses import Range


class PoolServer(ApiServer):
    """Its register is in the namespace `home`."""

    def __init__(self, *objects: NetworkPool | IPAllocation, home: str = "home") -> None:
        super().__init__()
        self.home = home
        self.pools = self.objects(POOLS)
        self.allocations = self.objects(ALLOCATIONS)
        for item in objects:
            if isinstance(item, NetworkPool):
                self.put(POOLS, item)
            else:
                self.put(ALLOCATIONS, item)

    @property
    def config_map(self) -> Json | None:
        return self.objects(CONFIGMAPS).get(Key(self.home, CLAIMS))

    def register(self, entries: Mapping[str, str | None]) -> None:
        """Another process wrote the register."""
        self.put(CONFIGMAPS, {"metadata": {"name": CLAIMS, "namespace": self.home}, "data": entries})

    @property
    def entries(self) -> dict[str, str]:
        """Each pool's claim, without uid and generation."""
        data = (self.config_map or {}).get("data", {})
        return {name.partition(".")[2]: text.split()[0] for name, text in data.items()}


class Shown:
    """A cache that shows what it is given."""

    def __init__(self, look: Callable[[], dict[Key, Any]]) -> None:
        self._look = look

    def get(self, key: Key) -> Any:
        return self._look().get(key)

    def values(self) -> list[Any]:
        return list(self._look().values())

    def index_ranges(self, _: str, function: Callable[[Any], list[Any]]) -> None:
        self._ranges = function

    def touching(self, _: str, space: Any, addresses: Range) -> list[Any]:
        wanted = (space, addresses)
        return [
            value
            for value in self.values()
            if any(family is wanted[0] and held.overlaps(wanted[1]) for family, held in self._ranges(value))
        ]
