"""A forecast as JSON: stable keys, days as numbers, null for what lies beyond the horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butler.ipam.capacity import THRESHOLDS
from butler.reports.forecast.forecast import BAND

if TYPE_CHECKING:
    from butler.reports.forecast.forecast import ForecastMark, PoolForecast

Json = dict[str, Any]


def forecast_json(forecast: PoolForecast) -> Json:
    """What is to be expected of one pool."""
    capacity, record = forecast.capacity, forecast.record
    return {
        "pool": forecast.pool,
        "cidr": forecast.cidr,
        "problem": forecast.problem,
        "total": capacity.total if capacity else None,
        "allocated": capacity.allocated if capacity else None,
        "largestFreeBlock": capacity.largest_free_block if capacity else None,
        "bandPercent": BAND,
        "horizonDays": round(forecast.horizon),
        "futures": forecast.futures,
        "record": {
            "days": round(record.days, 2),
            "arrivals": len(record.arrivals),
            "addresses": sum(sum(arrival.sizes) for arrival in record.arrivals),
            "releases": record.left,
            "releaseDays": round(record.release_days, 2),
            "pinnedLeftOut": record.pinned,
        }
        if record
        else None,
        "netAddressesPerDay": _band(forecast.per_day) if forecast.per_day else None,
        "leavingPerDay": {"low": round(forecast.leaving[0], 6), "high": round(forecast.leaving[1], 6)}
        if forecast.leaving
        else None,
        "tiers": [
            {"tier": str(mark.tier), "percent": THRESHOLDS[mark.tier], **_mark(mark)}
            for mark in forecast.marks
            if mark.tier is not None
        ],
        "refusals": [{"size": mark.size, **_mark(mark)} for mark in forecast.marks if mark.size is not None],
    }


def _mark(mark: ForecastMark) -> Json:
    days = {"low": _days(mark.low), "median": _days(mark.median), "high": _days(mark.high)}
    return {"now": mark.is_now, "days": days, "share": round(mark.share, 3)}


def _days(days: float | None) -> float | None:
    return None if days is None else round(days, 1)


def _band(band: tuple[float, float, float]) -> Json:
    low, median, high = (round(seconds, 2) for seconds in band)
    return {"low": low, "median": median, "high": high}
