"""Estates of any shape, from a seed: pools with windows, holes and reserved blocks, a provider with priorities, types,
sizes and quotas, and requests that wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.ipam.addresses import Family, address_text
from butler.ipam.layout import InvalidPool, read_layout
from butler.reports.estate import Estate
from unit.ipam.bitmap_oracle import Asking, Bitmap

if TYPE_CHECKING:
    from random import Random

    from unit.ipam.bitmap_oracle import Span

HOME = "butler-system"
NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
Json = dict[str, Any]


@dataclass
class Made:
    """An estate in JSON, as it can be applied to a server, and what the oracle needs to know of it."""

    pools: list[Json] = field(default_factory=list)
    allocations: list[Json] = field(default_factory=list)
    provider: Json = field(default_factory=dict)
    bitmaps: dict[str, Bitmap] = field(default_factory=dict)
    waiting: dict[str, list[Asking]] = field(default_factory=dict)

    def estate(self) -> Estate:
        return Estate(
            HOME,
            tuple(from_json(NetworkPool, pool) for pool in self.pools),
            tuple(from_json(IPAllocation, allocation) for allocation in self.allocations),
            (from_json(ProviderConfig, self.provider),) if self.provider else (),
        )


def text(address: int) -> str:
    return address_text(address, Family.V4)


def span_text(span: Span) -> Json:
    return {"start": text(span[0]), "end": text(span[1]), "count": span[1] - span[0] + 1}


def make(random: Random, network: int, mark: str = "", *, waiting: bool = True, apart: bool = False) -> Made:
    """An estate in 10.<network>.0.0/16; `mark` becomes part of all names. `apart`: no pool is for both purposes."""
    made = Made()
    for number in range(4 if apart else random.randint(1, 3)):
        base = (10 << 24) + (network << 16) + (number << 12)
        pool, bitmap = _pool(random, base, f"pool{mark}-{number}")
        made.pools.append(pool)
        made.bitmaps[pool["metadata"]["name"]] = bitmap
        _fill(random, made, pool["metadata"]["name"], waiting=waiting)
    made.provider = _provider(random, made, f"lab{mark}")
    if apart:
        for number, reference in enumerate(made.provider["spec"]["network"]["poolRefs"]):
            reference["types"] = ["nodes" if number % 2 else "loadbalancer"]
            reference["gateway"] = _gateway(made.pools[number])
    _exclude_gateways(made)
    return made


def _exclude_gateways(made: Made) -> None:
    """The gateways of the provider are no tenant's."""
    network = made.provider["spec"]["network"]
    gateways = {network["gateway"], *(pool_ref["gateway"] for pool_ref in network["poolRefs"] if "gateway" in pool_ref)}
    for pool in made.pools:
        bitmap = made.bitmaps[pool["metadata"]["name"]]
        for gateway in gateways:
            address = int(ip_address(gateway))
            if gateway == _gateway(pool) and bitmap.letter(address) in ".x":
                bitmap.mark("r", (address, address))


def _pool(random: Random, base: int, name: str) -> tuple[Json, Bitmap]:
    while True:
        length = random.randint(24, 28)
        size = 1 << (32 - length)
        spec: Json = {"cidr": f"{text(base)}/{length}"}
        blocks: list[Span] = []
        for _ in range(random.choice([0, 0, 1, 2])):
            bits = random.randint(29, 32)
            start = base + random.randrange(0, size, 1 << (32 - bits))
            blocks.append((start, start + (1 << (32 - bits)) - 1))
            spec.setdefault("reserved", []).append({"cidr": f"{text(start)}/{bits}"})
        windows: list[Span] = []
        cuts = sorted(random.sample(range(base, base + size), 2 * random.choice([0, 0, 1, 1, 2, 3])))
        windows = list(zip(cuts[::2], cuts[1::2], strict=True))
        allocation: Json = {}
        if len(windows) == 1:
            allocation = {"start": text(windows[0][0]), "end": text(windows[0][1])}
        elif windows:
            allocation = {"ranges": [{"start": text(first), "end": text(last)} for first, last in windows]}
        if random.random() < 0.7:
            allocation["defaults"] = {
                "nodesPerTenant": random.randint(1, 8), "lbPoolPerTenant": random.randint(1, 10),
            }  # fmt: skip
        if allocation:
            spec["tenantAllocation"] = allocation
        metadata = {"name": name, "namespace": HOME, "uid": f"uid-{name}", "generation": 1}
        made = {
            "apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "NetworkPool", "metadata": metadata, "spec": spec,
        }  # fmt: skip
        try:
            read_layout(from_json(NetworkPool, made).spec)
        except InvalidPool:
            continue
        return made, Bitmap(windows or [(base + 1, base + size - 2)], blocks)


def _fill(random: Random, made: Made, pool: str, *, waiting: bool) -> None:
    """Allocations with holes between them, and some that wait."""
    bitmap = made.bitmaps[pool]
    for number in range(random.randint(0, 12)):
        runs = bitmap.runs()
        if not runs:
            break
        first, last = random.choice(runs)
        start = random.randint(first, last)
        span = (start, min(last, start + random.choice([0, 1, 3, 4, 7, 15])))
        bitmap.mark("x", span)
        held = {"startAddress": text(span[0]), "endAddress": text(span[1])}
        status = {"phase": "Allocated", "allocatedCount": span[1] - span[0] + 1, **held}
        made.allocations.append(_allocation(f"{pool}-held-{number}", pool, {"pinnedRange": held}, status))
    for number in range(random.choice([0, 0, 1, 2]) if waiting else 0):
        count = random.randint(1, 40)
        created = NOW - timedelta(seconds=random.randint(1, 5))
        uid = f"uid-{pool}-waits-{number}"
        phase = random.choice(["Pending", "Failed"])
        request = _allocation(f"{pool}-waits-{number}", pool, {"count": count}, {"phase": phase}, created)
        made.allocations.append(request)
        made.waiting.setdefault(pool, []).append(Asking(uid, created.timestamp(), count))


def _allocation(name: str, pool: str, spec: Json, status: Json, created: datetime = NOW) -> Json:
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "IPAllocation",
        "metadata": {
            "name": name,
            "namespace": HOME,
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": created.isoformat(),
        },
        "spec": {
            "poolRef": {"name": pool},
            "tenantClusterRef": {"name": name, "namespace": "elsewhere"},
            "type": "loadbalancer",
            **spec,
        },
        "status": status,
    }


def _gateway(pool: Json) -> str:
    return str(pool["spec"]["cidr"].partition("/")[0]).removesuffix(".0") + ".1"


def _provider(random: Random, made: Made, name: str) -> Json:
    references = []
    for pool in made.pools:
        reference: Json = {"name": pool["metadata"]["name"], "priority": random.randint(0, 2)}
        if random.random() < 0.4:
            reference["types"] = [random.choice(["nodes", "loadbalancer"])]
        if random.random() < 0.8:
            reference["gateway"] = _gateway(pool)
        references.append(reference)
    network: Json = {"mode": "ipam", "poolRefs": references, "gateway": _gateway(made.pools[0])}
    if random.random() < 0.5:
        network["loadBalancer"] = {
            "allocationMode": random.choice(["static", "elastic"]),
            "defaultPoolSize": random.randint(1, 12),
            "initialPoolSize": random.randint(0, 4),
        }
    if random.random() < 0.4:
        network["quotaPerTenant"] = {
            "maxNodeIPs": random.randint(2, 9),
            "maxLoadBalancerIPs": random.randint(2, 12),
        }
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": name, "namespace": HOME, "uid": f"uid-{name}"},
        "spec": {"provider": "proxmox", "network": network},
        "status": {"ready": True},
    }
