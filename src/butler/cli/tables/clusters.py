"""TenantClusters as rows: as their team lists them, and as an operator does."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.api.objects import key_of
from butler.cli.tables.table import showing_of
from butler.cli.toolkit.output import Showing, TableColumn
from butler.reports.tenant.health import phase_of, provider_name, trouble, versions
from butler.rules.allocation.owner import tenant_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Key
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.objects import LoadedObject

KIND = "tenantcluster"
Plain = tuple[tuple[str, "Callable[[LoadedObject[TenantCluster]], object]"], ...]


def clusters_table(*, namespaces: bool = False) -> Showing[LoadedObject[TenantCluster]]:
    """What a team wants to know of its clusters."""
    columns: list[TableColumn[LoadedObject[TenantCluster]]] = [
        TableColumn("Phase", lambda cluster: phase_of(cluster.obj).value),
        TableColumn("Version", lambda cluster: version_cell(cluster.obj), plain=VERSIONS),
        TableColumn("Workers", lambda cluster: workers_cell(cluster.obj), right=True, spare=True, plain=WORKERS),
        TableColumn("LB IPs", lambda cluster: balancers_cell(cluster.obj), right=True, plain=BALANCERS),
        TableColumn("Waiting", lambda cluster: waiting_cell(cluster.obj), right=True, spare=True),
        TableColumn("Endpoint", lambda cluster: cluster.obj.status.control_plane_endpoint, wide=True, spare=True),
        TableColumn("Trouble", lambda cluster: "; ".join(trouble(cluster.obj)), wide=True),
    ]
    return showing_of(KIND, columns, namespaces=namespaces)


def tenants_table(
    place: Callable[[TenantCluster], ProviderConfig | None],
    allocations: Sequence[IPAllocation] | None,
    home: str,
) -> Showing[LoadedObject[TenantCluster]]:
    """What an operator wants to know of all clusters; without allocations, not how many addresses nodes have."""

    from butler.reports.tenant.summary import blocks

    by_tenant: dict[Key, list[IPAllocation]] = defaultdict(list)
    for allocation in allocations or ():
        by_tenant[tenant_key(allocation)].append(allocation)

    def node_addresses(each: LoadedObject[TenantCluster]) -> object:
        mine = blocks(each.obj, by_tenant[key_of(each.obj)])
        return sum(block.size for block in mine if block.purpose is IPAllocationType.NODES)

    def provider(cluster: LoadedObject[TenantCluster]) -> str:
        return provider_name(cluster.obj, place(cluster.obj), home)

    columns: list[TableColumn[LoadedObject[TenantCluster]]] = [
        TableColumn("Provider", provider, spare=True),
        TableColumn("Phase", lambda cluster: phase_of(cluster.obj).value),
        TableColumn("Version", lambda cluster: version_cell(cluster.obj), wide=True, plain=VERSIONS),
        TableColumn("Workers", lambda cluster: workers_cell(cluster.obj), right=True, spare=True, plain=WORKERS),
        *([] if allocations is None else [TableColumn("Node IPs", node_addresses, right=True, spare=True)]),
        TableColumn("LB IPs", lambda cluster: _held(cluster.obj), right=True, spare=True),
        TableColumn("In use", lambda cluster: _in_use(cluster.obj), right=True, spare=True),
        TableColumn("Waiting", lambda cluster: waiting_cell(cluster.obj), right=True),
        TableColumn("Endpoint", lambda cluster: cluster.obj.status.control_plane_endpoint, wide=True, spare=True),
        TableColumn("Trouble", lambda cluster: "; ".join(trouble(cluster.obj))),
    ]
    return showing_of(KIND, columns, namespaces=True)


def version_cell(cluster: TenantCluster) -> str:
    runs, goes_to = versions(cluster)
    return f"{runs}->{goes_to}" if goes_to else runs


def workers_cell(cluster: TenantCluster) -> str:
    return f"{cluster.status.worker_nodes_ready or 0}/{cluster.spec.workers.replicas}"


def balancers_cell(cluster: TenantCluster) -> str:
    """`1/2`: so many of so many load-balancer addresses are in use."""
    found = cluster.status.load_balancers
    return f"{found.in_use}/{found.held}" if found else ""


def waiting_cell(cluster: TenantCluster) -> object:
    found = cluster.status.load_balancers
    return found.waiting_services if found else None


def _held(cluster: TenantCluster) -> object:
    return cluster.status.load_balancers.held if cluster.status.load_balancers else None


def _in_use(cluster: TenantCluster) -> object:
    return cluster.status.load_balancers.in_use if cluster.status.load_balancers else None


# What CSV has in place of cells that tell two things at once.

VERSIONS: Plain = (
    ("version", lambda cluster: versions(cluster.obj)[0]),
    ("going to", lambda cluster: versions(cluster.obj)[1] or None),
)
WORKERS: Plain = (
    ("workers ready", lambda cluster: cluster.obj.status.worker_nodes_ready or 0),
    ("workers", lambda cluster: cluster.obj.spec.workers.replicas),
)
BALANCERS: Plain = (
    ("lb ips in use", lambda cluster: _in_use(cluster.obj)),
    ("lb ips", lambda cluster: _held(cluster.obj)),
)
