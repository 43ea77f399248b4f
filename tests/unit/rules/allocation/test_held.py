"""Which addresses an allocation holds: every odd status, and that all readers agree about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from butler.api.ipallocation import IPAllocationPhase, IPAllocationStatus
from butler.api.objects import Change, key_of
from butler.ipam.addresses import BadAddress, Family, Range
from butler.reports.pool.segments import Kind, segments_of
from butler.rules.allocation.deletion import users_of
from butler.rules.allocation.held import (
    EVERY_ADDRESS,
    granted_range,
    held_addresses,
    named_addresses,
    readable_range,
    unreadable,
    why_nothing,
)
from butler.rules.allocation.holders import held_in
from butler.rules.loadbalancer.usage import granted_range as announced_range
from butler.rules.machines import MachineAddresses
from butler.rules.pool.admission import judge
from butler.rules.pool.holdings import Holdings, holding_of
from unit.controllers.networkpool.values import POOL, allocation, pool

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation

BASE = 10 << 24
READABLE = [
    ("10.0.0.4", "10.0.0.7", Family.V4, Range(BASE + 4, BASE + 7)),
    ("10.0.0.4", "10.0.0.4", Family.V4, Range(BASE + 4, BASE + 4)),
    ("fd00::4", "fd00::7", Family.V6, Range((0xFD00 << 112) + 4, (0xFD00 << 112) + 7)),
]
SENSELESS = [
    (None, None, "missing"),
    ("10.0.0.4", None, "missing"),
    (None, "10.0.0.7", "missing"),
    ("", "", "is not an IP address"),
    ("10.0.0.4", "", "is not an IP address"),
    ("10.0.0.4", "oops", "is not an IP address"),
    ("oops", "10.0.0.7", "is not an IP address"),
    ("10.0.0.04", "10.0.0.7", "is not an IP address"),
    ("10.0.0.0/29", "10.0.0.7", "is not an IP address"),
    ("10.0.0.7", "10.0.0.4", "comes before"),
    ("10.0.0.4", "fd00::7", "two families"),
]
OTHERS = [IPAllocationPhase.PENDING, IPAllocationPhase.FAILED, IPAllocationPhase.RELEASED]


def with_status(
    start: str | None, end: str | None, phase: IPAllocationPhase = IPAllocationPhase.ALLOCATED, name: str = "odd"
) -> IPAllocation:
    status = IPAllocationStatus(phase=phase, start_address=start, end_address=end)
    return msgspec.structs.replace(allocation(name), status=status)


@pytest.mark.parametrize(("start", "end", "family", "addresses"), READABLE)
def test_a_range_that_can_be_read_is_held_as_it_stands(start: str, end: str, family: Family, addresses: Range) -> None:
    odd = with_status(start, end)
    assert held_addresses(odd) == (family, addresses, "")
    assert readable_range(odd) == granted_range(odd) == (family, addresses)
    holding = holding_of(odd)
    assert holding is not None
    assert (holding.family, holding.range) == (family, addresses)
    assert announced_range(odd) == (addresses if family is Family.V4 else None)


@pytest.mark.parametrize(("start", "end", "problem"), SENSELESS)
def test_a_status_that_makes_no_sense_is_held_as_wide_as_it_could_mean_and_announced_nowhere(
    start: str | None, end: str | None, problem: str
) -> None:
    odd, network = with_status(start, end), pool("10.0.0.0-10.0.0.15", cidr="10.0.0.0/28")
    held = held_addresses(odd)
    assert held is not None
    assert held.range == EVERY_ADDRESS
    assert problem in held.problem
    assert readable_range(odd) is granted_range(odd) is announced_range(odd) is None
    with pytest.raises(BadAddress, match=problem):
        holding_of(odd)
    stopped: list[object] = []
    books = Holdings(stopped.append)
    books.changed(Change(key_of(odd), None, odd))
    assert stopped == [POOL]
    assert books.unreadable(POOL) == ["odd"]
    assert [(item.name, item.text) for item in held_in(network, [odd])] == [("odd", named_addresses(odd.status))]
    assert list(unreadable(POOL, [odd])) == ["odd"]
    assert "IPAllocation odd" in why_nothing(unreadable(POOL, [odd]))
    assert users_of(odd, (MachineAddresses("m-1", addresses=("10.0.0.200",)),))


@pytest.mark.parametrize("phase", OTHERS)
@pytest.mark.parametrize(("start", "end", "_problem"), SENSELESS)
def test_an_allocation_that_is_not_granted_holds_nothing(
    start: str | None, end: str | None, _problem: str, phase: IPAllocationPhase
) -> None:
    odd = with_status(start, end, phase)
    assert held_addresses(odd) is readable_range(odd) is holding_of(odd) is announced_range(odd) is None
    assert not unreadable(POOL, [odd])
    assert not held_in(pool(), [odd])


def test_what_was_released_is_told_but_not_held() -> None:
    gone = with_status("10.0.0.4", "10.0.0.7", IPAllocationPhase.RELEASED)
    assert granted_range(gone) == (Family.V4, Range(BASE + 4, BASE + 7))
    assert held_addresses(gone) is None


def test_the_map_shows_nothing_as_free_while_a_status_makes_no_sense() -> None:
    """The allocator hands out nothing then, and what others hold is theirs still."""
    network = pool("10.0.0.2-10.0.0.13", cidr="10.0.0.0/28")
    known = [with_status("10.0.0.4", None), allocation("other", holds="10.0.0.6-10.0.0.7")]
    shown = segments_of(network, known)
    held = [(item.first - BASE, item.last - BASE, [who.allocation for who in item.holders]) for item in shown.segments]
    assert held == [(0, 1, []), (2, 5, ["odd"]), (6, 7, ["other"]), (8, 13, ["odd"]), (14, 15, [])]
    assert not any(item.kind is Kind.FREE or item.stranded for item in shown.segments)
    assert [(lost.allocation, lost.start, lost.end) for lost in shown.elsewhere] == [("odd", "10.0.0.4", "?")]


def test_it_takes_nothing_from_another_pool() -> None:
    network = pool("10.0.0.2-10.0.0.13", cidr="10.0.0.0/28", name="another")
    shown = segments_of(network, [with_status("10.0.0.4", None)])
    assert [item.kind for item in shown.segments] == [Kind.OUTSIDE, Kind.FREE, Kind.OUTSIDE]
    assert not shown.elsewhere


def test_a_pool_gives_up_no_addresses_while_a_status_makes_no_sense() -> None:
    old, odd = pool("10.0.0.2-10.0.0.13", cidr="10.0.0.0/28"), with_status("10.0.0.4", None)
    verdict = judge(old, pool("10.0.0.2-10.0.0.9", cidr="10.0.0.0/28"), [], [odd])
    assert "odd (10.0.0.4-?)" in verdict.problems[0].message
    assert not judge(old, pool("10.0.0.2-10.0.0.14", cidr="10.0.0.0/28"), [], [odd]).problems
