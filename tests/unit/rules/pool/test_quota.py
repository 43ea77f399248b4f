"""What one tenant may hold: of allocations made by hand as of those that Butler makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocationType
from butler.api.objects import key_of
from butler.api.providerconfig import ProviderConfig
from butler.ipam.layout import pool_layout
from butler.rules.pool.next_status import PoolView, plan
from butler.rules.pool.quota import limit_of, quota_of, size_of
from unit.controllers.networkpool.values import NOW, allocation, grants, holdings_of, pool, reasons, view_of

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.rules.pool.next_status import PoolPlan

POOL = pool("10.0.0.1-10.0.0.100")


def asked(name: str, count: int | None, **more: Any) -> IPAllocation:
    return allocation(name, count, type="loadbalancer", **more)


def decided(most: int, *theirs: IPAllocation) -> PoolPlan:
    """The pool's decision on the requests of one tenant that may hold so many load-balancer addresses."""
    holdings = holdings_of(*theirs)
    seen = view_of(theirs, holdings)
    view = PoolView(
        waiting=seen.waiting,
        leaving=(),
        live=seen.live,
        find=seen.find,
        quota_of=lambda request: quota_of(request, "TenantCluster team-a/web", most, theirs, lambda _: POOL),
    )
    layout = pool_layout(POOL)
    book = holdings.book(key_of(POOL), layout)
    return plan(POOL, layout, book, view, obstacle=None, claimed_cidr=POOL.spec.cidr, now=NOW)


def test_a_request_beyond_the_quota_is_refused_with_the_figures() -> None:
    made = decided(3, asked("big", 50))
    assert (grants(made), reasons(made)) == ({}, {"big": "QuotaExceeded"})
    assert made.refusals[0].message == (
        "needs 50 addresses; TenantCluster team-a/web holds or awaits 0 and may hold 3"
        " (quotaPerTenant.maxLoadBalancerIPs): ask for 3 or fewer, release others of it, or raise the quota of the"
        " ProviderConfig"
    )


@pytest.mark.parametrize(("held", "fits"), [(2, True), (3, False)])
def test_what_the_tenant_holds_counts_from_whatever_pool(held: int, fits: bool) -> None:
    last = f"10.9.0.{held}"
    made = decided(5, asked("more", 3), asked("there", held, holds=f"10.9.0.1-{last}", of="other"))
    assert bool(grants(made)) is fits


def test_node_addresses_do_not_count_against_load_balancers() -> None:
    assert grants(decided(3, asked("lb", 3), allocation("nodes", 5, holds="10.0.0.90-10.0.0.94")))


@pytest.mark.parametrize("phase", ["Failed", "Released"])
def test_what_was_refused_or_released_counts_nothing(phase: str) -> None:
    assert "lb" in grants(decided(3, asked("lb", 3, age=0), asked("old", 3, phase=phase, age=9, of="other")))


def test_of_two_that_come_at_once_the_older_gets_what_is_left() -> None:
    made = decided(5, asked("young", 3, age=1), asked("old", 3, age=2))
    assert (set(grants(made)), reasons(made)) == ({"old"}, {"young": "QuotaExceeded"})


def test_an_older_request_at_another_pool_is_not_overtaken() -> None:
    assert reasons(decided(5, asked("young", 3, age=1), asked("old", 3, age=2, of="other"))) == {
        "young": "QuotaExceeded"
    }


def test_a_younger_one_at_another_pool_takes_nothing_away() -> None:
    assert set(grants(decided(5, asked("old", 3, age=2), asked("young", 3, age=1, of="other")))) == {"old"}


def test_one_that_was_refused_before_and_a_new_one_do_not_both_get_what_is_left() -> None:
    made = decided(5, asked("refused", 3, age=9, phase="Failed"), asked("new", 3, age=1))
    assert (set(grants(made)), reasons(made)) == ({"refused"}, {"new": "QuotaExceeded"})


def test_two_that_fit_together_are_both_granted() -> None:
    assert set(grants(decided(6, asked("one", 3, age=2), asked("two", 3, age=1)))) == {"one", "two"}


def test_sizes_are_read_from_the_grant_the_pin_the_count_or_the_pool() -> None:
    assert size_of(asked("a", 9, holds="10.0.0.1-10.0.0.4"), POOL) == 4
    assert size_of(asked("a", None, pinned="10.0.0.1-10.0.0.6"), POOL) == 6
    assert size_of(asked("a", 7), POOL) == 7
    assert size_of(asked("a", None), POOL) == 8
    assert size_of(allocation("a", None), None) == 5


def test_the_limits_of_a_provider() -> None:
    def config(**quota: int) -> ProviderConfig:
        network = {"mode": "ipam", "poolRefs": [{"name": "vlan40"}], "quotaPerTenant": quota}
        return from_json(
            ProviderConfig, {"metadata": {"name": "lab"}, "spec": {"provider": "local", "network": network}}
        )

    assert limit_of(config(maxNodeIPs=3), IPAllocationType.NODES) == 3
    assert limit_of(config(maxNodeIPs=3), IPAllocationType.LOAD_BALANCER) is None
    assert limit_of(config(maxLoadBalancerIPs=4), IPAllocationType.LOAD_BALANCER) == 4
