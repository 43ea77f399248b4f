"""What an allocation asks for, and what can be refused by looking at it and the pool's spec alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from butler.api.ipallocation import IPAllocation, IPAllocationType
from butler.api.labels import AllocationReason
from butler.ipam.requests import AddressRequest, RequestRefusal, in_turn, read_request
from unit.ipam.pools import MORNING, allocation, layout, span

if TYPE_CHECKING:
    from butler.ipam.refusals import Refusal

POOL = layout("10.40.0.0/21", "10.40.1.0-10.40.7.254", reserved=("10.40.0.0/28 Management cluster",))
TWO_WINDOWS = layout("10.40.0.0/23", "10.40.0.32-10.40.0.63", "10.40.1.51-10.40.1.191")
TOUCHING = layout("10.40.0.0/24", "10.40.0.0-10.40.0.31", "10.40.0.32-10.40.0.63")
PARTED = layout("10.40.0.0/24", "10.40.0.0-10.40.0.63", reserved=("10.40.0.16/28 Management cluster", "10.40.0.32/30"))


def refusal(asked: IPAllocation, pool: object = POOL) -> Refusal:
    with pytest.raises(RequestRefusal) as caught:
        read_request(asked, pool)  # type: ignore[arg-type]
    assert str(caught.value) == caught.value.refusal.message
    return caught.value.refusal


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        (allocation(count=3), 3),
        (allocation(count=65536), 65536),
        (allocation(type_=IPAllocationType.NODES), 5),
        (allocation(type_=IPAllocationType.LOAD_BALANCER), 8),
        (allocation(type_=IPAllocationType.LOAD_BALANCER, count=2), 2),
        (allocation(pin="10.40.1.100-10.40.1.109"), 10),
        (allocation(pin="10.40.1.100-10.40.1.109", count=3), 10),  # the count is ignored beside a pinned range
        (allocation(pin="10.40.1.100-10.40.1.109", count=0), 10),
    ],
)
def test_how_many_addresses_are_asked_for(asked: IPAllocation, count: int) -> None:
    assert read_request(asked, POOL).count == count


def test_a_request_says_who_asks_which_pool_since_when() -> None:
    asked = allocation("legacy-cluster-nodes", pin="10.40.1.100-10.40.1.109", after=3, uid="8f2c")
    request = read_request(asked, POOL)
    assert request == AddressRequest(
        uid="8f2c",
        name="legacy-cluster-nodes",
        pool="vlan40-pool",
        created=asked.metadata.creation_timestamp or MORNING,
        count=10,
        pinned=span("10.40.1.100-10.40.1.109"),
    )


INVALID, OUTSIDE, CONFLICT = (
    AllocationReason.INVALID_REQUEST,
    AllocationReason.PINNED_RANGE_OUT_OF_POOL,
    AllocationReason.PINNED_RANGE_CONFLICT,
)


@pytest.mark.parametrize(
    ("pool", "asked", "reason", "message"),
    [
        (POOL, allocation(count=0), INVALID, "asks for 0 addresses: ask for 1 or more"),
        (POOL, allocation(count=-1), INVALID, "asks for -1 addresses: ask for 1 or more"),
        (
            POOL,
            allocation(count=65537),
            INVALID,
            "asks for 65537 addresses, but one allocation may hold at most 65536: split it into several allocations",
        ),
        (
            POOL,
            allocation(pin="10.0.0.0-10.1.0.0"),
            INVALID,
            "asks for 65537 addresses, but one allocation may hold at most 65536: split it into several allocations",
        ),
        (
            POOL,
            allocation(pin="999.999.999.999-10.40.1.9"),
            INVALID,
            (
                "the pinned range cannot be read: '999.999.999.999' is not an IP address:"
                " write it as in 10.40.1.0, with no leading zeros"
            ),
        ),
        (
            POOL,
            allocation(pin="10.40.1.9-2001:db8::1"),
            INVALID,
            "the pinned range cannot be read: 2001:db8::1 is an IPv6 address, but the pool hands out IPv4",
        ),
        (
            POOL,
            allocation(pin="10.40.1.9-10.40.1.2"),
            INVALID,
            "10.40.1.9-10.40.1.2 is pinned, but 10.40.1.2 comes before 10.40.1.9: swap startAddress and endAddress",
        ),
        (
            POOL,
            allocation(pin="10.40.0.100-10.40.0.109"),
            OUTSIDE,
            (
                "10.40.0.100-10.40.0.109 is pinned, but it is outside what vlan40-pool hands out"
                " (10.40.1.0-10.40.7.254): pin a range inside, or widen spec.tenantAllocation of the pool"
            ),
        ),
        (
            POOL,
            allocation(pin="10.40.0.254-10.40.1.1"),
            OUTSIDE,
            (
                "10.40.0.254-10.40.1.1 is pinned, but 10.40.0.254 is outside what vlan40-pool hands out"
                " (10.40.1.0-10.40.7.254): pin a range inside, or widen spec.tenantAllocation of the pool"
            ),
        ),
        (
            POOL,
            allocation(pin="10.40.7.250-10.40.8.5"),
            OUTSIDE,
            (
                "10.40.7.250-10.40.8.5 is pinned, but 10.40.7.255 is outside what vlan40-pool hands out"
                " (10.40.1.0-10.40.7.254): pin a range inside, or widen spec.tenantAllocation of the pool"
            ),
        ),
        (
            POOL,
            allocation(pin="10.40.0.3-10.40.0.3"),
            OUTSIDE,
            (
                "10.40.0.3 is pinned, but it is outside what vlan40-pool hands out"
                " (10.40.1.0-10.40.7.254): pin a range inside, or widen spec.tenantAllocation of the pool"
            ),
        ),
        (
            TWO_WINDOWS,
            allocation(pin="10.40.0.60-10.40.1.60"),
            OUTSIDE,
            (
                "10.40.0.60-10.40.1.60 is pinned, but it reaches over 2 windows of vlan40-pool"
                " (10.40.0.32-10.40.0.63, 10.40.1.51-10.40.1.191): make one allocation for each window"
            ),
        ),
        (
            TOUCHING,
            allocation(pin="10.40.0.31-10.40.0.32"),
            OUTSIDE,
            (
                "10.40.0.31-10.40.0.32 is pinned, but it reaches over 2 windows of vlan40-pool"
                " (10.40.0.0-10.40.0.31, 10.40.0.32-10.40.0.63): make one allocation for each window"
            ),
        ),
        (
            TWO_WINDOWS,
            allocation(pin="10.40.0.20-10.40.1.60"),
            OUTSIDE,
            (
                "10.40.0.20-10.40.1.60 is pinned, but 10.40.0.20 is outside what vlan40-pool hands out"
                " (10.40.0.32-10.40.0.63, 10.40.1.51-10.40.1.191):"
                " pin a range inside, or widen spec.tenantAllocation of the pool"
            ),
        ),
        (
            PARTED,
            allocation(pin="10.40.0.10-10.40.0.20"),
            CONFLICT,
            (
                "10.40.0.10-10.40.0.20 is pinned, but 10.40.0.16 is reserved by 10.40.0.16/28 (Management cluster):"
                " pin a range outside that block, or take the block out of spec.reserved of the pool"
            ),
        ),
        (
            PARTED,
            allocation(pin="10.40.0.33-10.40.0.40"),
            CONFLICT,
            (
                "10.40.0.33-10.40.0.40 is pinned, but 10.40.0.33 is reserved by 10.40.0.32/30:"
                " pin a range outside that block, or take the block out of spec.reserved of the pool"
            ),
        ),
    ],
)
def test_what_the_pool_could_never_grant_is_refused(
    pool: object, asked: IPAllocation, reason: AllocationReason, message: str
) -> None:
    refused = refusal(asked, pool)
    assert (refused.uid, refused.name) == (asked.metadata.uid, asked.metadata.name)
    assert (refused.reason, refused.message) == (reason, message)


@pytest.mark.parametrize(
    "pin", ["10.40.1.0-10.40.1.0", "10.40.7.254-10.40.7.254", "10.40.1.0-10.40.7.254", "10.40.3.3-10.40.4.9"]
)
def test_a_pinned_range_may_reach_to_the_edges_of_its_window(pin: str) -> None:
    assert read_request(allocation(pin=pin), POOL).pinned == span(pin)


def test_a_long_description_of_a_reserved_block_is_cut() -> None:
    pool = layout("10.40.0.0/24", reserved=(f"10.40.0.16/28 {'switches and routers, ' * 40}",))
    message = refusal(allocation(pin="10.40.0.16-10.40.0.17"), pool).message
    assert "(switches and routers, switches and routers," in message
    assert "…)" in message
    assert len(message) < 320


def test_many_windows_are_not_all_listed() -> None:
    pool = layout("10.40.0.0/24", *(f"10.40.0.{start}-10.40.0.{start + 4}" for start in range(0, 100, 10)))
    assert "10.40.0.30-10.40.0.34 and 6 more)" in refusal(allocation(pin="10.40.0.200-10.40.0.200"), pool).message


def test_pinned_requests_come_first_then_the_oldest_then_the_smallest_uid() -> None:
    asked = [
        allocation("b", count=1, after=1, uid="2"),
        allocation("young", count=1, after=9, uid="0"),
        allocation("a", count=1, after=1, uid="1"),
        allocation("pinned-late", pin="10.40.1.7-10.40.1.7", after=99, uid="8"),
        allocation("pinned", pin="10.40.1.9-10.40.1.9", after=50, uid="9"),
    ]
    names = [request.name for (request,) in in_turn(read_request(one, POOL) for one in asked)]
    assert names == ["pinned", "pinned-late", "a", "b", "young"]


def test_a_request_without_a_creation_time_is_served_last() -> None:
    nameless = allocation("timeless", count=1)
    timeless = msgspec.structs.replace(
        nameless, metadata=msgspec.structs.replace(nameless.metadata, creation_timestamp=None)
    )
    asked = [timeless, allocation("young", count=1, after=10**8)]
    assert [one.name for (one,) in in_turn(read_request(one, POOL) for one in asked)] == ["young", "timeless"]
