"""Allocations: lists of thousands, one of them, and what would happen if it were released. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, Response, Router, get
from litestar.params import QueryParameter

from butler.api.objects import Key
from butler.ipam.addresses import BadAddress, parse_address
from butler.reports.release_impact import impact_json
from butler.server.cache.list_items import in_pool, of_tenant
from butler.server.list_page import USUAL
from butler.server.models.allocations import AllocationItem, AllocationList, ReleaseImpact
from butler.server.models.common import Type
from butler.server.parameters import Cursor, Limit, Name, Namespace, Sort, Text
from butler.server.problems import RequestRefused, not_found
from butler.server.responses import respond
from butler.server.services import Services, ThePerson, TheServices
from butler.server.tenant_queries import release_impact

Phase = Literal["Pending", "Allocated", "Released", "Failed"]
Pool = Annotated[str | None, QueryParameter(description="Of this pool, by name.", max_length=253)]
Tenant = Annotated[str | None, QueryParameter(description="Of this tenant, as `namespace/name`.", max_length=320)]
InPhase = Annotated[Phase | None, QueryParameter(description="In this phase.")]
OfType = Annotated[Type | None, QueryParameter(description="For nodes, or for load balancers.")]
InState = Annotated[
    Literal["held", "idle", "going back", "asked for", "refused", "released"] | None,
    QueryParameter(name="state", description="In this state."),
]


@get("/allocations", operation_id="listAllocations")
async def list_allocations(
    request: Request[Any, Any, Any],
    services: TheServices,
    person: ThePerson,
    pool: Pool = None,
    tenant: Tenant = None,
    phase: InPhase = None,
    type: OfType = None,  # noqa: A002 (its name on the wire)
    in_state: InState = None,
    limit: Limit = USUAL,
    cursor: Cursor = None,
    sort: Sort = "name",
    q: Text = "",
) -> Response[AllocationList]:
    """Allocations and requests. `q` is text, or an address that they hold."""
    await services.permissions.need_allocations(person)
    if tenant is not None and tenant.count("/") != 1:
        raise RequestRefused(422, f"tenant: {tenant!r} is no tenant: give it as namespace/name")
    group = of_tenant(tenant) if tenant is not None else in_pool(pool) if pool is not None else None
    wanted = _wanted(pool if tenant is not None else None, phase, type, in_state, q, _with_address(services, q))
    found = services.list_items.allocations.page(sort=sort, limit=limit, cursor=cursor, group=group, wanted=wanted)
    return respond(request, AllocationList(items=found.items, total=found.total, next=found.next))


def _wanted(
    pool: str | None, phase: str | None, of_type: str | None, state: str | None, q: str, touching: Collection[Key]
) -> Callable[[AllocationItem, str], bool] | None:
    """Which ones are asked for; None for all."""
    sought = q.strip().lower()
    if not (pool or phase or of_type or state or sought):
        return None

    def wanted(item: AllocationItem, text: str) -> bool:
        return (
            (pool is None or item.pool == pool)
            and (phase is None or item.phase == phase)
            and (of_type is None or item.type == of_type)
            and (state is None or item.state == state)
            and (not sought or sought in text or (bool(touching) and Key(item.namespace, item.name) in touching))
        )

    return wanted


def _with_address(services: Services, q: str) -> Collection[Key]:
    """The allocations that have the address that a user looks for; none where it is no address."""
    try:
        _, address = parse_address(q.strip())
    except BadAddress:
        return ()
    return frozenset(services.list_items.touching(address, address))


@get("/allocations/{namespace:str}/{name:str}", operation_id="getAllocation")
async def get_allocation(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[AllocationItem]:
    """One allocation."""
    await services.permissions.need_allocations(person)
    found = services.list_items.allocations.get(Key(namespace, name))
    if found is None:
        raise not_found("IPAllocation", namespace, name)
    return respond(request, found)


@get("/allocations/{namespace:str}/{name:str}/impact", operation_id="getReleaseImpact")
async def get_impact(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[ReleaseImpact]:
    """What hangs on an allocation that is about to be released; its tenant is asked now, as the person."""
    await services.permissions.need_allocations(person)
    found = services.state.allocations.get(Key(namespace, name))
    if found is None:
        raise not_found("IPAllocation", namespace, name)
    said = impact_json(await release_impact(services, person, found))
    version = found.metadata.resource_version
    return respond(request, msgspec.convert({**said, "resourceVersion": version}, ReleaseImpact))


router = Router("/", route_handlers=[list_allocations, get_allocation, get_impact], tags=["allocations"])
