"""Advice as JSON: stable keys, addresses as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butler.reports.plan.plan_json import range_json

if TYPE_CHECKING:
    from butler.ipam.addresses import Family
    from butler.reports.pool.advice import AddressObstacle, PoolAdvice

Json = dict[str, Any]


def advice_json(advice: PoolAdvice) -> Json:
    """What is to say about one pool."""
    family, capacity = advice.family, advice.capacity
    return {
        "pool": advice.pool,
        "cidr": advice.cidr,
        "problem": advice.problem,
        "total": capacity.total if capacity else None,
        "available": capacity.available if capacity else None,
        "largestFreeBlock": capacity.largest_free_block if capacity else None,
        "fragmentationPercent": capacity.fragmentation_percent if capacity else None,
        "holes": [range_json(hole, family) for hole in advice.holes],
        "waiting": [{"name": name, "count": count} for name, count in advice.waiting],
        "unused": [_block(block, family) for block in advice.unused],
        "openings": [
            {
                "release": [_block(block, family) for block in opening.blocks],
                "liveAddresses": opening.live,
                "touchesReserved": opening.asks_for_reserved,
                "hole": range_json(opening.hole, family),
                "gain": opening.gain,
                "meets": list(opening.meets),
            }
            for opening in advice.openings
        ],
    }


def _block(block: AddressObstacle, family: Family) -> Json:
    return {
        "name": block.name,
        "tenant": block.tenant or None,
        "range": range_json(block.range, family),
        "use": str(block.use),
        "since": block.since,
        "liveAddresses": block.live,
        "note": block.note,
    }
