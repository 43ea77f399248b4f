"""What a pool was like, what would help it, and what is to come. Reads only."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, Router, get

from butler.server.cache import pool_summaries
from butler.server.models.pools import Advice, Forecast, History
from butler.server.parameters import Name, Namespace
from butler.server.responses import respond
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import need_pool


@get("/pools/{namespace:str}/{name:str}/advice", operation_id="getAdvice")
async def get_advice(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[Advice]:
    """Why a pool is scattered, and what would open a longer run."""
    pool = await need_pool(services, person, namespace, name)
    return respond(request, await pool_summaries.advice(services.state, pool, services.clock()))


@get("/pools/{namespace:str}/{name:str}/forecast", operation_id="getForecast")
async def get_forecast(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[Forecast]:
    """In how many days a pool is full, as far as the record tells; at most a minute old."""
    pool = await need_pool(services, person, namespace, name)
    return respond(request, await services.forecasts.forecast(pool, services.clock()))


@get("/pools/{namespace:str}/{name:str}/history", operation_id="getHistory")
async def get_history(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[History]:
    """How many addresses were held, and who came and went, as far as the record reaches."""
    pool = await need_pool(services, person, namespace, name)
    return respond(request, await pool_summaries.history(services.state, pool, services.clock()))


router = Router("/", route_handlers=[get_advice, get_forecast, get_history], tags=["pools"])
