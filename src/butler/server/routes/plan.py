"""What-if, on the production engine. Nothing is written.

A plan takes time in proportion to what is asked: the bounds keep one question to a few seconds, threads that are shared
fairly keep it out of the way of others, and it ends when the client that asked has gone.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Request, Router, post
from litestar.params import JSONBody

from butler.api.ipallocation import IPAllocationType
from butler.api.networkpool import MOST_RESERVED, MOST_WINDOWS
from butler.api.text import LARGEST_RANGE
from butler.reports.estate import Estate
from butler.reports.plan.plan import CannotPlan, Edit, Single, Tenants
from butler.reports.plan.plan_json import plan_json
from butler.reports.plan.planner import edited_pool, rehearse
from butler.reports.pool.segments import segments_of
from butler.server.actions.forms import wrong
from butler.server.cache import background_work
from butler.server.cache.fair_threads import Check
from butler.server.models.plan import Plan, PlanEdit, PlanRequest, PlanSingle, PlanTenants
from butler.server.models.pools import Segments
from butler.server.presenters.segments import columns_of
from butler.server.problems import RequestRefused, forbidden
from butler.server.routes.disconnect import while_connected
from butler.server.services import ThePerson, TheServices

MOST_TENANTS: Final = 2_000
MOST_WORKERS: Final = 5_000
MOST_REQUESTS: Final = 200
MOST_POOLS: Final = 64


@post("/plan", operation_id="plan", status_code=200)
async def plan(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, data: JSONBody[PlanRequest]
) -> Plan:
    """What would happen if so many tenants came, these requests were made, or that pool were edited."""
    await services.permissions.need_pools(person)
    if data.tenants is not None and not await services.permissions.providers(person):
        raise forbidden(f"read ProviderConfigs in namespace {services.home}")
    tenants, requests, edit = _question(data)
    now = services.clock()

    def compute(estate: Estate, check: Check) -> Plan:
        outcome = rehearse(estate, now, tenants=tenants, requests=requests, edit=edit, check=check)
        edited = _edited(estate, edit) if edit is not None and not outcome.edit_is_refused else None
        return msgspec.structs.replace(msgspec.convert(plan_json(outcome), Plan), edited=edited)

    try:
        size = (2 * tenants.count if tenants is not None else 0) + len(requests)
        return await while_connected(request, background_work.planned(services.state, person, size, compute))
    except CannotPlan as error:
        raise RequestRefused(422, _without_options(str(error))) from None


def _edited(estate: Estate, edit: Edit) -> Segments:
    pool = estate.pool(edit.pool)
    assert pool is not None  # it was edited on the stage
    return columns_of(segments_of(edited_pool(pool, edit), estate.allocations))


def _question(asked: PlanRequest) -> tuple[Tenants | None, list[Single], Edit | None]:
    """What is asked, within bounds."""
    if asked.tenants is None and not asked.requests and asked.edit is None:
        raise RequestRefused(422, "say what to try: tenants, requests or edit")
    if len(asked.requests) > MOST_REQUESTS:
        raise wrong("requests", f"at most {MOST_REQUESTS} requests fit into one plan")
    tenants = _tenants(asked.tenants) if asked.tenants is not None else None
    requests = [_single(number, request) for number, request in enumerate(asked.requests)]
    return tenants, requests, _edit(asked.edit) if asked.edit is not None else None


def _tenants(asked: PlanTenants) -> Tenants:
    _bound("tenants.count", asked.count, MOST_TENANTS)
    _bound("tenants.nodes", asked.nodes, MOST_WORKERS)
    _bound("tenants.loadBalancers", asked.load_balancers, LARGEST_RANGE)
    if len(asked.pools) > MOST_POOLS:
        raise wrong("tenants.pools", f"name at most {MOST_POOLS} pools")
    return Tenants(asked.count, asked.nodes, asked.load_balancers, asked.provider, asked.pools)


def _single(number: int, asked: PlanSingle) -> Single:
    _bound(f"requests[{number}].count", asked.count, LARGEST_RANGE)
    return Single(asked.pool, asked.count, IPAllocationType(asked.type))


def _edit(asked: PlanEdit) -> Edit:
    if len(asked.windows) > MOST_WINDOWS:
        raise wrong("edit.windows", f"a pool has at most {MOST_WINDOWS} windows")
    if len(asked.reserve) > MOST_RESERVED:
        raise wrong("edit.reserve", f"a pool has at most {MOST_RESERVED} reserved blocks")
    return Edit(asked.pool, asked.cidr, asked.windows, asked.reserve)


def _bound(field: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise wrong(field, f"say a number from 1 to {most}")


def _without_options(said: str) -> str:
    """The views speak to people at a command line."""
    return said.replace("with --provider", "as tenants.provider").replace("with --pool", "as tenants.pools")


router = Router("/", route_handlers=[plan], tags=["planning"])
