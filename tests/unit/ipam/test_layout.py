"""What a pool may hand out, and everything that can be wrong with its spec."""

from __future__ import annotations

import pytest

from butler.api.networkpool import (
    AddressRange,
    AllocationDefaults,
    NetworkPoolSpec,
    ReservedBlock,
    TenantAllocation,
)
from butler.ipam.addresses import Family, range_text
from butler.ipam.layout import FieldProblem, InvalidPool, read_layout
from unit.ipam.pools import layout, pool, span


def usable(cidr: str, *windows: str, reserved: tuple[str, ...] = ()) -> list[str]:
    return [range_text(piece, Family.V4) for piece in layout(cidr, *windows, reserved=reserved).usable]


def problems(spec: NetworkPoolSpec) -> list[FieldProblem]:
    with pytest.raises(InvalidPool) as caught:
        read_layout(spec)
    return list(caught.value.problems)


def wrong_fields(spec: NetworkPoolSpec) -> list[str]:
    return [problem.field for problem in problems(spec)]


@pytest.mark.parametrize(
    ("cidr", "expected"),
    [
        ("10.0.0.0/24", "10.0.0.1-10.0.0.254"),
        ("10.0.0.0/8", "10.0.0.1-10.255.255.254"),
        ("10.0.0.0/30", "10.0.0.1-10.0.0.2"),
        ("10.0.0.0/31", "10.0.0.0-10.0.0.1"),
        ("10.0.0.7/32", "10.0.0.7"),
        ("255.255.255.0/24", "255.255.255.1-255.255.255.254"),
    ],
)
def test_without_a_window_the_first_and_last_address_are_kept_back_where_there_are_others(
    cidr: str, expected: str
) -> None:
    assert usable(cidr) == [expected]


def test_defaults_without_a_window_leave_the_whole_network() -> None:
    spec = NetworkPoolSpec(
        cidr="10.0.0.0/24",
        tenant_allocation=TenantAllocation(defaults=AllocationDefaults(nodes_per_tenant=3, lb_pool_per_tenant=4)),
    )
    read = read_layout(spec)
    assert (read.total, read.nodes_default, read.load_balancer_default) == (254, 3, 4)


def test_without_defaults_five_nodes_and_eight_load_balancer_addresses() -> None:
    read = layout("10.0.0.0/24")
    assert (read.nodes_default, read.load_balancer_default) == (5, 8)


def test_the_published_pool() -> None:
    read = read_layout(
        NetworkPoolSpec(
            cidr="10.40.0.0/21",
            reserved=(ReservedBlock(cidr="10.40.0.0/28", description="Management cluster"),),
            tenant_allocation=TenantAllocation(start="10.40.1.0", end="10.40.7.254"),
        )
    )
    assert read.family is Family.V4
    assert read.network == span("10.40.0.0/21")
    assert read.windows == read.usable == (span("10.40.1.0-10.40.7.254"),)
    assert read.reserved == (span("10.40.0.0/28"),)
    assert read.blocks[0].description == "Management cluster"
    assert read.total == 7 * 256 - 1


@pytest.mark.parametrize(
    ("why", "windows", "reserved", "expected"),
    [
        ("with a window the administrator's word counts", ("10.0.0.0-10.0.0.255",), (), ["10.0.0.0-10.0.0.255"]),
        ("a window may be one address", ("10.0.0.9-10.0.0.9",), (), ["10.0.0.9"]),
        (
            "unsorted windows are sorted",
            ("10.0.0.64-10.0.0.70", "10.0.0.8-10.0.0.9"),
            (),
            ["10.0.0.8-10.0.0.9", "10.0.0.64-10.0.0.70"],
        ),
        (
            "windows that touch stay two",
            ("10.0.0.8-10.0.0.9", "10.0.0.10-10.0.0.11"),
            (),
            ["10.0.0.8-10.0.0.9", "10.0.0.10-10.0.0.11"],
        ),
        (
            "a block parts a window",
            ("10.0.0.0-10.0.0.63",),
            ("10.0.0.16/28",),
            ["10.0.0.0-10.0.0.15", "10.0.0.32-10.0.0.63"],
        ),
        (
            "a block at an edge from inside",
            ("10.0.0.0-10.0.0.63",),
            ("10.0.0.0/28", "10.0.0.48/28"),
            ["10.0.0.16-10.0.0.47"],
        ),
        (
            "a block outside the window changes nothing",
            ("10.0.0.0-10.0.0.63",),
            ("10.0.0.128/25",),
            ["10.0.0.0-10.0.0.63"],
        ),
        (
            "blocks that touch are one gap",
            ("10.0.0.0-10.0.0.63",),
            ("10.0.0.24/29", "10.0.0.16/29"),
            ["10.0.0.0-10.0.0.15", "10.0.0.32-10.0.0.63"],
        ),
        ("without a window a block may cover the first address", (), ("10.0.0.0/28",), ["10.0.0.16-10.0.0.254"]),
        ("without a window a block may cover the last address", (), ("10.0.0.128/25",), ["10.0.0.1-10.0.0.127"]),
    ],
)
def test_what_is_usable(why: str, windows: tuple[str, ...], reserved: tuple[str, ...], expected: list[str]) -> None:
    assert usable("10.0.0.0/24", *windows, reserved=reserved) == expected, why


def test_touching_reserved_blocks_are_joined_and_each_keeps_its_description() -> None:
    read = layout("10.0.0.0/24", reserved=("10.0.0.24/29 Switches", "10.0.0.16/29 Routers"))
    assert read.reserved == (span("10.0.0.16/28"),)
    assert [(block.addresses, block.description) for block in read.blocks] == [
        (span("10.0.0.16/29"), "Routers"),
        (span("10.0.0.24/29"), "Switches"),
    ]


W = "spec.tenantAllocation"


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (pool("10.40.0/21"), "spec.cidr", "'10.40.0/21' is not a network: write it as in 10.40.0.0/21"),
        (pool("999.999.999.999/99"), "spec.cidr", "'999.999.999.999/99' is not a network: write it as in 10.40.0.0/21"),
        (pool("10.40.0.0/33"), "spec.cidr", "its prefix must be a number from 0 to 32"),
        (pool("10.40.0.1/21"), "spec.cidr", "has bits set after its prefix: the network is 10.40.0.0/21"),
        (pool("2001:db8::/64"), "spec.cidr", "2001:db8::/64 is an IPv6 network: pools hand out IPv4 only, for now"),
        (pool("10.0.0.0/7"), "spec.cidr", "10.0.0.0/7 is too large: the prefix must be /8 or longer"),
        (pool("0.0.0.0/0"), "spec.cidr", "the prefix must be /8 or longer"),
        (
            pool("10.0.0.0/24", reserved=("10.0.0.0/28", "nonsense")),
            "spec.reserved[1].cidr",
            "'nonsense' is not a network",
        ),
        (pool("10.0.0.0/24", reserved=("10.0.0.1/28",)), "spec.reserved[0].cidr", "the network is 10.0.0.0/28"),
        (
            pool("10.0.0.0/24", reserved=("::/64",)),
            "spec.reserved[0].cidr",
            "::/64 is an IPv6 network: this pool hands out IPv4",
        ),
        (
            pool("10.0.0.0/24", reserved=("10.0.1.0/28",)),
            "spec.reserved[0].cidr",
            "10.0.1.0/28 is outside the pool's network 10.0.0.0/24",
        ),
        (
            pool("10.0.0.0/24", reserved=("10.0.0.0/23",)),
            "spec.reserved[0].cidr",
            "10.0.0.0/23 is outside the pool's network 10.0.0.0/24",
        ),
        (
            pool("10.0.0.0/24", reserved=("10.0.0.8/29", "10.0.0.0/28")),
            "spec.reserved[1].cidr",
            "10.0.0.0/28 overlaps 10.0.0.8/29 of spec.reserved[0].cidr",
        ),
        (
            pool("10.0.0.0/24", reserved=("10.0.0.8/29", "10.0.0.8/29")),
            "spec.reserved[1].cidr",
            "10.0.0.8/29 overlaps 10.0.0.8/29 of spec.reserved[0].cidr",
        ),
        (pool("10.0.0.0/24", "10.0.0.9-10.0.0.8"), f"{W}.ranges[0].end", "end 10.0.0.8 comes before start 10.0.0.9"),
        (
            pool("10.0.0.0/24", "10.0.0.9-10.0.1.8"),
            f"{W}.ranges[0].end",
            "10.0.1.8 is outside the pool's network 10.0.0.0/24",
        ),
        (
            pool("10.0.0.0/24", "9.255.255.255-10.0.0.8"),
            f"{W}.ranges[0].start",
            "9.255.255.255 is outside the pool's network",
        ),
        (pool("10.0.0.0/24", "10.0.0.1-10.0.0.300"), f"{W}.ranges[0].end", "'10.0.0.300' is not an IP address"),
        (
            pool("10.0.0.0/24", "::1-10.0.0.30"),
            f"{W}.ranges[0].start",
            "::1 is an IPv6 address: this pool hands out IPv4",
        ),
        (
            pool("10.0.0.0/24", "10.0.0.1-10.0.0.9", "10.0.0.9-10.0.0.20"),
            f"{W}.ranges[1]",
            "overlaps window 10.0.0.1-10.0.0.9 of spec.tenantAllocation.ranges[0]",
        ),
        (
            pool("10.0.0.0/24", "10.0.0.8-10.0.0.40", reserved=("10.0.0.0/28",)),
            "spec.reserved[0].cidr",
            "10.0.0.0/28 crosses the edge of window 10.0.0.8-10.0.0.40",
        ),
        (
            pool("10.0.0.0/24", "10.0.0.8-10.0.0.40", reserved=("10.0.0.32/28",)),
            "spec.reserved[0].cidr",
            "10.0.0.32/28 crosses the edge of window",
        ),
        (
            pool("10.0.0.0/24", "10.0.0.8-10.0.0.15", reserved=("10.0.0.0/26",)),
            "spec.reserved[0].cidr",
            "10.0.0.0/26 covers the whole window 10.0.0.8-10.0.0.15",
        ),
        (
            pool("10.0.0.0/24", "10.0.0.8-10.0.0.15", reserved=("10.0.0.8/29",)),
            "spec.reserved[0].cidr",
            "covers the whole window",
        ),
        (
            pool("10.0.0.0/24", "10.0.0.0-10.0.0.15", "10.0.0.32-10.0.0.40", reserved=("10.0.0.0/29", "10.0.0.8/29")),
            f"{W}.ranges[0]",
            "window 10.0.0.0-10.0.0.15 is wholly reserved, by several blocks",
        ),
        (pool("10.0.0.0/24", reserved=("10.0.0.0/24",)), "spec.reserved", "nothing of 10.0.0.0/24 is left to hand out"),
        (
            pool("10.0.0.0/30", reserved=("10.0.0.0/31", "10.0.0.2/31")),
            "spec.reserved",
            "nothing of 10.0.0.0/30 is left to hand out",
        ),
        (
            NetworkPoolSpec(cidr="10.0.0.0/24", tenant_allocation=TenantAllocation(start="10.0.0.8", end="10.0.0.2")),
            f"{W}.end",
            "end 10.0.0.2 comes before start 10.0.0.8",
        ),
        (
            NetworkPoolSpec(cidr="10.0.0.0/24", tenant_allocation=TenantAllocation(start="10.0.0.8")),
            f"{W}.end",
            "a window with a start needs an end",
        ),
        (
            NetworkPoolSpec(cidr="10.0.0.0/24", tenant_allocation=TenantAllocation(end="10.0.0.8")),
            f"{W}.start",
            "a window with an end needs a start",
        ),
        (
            NetworkPoolSpec(
                cidr="10.0.0.0/24", tenant_allocation=TenantAllocation(defaults=AllocationDefaults(nodes_per_tenant=0))
            ),
            f"{W}.defaults.nodesPerTenant",
            "0 is no number of addresses",
        ),
        (
            NetworkPoolSpec(
                cidr="10.0.0.0/24",
                tenant_allocation=TenantAllocation(defaults=AllocationDefaults(lb_pool_per_tenant=65537)),
            ),
            f"{W}.defaults.lbPoolPerTenant",
            "choose 1 to 65536",
        ),
    ],
)
def test_a_bad_spec_is_refused_with_the_field_and_a_sentence(spec: NetworkPoolSpec, field: str, message: str) -> None:
    (problem,) = problems(spec)
    assert problem.field == field
    assert message in problem.message


def test_start_and_end_beside_ranges_are_refused_rather_than_ignored() -> None:
    both = TenantAllocation(start="10.0.0.8", end="10.0.0.9", ranges=(AddressRange(start="10.0.0.1", end="10.0.0.9"),))
    assert wrong_fields(NetworkPoolSpec(cidr="10.0.0.0/24", tenant_allocation=both)) == [f"{W}.ranges"]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    spec = pool(
        "10.0.0.1/24",
        "10.0.0.40-10.0.0.20",
        "10.0.0.50-10.0.0.60",
        "10.0.0.60-10.0.0.x",
        reserved=("10.0.0.0/28", "bad", "10.0.0.0/29", "10.0.0.48/30"),
    )
    assert wrong_fields(spec) == [
        "spec.cidr",
        "spec.reserved[1].cidr",
        "spec.reserved[2].cidr",
        f"{W}.ranges[0].end",
        f"{W}.ranges[2].end",
        "spec.reserved[3].cidr",
    ]
    with pytest.raises(InvalidPool, match=r"^spec\.cidr: 10\.0\.0\.1/24 has bits set .*; spec\.reserved\[1\]\.cidr: "):
        read_layout(spec)


def test_of_many_blocks_each_that_overlaps_is_named() -> None:
    spec = pool("10.0.0.0/24", reserved=("10.0.0.0/26", "10.0.0.8/29", "10.0.0.128/25", "10.0.0.16/29"))
    assert wrong_fields(spec) == ["spec.reserved[1].cidr", "spec.reserved[3].cidr"]
