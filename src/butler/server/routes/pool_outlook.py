"""What a pool was like, what would help it, and what is to come. Reads only.

A forecast plays many futures and takes seconds for a large pool: it is made in a thread of its own, and kept for a
minute, whatever happens to the pool meanwhile.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from litestar import Request, Response, Router, get

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.reports.estate import Estate
from butler.reports.forecast.forecast import forecast
from butler.reports.forecast.forecast_json import forecast_json
from butler.reports.pool.advice import advise
from butler.reports.pool.advice_json import advice_json
from butler.reports.pool.advice_text import says
from butler.reports.pool.history import GRANTED, levels, moments, note
from butler.server.cache import background_work, pool_summaries
from butler.server.models.pools import Advice, Change, Forecast, History, UsagePoint
from butler.server.parameters import Name, Namespace
from butler.server.presenters.common import range_of
from butler.server.presenters.pools import layout_of
from butler.server.responses import Encoded, answer, packed
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import need_pool

MOST_POINTS = 500
MOST_CHANGES = 200


@get("/pools/{namespace:str}/{name:str}/advice", operation_id="getAdvice")
async def get_advice(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[Advice]:
    """Why a pool is scattered, and what would open a longer run."""
    pool = await need_pool(services, person, namespace, name)
    return answer(request, await pool_summaries.dated(services.state, pool, "advice", _advice, services.clock()))


def _advice(pool: NetworkPool, allocations: list[IPAllocation], now: datetime) -> Encoded:
    found = advise(pool, _around(pool, allocations))
    return packed(msgspec.convert({**advice_json(found), "says": says(found, now)}, Advice))


@get("/pools/{namespace:str}/{name:str}/forecast", operation_id="getForecast")
async def get_forecast(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[Forecast]:
    """In how many days a pool is full, as far as the record tells; at most a minute old."""
    pool = await need_pool(services, person, namespace, name)
    meta = pool.metadata
    estate, now = _around(pool, services.state.concerning(name)), services.clock()
    made = await services.list_items.forecasts.of(
        (meta.uid, meta.generation), lambda: background_work.foretold(partial(_forecast, pool, estate, now))
    )
    return answer(request, made)


def _forecast(pool: NetworkPool, estate: Estate, now: datetime) -> Encoded:
    return packed(msgspec.convert(forecast_json(forecast(pool, estate, now)), Forecast))


@get("/pools/{namespace:str}/{name:str}/history", operation_id="getHistory")
async def get_history(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[History]:
    """How many addresses were held, and who came and went, as far as the record reaches."""
    pool = await need_pool(services, person, namespace, name)
    return answer(request, await pool_summaries.dated(services.state, pool, "history", _history, services.clock()))


def _history(pool: NetworkPool, allocations: list[IPAllocation], now: datetime) -> Encoded:
    found, layout = moments(pool.metadata.name, allocations, now), layout_of(pool)
    changes = [
        Change(
            at=moment.at,
            action="granted" if moment.action == GRANTED else "released",
            allocation=moment.allocation,
            tenant=moment.tenant,
            type=moment.type,
            range=range_of(moment.range, moment.family),
        )
        for moment in reversed(found[-MOST_CHANGES:])
    ]
    points = [UsagePoint(at=level.at, allocated=level.allocated) for level in levels(found, now, MOST_POINTS)]
    total = layout.total if layout else None
    return packed(History(pool=pool.metadata.name, total=total, points=points, changes=changes, note=note(found)))


def _around(pool: NetworkPool, allocations: list[IPAllocation]) -> Estate:
    """The estate as far as it concerns one pool."""
    return Estate(pool.metadata.namespace, (pool,), tuple(allocations))


router = Router("/", route_handlers=[get_advice, get_forecast, get_history], tags=["pools"])
