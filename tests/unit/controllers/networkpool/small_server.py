"""As much of an API server as the register of claims talks to: pools, allocations, and one ConfigMap with versions."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from butler.api.objects import Json, Key, key_of
from butler.kube.client import Listed
from butler.kube.errors import AlreadyExists, Conflict, Details, NotFound, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.ipam.addresses import Range


class SmallServer:
    """Is a client. `meanwhile` is called once, just before the next write is judged."""

    def __init__(self, *objects: NetworkPool | IPAllocation) -> None:
        self.pools: dict[Key, Any] = {}
        self.allocations: dict[Key, Any] = {}
        for pool in objects:
            (self.pools if pool.kind == "NetworkPool" else self.allocations)[key_of(pool)] = pool
        self.config_map: Json | None = None
        self.meanwhile: Callable[[], None] | None = None
        self.counts: Counter[str] = Counter()
        self.objection: Callable[[Json], Exception | None] = lambda _: None
        """What is wrong with a patch."""

    @property
    def entries(self) -> dict[str, str]:
        """Each pool's claim, without uid and generation."""
        data = (self.config_map or {}).get("data", {})
        return {name.partition(".")[2]: text.split()[0] for name, text in data.items()}

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        self.counts[f"get {resource.plural}"] += 1
        await asyncio.sleep(0)
        found = self.config_map if resource.plural == "configmaps" else self.pools.get(Key(namespace, name))
        if found is None:
            details = Details(name=name, group=resource.group, kind=resource.plural)
            raise NotFound(404, Status(reason="NotFound", details=details))
        return found

    async def list(self, resource: Any, namespace: str = "") -> Listed[Any]:
        self.counts["list"] += 1
        return Listed(list((self.pools if resource.plural == "networkpools" else self.allocations).values()), "1")

    async def create(self, resource: Any, obj: Json) -> Json:
        self.counts["create"] += 1
        self._interrupt()
        if self.config_map is not None:
            raise AlreadyExists(409, Status(reason="AlreadyExists"))
        self.config_map = {**obj, "metadata": {**obj["metadata"], "uid": "c1", "resourceVersion": "1"}}
        return self.config_map

    async def patch(self, resource: Any, name: str, patch: Json, namespace: str) -> Json:
        self.counts["patch"] += 1
        self._interrupt()
        assert self.config_map is not None
        if (error := self.objection(patch)) is not None:
            raise error
        meta = self.config_map["metadata"]
        if patch["metadata"] != {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}:
            raise Conflict(409, Status(reason="Conflict"))
        data = {**self.config_map["data"], **patch["data"]}
        self.config_map = {
            "metadata": {**meta, "resourceVersion": str(int(meta["resourceVersion"]) + 1)},
            "data": {key: value for key, value in data.items() if value is not None},
        }
        return self.config_map

    def _interrupt(self) -> None:
        if self.meanwhile is not None:
            self.meanwhile, happens = None, self.meanwhile
            happens()


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
