"""Pools with tenants, made by arithmetic alone: the same on every machine, for pictures that people have looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from butler.ipam.addresses import Family, address_text, parse_network
from butler.reports.pool.segments import PoolSegments, segments_of
from unit.webhooks.given import granted, intents, pool, windows

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation

Json = dict[str, Any]
TEAMS = ("payments", "search", "web", "identity", "a-team-with-quite-a-long-name")


def allocation(
    name: str, first: int, size: int, tenant: str = "team/web", *, draining: bool = False, **more: Any
) -> IPAllocation:
    made = granted(name, address_text(first, Family.V4), address_text(first + size - 1, Family.V4), **more)
    namespace, _, cluster = tenant.partition("/")
    reference = msgspec.structs.replace(made.spec.tenant_cluster_ref, name=cluster, namespace=namespace)
    status = made.status
    if draining:
        status = msgspec.structs.replace(status, draining_since=datetime(2027, 1, 1, tzinfo=UTC))
    spec = msgspec.structs.replace(made.spec, tenant_cluster_ref=reference)
    return msgspec.structs.replace(made, spec=spec, status=status)


def estate(
    cidr: str, count: int, *, sizes: tuple[int, ...], tenants: int, spread: int = 1, **spec: Any
) -> PoolSegments:
    """So many allocations one after the other, with gaps that look like chance and are none."""
    _, network = parse_network(cidr)
    at, seed, made = network.first + 9, 1, []
    for index in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        at += (0, 0, 0, 0, 3, 8, 0, 21)[seed >> 8 & 7] * spread
        size = sizes[(seed >> 12) % len(sizes)]
        if at + size > network.last:
            break
        tenant = (seed >> 16) % tenants
        made.append(allocation(f"a{index}", at, size, f"{TEAMS[tenant % len(TEAMS)]}/cluster-{tenant}"))
        at += size
    gateways = [{"cidr": f"{cidr.split('/', maxsplit=1)[0]}/29", "description": "switches and gateways"}]
    return segments_of(pool("vlan40", cidr, reserved=gateways, **spec), made)


def every_sign() -> PoolSegments:
    """A pool with everything that can be drawn, and everything that should not be."""
    base = parse_network("10.40.0.0/24")[1].first
    waiting = allocation("coming", base + 60, 4, "web/shop", phase="Pending")
    held = [
        allocation("shop-nodes", base + 32, 8, "web/shop"),
        allocation("shop-lb", base + 40, 8, "web/shop"),
        allocation("bank-nodes", base + 48, 6, "payments/bank"),
        allocation("shop-lb-1", base + 54, 4, "web/shop", draining=True),
        waiting,
        allocation("one", base + 80, 8, "search/index"),
        allocation("two", base + 84, 8, "identity/login"),
        allocation("old", base + 200, 8, "search/index"),
        allocation("far", base + 4096, 8, "search/index"),
    ]
    spec: dict[str, Any] = {
        "reserved": [{"cidr": "10.40.0.0/28", "description": "switches"}, {"cidr": "10.40.0.120/29"}]
    }
    promised = intents(("coming", "10.40.0.60", "10.40.0.63"))
    ends = windows(("10.40.0.32", "10.40.0.95"), ("10.40.0.96", "10.40.0.191"))
    return segments_of(pool("rack", status=promised, **spec, **ends), held)
