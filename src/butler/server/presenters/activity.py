"""Events as the API's activity. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, Literal

from butler.api import GROUP
from butler.api.objects import Json
from butler.server import audit
from butler.server.models.activity import ActivityItem
from butler.server.models.common import Link

LinkKind = Literal["pool", "allocation", "tenant", "provider"]
KINDS: Final[dict[str, LinkKind]] = {
    "NetworkPool": "pool",
    "IPAllocation": "allocation",
    "TenantCluster": "tenant",
    "ProviderConfig": "provider",
}
CONSOLE: Final = "console"


def activity_item(event: Json) -> ActivityItem | None:
    """An Event as activity; None for one that is not about one of Butler's kinds, or makes no sense."""
    about = _about(event)
    at = _last(event)
    meta = event.get("metadata") or {}
    if about is None or at is None:
        return None
    deed = audit.parsed(event)
    series = event.get("series") or {}
    return ActivityItem(
        id=f"{meta.get('namespace', '')}/{meta.get('name', '')}",
        at=at,
        severity="Warning" if event.get("type") == "Warning" else "Normal",
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        about=about,
        source=CONSOLE if deed else _source(event),
        actor=deed.actor if deed else "",
        count=_count(series.get("count")) or _count(event.get("count")) or 1,
    )


def _about(event: Json) -> Link | None:
    involved = event.get("involvedObject") or {}
    kind = KINDS.get(str(involved.get("kind")))
    if kind is None or str(involved.get("apiVersion", "")).partition("/")[0] != GROUP:
        return None
    return Link(kind=kind, namespace=str(involved.get("namespace") or ""), name=str(involved.get("name") or ""))


def _last(event: Json) -> datetime | None:
    """When it last happened, wherever its writer put that."""
    meta = event.get("metadata") or {}
    series = event.get("series") or {}
    for found in (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        meta.get("creationTimestamp"),
    ):
        at = _time(found)
        if at is not None:
            return at
    return None


def _time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _source(event: Json) -> str:
    return str(event.get("reportingComponent") or (event.get("source") or {}).get("component") or "")


def _count(number: Any) -> int:
    return number if isinstance(number, int) else 0
