"""Reading what somebody may not be allowed to read, and remembering what was refused.

A team sees its own clusters, and mostly not Butler's namespace. Their commands show what they may see, and say in one
sentence what they may not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from butler.cli.frame.reading import as_json, item, read_all
from butler.cli.frame.session import HOME
from butler.controllers.kinds import ALLOCATIONS, POOLS, PROVIDERS
from butler.kube.errors import Forbidden, NotFound
from butler.kube.objects import key_of
from butler.providers.placement import named_provider, placement

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.frame.session import Session
    from butler.kube.resource import Key

T = TypeVar("T")


@dataclass(slots=True)
class Sight:
    """What one person may see of Butler's own namespace."""

    session: Session
    hidden: list[str] = field(default_factory=list)
    """What may not be read, each said once, as in `IPAllocations in butler-system`."""

    async def allowed(self, reading: Awaitable[T], what: str) -> T | None:
        """What is read; None where that is forbidden."""
        try:
            return await reading
        except Forbidden:
            if what not in self.hidden:
                self.hidden.append(what)
            return None

    async def allocations(self) -> list[IPAllocation] | None:
        found = await self.allowed(read_all(self.session, ALLOCATIONS, HOME), f"IPAllocations in {HOME}")
        return None if found is None else [each.obj for each in found]

    async def pools(self) -> list[NetworkPool] | None:
        found = await self.allowed(read_all(self.session, POOLS, HOME), f"NetworkPools in {HOME}")
        return None if found is None else [each.obj for each in found]

    async def providers(self) -> dict[Key, ProviderConfig] | None:
        """All ProviderConfigs of Butler's namespace."""
        found = await self.allowed(read_all(self.session, PROVIDERS, HOME), f"ProviderConfigs in {HOME}")
        return None if found is None else {key_of(each.obj): each.obj for each in found}

    async def provider(self, cluster: TenantCluster) -> ProviderConfig | None:
        """The ProviderConfig that a cluster is on; None where it is not there, or may not be read."""
        named = named_provider(cluster, HOME)
        if named is None:
            known = await self.providers() or {}
            placed = placement(cluster, known, HOME)
            return known.get(placed) if placed else None
        try:
            raw = await self.allowed(
                self.session.client.get(as_json(PROVIDERS), named.name, named.namespace),
                f"ProviderConfigs in {named.namespace}",
            )
        except NotFound:
            return None
        return None if raw is None else item(PROVIDERS, raw).obj

    @property
    def note(self) -> str:
        """What is missing from the answer; empty when nothing is."""
        if not self.hidden:
            return ""
        return f"You may not read {' and '.join(self.hidden)}: what depends on them is left out."
