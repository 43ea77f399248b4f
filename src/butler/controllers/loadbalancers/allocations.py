"""The allocations, as the management cluster has them: asked for, given up, marked, read afresh, released.

Everything here is done while a tenant is tended, and what goes wrong here is not the tenant's fault: it is raised as
`LedgerTrouble`, so that no status says of a tenant that it cannot be reached when it is the management cluster that
cannot.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from butler.api.codec import status_patch
from butler.api.ipallocation import IPAllocationType
from butler.api.labels import Label
from butler.api.objects import key_of
from butler.controllers.ipallocation.record import read_and_record
from butler.kube.absence import read
from butler.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from butler.kube.kinds import ALLOCATIONS, WRITE_TIMEOUT
from butler.rules.allocation.owner import owner_lives, tenant_key
from butler.rules.loadbalancer.usage import granted_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.ipallocation.release import Releases
    from butler.ipam.addresses import Range
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.rules.allocation.release import Grounds


class LedgerTrouble(Exception):
    """The management cluster did not do what it was asked to; `error` says why."""

    def __init__(self, error: KubeError) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def _not_the_tenants_fault() -> Iterator[None]:
    try:
        yield
    except KubeError as error:
        raise LedgerTrouble(error) from error


class Ledger:
    """Reads and writes allocations, in namespace `home`; in the view `allocations` a write shows at once."""

    def __init__(self, client: Client, allocations: Cache[IPAllocation], releases: Releases, home: str) -> None:
        self._client = client
        self._home = home
        self._allocations = allocations
        self._releases = releases

    async def ask(self, request: IPAllocation) -> None:
        """Ask for addresses."""
        with _not_the_tenants_fault():
            try:
                written = await self._client.create(ALLOCATIONS, request, timeout=WRITE_TIMEOUT)
            except AlreadyExists:
                return  # another process was quicker, or our view is behind; the next look sees it
        self._allocations.wrote(written)

    async def give_up(self, request: IPAllocation) -> None:
        """Take a request back, unless it was granted meanwhile: then its version is another."""
        meta = request.metadata
        with _not_the_tenants_fault():
            try:
                await self._client.delete(
                    ALLOCATIONS,
                    meta.name,
                    meta.namespace,
                    uid=meta.uid,
                    resource_version=meta.resource_version,
                    timeout=WRITE_TIMEOUT,
                )
            except (NotFound, Conflict):
                return

    async def mark(self, allocation: IPAllocation, **changes: Any) -> None:
        """Write fields of its status, valid for exactly this version of it."""
        status = msgspec.structs.replace(allocation.status, **changes)
        patch = status_patch(allocation.metadata, allocation.status, status)
        if patch is None:
            return
        key = key_of(allocation)
        with _not_the_tenants_fault():
            written = await self._client.patch(
                ALLOCATIONS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
            )
        self._allocations.wrote(written)

    async def read(self, allocation: IPAllocation) -> IPAllocation | None:
        """How it is now, by the server and not by a view; None when it is gone."""
        with _not_the_tenants_fault():
            return await read(self._client, ALLOCATIONS, key_of(allocation))

    async def read_and_record(self, allocation: IPAllocation) -> IPAllocation | None:
        """The same, with its grant on record."""
        with _not_the_tenants_fault():
            return await read_and_record(self._client, self._allocations, allocation)

    async def held_by(self, cluster: TenantCluster) -> list[Range]:
        """The load-balancer addresses that the server, asked now, says this very cluster has.

        Those made by hand carry no label that names their owner: it stands in the status, or nowhere yet. So does that
        of one whose label was changed by a slip of a hand.
        """
        selectors = (
            f"{Label.TENANT_UID}={cluster.metadata.uid}",
            f"!{Label.TENANT_UID}",
            f"{Label.TENANT}={cluster.metadata.name}",
        )
        with _not_the_tenants_fault():
            lists = [
                await self._client.list(ALLOCATIONS, self._home, label_selector=selector) for selector in selectors
            ]
        found = {allocation.metadata.uid: allocation for listed in lists for allocation in listed.items}
        return [
            held
            for allocation in found.values()
            if allocation.spec.type is IPAllocationType.LOAD_BALANCER
            and tenant_key(allocation) == key_of(cluster)
            and owner_lives(allocation, cluster)
            and (held := granted_range(allocation)) is not None
        ]

    async def release(self, allocation: IPAllocation, grounds: Grounds) -> None:
        """Give its addresses back, valid for exactly this version of it."""
        with _not_the_tenants_fault():
            self._allocations.wrote(await self._releases.release(allocation, grounds))
