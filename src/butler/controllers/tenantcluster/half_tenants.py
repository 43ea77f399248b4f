"""Clusters that are not built and hold one of their two blocks, without a prospect of the other: they give it back.

It happens where two pools decide at the same moment, each before it knows of the other's answer. The youngest gives
back first, so that the oldest gets what comes free; an older one waits for younger ones for a few seconds only.

Nothing may ever be built on addresses that were given back. What decides is the TenantCluster (`ipallocation.marks`):

    who gives back    names the block on the cluster, which is not built, and then releases it
    who builds        looks whether a block of it is named or was given back (`is_given_back`), and says in the status
                      of that very version that the cluster is built, before anything is made that could use an address

The second of the two is refused. A mark is never taken back: what it names is released, by this process or another.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation
from butler.api.objects import key_of, uid_of
from butler.controllers.ipallocation.marks import is_begun, leave_mark
from butler.kube.absence import read
from butler.kube.errors import Conflict, NotFound
from butler.kube.kinds import ALLOCATIONS
from butler.rules.allocation.release import Grounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.ipallocation.release import Releases
    from butler.controllers.tenant_caches import Views
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
    """Whether a block that a cluster is to be built with is given back, as far as this version of the cluster tells."""
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
            if await is_begun(self._client, cluster):
                return None
            if not await self._mark(cluster, block):
                return SOON
        if await is_begun(self._client, cluster):
            return LATER  # its status was written by hand
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

    def _is_time(self, cluster: TenantCluster, block: IPAllocation, missing_in: str | None) -> bool:
        held_for = self._clock() - (block.status.allocated_at or _BEFORE_ALL)
        if held_for < -FOR_YOUNGER_ONES:
            return True  # the clock was set back: to wait for it could take years
        if held_for < A_MOMENT:
            return False
        return held_for >= FOR_YOUNGER_ONES or not self._views.younger_halves_hold(cluster, missing_in)

    async def _mark(self, cluster: TenantCluster, block: IPAllocation) -> bool:
        """Name the block on the cluster as it was seen; whether that was done."""
        try:
            written = await leave_mark(self._client, cluster, block)
        except (Conflict, NotFound):
            return False
        if written is None:
            return False
        self._views.clusters.wrote(written)
        return True
