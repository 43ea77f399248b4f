"""Clusters that are not built and hold one of their two blocks, without a prospect of the other: they give it back.

It happens where two pools decide at the same moment, each before it knows of the other's answer. The youngest gives
back first, so that the oldest gets what comes free; an older one waits for younger ones for a few seconds only.

Nothing may ever be built on addresses that were given back. Two processes may look after a cluster at once, one of them
frozen at any point and with an old view, in which the cluster still has both blocks. So each of the two leaves a mark
before it looks for the mark of the other:

    who gives back    writes the allocation's UID on the TenantCluster, then asks the server for the tenant namespace,
                      and releases only where there is none
    who builds        makes the tenant namespace, then asks the server for the TenantCluster (`is_given_back`), and goes
                      on only where none of its blocks is named there or was given back before

The second of the two sees the other. A mark is never taken back: what it names is released, by this process or another.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation
from butler.api.objects import Key, key_of, uid_of, version_of
from butler.controllers.tenantcluster.foreign_objects import NAMESPACE, resource_of_kind
from butler.kube.absence import read
from butler.kube.errors import Conflict, NotFound
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, WRITE_TIMEOUT
from butler.rules.allocation.release import Grounds
from butler.rules.tenant.namespaces import tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.ipallocation.release import Releases
    from butler.controllers.tenantcluster.caches import Views
    from butler.kube.client import Client
    from butler.rules.tenant.addresses import Addresses

A_MOMENT: Final = timedelta(seconds=2)
"""How long a cluster keeps a block that it cannot use yet: the other one may be on its way."""
FOR_YOUNGER_ONES: Final = timedelta(seconds=10)
"""How long it waits for younger clusters to give back what it needs."""
SOON: Final = 1.0
LATER: Final = 15.0
"""Seconds between two looks."""
_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)


def marked(cluster: TenantCluster, blocks: Iterable[IPAllocation]) -> IPAllocation | None:
    """The block that the cluster is about to give back, whatever else became possible meanwhile."""
    uid = cluster.metadata.annotations.get(Annotation.GIVES_BACK)
    return next((block for block in blocks if block.metadata.uid == uid), None) if uid else None


async def is_given_back(client: Client, cluster: TenantCluster, blocks: Iterable[IPAllocation]) -> bool:
    """Whether a block that a cluster is to be built with is given back; `cluster` has just come from the server."""
    uid = cluster.metadata.annotations.get(Annotation.GIVES_BACK)
    if uid is None:
        return False
    for block in blocks:
        if block.metadata.uid == uid:
            return True
        found = await read(client, ALLOCATIONS, key_of(block))
        if found is None or uid_of(found) != uid_of(block) or found.status.phase is not IPAllocationPhase.ALLOCATED:
            return True
    return False


class HalfTenants:
    """Gives back what is of no use. `clock` gives the time of day, in UTC."""

    def __init__(self, client: Client, views: Views, releases: Releases, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._views = views
        self._releases = releases
        self._clock = clock

    async def give_back(self, cluster: TenantCluster, held: Addresses) -> float | None:
        """Give a block back if it is time; seconds until the next look, None where there is nothing to give back."""
        block = marked(cluster, held.blocks) or next(iter(held.give_back), None)
        if block is None:
            return None
        if marked(cluster, held.blocks) is None:
            if not self._is_time(cluster, block, held.missing_in):
                return SOON
            if await self._is_begun(cluster):
                return None
            if not await self._mark(cluster, block):
                return SOON
        if await self._is_begun(cluster):
            return LATER  # by a process that saw both blocks; it will see the mark and take the namespace away
        grounds = Grounds(
            f"TenantCluster {key_of(cluster)} is not built yet and cannot get its other block"
            f"{f' from pool {held.missing_in}' if held.missing_in else ''}",
            "released",
        )
        try:
            await self._releases.release(block, grounds)
        except (Conflict, NotFound):
            return SOON  # it changed; seen again in a moment
        return SOON

    async def _is_begun(self, cluster: TenantCluster) -> bool:
        return await read(self._client, resource_of_kind(NAMESPACE), Key("", tenant_namespace(cluster))) is not None

    def _is_time(self, cluster: TenantCluster, block: IPAllocation, missing_in: str | None) -> bool:
        held_for = self._clock() - (block.status.allocated_at or _BEFORE_ALL)
        if held_for < -FOR_YOUNGER_ONES:
            return True  # the clock was set back: to wait for it could take years
        if held_for < A_MOMENT:
            return False
        return held_for >= FOR_YOUNGER_ONES or not self._views.younger_halves_hold(cluster, missing_in)

    async def _mark(self, cluster: TenantCluster, block: IPAllocation) -> bool:
        """Name the block on the cluster as it was seen; whether that was done."""
        meta = {
            "uid": uid_of(cluster),
            "resourceVersion": version_of(cluster),
            "annotations": {Annotation.GIVES_BACK.value: uid_of(block)},
        }
        key = key_of(cluster)
        try:
            written = await self._client.patch(
                CLUSTERS, key.name, {"metadata": meta}, key.namespace, timeout=WRITE_TIMEOUT
            )
        except (Conflict, NotFound):
            return False
        self._views.clusters.wrote(written)
        return True
