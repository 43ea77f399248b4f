"""Reading what the user may not be allowed to read, and remembering what was refused.

A team sees its own clusters, and mostly not Butler's namespace. Their commands show what they may see, and say in one
sentence what they may not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from butler.api.objects import key_of
from butler.cli.toolkit.objects import as_json, load_object, read_all
from butler.cli.toolkit.session import HOME
from butler.kube.errors import Forbidden, NotFound
from butler.kube.kinds import ALLOCATIONS, POOLS, PROVIDERS
from butler.rules.provider.placement import named_provider, placement

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Key
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.session import CommandSession

T = TypeVar("T")


@dataclass(slots=True)
class PermittedReads:
    """What one user may see of Butler's own namespace."""

    session: CommandSession
    _hidden: dict[str, list[str]] = field(default_factory=dict)
    """What may not be read, by where it is."""

    async def allowed(self, reading: Awaitable[T], what: str, where: str) -> T | None:
        """What is read; None where that is forbidden. `what` is the kind, in the plural."""
        try:
            return await reading
        except Forbidden:
            known = self._hidden.setdefault(where, [])
            if what not in known:
                known.append(what)
            return None

    async def allocations(self) -> list[IPAllocation] | None:
        found = await self.allowed(read_all(self.session, ALLOCATIONS, HOME), "IPAllocations", HOME)
        return None if found is None else [allocation.obj for allocation in found]

    async def pools(self) -> list[NetworkPool] | None:
        found = await self.allowed(read_all(self.session, POOLS, HOME), "NetworkPools", HOME)
        return None if found is None else [pool.obj for pool in found]

    async def providers(self) -> dict[Key, ProviderConfig] | None:
        """All ProviderConfigs of Butler's namespace."""
        found = await self.allowed(read_all(self.session, PROVIDERS, HOME), "ProviderConfigs", HOME)
        return None if found is None else {key_of(provider.obj): provider.obj for provider in found}

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
                "ProviderConfigs",
                named.namespace,
            )
        except NotFound:
            return None
        return None if raw is None else load_object(PROVIDERS, raw).obj

    @property
    def hidden(self) -> str:
        """What may not be read, as in `IPAllocations and NetworkPools in butler-system`; empty when all may be."""
        return "; ".join(f"{_listed(kinds)} in {where}" for where, kinds in self._hidden.items())

    @property
    def note(self) -> str:
        """What is missing from the answer; empty when nothing is."""
        return f"You may not read {self.hidden}: what depends on that is left out." if self.hidden else ""


def _listed(kinds: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
