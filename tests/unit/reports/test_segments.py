"""A pool as segments: all of the network, each address once, and the same free space that the engine sees."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.api.labels import AllocationRole, Label
from butler.ipam.addresses import Family, Range, address_text
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import InvalidPool, read_layout
from butler.reports.pool.segments import HELD, Kind, PoolSegments, segments_json, segments_of
from unit.webhooks.given import granted, intents, pool, reserved, windows

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool

BASE = 0x0A280000  # 10.40.0.0
V4 = Family.V4


def text(address: int) -> str:
    return address_text(address, V4)


def of(shown: PoolSegments) -> list[tuple[str, str, str]]:
    return [(text(segment.first), text(segment.last), str(segment.kind)) for segment in shown.segments]


def with_status(allocation: IPAllocation, **fields: Any) -> IPAllocation:
    return msgspec.structs.replace(allocation, status=msgspec.structs.replace(allocation.status, **fields))


def test_a_pool_without_windows_leaves_out_its_edges() -> None:
    shown = segments_of(
        pool(cidr="10.40.0.0/29", **reserved("10.40.0.2/31")), [granted("web", "10.40.0.5", "10.40.0.5")]
    )
    assert of(shown) == [
        ("10.40.0.0", "10.40.0.0", "outside"),
        ("10.40.0.1", "10.40.0.1", "free"),
        ("10.40.0.2", "10.40.0.3", "reserved"),
        ("10.40.0.4", "10.40.0.4", "free"),
        ("10.40.0.5", "10.40.0.5", "allocated"),
        ("10.40.0.6", "10.40.0.6", "free"),
        ("10.40.0.7", "10.40.0.7", "outside"),
    ]


def test_a_held_segment_says_whose_it_is_and_what_for() -> None:
    web = granted("web-lb-1", "10.40.0.8", "10.40.0.11")
    web.metadata.labels[Label.ALLOCATION_ROLE] = str(AllocationRole.GROWTH)
    (holder,) = next(
        segment.holders for segment in segments_of(pool(), [web]).segments if segment.kind is Kind.ALLOCATED
    )
    assert (holder.allocation, holder.tenant, holder.type, holder.role) == ("web-lb-1", "t/t", "nodes", "growth")


def test_a_drain_a_promise_and_a_release_are_told_apart() -> None:
    draining = with_status(granted("going", "10.40.0.8", "10.40.0.9"), draining_since=datetime(2027, 1, 1, tzinfo=UTC))
    waiting = granted("coming", "10.40.0.20", "10.40.0.21", phase="Pending")
    done = granted("done", "10.40.0.30", "10.40.0.31")
    left = granted("left", "10.40.0.40", "10.40.0.41", phase="Released")
    promised = intents(
        ("coming", "10.40.0.20", "10.40.0.21"),
        ("done", "10.40.0.30", "10.40.0.31"),
        ("gone", "10.40.0.50", "10.40.0.51"),
        ("absurd", "banana", "10.40.0.61"),
    )
    shown = segments_of(pool(status=promised), [draining, waiting, done, left])
    held = [
        (text(segment.first), segment.kind, segment.holders[0].allocation)
        for segment in shown.segments
        if segment.kind in HELD
    ]
    assert held == [
        ("10.40.0.8", Kind.DRAINING, "going"),
        ("10.40.0.20", Kind.GRANTING, "coming"),
        ("10.40.0.30", Kind.ALLOCATED, "done"),
    ]


def test_addresses_that_two_hold_are_one_segment_with_both_names() -> None:
    both = [granted("one", "10.40.0.8", "10.40.0.15"), granted("two", "10.40.0.12", "10.40.0.19")]
    shown = segments_of(pool(), both)
    held = [
        (text(segment.first), text(segment.last), segment.held_by) for segment in shown.segments if segment.kind in HELD
    ]
    assert held == [("10.40.0.8", "10.40.0.11", 1), ("10.40.0.12", "10.40.0.15", 2), ("10.40.0.16", "10.40.0.19", 1)]


def test_what_is_held_of_a_reserved_block_or_beside_the_windows_is_stranded() -> None:
    spec = {**reserved("10.40.0.0/28"), **windows(("10.40.0.32", "10.40.0.63"))}
    three = [
        granted("in-block", "10.40.0.4", "10.40.0.5"),
        granted("beside", "10.40.0.30", "10.40.0.33"),
        granted("well", "10.40.0.40", "10.40.0.41"),
    ]
    shown = segments_of(pool(**spec), three)
    stranded = [(text(segment.first), text(segment.last)) for segment in shown.segments if segment.stranded]
    assert stranded == [("10.40.0.4", "10.40.0.5"), ("10.40.0.30", "10.40.0.31")]
    assert not shown.elsewhere, "both are drawn"


def test_what_cannot_be_drawn_is_named() -> None:
    four = [
        granted("far", "10.99.0.1", "10.99.0.4"),
        granted("over-the-edge", "10.40.0.250", "10.40.1.4"),
        granted("absurd", "banana", "10.40.0.9"),
        granted("other-family", "fd00::1", "fd00::4"),
        granted("of-another", "10.99.0.1", "10.99.0.4", of="another"),
    ]
    shown = segments_of(pool(), four)
    assert [elsewhere.allocation for elsewhere in shown.elsewhere] == ["absurd", "far", "other-family", "over-the-edge"]
    drawn = [(text(segment.first), segment.holders[0].allocation) for segment in shown.segments if segment.kind in HELD]
    edge = [("10.40.0.250", "over-the-edge"), ("10.40.0.255", "over-the-edge")]
    assert drawn == [("10.40.0.1", "absurd"), *edge], "what makes no sense may mean any address that is free otherwise"


def test_an_invalid_pool_hands_out_nothing_and_still_shows_who_holds_what() -> None:
    spec = {**reserved("10.40.0.0/28", "10.40.0.8/29", "nonsense"), **windows(("10.40.0.9", "10.41.0.1"))}
    shown = segments_of(pool(**spec), [granted("web", "10.40.0.32", "10.40.0.39")])
    assert shown.problems
    assert of(shown) == [
        ("10.40.0.0", "10.40.0.15", "reserved"),
        ("10.40.0.16", "10.40.0.31", "outside"),
        ("10.40.0.32", "10.40.0.39", "allocated"),
        ("10.40.0.40", "10.40.0.255", "outside"),
    ]


def test_a_pool_without_a_network_shows_the_one_that_it_claimed_or_none() -> None:
    web = granted("web", "10.40.0.32", "10.40.0.39")
    claimed = segments_of(pool(cidr="banana", status={"claimedCIDR": "10.40.0.0/26"}), [web])
    assert claimed.network == Range(BASE, BASE + 63)
    nothing = segments_of(pool(cidr="banana"), [web])
    assert (nothing.network, nothing.segments) == (None, ())
    assert [elsewhere.allocation for elsewhere in nothing.elsewhere] == ["web"]


def test_an_ipv6_network_has_segments_as_well() -> None:
    shown = segments_of(pool(cidr="fd00::/64"), [granted("web", "fd00::10", "fd00::1f")])
    assert [(segment.kind, segment.size) for segment in shown.segments] == [
        (Kind.OUTSIDE, 16), (Kind.ALLOCATED, 16), (Kind.OUTSIDE, 2**64 - 32),
    ]  # fmt: skip


def test_a_part_is_cut_at_its_edges() -> None:
    part = segments_of(pool(), [granted("web", "10.40.0.8", "10.40.0.15")]).within(Range(BASE + 10, BASE + 20))
    assert of(part) == [("10.40.0.10", "10.40.0.15", "allocated"), ("10.40.0.16", "10.40.0.20", "free")]


def test_json_has_addresses_as_text_and_says_only_what_is_known() -> None:
    made = segments_json(segments_of(pool(**reserved("10.40.0.0/28")), [granted("web", "10.40.0.16", "10.40.0.23")]))
    assert (made["pool"], made["cidr"], made["count"]) == ("rack", "10.40.0.0/24", 256)
    first, second, *_ = made["segments"]
    assert first == {
        "start": "10.40.0.0", "end": "10.40.0.15", "count": 16, "cidr": "10.40.0.0/28", "kind": "reserved",
    }  # fmt: skip
    assert second["cidr"] == "10.40.0.16/29"
    assert (second["allocation"], second["tenant"], second["heldBy"]) == ("web", "t/t", 1)


SPANS = st.tuples(st.integers(-10, 260), st.integers(0, 40)).map(lambda it: (it[0], it[0] + it[1]))


@st.composite
def estates(draw: st.DrawFn) -> tuple[NetworkPool, list[IPAllocation]]:
    """Pools as people leave them: some invalid, with holdings that overlap, reach outside, and belong to others."""
    prefix = draw(st.integers(24, 30))
    size = 1 << (32 - prefix)
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        cuts = draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=6).map(sorted))
        ends = list(zip(cuts[::2], cuts[1::2], strict=False))
        spec |= windows(*((text(BASE + a), text(BASE + b)) for a, b in ends))
    blocks = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(28, 32)), max_size=3))
    spec["reserved"] = [
        {"cidr": f"{text(BASE + at - at % (1 << (32 - length)))}/{length}", "description": f"block {at}"}
        for at, length in blocks
    ]
    holdings = draw(st.lists(st.tuples(SPANS, st.sampled_from(["Allocated", "Released", "Pending"])), max_size=8))
    allocations = [
        granted(
            f"a{index}", text(BASE + first), text(BASE + last), phase=phase, of=draw(st.sampled_from(["rack", "other"]))
        )
        for index, ((first, last), phase) in enumerate(holdings)
    ]
    promised = draw(st.lists(st.tuples(st.integers(0, 9), SPANS), max_size=3))
    status = intents(*((f"a{index}", text(BASE + a), text(BASE + b)) for index, (a, b) in promised))
    return pool(cidr=f"10.40.0.0/{prefix}", status=status, **spec), allocations


@settings(max_examples=400, deadline=None)
@given(estates())
def test_segments_part_the_network_exactly_and_agree_with_a_bitmap_and_with_the_engine(
    estate: tuple[NetworkPool, list[IPAllocation]],
) -> None:
    made, allocations = estate
    shown = segments_of(made, allocations)
    assert shown.network is not None
    at = shown.network.first
    for segment in shown.segments:
        assert segment.first == at
        assert segment.first <= segment.last
        at = segment.last + 1
    assert at == shown.network.last + 1

    phases = {allocation.metadata.uid: allocation.status.phase for allocation in allocations}
    taken = [
        _range(allocation.status.start_address, allocation.status.end_address)
        for allocation in allocations
        if _live(allocation)
    ]
    taken += [
        _range(intent.start_address, intent.end_address)
        for intent in made.status.intents
        if phases.get(intent.uid) == "Pending"
    ]
    try:
        layout = read_layout(made.spec)
    except InvalidPool:
        layout = None
    for segment in shown.segments:
        for address in range(segment.first, segment.last + 1):
            holders = sum(first <= address <= last for first, last in taken)
            assert segment.held_by == holders
            is_usable = layout is not None and any(p.first <= address <= p.last for p in layout.usable)
            assert (segment.kind is Kind.FREE) == (is_usable and not holders)
            assert (segment.kind in HELD) == bool(holders)
            if layout is not None:
                assert segment.stranded == (bool(holders) and not is_usable)
                is_reserved = any(p.first <= address <= p.last for p in layout.reserved)
                assert (segment.kind is Kind.RESERVED) == (is_reserved and not holders)
    if layout is not None:
        free = FreeSpace.without(layout.usable, taken)
        assert [segment.range for segment in shown.segments if segment.kind is Kind.FREE] == list(free.extents())


def _live(allocation: IPAllocation) -> bool:
    return allocation.status.phase == "Allocated"


def _range(start: str | None, end: str | None) -> Range:
    assert start
    assert end
    first, last = (int.from_bytes(bytes(map(int, item.split("."))), "big") for item in (start, end))
    return Range(first, last)


def test_a_slash_8_with_50_000_allocations_costs_by_allocations_not_by_addresses() -> None:
    dice = random.Random(8)
    starts = [(10 << 24) + 8 + index * 320 + dice.randrange(200) for index in range(50_000)]
    allocations = [granted(f"a{index}", text(at), text(at + 63)) for index, at in enumerate(starts)]
    began = time.process_time()
    shown = segments_of(pool(cidr="10.0.0.0/8"), allocations)
    took = time.process_time() - began
    assert len(shown.segments) > 100_000
    assert took < 2.0, f"{took:.2f} s of processor time; about 0.35 s is usual"
