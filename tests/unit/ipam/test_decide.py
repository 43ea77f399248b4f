"""Batches of requests: who gets what, who is refused with which words, and that deciding leaves no trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from butler.api.labels import AllocationReason
from butler.ipam import refusals
from butler.ipam.addresses import Family, Range, range_text
from butler.ipam.decide import PoolDecision, decide
from butler.ipam.free_space import FreeSpace
from butler.ipam.requests import AddressRequest, read_request
from unit.ipam.pools import allocation, layout, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.ipam.layout import PoolLayout

SMALL = layout("10.40.1.0/24", "10.40.1.0-10.40.1.31")


class Pool:
    """A pool with its records, as a controller would keep them."""

    def __init__(self, pool: PoolLayout, **held: str) -> None:
        self.layout = pool
        self.held = {name.replace("_", "-"): span(text) for name, text in held.items()}
        self.free = FreeSpace.without(pool.usable, self.held.values())

    def holders(self, addresses: Range) -> Sequence[str]:
        return [name for name, held in self.held.items() if held.overlaps(addresses)]

    def ask(self, *asked: AddressRequest, most: int = 512) -> PoolDecision:
        before = list(self.free.extents())
        decision = decide(asked, self.free, self.layout, self.holders, most)
        assert list(self.free.extents()) == before
        return decision


def request(name: str, count: int = 1, pin: str | None = None, after: float = 0) -> AddressRequest:
    """A request as it is read, except that nothing is refused yet."""
    read = read_request(allocation(name, count=1, after=after), SMALL)
    pinned = span(pin) if pin else None
    return replace(read, count=pinned.size if pinned else count, pinned=pinned)


def granted(decision: PoolDecision) -> dict[str, str]:
    return {grant.name: range_text(grant.range, Family.V4) for grant in decision.grants}


def refused(decision: PoolDecision) -> dict[str, str]:
    return {refusal.name: refusal.reason.value for refusal in decision.refusals}


def why(pool: Pool, asked: AddressRequest) -> tuple[str, str]:
    (refusal,) = pool.ask(asked).refusals
    assert (refusal.uid, refusal.name) == (asked.uid, asked.name)
    return refusal.reason.value, refusal.message


def test_each_request_sees_what_the_grants_before_it_left() -> None:
    decision = Pool(SMALL).ask(request("a", 8, after=1), request("b", 5, after=2), request("c", 8, after=3))
    assert granted(decision) == {
        "a": "10.40.1.0-10.40.1.7",
        "b": "10.40.1.8-10.40.1.12",
        "c": "10.40.1.13-10.40.1.20",
    }
    assert decision.capacity.allocated == 21
    assert decision.capacity.largest_free_block == 11


def test_requests_of_one_size_that_do_not_fit_are_told_the_same_until_something_is_granted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worded: list[int] = []
    no_room = refusals.no_room

    def counted(count: int, free: FreeSpace, *more: Any) -> Any:
        worded.append(free.free)
        return no_room(count, free, *more)

    monkeypatch.setattr(refusals, "no_room", counted)
    waiting = [request(f"w{number}", 20, after=number) for number in range(100)]
    decision = Pool(SMALL, a="10.40.1.0-10.40.1.15").ask(*waiting, request("small", 2, after=49.5))
    assert granted(decision) == {"small": "10.40.1.16-10.40.1.17"}
    messages = [refusal.message for refusal in decision.refusals]
    assert "16 of 32 free" in messages[0]
    assert "14 of 32 free" in messages[-1]
    assert worded == [16, 14], "once before the grant and once after it"


def test_the_published_pair_of_nodes_and_load_balancer() -> None:
    pool = Pool(layout("10.40.0.0/24", "10.40.0.64-10.40.0.254"))
    decision = pool.ask(request("my-cluster-nodes", 5), request("my-cluster-lb", 8, after=1))
    assert granted(decision) == {
        "my-cluster-nodes": "10.40.0.64-10.40.0.68",
        "my-cluster-lb": "10.40.0.69-10.40.0.76",
    }


def test_a_pinned_request_is_served_before_an_older_one_that_would_take_its_range() -> None:
    decision = Pool(SMALL).ask(request("old", 8, after=1), request("pinned", pin="10.40.1.0-10.40.1.3", after=60))
    assert granted(decision) == {"pinned": "10.40.1.0-10.40.1.3", "old": "10.40.1.4-10.40.1.11"}


def test_three_migrated_ranges_and_a_free_one_do_not_overlap() -> None:
    decision = Pool(SMALL).ask(
        request("new", 8),
        request("one", pin="10.40.1.4-10.40.1.7", after=1),
        request("two", pin="10.40.1.8-10.40.1.9", after=1),
        request("three", pin="10.40.1.20-10.40.1.20", after=1),
    )
    assert granted(decision)["new"] == "10.40.1.10-10.40.1.17"
    assert len(decision.grants) == 4


def test_one_request_that_cannot_be_met_holds_up_no_other() -> None:
    decision = Pool(SMALL, full="10.40.1.8-10.40.1.31").ask(
        request("too-many", 9, after=1),
        request("none", 0, after=2),
        replace(request("reversed", after=3), pinned=Range(9, 3)),
        request("elsewhere", pin="10.50.0.0-10.50.0.1", after=4),
        request("taken", pin="10.40.1.9", after=4),
        request("fits", 8, after=5),
        request("late", 1, after=6),
    )
    assert granted(decision) == {"fits": "10.40.1.0-10.40.1.7"}
    assert refused(decision) == {
        "reversed": "InvalidRequest",
        "elsewhere": "PinnedRangeOutOfPool",
        "taken": "PinnedRangeConflict",
        "too-many": "PoolExhausted",
        "none": "InvalidRequest",
        "late": "PoolExhausted",
    }


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_a_full_batch_leaves_the_rest_undecided_and_in_order(most: int) -> None:
    asked = [request("c", 1, after=3), request("a", 99, after=1), request("b", 1, after=2), request("d", 1, after=4)]
    decision = Pool(SMALL).ask(*asked, most=most)
    assert [grant.name for grant in decision.grants] == ["b", "c", "d"][:most]
    left = {0: ["a", "b", "c", "d"], 1: ["c", "d"], 2: ["d"], 3: []}[most]
    assert [one.name for one in decision.left_over] == left
    assert refused(decision) == ({"a": "PoolExhausted"} if most else {})


@pytest.mark.parametrize(
    ("story", "held", "asked", "reason", "message"),
    [
        (
            "enough addresses, no run long enough",
            {
                "a": "10.40.1.0-10.40.1.15",
                "b": "10.40.1.20-10.40.1.23",
                "c": "10.40.1.27",
                "d": "10.40.1.29-10.40.1.29",
            },
            request("n", 8),
            "PoolFragmented",
            (
                "needs 8 contiguous addresses; vlan40-pool has 10 free, but the longest run is"
                " 4 (10.40.1.16-10.40.1.19), then 3 (10.40.1.24-10.40.1.26), then 2 (10.40.1.30-10.40.1.31) and 1 more:"
                " release a neighbour, ask for 4 or fewer, or add a window"
            ),
        ),
        (
            "nothing free",
            {"a": "10.40.1.0-10.40.1.31"},
            request("n", 8),
            "PoolExhausted",
            "needs 8 contiguous addresses; all 32 of vlan40-pool are taken: release an allocation or add a window",
        ),
        (
            "not even one",
            {"a": "10.40.1.0-10.40.1.31"},
            request("n", 1),
            "PoolExhausted",
            "needs 1 address; all 32 of vlan40-pool are taken: release an allocation or add a window",
        ),
        (
            "too few",
            {"a": "10.40.1.0-10.40.1.27", "b": "10.40.1.30"},
            request("n", 8),
            "PoolExhausted",
            (
                "needs 8 contiguous addresses; vlan40-pool has 3 of 32 free (10.40.1.28-10.40.1.29, 10.40.1.31):"
                " release an allocation, ask for 2 or fewer, or add a window"
            ),
        ),
        (
            "more than the pool has",
            {},
            request("n", 33),
            "PoolExhausted",
            "needs 33 contiguous addresses; vlan40-pool hands out 32 in all: ask for 32 or fewer, or add a window",
        ),
        (
            "a pinned range of which a part is held",
            {"payments_nodes": "10.40.1.4-10.40.1.8"},
            request("n", pin="10.40.1.0-10.40.1.9"),
            "PinnedRangeConflict",
            (
                "10.40.1.0-10.40.1.9 is pinned, but 10.40.1.4 is held by payments-nodes:"
                " pin a free range or release that allocation"
            ),
        ),
        (
            "a pinned range that several hold parts of",
            {"a": "10.40.1.4", "b": "10.40.1.5", "c": "10.40.1.6", "d": "10.40.1.7", "e": "10.40.1.8"},
            request("n", pin="10.40.1.0-10.40.1.9"),
            "PinnedRangeConflict",
            (
                "10.40.1.0-10.40.1.9 is pinned, but 10.40.1.4 is held by a and more of it by b, c, d and 1 more:"
                " pin a free range or release them"
            ),
        ),
        (
            "a pinned range that begins inside another's",
            {"a": "10.40.1.0-10.40.1.8"},
            request("n", pin="10.40.1.4-10.40.1.12"),
            "PinnedRangeConflict",
            "10.40.1.4-10.40.1.12 is pinned, but 10.40.1.4 is held by a: pin a free range or release that allocation",
        ),
    ],
)
def test_a_refusal_says_what_was_asked_what_is_in_the_way_and_what_to_do(
    story: str, held: dict[str, str], asked: AddressRequest, reason: str, message: str
) -> None:
    assert why(Pool(SMALL, **held), asked) == (reason, message), story


def test_a_request_longer_than_any_window_is_told_so() -> None:
    pool = Pool(layout("10.40.0.0/24", "10.40.0.0-10.40.0.31", "10.40.0.64-10.40.0.99"), a="10.40.0.64")
    assert why(pool, request("n", 40)) == (
        "PoolFragmented",
        (
            "needs 40 contiguous addresses; vlan40-pool has 67 free, but even when empty no run is longer than 36"
            " (10.40.0.64-10.40.0.99): ask for 35 or fewer, or add a longer window"
        ),
    )


def test_two_pinned_requests_for_one_address_in_one_batch_the_older_wins_and_is_named() -> None:
    decision = Pool(SMALL).ask(
        request("younger", pin="10.40.1.2-10.40.1.9", after=2), request("older", pin="10.40.1.0-10.40.1.4", after=1)
    )
    assert granted(decision) == {"older": "10.40.1.0-10.40.1.4"}
    (refusal,) = decision.refusals
    assert refusal.message == (
        "10.40.1.2-10.40.1.9 is pinned, but 10.40.1.2 is held by older: pin a free range or release that allocation"
    )


def test_a_conflict_with_an_unknown_holder_is_still_a_conflict() -> None:
    pool = Pool(SMALL)
    pool.free.take(span("10.40.1.3"))
    assert why(pool, request("n", pin="10.40.1.3")) == (
        "PinnedRangeConflict",
        "10.40.1.3 is pinned, but 10.40.1.3 is not free: pin a free range or wait for it",
    )


def test_a_pinned_range_that_touches_others_is_granted() -> None:
    pool = Pool(SMALL, a="10.40.1.0-10.40.1.7", b="10.40.1.12-10.40.1.31")
    assert granted(pool.ask(request("n", pin="10.40.1.8-10.40.1.11"))) == {"n": "10.40.1.8-10.40.1.11"}


def test_a_second_request_is_refused_when_the_pool_is_full_and_granted_after_a_release() -> None:
    pool = Pool(SMALL)
    first = pool.ask(request("first", 32), request("second", 8, after=1))
    assert (granted(first), refused(first)) == ({"first": "10.40.1.0-10.40.1.31"}, {"second": "PoolExhausted"})
    assert granted(pool.ask(request("second", 8, after=1))) == {"second": "10.40.1.0-10.40.1.7"}


@pytest.mark.parametrize("pinned", [Range(9, 3), Range(-5, 3), Range(2**40, 2**40 + 1), Range(0, 2**32 - 1)])
@pytest.mark.parametrize("count", [-1, 0, 65537, 2**70])
def test_nonsense_is_refused_and_never_raises(pinned: Range, count: int) -> None:
    decision = Pool(SMALL).ask(request("count", count), replace(request("pin"), pinned=pinned), request("fits", 4))
    assert set(refused(decision)) == {"count", "pin"}
    assert granted(decision) == {"fits": "10.40.1.0-10.40.1.3"}


def test_the_largest_allocation_is_granted_from_a_pool_that_holds_it() -> None:
    pool = Pool(layout("10.0.0.0/8"))
    assert granted(pool.ask(request("n", 65536))) == {"n": "10.0.0.1-10.1.0.0"}
    (refusal,) = pool.ask(request("n", 65537)).refusals
    assert refusal.reason is AllocationReason.INVALID_REQUEST


def test_deciding_leaves_no_trace_also_when_it_is_broken_off() -> None:
    pool = Pool(SMALL, a="10.40.1.4-10.40.1.7")

    def broken(addresses: Range) -> Sequence[str]:
        raise RuntimeError("no answer")

    before = list(pool.free.extents())
    asked = [request("fits", pin="10.40.1.0-10.40.1.3"), request("conflict", pin="10.40.1.7-10.40.1.8", after=1)]
    with pytest.raises(RuntimeError, match="no answer"):
        decide(asked, pool.free, SMALL, broken, 512)
    assert list(pool.free.extents()) == before
    assert pool.free.free == 28


def test_an_empty_batch_tells_how_full_the_pool_is() -> None:
    decision = Pool(SMALL, a="10.40.1.0-10.40.1.7", b="10.40.1.16-10.40.1.23").ask()
    assert (decision.grants, decision.refusals, decision.left_over) == ((), (), ())
    capacity = decision.capacity
    assert (capacity.total, capacity.allocated, capacity.largest_free_block) == (32, 16, 8)
    assert capacity.fragmentation_percent == 50


def test_the_worked_example_of_the_operations_page() -> None:
    """32 addresses, tenants of 2: the conditions come with the 12th, 14th and 16th tenant."""
    pool = Pool(layout("10.92.90.0/23", "10.92.90.32-10.92.90.63"))
    tenants = [request(f"tenant-{number}", 2, after=number) for number in range(17)]
    for number, percent in ((8, 50), (12, 75), (14, 87), (16, 100)):
        assert pool.ask(*tenants[:number]).capacity.percent == percent
    full = pool.ask(*tenants)
    assert (len(full.grants), refused(full)) == (16, {"tenant-16": "PoolExhausted"})
