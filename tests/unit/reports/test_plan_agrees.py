"""A plan agrees with what then happens, in 500 random states: held against a slow oracle that shares no code with it,
and against the allocator's own decisions when what was planned is asked for, one after the other."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocationType
from butler.api.networkpool import NetworkPool
from butler.ipam.addresses import Range, parse_range
from butler.ipam.decide import decide
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import read_layout
from butler.ipam.requests import AddressRequest
from butler.reports.plan.plan import Single, Tenants
from butler.reports.plan.planner import rehearse
from butler.rules.pool.excluded_addresses import excluded_addresses
from unit.reports.random_estates import NOW, make
from unit.reports.town_oracle import Purse, Town

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocationStatus
    from butler.reports.plan.plan import Block, PlanOutcome
    from unit.reports.random_estates import Json, Made

STATES = 500
KINDS = {"nodes": IPAllocationType.NODES, "loadbalancer": IPAllocationType.LOAD_BALANCER}


@pytest.mark.parametrize("hundred", range(STATES // 100))
def test_what_is_planned_is_what_would_be_granted(hundred: int) -> None:
    seen = {"fits": 0, "fails": 0, "falls through": 0}
    for seed in range(hundred * 100, hundred * 100 + 100):
        random = Random(seed)
        made = make(random, 40)
        wanted = Tenants(random.randint(1, 8), random.choice([None, 1, 3, 6]), random.choice([None, 2, 8]))
        singles = [
            Single(random.choice(made.pools)["metadata"]["name"], random.randint(1, 20))
            for _ in range(random.randint(0, 4))
        ]
        try:
            outcome = rehearse(made.estate(), NOW, tenants=wanted, requests=singles)
            _agrees_with_the_oracle(made, outcome, wanted, singles)
            _agrees_with_the_allocator(made, outcome)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        for tenant in outcome.tenants:
            seen["fits" if tenant.fits else "fails"] += 1
            seen["falls through"] += len({block.pool for block in tenant.blocks}) > 1
    assert min(seen.values()) > 10, f"these states are too much alike to show anything: {seen}"


def _agrees_with_the_oracle(made: Made, outcome: PlanOutcome, wanted: Tenants, singles: list[Single]) -> None:
    town = Town(made.bitmaps, set(made.bitmaps))
    granted = {}
    for name, waiting in made.waiting.items():
        granted |= town.pools[name].decide(waiting, 99).granted
    told = {f"uid-{block.name}": tuple(block.range) for block in outcome.waiting if block.range}
    assert told == granted, f"waiting: planned {told}, should be {granted}"
    purses = [_purse(made, kind, wanted) for kind in KINDS]
    for tenant in outcome.tenants:
        expected = {} if _impossible(made, purses, wanted) else town.tenant(purses)
        planned = {str(block.type): (block.pool, block.range and tuple(block.range)) for block in tenant.blocks}
        assert planned == expected, f"{tenant.name}: planned {planned}, should be {expected}"
        missing = sum(_asks(purse) for purse in purses) - sum(span is not None for _, span in expected.values())
        assert tenant.fits == (not missing and not _impossible(made, purses, wanted)), f"{tenant.name}: {tenant.why}"
    for single, block in zip(singles, outcome.requests, strict=True):
        assert (block.range and tuple(block.range)) == town.one(single.pool, single.count or 0)
    for pool in outcome.pools:
        bitmap = town.pools[pool.name]
        assert pool.after is not None
        capacity = pool.after.capacity
        assert (capacity.total, capacity.available, capacity.largest_free_block) == (
            bitmap.total, bitmap.free, bitmap.largest,
        ), pool.name  # fmt: skip


def _asks(purse: Purse) -> bool:
    return any(purse.counts.values())


def _impossible(made: Made, purses: list[Purse], wanted: Tenants) -> bool:
    """Whether the provider is not made for such tenants: no gateway for nodes, or no pool for what is asked for."""
    nodes, balancers = purses
    listed = [
        pool_ref for pool_ref in made.provider["spec"]["network"]["poolRefs"] if "nodes" in pool_ref.get("types", KINDS)
    ]
    return (bool(listed) and not nodes.counts) or (bool(wanted.load_balancers) and not balancers.counts)


def _purse(made: Made, kind: str, wanted: Tenants) -> Purse:
    """What a tenant wants, by the rules of the provider as the pages tell them."""
    network = made.provider["spec"]["network"]
    quota = network.get("quotaPerTenant", {}).get("maxNodeIPs" if kind == "nodes" else "maxLoadBalancerIPs")
    references = sorted(network["poolRefs"], key=lambda pool_ref: pool_ref["priority"])
    pools = {pool["metadata"]["name"]: pool for pool in made.pools}
    counts: dict[str, int] = {}
    for reference in references:
        if kind not in reference.get("types", KINDS):
            continue
        pool = pools[reference["name"]]
        if kind == "nodes" and "gateway" not in reference and pool is not made.pools[0]:
            continue  # the provider's own gateway lies in the first pool
        counts[reference["name"]] = _count(kind, pool, network, wanted, quota)
    return Purse(kind, counts, quota)


def _count(kind: str, pool: Json, network: Json, wanted: Tenants, quota: int | None) -> int:
    defaults = pool["spec"].get("tenantAllocation", {}).get("defaults", {})
    if kind == "nodes":
        usual = defaults.get("nodesPerTenant", 5)
        return max(wanted.nodes or 1, min(usual, quota) if quota else usual)
    if wanted.load_balancers:
        return wanted.load_balancers
    sizes = network.get("loadBalancer")
    usual = defaults.get("lbPoolPerTenant", 8)
    if sizes:
        usual = sizes["initialPoolSize" if sizes["allocationMode"] == "elastic" else "defaultPoolSize"]
    return min(usual, quota) if quota else int(usual)


def _agrees_with_the_allocator(made: Made, outcome: PlanOutcome) -> None:
    """Ask the allocator of each pool for what was planned, one after the other."""
    blocks: dict[str, list[Block]] = {}
    served = [block for block in outcome.waiting if block.range]
    for block in [*served, *(item for tenant in outcome.tenants for item in tenant.blocks), *outcome.requests]:
        blocks.setdefault(block.pool, []).append(block)
    for pool in made.pools:
        name = pool["metadata"]["name"]
        stored = from_json(NetworkPool, pool)
        layout = read_layout(stored.spec, excluded_addresses(stored, made.estate().providers))
        held = [allocation for allocation in made.estate().of_pool(name) if allocation.status.start_address]
        free = FreeSpace.without(layout.usable, [_range(allocation.status) for allocation in held])
        for place, block in enumerate(sorted(blocks.get(name, []), key=lambda item: item not in served)):
            if block.range is None or block.count is None:
                continue
            asked = AddressRequest(block.name, block.name, name, NOW + timedelta(seconds=place), block.count)
            decision = decide([asked], free, layout, lambda _: (), 1)
            if block in served:  # the order among those that wait is theirs, see the oracle
                free.take(block.range)
                continue
            assert [grant.range for grant in decision.grants] == [block.range], block
            free.take(block.range)


def _range(status: IPAllocationStatus) -> Range:
    return parse_range(status.start_address or "", status.end_address or "")[1]
