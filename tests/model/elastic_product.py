"""Butler's own answers about a tenant's load-balancer blocks: real allocations and Services in, its decisions out.

The first address of the model is 10.0.0.1, and each is a block of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from butler.api.ipallocation import (
    IPAllocation,
    IPAllocationPhase,
    IPAllocationSpec,
    IPAllocationStatus,
    IPAllocationType,
)
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.tenant.metallb import POOL
from butler.tenant.services import Balancer
from model import butler_code
from model.elastic_state import BY_ADDRESS, BY_POOL, Cached, Service, bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.rules.loadbalancer.usage import HeldBlock, Usage

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
KEEPS_WHAT_IS_IDLE: Final = butler_code.LoadBalancerPolicy(shrinks=False)
Blocks = tuple[Cached, ...]
Services = tuple[Service, ...]


def published(blocks: Blocks, services: Services, there: int) -> int:
    """What is published of the blocks, given those that the pool has."""
    entries = {_address(slot) + "-" + _address(slot) for slot in bits(there)}
    found = _surveyed(blocks, services, (1 << len(blocks)) - 1)
    return _mask(butler_code.publishable(found.blocks, entries))


def hands_out(blocks: Blocks, services: Services, mask: int) -> bool:
    """Whether MetalLB may give away addresses by itself, with a pool of these blocks."""
    return butler_code.hands_out(_surveyed(blocks, services, mask).blocks)


def due(blocks: Blocks, services: Services) -> int:
    """Which of the blocks that were deleted may be taken back."""
    found = _surveyed(blocks, services, (1 << len(blocks)) - 1)
    return _mask(butler_code.due(found, KEEPS_WHAT_IS_IDLE, NOW, timedelta(minutes=10)))


def is_needed(blocks: Blocks, services: Services, mask: int, going: int) -> bool:
    """Whether a Service has or asks for one of those that go, or waits for one of those that stay."""
    found = _surveyed(blocks, services, mask | going)
    return found.is_held_up or any(block.claimed for block in found.blocks if _mask([block]) & going)


@lru_cache(1 << 16)
def _surveyed(blocks: Blocks, services: Services, mask: int) -> Usage:
    own = [_allocation(slot, blocks[slot]) for slot in bits(mask) if blocks[slot].live]
    return butler_code.usage_of(own, [_balancer(number, service) for number, service in enumerate(services)], NOW)


def _mask(blocks: Iterable[HeldBlock]) -> int:
    return sum(1 << int(block.uid.partition("-")[0]) for block in blocks)


def _address(slot: int) -> str:
    return f"10.0.0.{slot + 1}"


def _allocation(slot: int, block: Cached) -> IPAllocation:
    return IPAllocation(
        metadata=ObjectMeta(
            name=f"g{slot + 1}",
            namespace="butler-system",
            uid=f"{slot}-{block.uid}",
            deletion_timestamp=NOW if block.deleting else None,
        ),
        spec=IPAllocationSpec(
            pool_ref=LocalObjectReference(name="pool"),
            tenant_cluster_ref=NamespacedObjectReference(name="tenant", namespace="team"),
            type=IPAllocationType.LOAD_BALANCER,
            count=1,
        ),
        status=IPAllocationStatus(
            phase=IPAllocationPhase.ALLOCATED,
            start_address=_address(slot),
            end_address=_address(slot),
            allocated_count=1,
            draining_since=NOW if block.marked else None,
        ),
    )


def _balancer(number: int, service: Service) -> Balancer:
    return Balancer(
        namespace="shop",
        name=f"service-{number}",
        uid=f"service-{number}",
        addresses=(_address(service.address),) if service.address >= 0 else (),
        deleting=service.leaving,
        asks=(_address(0),) if service.kind == BY_ADDRESS else (),
        asks_pool=POOL if service.kind == BY_POOL else None,
    )
