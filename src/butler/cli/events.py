"""What happened to a cluster: the Events about it, oldest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from butler.kube.resource import EVENTS

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.frame.session import Session
    from butler.kube.resource import Json


class EventRow(NamedTuple):
    """One Event."""

    last: datetime | None
    type: str
    reason: str
    times: int
    message: str
    raw: Json


def about(cluster: TenantCluster) -> str:
    """The field selector of the Events about exactly this cluster: one of the same name before it had another UID."""
    return f"involvedObject.kind=TenantCluster,involvedObject.uid={cluster.metadata.uid}"


async def read_events(session: Session, cluster: TenantCluster) -> list[EventRow]:
    """The Events about a cluster that the server still keeps."""
    listed = await session.client.list(EVENTS, cluster.metadata.namespace, field_selector=about(cluster))
    rows = [event_row(raw) for raw in listed.items]
    return sorted(rows, key=lambda each: (each.last is not None, each.last, each.reason))


def event_row(raw: Json) -> EventRow:
    series = raw.get("series") or {}
    when = series.get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("eventTime")
    count = series.get("count") or raw.get("count") or 1
    return EventRow(_moment(when), raw.get("type") or "", raw.get("reason") or "", count, raw.get("message") or "", raw)


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None
