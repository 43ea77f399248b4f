"""Node ranges of a cluster: seeing to it that they are still its own, and giving those back that a person deletes.

A machine may get an address of any range that the cluster's objects name. So one that a person deletes goes in steps:

1. its allocation is marked as draining, for good: every process that reads it from then on builds nothing with it;
2. the objects are written without it; where it is the only one, they must not ask for machines, by a fresh read;
3. machines are listed afresh, and it is released if none has an address of it, or may have.

Before objects are written that name node ranges, their allocations are read afresh, or recorded, which tells as much
(see `ipallocation.record`). A process that had an old view finds the mark, or the release, and writes nothing. What is
left is one that is frozen between this answer and its write.
`rules/tenant/node_addresses.py` decides which ranges go.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from butler.api.codec import status_patch
from butler.api.ipallocation import IPAllocationType
from butler.api.objects import Key, is_being_deleted, key_of, uid_of
from butler.capi.naming import MACHINE, MACHINE_DEPLOYMENT, workers_name
from butler.controllers.ipallocation.record import read_and_record
from butler.controllers.tenantcluster.foreign_objects import resource_of_kind
from butler.kube.absence import read
from butler.kube.errors import Conflict, NotFound
from butler.kube.kinds import ALLOCATIONS, WRITE_TIMEOUT
from butler.rules.allocation.deletion import users_of
from butler.rules.allocation.release import DELETED_BY_REQUEST
from butler.rules.machines import read_machine
from butler.rules.tenant_namespace import tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.ipallocation.release import Releases
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.rules.tenant.addresses import Addresses
    from butler.rules.tenant.node_addresses import GivenUp


class NodeRanges:
    """Looks after them. `clock` gives the time of day, in UTC."""

    def __init__(
        self,
        client: Client,
        allocations: Cache[IPAllocation],
        releases: Releases,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._allocations = allocations
        self._releases = releases
        self._clock = clock

    async def are_as_seen(self, held: Addresses) -> bool:
        """Whether the node ranges that a cluster is to be built with are as they were seen, asked afresh."""
        for block in held.blocks:
            if block.spec.type is IPAllocationType.NODES:
                found = await read_and_record(self._client, self._allocations, block)
                if found is None or not _is_as_seen(found, block):
                    return False
        return True

    async def take_out_of_use(self, given_up: GivenUp) -> bool:
        """Step 1; whether there was one to mark."""
        going = (*given_up.at_once, *given_up.once_withdrawn)
        unmarked = [allocation for allocation in going if allocation.status.draining_since is None]
        for allocation in unmarked:
            status = msgspec.structs.replace(allocation.status, draining_since=self._clock())
            patch, key = status_patch(allocation.metadata, allocation.status, status), key_of(allocation)
            assert patch is not None, "there was no mark"
            with contextlib.suppress(Conflict, NotFound):  # it changed, and is looked at again
                await self._client.patch(
                    ALLOCATIONS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
                )
        return bool(unmarked)

    async def release_last(self, cluster: TenantCluster, leaving: Iterable[IPAllocation]) -> None:
        """Steps 2 and 3 where no other range is left, unless Cluster API was told to make machines."""
        key = Key(tenant_namespace(cluster), workers_name(cluster))
        try:
            found = await read(self._client, resource_of_kind(MACHINE_DEPLOYMENT), key)
        except NotFound:
            return  # without Cluster API the machines are unknown
        if found is None or found.get("spec", {}).get("replicas") == 0:
            await self.release(cluster, leaving)

    async def release(self, cluster: TenantCluster, leaving: Iterable[IPAllocation]) -> None:
        """Step 3."""
        try:
            listed = await self._client.list(resource_of_kind(MACHINE), tenant_namespace(cluster))
        except NotFound:
            return  # without Cluster API the machines are unknown
        machines = tuple(map(read_machine, listed.items))
        for allocation in leaving:
            if allocation.status.draining_since is not None and not users_of(allocation, machines):
                with contextlib.suppress(Conflict, NotFound):  # it changed, and is looked at again
                    await self._releases.release(allocation, DELETED_BY_REQUEST)


def _is_as_seen(found: IPAllocation, seen: IPAllocation) -> bool:
    """Whether an allocation holds what it held, and has not been deleted or marked since."""
    held, was = found.status, seen.status
    return (
        uid_of(found) == uid_of(seen)
        and (held.phase, held.start_address, held.end_address) == (was.phase, was.start_address, was.end_address)
        and (is_being_deleted(found), held.draining_since) == (is_being_deleted(seen), was.draining_since)
    )
