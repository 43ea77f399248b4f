"""What every route may use, given to it by name: `services: TheServices`, `person: ThePerson`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from litestar.di import NamedDependency

from butler.server.access.logins import Logins
from butler.server.access.person import Person
from butler.server.actions.impersonation import Impersonator
from butler.server.cache.cluster_state import ClusterState
from butler.server.cache.list_items import ListItems
from butler.server.cache.pool_forecasts import PoolForecasts
from butler.server.permissions import UserPermissions
from butler.server.stream.hub import StreamHub


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Services:
    state: ClusterState
    permissions: UserPermissions
    impersonator: Impersonator
    home: str
    """Namespace of pools, allocations and providers."""
    list_items: ListItems
    forecasts: PoolForecasts
    logins: Logins
    stream: StreamHub
    world: bool = False
    """Whether this is a world on one machine, with stand-ins."""
    clock: Callable[[], datetime] = now


TheServices = NamedDependency[Services]
ThePerson = NamedDependency[Person]
