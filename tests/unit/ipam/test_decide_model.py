"""Whole batches against the bitmap oracle: same grants, same refusals, same rest, and no trace in the free space."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from butler.ipam.addresses import Family, Range, range_cidr, range_text
from butler.ipam.decide import decide
from butler.ipam.free_space import FreeSpace
from butler.ipam.requests import AddressRequest
from unit.ipam.bitmap_oracle import Asking, Bitmap, Span
from unit.ipam.pools import MORNING, layout

if TYPE_CHECKING:
    from butler.ipam.layout import PoolLayout

BASE = (10 << 24) + (40 << 16)


@st.composite
def pools(draw: st.DrawFn) -> PoolLayout:
    """A valid pool of 128 addresses, read from its spec: up to four windows, some touching, with blocks inside."""
    windows: list[Range] = []
    blocks: list[Range] = []
    first = BASE + draw(st.integers(0, 8))
    for _ in range(draw(st.integers(1, 4))):
        last = min(first + draw(st.integers(1, 50)), BASE + 127)
        if last <= first:
            break
        windows.append(Range(first, last))
        size = draw(st.sampled_from([1, 2, 4, 8]))
        start = (first + draw(st.integers(0, 50)) + size - 1) // size * size
        if draw(st.booleans()) and start + size - 1 <= last and size < windows[-1].size:
            blocks.append(Range(start, start + size - 1))
        first = last + 1 + draw(st.sampled_from([0, 0, 1, 5]))
    reserved = tuple(f"{range_cidr(block, Family.V4)} kept" for block in blocks)
    return layout("10.40.0.0/25", *(f"{range_text(w, Family.V4)}" for w in windows), reserved=reserved)


SPANS = st.tuples(st.integers(BASE - 3, BASE + 130), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair)))
PINS = st.one_of(SPANS, SPANS, SPANS.map(lambda pair: (pair[1], pair[0])), st.just((BASE, BASE + 70000)))
COUNTS = st.one_of(st.integers(1, 12), st.sampled_from([-1, 0, 40, 127, 128, 65536, 65537]))


@st.composite
def batches(draw: st.DrawFn) -> list[Asking]:
    return [
        Asking(f"uid-{number}", draw(st.integers(0, 3)), draw(COUNTS), draw(st.one_of(st.none(), st.none(), PINS)))
        for number in draw(st.permutations(range(draw(st.integers(0, 12)))))
    ]


def as_request(asking: Asking) -> AddressRequest:
    return AddressRequest(
        uid=asking.uid,
        name=f"name-of-{asking.uid}",
        pool="vlan40-pool",
        created=MORNING + timedelta(seconds=asking.created),
        count=asking.count,
        pinned=None if asking.pin is None else Range(*asking.pin),
    )


any_batch = given(pools(), st.lists(SPANS, max_size=6), batches(), st.sampled_from([0, 1, 3, 512]))
usual = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


@usual
@any_batch
def test_a_batch_is_decided_as_the_bitmap_decides_it(
    pool: PoolLayout, held: list[Span], batch: list[Asking], most: int
) -> None:
    decide_and_compare(pool, held, batch, most)


@pytest.mark.slow
@settings(usual, max_examples=4_000)
@any_batch
def test_a_batch_is_decided_as_the_bitmap_decides_it_for_long(
    pool: PoolLayout, held: list[Span], batch: list[Asking], most: int
) -> None:
    decide_and_compare(pool, held, batch, most)


def decide_and_compare(pool: PoolLayout, held: list[Span], batch: list[Asking], most: int) -> None:
    bitmap = Bitmap(list(pool.windows), list(pool.reserved), held)
    free = FreeSpace.without(pool.usable, [Range(*span) for span in held])
    assert (bitmap.total, bitmap.free) == (pool.total, free.free)
    before = (list(free.extents()), free.free, [free.best_fit(count) for count in range(1, 129)])

    def holders(addresses: Range) -> list[str]:
        return [f"holder-{number}" for number, span in enumerate(held) if Range(*span).overlaps(addresses)]

    decision = decide([as_request(asking) for asking in batch], free, pool, holders, most)
    expected = bitmap.copy()
    outcome = expected.decide(batch, most)

    assert {grant.uid: tuple(grant.range) for grant in decision.grants} == outcome.granted
    assert {refusal.uid: refusal.reason.value for refusal in decision.refusals} == outcome.refused
    assert [request.uid for request in decision.left_over] == outcome.left_over
    assert (decision.capacity.available, decision.capacity.largest_free_block) == (expected.free, expected.largest)
    assert decision.capacity.fragmentation_percent == expected.fragmentation
    assert (list(free.extents()), free.free, [free.best_fit(count) for count in range(1, 129)]) == before
    for refusal in decision.refusals:
        assert ": " in refusal.message
        assert "None" not in refusal.message
        if refusal.reason.value == "PinnedRangeConflict":
            assert " is held by " in refusal.message or " is reserved by " in refusal.message
