"""IPAllocations as rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType
from butler.cli.tables.table import showing_of
from butler.cli.toolkit.output import Showing, TableColumn, age
from butler.ipam.addresses import range_text
from butler.reports.address_lookup import role_of
from butler.reports.estate import tenant_of
from butler.rules.allocation.held import granted_range

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.cli.toolkit.objects import LoadedObject

KIND = "ipallocation"


def allocations_table(*, namespaces: bool = False) -> Showing[LoadedObject[IPAllocation]]:
    columns: list[TableColumn[LoadedObject[IPAllocation]]] = [
        TableColumn("Pool", lambda allocation: allocation.obj.spec.pool_ref.name, spare=True),
        TableColumn("Tenant", lambda allocation: tenant_of(allocation.obj)),
        TableColumn("Type", lambda allocation: allocation.obj.spec.type, spare=True),
        TableColumn("Role", lambda allocation: role_of(allocation.obj), spare=True),
        TableColumn("Phase", lambda allocation: phase_text(allocation.obj)),
        TableColumn("Range", lambda allocation: granted_text(allocation.obj)),
        TableColumn("Count", lambda allocation: count_of(allocation.obj), right=True, spare=True),
        TableColumn("CIDR", lambda allocation: allocation.obj.status.cidr, wide=True),
        TableColumn(
            "Since",
            lambda allocation: _ago(allocation.obj.status.allocated_at),
            wide=True,
            plain=(("allocated at", lambda allocation: allocation.obj.status.allocated_at),),
        ),
        TableColumn(
            "Idle since",
            lambda allocation: _ago(allocation.obj.status.idle_since),
            wide=True,
            plain=(("idle since", lambda allocation: allocation.obj.status.idle_since),),
        ),
        TableColumn("Why not", lambda allocation: why_not(allocation.obj), wide=True),
    ]
    return showing_of(KIND, columns, namespaces=namespaces)


def phase_text(allocation: IPAllocation) -> str:
    """Where it stands, and whether it is on its way out."""
    if allocation.metadata.deletion_timestamp is not None:
        return "Releasing"
    return "Draining" if allocation.status.draining_since is not None else str(allocation.status.phase)


def granted_text(allocation: IPAllocation) -> str:
    """What it holds, or held."""
    found = granted_range(allocation)
    return range_text(found[1], found[0]) if found else ""


def count_of(allocation: IPAllocation) -> int | None:
    """How many addresses it holds, or asks for; None where that is the pool's default."""
    found = granted_range(allocation)
    return found[1].size if found else allocation.spec.count


def why_not(allocation: IPAllocation) -> str:
    """Why it has no addresses; empty for one that has some."""
    if allocation.status.phase is IPAllocationPhase.ALLOCATED:
        return ""
    ready = find_condition(allocation.status.conditions, ConditionType.READY)
    return ready.message if ready else ""


def _ago(when: datetime | None) -> str:
    return age(when, datetime.now(UTC))
