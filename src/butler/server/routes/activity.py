"""What happened to Butler's objects, newest first: Events of the controllers, and of what people did here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from litestar import Request, Response, Router, get
from litestar.params import QueryParameter

from butler.server.list_page import USUAL
from butler.server.models.activity import ActivityItem, ActivityList
from butler.server.parameters import Cursor, Limit, Text
from butler.server.problems import forbidden
from butler.server.responses import respond
from butler.server.services import ThePerson, TheServices

Kind = Annotated[
    Literal["pool", "allocation", "tenant", "provider"] | None, QueryParameter(description="About this kind.")
]
InNamespace = Annotated[str | None, QueryParameter(description="About objects of this namespace.", max_length=63)]
OfName = Annotated[str | None, QueryParameter(description="About this object.", max_length=253)]
Severity = Annotated[Literal["Normal", "Warning"] | None, QueryParameter(description="Of this severity.")]
Reason = Annotated[str | None, QueryParameter(description="With exactly this reason.", max_length=128)]


@get("/activity", operation_id="listActivity")
async def list_activity(
    request: Request[Any, Any, Any],
    services: TheServices,
    person: ThePerson,
    kind: Kind = None,
    namespace: InNamespace = None,
    name: OfName = None,
    severity: Severity = None,
    reason: Reason = None,
    limit: Limit = USUAL,
    cursor: Cursor = None,
    q: Text = "",
) -> Response[ActivityList]:
    """What happened, newest first. Kubernetes keeps Events for an hour or so, and five thousand are looked through."""
    shelf = services.list_items.activity
    namespaces = {activity_item.id.partition("/")[0] for activity_item in shelf.items()} | {services.home}
    allowed = await services.permissions.events(person, {namespace} if namespace else namespaces)
    if not allowed:
        raise forbidden(f"read Events{f' in namespace {namespace}' if namespace else ''}")
    sought = q.strip().lower()

    def wanted(item: ActivityItem, text: str) -> bool:
        about = item.about
        return (
            item.id.partition("/")[0] in allowed
            and (kind is None or (about is not None and about.kind == kind))
            and (namespace is None or (about is not None and about.namespace == namespace))
            and (name is None or (about is not None and about.name == name))
            and (severity is None or item.severity == severity)
            and (reason is None or item.reason == reason)
            and sought in text
        )

    found = shelf.page(sort="-at", limit=limit, cursor=cursor, wanted=wanted)
    return respond(request, ActivityList(items=found.items, total=found.total, next=found.next))


router = Router("/", route_handlers=[list_activity], tags=["activity"])
