"""The namespace in the management cluster that holds all objects of one tenant cluster. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster


def tenant_namespace(cluster: TenantCluster) -> str:
    """The namespace that holds all objects of a cluster; a cluster that is made again gets another one."""
    return namespace_of_tenant(cluster.metadata.name, cluster.metadata.uid)


def namespace_of_tenant(name: str, uid: str) -> str:
    """The same, for one of which no more is known than its name and its UID."""
    return f"{name}-{uid[:8]}"
