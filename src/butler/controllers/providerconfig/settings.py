"""What an operator may set about providers."""

from __future__ import annotations

from dataclasses import dataclass

from butler.providers.probe import CLOUDS, CloudEndpoints


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Defaults are right for production; tests shorten the times."""

    namespace: str = ""
    """Look after pools and allocations of this namespace only; empty: of all."""
    home_namespace: str = "butler-system"
    """Where pools are, and where a TenantCluster looks for a ProviderConfig that it names without a namespace."""
    look_every: float = 300.0
    """Seconds between looks at a provider's Secret and questions to the provider, when nothing changes."""
    refused_every: float = 3600.0
    """Seconds until a provider that refused is asked the same again: accounts get locked for too many wrong tries."""
    capacity_every: float = 2.0
    """The fewest seconds between two counts of what pools have room for, while addresses come and go."""
    clouds: CloudEndpoints = CLOUDS
    """Where clouds are asked."""
