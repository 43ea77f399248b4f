"""Users on a busy day: requests of all sizes come and go, some pinned, some under names that were used before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ipam import oracle

if TYPE_CHECKING:
    from ipam.estate import Estate

WINDOW = ("10.40.0.8", "10.40.0.71")
CROWDED: dict[str, Any] = {"cidr": "10.40.0.0/24", "reserved": [{"cidr": "10.40.0.32/30"}]} | {
    "tenantAllocation": {"start": WINDOW[0], "end": WINDOW[1], "defaults": {"nodesPerTenant": 3, "lbPoolPerTenant": 4}}
}
"""A pool of 60 addresses, which a dozen requests fill: ranges are reused all the time."""


async def busy_day(estate: Estate, steps: int, *, names: int = 16, pool: str = "pool", hurry: float = 0.03) -> None:
    """Create and delete by chance. Requests that are on their way out are left alone until they are gone."""
    rng = estate.rng
    present: set[str] = set()
    for _ in range(steps):
        name = f"{pool}-{rng.randrange(names)}"
        if name in present:
            await estate.api.delete("ipallocations", name)
            present.discard(name)
        elif await estate.api.get("ipallocations", name) is None:
            pinned = None
            if rng.random() < 0.15:
                first = rng.randrange(oracle.number(WINDOW[0]), oracle.number(WINDOW[1]) - 3)
                pinned = oracle.text((first, first)), oracle.text((first + 2, first + 2))
            await estate.request(name, rng.choice([None, 1, 2, 3, 5, 8]), pool=pool, pinned=pinned)
            present.add(name)
        await asyncio.sleep(rng.uniform(0, 2 * hurry))
