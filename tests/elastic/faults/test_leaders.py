"""Leases are no fence: a leader that was frozen in mid-write finds its write refused by a world that went on.

The write is kept on the line, its writer is frozen, and another takes over and changes what the write was based on.
Then the write arrives.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from elastic.faults.drill import Moments, writes_allocation, writes_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elastic.estate import ElasticTenant
    from elastic.faults.drill import Drill, Replica
    from fault_proxy import FaultProxy


@contextmanager
def frozen_at(old: Replica, line: FaultProxy, moments: Moments) -> Iterator[None]:
    """The old leader sleeps, with a write on the line, until the block ends; then the write arrives, and it wakes."""
    moments.comes()
    try:
        yield
    finally:
        moments.let_go()
        moments.passed.wait(10)
        old.thaw()
        line.on_write = None


def held(old: Replica, line: FaultProxy, moments: Moments) -> Moments:
    line.on_write = moments
    return moments


def test_a_withdrawal_that_arrives_after_the_range_is_in_use_again_is_refused(drill: Drill) -> None:
    web = drill.tenant()
    with drill.replica("old", lease=True) as old:
        (address,) = drill.grow(web, "a")
        line = old.lines.tenants[web.name]
        moments = held(old, line, Moments(writes_pool, number=2, then=old.freeze, hold=True))
        web.remove("a")
        with frozen_at(old, line, moments), drill.replica("new", lease=True) as new:
            web.add("b")  # waits, so the new leader breaks the drain off
            assert web.gets("b") == [address]
            moments.let_go()
            assert moments.passed.wait(30)
            old.thaw()
            web.stays(lambda: web.address("b") == address, "it keeps its address", 3.0)
            drill.verdict(web)
            new.insist_alive()


def test_a_range_that_is_published_after_it_was_given_back_is_refused(drill: Drill) -> None:
    web = drill.tenant()
    with drill.replica("old", lease=True) as old:
        drill.grow(web)
        line = old.lines.tenants[web.name]
        moments = held(old, line, Moments(writes_pool, number=1, then=old.freeze, hold=True))
        web.add("a")  # granted, and about to be published
        with frozen_at(old, line, moments), drill.replica("new", lease=True):
            web.gets("a")  # the new leader has published it
            web.remove("a")
            web.shrinks_to(1)
            moments.let_go()
            assert moments.passed.wait(30)
            old.thaw()
            drill.verdict(web)


def test_a_release_that_arrives_after_the_range_is_in_use_again_is_refused(drill: Drill) -> None:
    web = drill.tenant()
    with drill.replica("old", lease=True) as old:
        (address,) = drill.grow(web, "a")
        (growth,) = web.growths()
        line = old.lines.management
        wanted = writes_allocation(growth["metadata"]["name"])
        moments = held(old, line, Moments(wanted, number=3, then=old.freeze, hold=True))
        web.remove("a")
        with frozen_at(old, line, moments), drill.replica("new", lease=True):
            web.add("b", loadBalancerIP=address)  # so the new leader gives the range back to MetalLB
            assert web.gets("b") == [address]
            moments.let_go()
            assert moments.passed.wait(30)
            old.thaw()
            web.stays(lambda: web.address("b") == address, "it keeps its address", 3.0)
            drill.verdict(web)


@pytest.mark.slow
def test_two_at_work_without_any_lease_get_only_in_each_others_way(drill: Drill) -> None:
    """Each signs the other's shrinks, so none ends while both run; but no Service is moved, and one alone ends them."""
    web = drill.tenant()
    with drill.replica("one"):
        with drill.replica("two"):
            for turn in range(4):
                _busy(drill, web, turn)
        web.shrinks_to(1)
        drill.verdict(web)


def _busy(drill: Drill, web: ElasticTenant, turn: int) -> None:
    names = [f"t{turn}-{number}" for number in range(3)]
    drill.grow(web, *names)
    web.remove(*names)
