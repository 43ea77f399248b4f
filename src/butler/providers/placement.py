"""Which ProviderConfig a TenantCluster is on. Pure, and the only place that knows: who builds a cluster, who deletes
a ProviderConfig and who admits either must agree about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Collection

    from butler.api.tenantcluster import TenantCluster

DEFAULT: Final = "default"
"""The ProviderConfig of clusters that name none."""


def named_provider(cluster: TenantCluster, home: str) -> Key | None:
    """The ProviderConfig that a cluster names; None when it names none."""
    reference = cluster.spec.provider_config_ref
    return Key(reference.namespace or home, reference.name) if reference else None


def placement(cluster: TenantCluster, providers: Collection[Key], home: str) -> Key | None:
    """The ProviderConfig of a cluster, given those there are: the one it names, whether it exists or not, else the
    one called `default`, else the only one there is; None where that leaves a choice, or nothing to choose from."""
    named = named_provider(cluster, home)
    if named is not None:
        return named
    if Key(home, DEFAULT) in providers:
        return Key(home, DEFAULT)
    at_home = [key for key in providers if key.namespace == home]
    return at_home[0] if len(at_home) == 1 else None
