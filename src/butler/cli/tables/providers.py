"""ProviderConfigs as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.cli.tables.table import showing_of
from butler.cli.toolkit.output import Showing, TableColumn
from butler.reports.provider.summary import pool_names

if TYPE_CHECKING:
    from butler.api.providerconfig import ProviderConfig
    from butler.cli.toolkit.objects import LoadedObject


def providers_table(*, namespaces: bool = False) -> Showing[LoadedObject[ProviderConfig]]:
    columns: list[TableColumn[LoadedObject[ProviderConfig]]] = [
        TableColumn("Kind", lambda provider: provider.obj.spec.provider.value),
        TableColumn("Mode", lambda provider: provider.obj.spec.network.mode.value),
        TableColumn("Ready", lambda provider: ready_cell(provider.obj)),
        TableColumn("Room", lambda provider: _room(provider.obj), right=True),
        TableColumn("Free IPs", lambda provider: _free(provider.obj), right=True, spare=True),
        TableColumn("Pools", lambda provider: pool_names(provider.obj.spec.network.pool_refs), spare=True),
        TableColumn("Scope", lambda provider: scope_cell(provider.obj), wide=True),
        TableColumn("Reachable", lambda provider: _holds(provider.obj, ConditionType.REACHABLE), wide=True),
        TableColumn("Version", lambda provider: provider.obj.status.provider_version, wide=True),
        TableColumn("Why", lambda provider: _why(provider.obj), wide=True),
    ]
    return showing_of("providerconfig", columns, namespaces=namespaces)


def ready_cell(config: ProviderConfig) -> str:
    """`yes`, `no`, or that Butler has not looked yet."""
    if config.status.ready is None:
        return "unknown"
    return "yes" if config.status.ready else "no"


def scope_cell(config: ProviderConfig) -> str:
    scope = config.spec.scope
    return f"team {scope.team_ref.name}" if scope.team_ref else scope.type.value


def _room(config: ProviderConfig) -> object:
    return config.status.capacity.estimated_tenants if config.status.capacity else None


def _free(config: ProviderConfig) -> object:
    return config.status.capacity.available_ips if config.status.capacity else None


def _holds(config: ProviderConfig, kind: ConditionType) -> str:
    found = find_condition(config.status.conditions, kind)
    return {"True": "yes", "False": "no"}.get(found.status, "unknown") if found else "unknown"


def _why(config: ProviderConfig) -> str:
    ready = find_condition(config.status.conditions, ConditionType.READY)
    return ready.message if ready is not None and not config.status.ready else ""
