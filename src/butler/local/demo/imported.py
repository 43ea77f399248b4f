"""An estate that was there before Butler: a /16 with ranges in use all over it, taken over as pinned allocations. Pure.

It is there to be looked at: a map with holes, fragmentation, a large network. Its clusters do not exist, so nothing
moves in it.
"""

from __future__ import annotations

import ipaddress
import random
from typing import TYPE_CHECKING, Final

from butler.api import GROUP, VERSION
from butler.api.ipallocation import IPAllocationType
from butler.api.labels import Label
from butler.local.demo.objects import LABEL

if TYPE_CHECKING:
    from butler.api.objects import Json

POOL: Final = "campus"
SPEC: Final[Json] = {
    "cidr": "10.20.0.0/16",
    "reserved": [
        {"cidr": "10.20.0.0/22", "description": "Routers and switches"},
        {"cidr": "10.20.128.0/20", "description": "Desks, by DHCP"},
    ],
}
TEAM: Final = "team-campus"
CLUSTERS: Final = ("library", "physics", "hospital", "archive", "robotics", "radio", "printing", "weather")
RANGES: Final = 240
_FIRST: Final = int(ipaddress.IPv4Address("10.20.4.0"))
_DESKS: Final = (int(ipaddress.IPv4Address("10.20.128.0")), int(ipaddress.IPv4Address("10.20.143.255")))
_LAST: Final = int(ipaddress.IPv4Address("10.20.255.254"))


def allocations(home: str, seed: int) -> list[Json]:
    """The pinned allocations, in the order of their addresses."""
    chance = random.Random(f"{seed}/imported")  # noqa: S311  # a picture, no secret
    found: list[Json] = []
    at = _FIRST
    while len(found) < RANGES:
        at += chance.choice((0, 0, 1, 3, 20, 60, 140, 400, 1000))
        size = chance.choice((1, 1, 2, 4, 5, 8, 16, 32, 64, 128))
        if at <= _DESKS[1] and at + size > _DESKS[0]:
            at = _DESKS[1] + 1
        if at + size - 1 > _LAST:
            break
        found.append(_pinned(home, len(found) + 1, chance.choice(CLUSTERS), at, size))
        at += size
    return found


def _pinned(home: str, number: int, cluster: str, first: int, size: int) -> Json:
    kind = IPAllocationType.LOAD_BALANCER if size in (2, 8) else IPAllocationType.NODES
    labels = {
        LABEL[0]: LABEL[1],
        Label.NETWORK_POOL.value: POOL,
        Label.TENANT.value: cluster,
        Label.ALLOCATION_TYPE.value: kind.value,
    }
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "IPAllocation",
        "metadata": {"name": f"campus-{number:03}", "namespace": home, "labels": labels},
        "spec": {
            "poolRef": {"name": POOL},
            "tenantClusterRef": {"name": cluster, "namespace": TEAM},
            "type": kind.value,
            "pinnedRange": {
                "startAddress": str(ipaddress.IPv4Address(first)),
                "endAddress": str(ipaddress.IPv4Address(first + size - 1)),
            },
        },
    }
