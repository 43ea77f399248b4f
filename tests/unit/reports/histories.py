"""The life of a pool, made up: tenants come and stay for a while, in the past and on into the future.

What a server would still have of it at one moment is its record; what happens afterwards is the truth that a forecast
can be held against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.ipam.addresses import Family, Range, address_text
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import read_layout
from butler.reports.estate import Estate

if TYPE_CHECKING:
    from random import Random

HOME = "butler-system"
NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)


@dataclass
class Lived:
    """One block's life, in days from now; `leaves` may be infinite."""

    tenant: int
    comes: float
    leaves: float
    range: Range


@dataclass
class History:
    pool: NetworkPool
    lived: list[Lived] = field(default_factory=list)
    above: dict[int, float] = field(default_factory=dict)
    """When each percentage was first reached, in days from now."""
    refused: dict[int, float] = field(default_factory=dict)
    """When a block of each size was first more than the longest hole."""

    def estate(self) -> Estate:
        """What is on record now: what is held, and what was released within a day."""
        seen = [lived for lived in self.lived if lived.comes <= 0 and lived.leaves > -1]
        return Estate(HOME, (self.pool,), tuple(_allocation(place, each) for place, each in enumerate(seen)))


def live(
    random: Random,
    *,
    cidr: str = "10.40.0.0/24",
    past: float = 40,
    per_day: float = 0.5,
    stays: float = float("inf"),
    sizes: tuple[tuple[int, ...], ...] = ((5, 8), (3, 4), (2,)),
    burst: int = 1,
    future: float = 1500,
) -> History:
    """Tenants come at random, `burst` at a time, and stay for `stays` days on average."""
    history = History(pool(cidr, past))
    layout = read_layout(history.pool.spec)
    free = FreeSpace(layout.usable)
    here: list[tuple[float, Lived]] = []
    now = -past
    marks, lengths = [70, 85, 95], [1, 2, 4, 8, 16, 32, 64]
    tenant = 0
    while now < future and (len(history.above) < 3 or len(history.refused) < len(lengths)):
        now += random.expovariate(per_day / burst)
        for when, gone in sorted((item for item in here if item[0] <= now), key=lambda pair: pair[0]):
            free.give(gone.range)
            here.remove((when, gone))
        for _ in range(burst):
            tenant += 1
            leaves = now + random.expovariate(1 / stays) if stays < float("inf") else float("inf")
            for size in random.choice(sizes):
                place = free.best_fit(size)
                if place is None:
                    continue
                free.take(place)
                lived = Lived(tenant, now, leaves, place)
                history.lived.append(lived)
                here.append((leaves, lived))
            for mark in marks:
                if (layout.total - free.free) * 100 >= mark * layout.total:
                    history.above.setdefault(mark, max(0.0, now))
            for length in lengths:
                if free.largest < length:
                    history.refused.setdefault(length, max(0.0, now))
    return history


def pool(cidr: str, days_old: float) -> NetworkPool:
    created = (NOW - timedelta(days=days_old)).isoformat()
    metadata = {"name": "vlan40", "namespace": HOME, "uid": "p", "generation": 1, "creationTimestamp": created}
    return from_json(NetworkPool, {"metadata": metadata, "spec": {"cidr": cidr}})


def _allocation(place: int, each: Lived) -> IPAllocation:
    status: dict[str, Any] = {
        "phase": "Allocated" if each.leaves > 0 else "Released",
        "startAddress": address_text(each.range.first, Family.V4),
        "endAddress": address_text(each.range.last, Family.V4),
        "allocatedAt": (NOW + timedelta(days=each.comes)).isoformat(),
    }
    if each.leaves <= 0:
        status["releasedAt"] = (NOW + timedelta(days=each.leaves)).isoformat()
    name = f"t{each.tenant}"
    return from_json(
        IPAllocation,
        {
            "metadata": {"name": f"{name}-{place}", "namespace": HOME, "uid": f"uid-{place}"},
            "spec": {
                "poolRef": {"name": "vlan40"},
                "tenantClusterRef": {"name": name, "namespace": name},
                "type": "nodes",
                "count": each.range.size,
            },
            "status": status,
        },
    )
