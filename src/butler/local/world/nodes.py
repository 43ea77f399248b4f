"""How many nodes each tenant has: one watch for each tenant, on names alone.

Installing addons waits for nodes and DaemonSets count them; asking again and again for hundreds of tenants would keep
the server busier than everything else together.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from butler.kube.cache import Cache
from butler.kube.metrics import Metrics
from butler.kube.resource import NODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Change, Json, Key
    from butler.kube.client import Client
    from butler.kube.operator import Operator
    from butler.local.world.tenants import TenantConnections


class TenantNodes:
    """Counts by tenant, kept by watches that live as long as the way into the tenant is the same."""

    def __init__(self, operator: Operator, tenants: TenantConnections, wake: Callable[[Key], None]) -> None:
        self._tenants = tenants
        self._wake = wake
        self._metrics = Metrics()
        self._views: dict[Key, _View] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._working = False
        operator.add_task(self._until_the_end)
        tenants.on_change(self._changed)

    def count(self, tenant: Key) -> int:
        """Nodes of a tenant, as far as known; the caller is woken when that changes."""
        view = self._view(tenant)
        return 0 if view is None else len(view.names)

    def is_known(self, tenant: Key) -> bool:
        """Whether the nodes of a tenant have been read."""
        view = self._view(tenant)
        return view is not None and view.read

    def _view(self, tenant: Key) -> _View | None:
        view = self._views.get(tenant)
        if view is None and self._working and tenant in self._tenants:
            view = self._views[tenant] = _View(tenant, self._tenants, self._wake, self._metrics)
        return view

    def _changed(self, tenant: Key) -> None:
        view = self._views.get(tenant)
        if view is not None and not view.is_current:
            del self._views[tenant]
            ending = asyncio.get_running_loop().create_task(view.stop())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def _until_the_end(self) -> None:
        self._working = True
        for tenant in self._tenants.keys():  # noqa: SIM118  # no mapping
            self._wake(tenant)
        try:
            await asyncio.Event().wait()
        finally:
            self._working = False
            views, self._views = list(self._views.values()), {}
            await asyncio.gather(*(view.stop() for view in views), *self._ending)


class _View:
    """The nodes of one tenant."""

    def __init__(self, tenant: Key, tenants: TenantConnections, wake: Callable[[Key], None], metrics: Metrics) -> None:
        self.names: set[str] = set()
        self.read = False
        self._tenant = tenant
        self._tenants = tenants
        self._wake = wake
        self._metrics = metrics
        self._client: Client | None = None
        self._task = asyncio.create_task(self._follow(), name=f"nodes of {tenant}")

    @property
    def is_current(self) -> bool:
        if self._task.done() or self._tenant not in self._tenants:
            return False
        return self._client is None or self._tenants.is_current(self._tenant, self._client)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        async with self._tenants.borrow(self._tenant) as client, asyncio.TaskGroup() as group:
            self._client = client
            nodes = Cache(client, NODES, transform=_only_metadata, metrics=self._metrics)
            nodes.on_change(self._changed)
            group.create_task(nodes.run())
            await nodes.wait_synced()
            self.read = True
            self._wake(self._tenant)

    def _changed(self, change: Change[Json]) -> None:
        before = len(self.names)
        if change.new is None:
            self.names.discard(change.key.name)
        else:
            self.names.add(change.key.name)
        if len(self.names) != before:
            self._wake(self._tenant)


def _only_metadata(node: Json) -> Json:
    return {"metadata": {"name": node["metadata"]["name"]}}
