"""Pools and allocations in the fewest words, for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from butler.api.ipallocation import IPAllocation, IPAllocationSpec, IPAllocationType, PinnedIPRange
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.api.networkpool import AddressRange, NetworkPoolSpec, ReservedBlock, TenantAllocation
from butler.ipam.addresses import Range, parse_network, parse_range
from butler.ipam.layout import PoolLayout, read_layout

MORNING = datetime(2026, 2, 15, 10, 0, 0, tzinfo=UTC)


def pool(cidr: str, *windows: str, reserved: tuple[str, ...] = ()) -> NetworkPoolSpec:
    """A pool; a window is `start-end`, a reserved block `cidr` or `cidr what for`."""
    blocks = [text.partition(" ") for text in reserved]
    ranges = [text.split("-") for text in windows]
    return NetworkPoolSpec(
        cidr=cidr,
        reserved=tuple(ReservedBlock(cidr=block, description=what or None) for block, _, what in blocks),
        tenant_allocation=(
            TenantAllocation(ranges=tuple(AddressRange(start=start, end=end) for start, end in ranges))
            if windows
            else None
        ),
    )


def layout(cidr: str, *windows: str, reserved: tuple[str, ...] = ()) -> PoolLayout:
    return read_layout(pool(cidr, *windows, reserved=reserved))


def span(text: str) -> Range:
    """A range from `start-end`, a network, or one address."""
    if "/" in text:
        return parse_network(text)[1]
    start, _, end = text.partition("-")
    return parse_range(start, end or start)[1]


def allocation(
    name: str = "my-cluster-nodes",
    *,
    count: int | None = None,
    pin: str | None = None,
    type_: IPAllocationType = IPAllocationType.NODES,
    after: float = 0,
    uid: str | None = None,
) -> IPAllocation:
    """A waiting allocation, created so many seconds after the morning began."""
    start, _, end = (pin or "").partition("-")
    return IPAllocation(
        metadata=ObjectMeta(
            name=name,
            namespace="butler-system",
            uid=uid or f"uid-{name}",
            creation_timestamp=MORNING + timedelta(seconds=after),
        ),
        spec=IPAllocationSpec(
            pool_ref=LocalObjectReference(name="vlan40-pool"),
            tenant_cluster_ref=NamespacedObjectReference(name="my-cluster", namespace="team-backend"),
            type=type_,
            count=count,
            pinned_range=PinnedIPRange(start_address=start, end_address=end or start) if pin else None,
        ),
    )
