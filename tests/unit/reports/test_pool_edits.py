"""Edits of a pool: what becomes of its spec, and what of its addresses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.api.codec import to_json
from butler.api.networkpool import CapacityTier
from butler.ipam.layout import InvalidPool, read_layout
from butler.reports.pool.edits import (
    CannotEdit,
    change_of,
    grown_by,
    with_cidr,
    with_reserved,
    with_window,
    without_reserved,
)
from unit.ipam.pools import pool as spec_of
from unit.ipam.pools import span
from unit.webhooks.given import granted, pool, reserved, windows


def ends(spec: Any) -> list[str]:
    return [f"{item['start']}-{item['end']}" for item in to_json(spec)["tenantAllocation"]["ranges"]]


def test_a_window_melts_with_those_that_it_touches_or_overlaps_and_no_others() -> None:
    spec = spec_of("10.40.0.0/24", "10.40.0.16-10.40.0.31", "10.40.0.64-10.40.0.95", "10.40.0.128-10.40.0.159")
    assert ends(with_window(spec, span("10.40.0.32-10.40.0.70"))) == [
        "10.40.0.16-10.40.0.95",
        "10.40.0.128-10.40.0.159",
    ]
    assert ends(with_window(spec, span("10.40.0.200-10.40.0.207")))[-1] == "10.40.0.200-10.40.0.207"


def test_one_window_with_start_and_end_becomes_a_list_of_windows() -> None:
    one = pool(tenantAllocation={"start": "10.40.0.16", "end": "10.40.0.31"}).spec
    grown = to_json(with_window(one, span("10.40.0.64-10.40.0.95")))["tenantAllocation"]
    assert grown["ranges"] == [
        {"start": "10.40.0.16", "end": "10.40.0.31"},
        {"start": "10.40.0.64", "end": "10.40.0.95"},
    ]
    assert "start" not in grown


def test_a_window_is_no_way_to_grow_a_pool_that_hands_out_all_it_has() -> None:
    with pytest.raises(CannotEdit, match="grow the network itself with --cidr"):
        with_window(spec_of("10.40.0.0/24"), span("10.40.0.16-10.40.0.31"))


def test_a_block_is_added_described_anew_and_removed() -> None:
    spec = with_reserved(spec_of("10.40.0.0/24"), span("10.40.0.0/28"), None)
    described = with_reserved(spec, span("10.40.0.0/28"), "switches")
    assert to_json(described)["reserved"] == [{"cidr": "10.40.0.0/28", "description": "switches"}]
    assert with_reserved(described, span("10.40.0.0/28"), None) == described, "a description is not lost by accident"
    assert without_reserved(described, span("10.40.0.0/28")).reserved == ()
    with pytest.raises(
        CannotEdit, match=r"10\.40\.0\.0/29 is no reserved block of this pool \(these are: 10\.40\.0\.0/28\)"
    ):
        without_reserved(described, span("10.40.0.0/29"))


@pytest.mark.parametrize(
    ("windows_", "count", "cidr", "after"),
    [
        ((), 1, "10.40.0.0/23", None),
        ((), 256, "10.40.0.0/23", None),
        ((), 257, "10.40.0.0/22", None),
        (("10.40.0.16-10.40.0.31",), 10, "10.40.0.0/24", ["10.40.0.16-10.40.0.41"]),
        (("10.40.0.16-10.40.0.31",), 223, "10.40.0.0/24", ["10.40.0.16-10.40.0.254"]),
        (("10.40.0.16-10.40.0.31",), 224, "10.40.0.0/23", ["10.40.0.16-10.40.0.255"]),
        (("10.40.0.16-10.40.0.31", "10.40.0.64-10.40.0.71"), 3, "10.40.0.0/24",
         ["10.40.0.16-10.40.0.31", "10.40.0.64-10.40.0.74"]),
    ],
)  # fmt: skip
def test_growing_by_a_number_takes_what_follows_and_then_the_next_larger_network(
    windows_: tuple[str, ...], count: int, cidr: str, after: list[str] | None
) -> None:
    grown = grown_by(spec_of("10.40.0.0/24", *windows_), count)
    assert grown.cidr == cidr
    if after is not None:
        assert ends(grown) == after


def test_growing_steps_over_what_is_reserved() -> None:
    grown = grown_by(spec_of("10.40.0.0/24", "10.40.0.16-10.40.0.31", reserved=("10.40.0.40/29 printers",)), 20)
    assert ends(grown) == ["10.40.0.16-10.40.0.39", "10.40.0.48-10.40.0.59"]


def test_growing_downwards_where_the_larger_network_begins_below() -> None:
    grown = grown_by(spec_of("10.40.1.0/24", "10.40.1.1-10.40.1.254"), 100)
    assert grown.cidr == "10.40.0.0/23"
    assert ends(grown) == ["10.40.0.1-10.40.0.100", "10.40.1.1-10.40.1.254"]


def test_no_network_is_large_enough_for_all() -> None:
    with pytest.raises(CannotEdit, match="add another pool instead"):
        grown_by(spec_of("10.0.0.0/8"), 1)


@settings(max_examples=200, deadline=None)
@given(st.integers(20, 29), st.integers(0, 15), st.booleans(), st.integers(1, 5000), st.integers(0, 3))
def test_growth_gives_what_was_asked_and_takes_nothing_away(
    prefix: int, block: int, has_window: bool, count: int, at: int
) -> None:
    size = 1 << (32 - prefix)
    base = (10 << 24) + at * size
    first, last = base + 2, base + size // 2
    text = lambda value: ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))  # noqa: E731
    parts = (f"{text(first)}-{text(last)}",) if has_window else ()
    kept = (f"{text(base + size - 1 - block % (size // 2 - 1))}/32",)
    spec = spec_of(f"{text(base)}/{prefix}", *parts, reserved=kept)
    before = read_layout(spec)
    grown = read_layout(grown_by(spec, count))
    assert grown.total >= before.total + count
    assert all(any(after.contains(piece) for after in grown.usable) for piece in before.usable)
    assert grown.reserved == before.reserved
    if has_window:
        assert grown.total == before.total + count, "no more than was asked for"


def test_a_change_tells_the_numbers_and_tiers_before_and_after() -> None:
    old = pool(cidr="10.40.0.0/28")
    held = [granted("web", "10.40.0.1", "10.40.0.10")]
    change = change_of(old, msgspec.structs.replace(old, spec=with_cidr(old.spec, "10.40.0.0/27")), [old], held)
    assert change.before is not None
    assert change.after is not None
    assert (change.before.capacity.total, change.after.capacity.total) == (14, 30)
    assert (change.before.tier, change.after.tier) == (CapacityTier.WARNING, None)
    assert not change.verdict.problems


def test_a_change_that_strands_tenants_names_them() -> None:
    old = pool(**windows(("10.40.0.16", "10.40.0.95")))
    new = msgspec.structs.replace(old, spec=with_reserved(old.spec, span("10.40.0.32/28"), None))
    change = change_of(old, new, [old], [granted("web", "10.40.0.40", "10.40.0.41")])
    assert "web (10.40.0.40-10.40.0.41)" in change.verdict.problems[0].message


def test_a_pool_that_cannot_be_read_has_no_numbers() -> None:
    old = pool(cidr="banana")
    change = change_of(old, pool(**reserved("10.40.0.0/28")), [old], [])
    assert change.before is None
    assert change.after is not None
    with pytest.raises(InvalidPool):
        grown_by(old.spec, 4)
