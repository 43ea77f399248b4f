"""What happened to a cluster: the Events about it, oldest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from butler.api.meta import ObjectMeta  # noqa: TC001 (msgspec reads it)
from butler.api.schema import Part
from butler.cli.toolkit.objects import load_object
from butler.cli.toolkit.output import Showing, TableColumn, age
from butler.kube.resource import EVENTS, Resource

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.objects import LoadedObject
    from butler.cli.toolkit.session import CommandSession


class _Series(Part):
    count: int | None = None
    last_observed_time: datetime | None = None


class Event(Part):
    """As much of an Event as is told."""

    metadata: ObjectMeta
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: _Series | None = None

    @property
    def last(self) -> datetime | None:
        """When it last happened, wherever its writer put that."""
        series = self.series.last_observed_time if self.series else None
        return series or self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def times(self) -> int:
        return (self.series.count if self.series else None) or self.count or 1


TOLD: Final[Resource[Any]] = Resource("", "v1", "events", "Event", Event)


def about(cluster: TenantCluster) -> str:
    """The field selector of the Events about exactly this cluster: one of the same name before it had another UID."""
    return f"involvedObject.kind=TenantCluster,involvedObject.uid={cluster.metadata.uid}"


async def read_events(session: CommandSession, cluster: TenantCluster) -> list[LoadedObject[Any]]:
    """The Events about a cluster that the server still keeps."""
    listed = await session.client.list(EVENTS, cluster.metadata.namespace, field_selector=about(cluster))
    found = [load_object(TOLD, raw) for raw in listed.items]
    return sorted(found, key=lambda event: (event.obj.last or datetime.min.replace(tzinfo=UTC), event.name))


def events_table() -> Showing[LoadedObject[Any]]:
    columns: list[TableColumn[LoadedObject[Any]]] = [
        TableColumn(
            "Last seen",
            lambda event: age(event.obj.last, datetime.now(UTC)),
            plain=(("last seen", lambda event: event.obj.last),),
        ),
        TableColumn("Type", lambda event: event.obj.type),
        TableColumn("Reason", lambda event: event.obj.reason),
        TableColumn("Times", lambda event: event.obj.times, right=True, spare=True),
        TableColumn("Message", lambda event: event.obj.message),
    ]
    return Showing(columns, raw=lambda event: event.raw, name=lambda event: f"event/{event.name}")
