"""NetworkPools as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.api.networkpool import CapacityTier
from butler.cli.tables.table import percent, percentage, showing_of
from butler.cli.toolkit.output import Showing, TableColumn

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.cli.toolkit.objects import LoadedObject


def pools_table(*, namespaces: bool = False) -> Showing[LoadedObject[NetworkPool]]:
    columns: list[TableColumn[LoadedObject[NetworkPool]]] = [
        TableColumn("CIDR", lambda pool: pool.obj.spec.cidr),
        TableColumn("Use", _use, right=True, plain=(("use percent", _use_percent),)),
        TableColumn("Allocated", lambda pool: pool.obj.status.allocated_ips, right=True, spare=True),
        TableColumn("Available", lambda pool: pool.obj.status.available_ips, right=True, spare=True),
        TableColumn("Total", lambda pool: pool.obj.status.total_ips, right=True, spare=True),
        TableColumn("Largest", lambda pool: pool.obj.status.largest_free_block, right=True, spare=True),
        TableColumn(
            "Fragmented",
            lambda pool: _percent_of(pool.obj.status.fragmentation_percent),
            wide=True,
            right=True,
            plain=(("fragmentation percent", lambda pool: pool.obj.status.fragmentation_percent),),
        ),
        TableColumn("Allocations", lambda pool: pool.obj.status.allocation_count, wide=True, right=True),
        TableColumn("State", lambda pool: pool_state(pool.obj)),
    ]
    return showing_of("networkpool", columns, namespaces=namespaces)


def _use(pool: LoadedObject[NetworkPool]) -> str:
    return percent(pool.obj.status.allocated_ips, pool.obj.status.total_ips)


def _use_percent(pool: LoadedObject[NetworkPool]) -> object:
    return percentage(pool.obj.status.allocated_ips, pool.obj.status.total_ips)


def _percent_of(value: int | None) -> str:
    return "" if value is None else f"{value}%"


def pool_state(pool: NetworkPool) -> str:
    """In one word: why it hands out nothing, or how full it is."""
    ready = find_condition(pool.status.conditions, ConditionType.READY)
    if ready is None:
        return "Unknown"
    if ready.status != "True":
        return ready.reason
    for tier in (CapacityTier.EXHAUSTED, CapacityTier.CRITICAL, CapacityTier.WARNING):
        found = find_condition(pool.status.conditions, tier)
        if found is not None and found.status == "True":
            return tier.removeprefix("Capacity")
    return "Ready"
