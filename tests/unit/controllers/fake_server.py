"""As much of an API server as the orphan sweep and the IPAllocation controller talk to, with answers tests choose.

`FakeServer` is used as the client. `FakeCache` is a view that moves only when a test says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from butler.api.codec import from_json, to_json
from butler.api.ipallocation import IPAllocation
from butler.api.objects import Key, key_of
from butler.kube.client import Listed
from butler.kube.errors import ApiError, Conflict, Status, error_from_status
from butler.kube.kinds import TenantIdentity
from unit.kube.fake_api import merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def not_found(name: str, plural: str = "tenantclusters", group: str = "butler.butlerlabs.dev") -> ApiError:
    """A server that knows the kind, and no such object."""
    said = {"reason": "NotFound", "code": 404, "details": {"name": name, "group": group, "kind": plural}}
    return error_from_status(msgspec.convert(said, Status))


def not_served() -> ApiError:
    """What comes when the definition is missing or a proxy answers."""
    return error_from_status(Status(message="404 page not found"), 404)


class FakeCache(Generic[T]):
    """A view of one kind."""

    def __init__(self, *objects: T) -> None:
        self.objects = {key_of(obj): obj for obj in objects}
        self.lists = 1
        self._indexes: dict[str, Callable[[T], Iterable[object]]] = {}

    def get(self, key: Key) -> T | None:
        return self.objects.get(key)

    def values(self) -> list[T]:
        return list(self.objects.values())

    def __contains__(self, key: object) -> bool:
        return key in self.objects

    def index(self, name: str, function: Callable[[T], Iterable[object]]) -> None:
        self._indexes[name] = function

    def count(self, index: str, value: object) -> int:
        return sum(value in self._indexes[index](key) for key in self.objects.values())

    def index_ranges(self, name: str, function: object) -> None:
        """Not used here."""

    async def wait_synced(self) -> None:
        """Always."""


class FakeServer:
    """Allocations are kept and patched; pools and tenants are only read. `answers` take the place of reads."""

    def __init__(self, *allocations: IPAllocation) -> None:
        self.allocations = {key_of(allocation): allocation for allocation in allocations}
        self.pools: dict[Key, Any] = {}
        self.tenants: dict[Key, str] = {}
        """UID by name."""
        self.listed: Exception | list[Key] | None = None
        """What a list shows in place of all tenants."""
        self.answers: dict[Key, Any] = {}
        self.trouble: list[Exception] = []
        """What the next writes meet."""
        self.counts: Counter[str] = Counter()
        self.most_at_once = 0
        self._at_once = 0

    def view(self) -> FakeCache[IPAllocation]:
        return FakeCache(*self.allocations.values())

    async def list(self, resource: Any) -> Listed[Any]:
        self.counts["list"] += 1
        if isinstance(self.listed, Exception):
            raise self.listed
        shown = self.tenants if self.listed is None else self.listed
        return Listed([identity(key, self.tenants[key]) for key in shown], "1")

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        await self._take_a_while("get")
        key = Key(namespace, name)
        if key in self.answers:
            if isinstance(self.answers[key], Exception):
                raise self.answers[key]
            return self.answers[key]
        if resource.plural == "networkpools" and key in self.pools:
            return self.pools[key]
        if resource.plural == "tenantclusters" and key in self.tenants:
            return identity(key, self.tenants[key])
        raise not_found(name, resource.plural, resource.group)

    async def patch(
        self, resource: Any, name: str, patch: Any, namespace: str, *, subresource: str = "", timeout: float = 0
    ) -> IPAllocation:
        await self._take_a_while("patch")
        if self.trouble:
            raise self.trouble.pop(0)
        key = Key(namespace, name)
        if key not in self.allocations:
            raise not_found(name, "ipallocations")
        now, asked = self.allocations[key].metadata, patch["metadata"]
        if (asked["uid"], asked["resourceVersion"]) != (now.uid, now.resource_version):
            raise Conflict(409, Status(reason="Conflict"))
        merged = merge(to_json(self.allocations[key]), patch)
        merged["metadata"]["resourceVersion"] = str(int(now.resource_version) + 1)
        self.allocations[key] = after = from_json(IPAllocation, merged)
        if after.metadata.deletion_timestamp is not None and not after.metadata.finalizers:
            del self.allocations[key]
        return after

    async def delete(self, resource: Any, name: str, namespace: str, *, uid: str, timeout: float = 0) -> dict[str, Any]:
        await self._take_a_while("delete")
        key = Key(namespace, name)
        if key not in self.allocations:
            raise not_found(name, "ipallocations")
        if self.allocations[key].metadata.uid != uid:
            raise Conflict(409, Status(reason="Conflict"))
        del self.allocations[key]
        return {}

    async def _take_a_while(self, verb: str) -> None:
        self.counts[verb] += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0)
        self._at_once -= 1


class Notebook:
    """An EventRecorder that only remembers."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, str]] = []

    def record(self, obj: Any, resource: Any, reason: str, message: str, type: str = "Normal") -> None:  # noqa: A002
        self.notes.append((f"{resource.kind} {obj.metadata.name}", reason, message))


def identity(key: Key, uid: str) -> TenantIdentity:
    return from_json(TenantIdentity, {"metadata": {"name": key.name, "namespace": key.namespace, "uid": uid}})
