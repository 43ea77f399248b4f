"""A small estate as tests of exchange, who and release write it: whose, what for, which addresses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocation
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import Family, Range, parse_range, range_text
from butler.reports.estate import Estate
from unit.webhooks.given import API, pool, reserved

NOW = datetime(2027, 5, 17, 9, 30, tzinfo=UTC)


def addresses(text: str) -> Range:
    start, _, end = text.partition("-")
    return parse_range(start, end or start)[1]


def shown(found: Range) -> str:
    return range_text(found, Family.V4)


def cluster(name: str = "t/web", uid: str = "uid-web", **status: Any) -> TenantCluster:
    namespace, _, short = name.partition("/")
    spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}}
    meta = {"name": short, "namespace": namespace, "uid": uid}
    body = {"apiVersion": API, "kind": "TenantCluster", "metadata": meta, "spec": spec, "status": status}
    return from_json(TenantCluster, body)


def holder(
    name: str,
    held: str = "",
    *,
    tenant: str = "t/web",
    type_: str = "nodes",
    of: str = "rack",
    phase: str = "Allocated",
    pinned: str = "",
    meta: dict[str, Any] | None = None,
    **status: Any,
) -> IPAllocation:
    namespace, _, short = tenant.partition("/")
    start, _, end = held.partition("-")
    first, _, last = pinned.partition("-")
    spec: dict[str, Any] = {"poolRef": {"name": of}, "type": type_}
    spec["tenantClusterRef"] = {"name": short, "namespace": namespace}
    if pinned:
        spec["pinnedRange"] = {"startAddress": first, "endAddress": last or first}
    granted = {"startAddress": start, "endAddress": end or start} if held else {}
    return from_json(
        IPAllocation,
        {
            "apiVersion": API,
            "kind": "IPAllocation",
            "metadata": {"name": name, "namespace": "home", "uid": f"uid-{name}", **(meta or {})},
            "spec": spec,
            "status": {"phase": phase, **granted, **status},
        },
    )


def estate(*allocations: IPAllocation, clusters: tuple[TenantCluster, ...] = (), pools: Any = None) -> Estate:
    """Pool rack hands out 10.40.0.16 to .254, unless others are given."""
    made = (pool("rack", **reserved("10.40.0.0/28")),) if pools is None else tuple(pools)
    return Estate("home", made, allocations, (), clusters)
