"""What a pool was like, what would help it, and what is to come, as the API shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.reports.estate import Estate
from butler.reports.forecast.forecast import forecast
from butler.reports.forecast.forecast_json import forecast_json
from butler.reports.pool.advice import advise
from butler.reports.pool.advice_json import advice_json
from butler.reports.pool.advice_text import says
from butler.reports.pool.history import GRANTED, levels, moments, note
from butler.server.models.pools import Advice, Change, Forecast, History, UsagePoint
from butler.server.presenters.common import range_of

MOST_POINTS = 500
MOST_CHANGES = 200


def pool_advice(pool: NetworkPool, allocations: Sequence[IPAllocation], now: datetime) -> Advice:
    """Why a pool is fragmented, and what would open a longer run."""
    found = advise(pool, _estate(pool, allocations))
    return msgspec.convert({**advice_json(found), "says": says(found, now)}, Advice)


def pool_forecast(pool: NetworkPool, allocations: Sequence[IPAllocation], now: datetime) -> Forecast:
    """In how many days a pool is full."""
    return msgspec.convert(forecast_json(forecast(pool, _estate(pool, allocations), now)), Forecast)


def pool_history(pool: NetworkPool, total: int | None, allocations: Sequence[IPAllocation], now: datetime) -> History:
    """How many of `total` addresses were allocated, and what was granted and released."""
    found = moments(pool.metadata.name, allocations, now)
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
    return History(pool=pool.metadata.name, total=total, points=points, changes=changes, note=note(found))


def _estate(pool: NetworkPool, allocations: Sequence[IPAllocation]) -> Estate:
    """The estate as far as it concerns one pool."""
    return Estate(pool.metadata.namespace, (pool,), tuple(allocations))
