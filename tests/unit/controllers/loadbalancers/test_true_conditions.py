"""The status says how things stand, whatever goes wrong; and no way leaves MetalLB handing out nothing for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from butler.kube.errors import OutcomeUnknown, Unreachable
from unit.controllers.loadbalancers.household import Household
from unit.controllers.tenantcluster.management import refusal
from unit.controllers.tenantcluster.values import NOW, provider
from unit.rules.loadbalancer.balancers import lb

if TYPE_CHECKING:
    from collections.abc import Callable

CREATE = ("create", "ipallocations")
REFUSALS = {
    "a policy": refusal(403, "Forbidden", "denied by policy"),
    "a quota": refusal(403, "Forbidden", "exceeded quota: objects"),
    "a terminating namespace": refusal(403, "Forbidden", "namespace butler-system is being terminated"),
    "a schema": refusal(422, "Invalid", "spec.count: too large"),
    "a namespace that is gone": refusal(404, "NotFound", "namespaces butler-system not found"),
}
FAILURES = {
    "a webhook that does not answer": refusal(500, "InternalError", "failed calling webhook"),
    "a server that is busy": refusal(429, "TooManyRequests", "try again"),
    "no answer": OutcomeUnknown("no answer"),
    "no server": Unreachable("connection refused"),
}


@pytest.fixture
async def full() -> Household:
    """Two addresses, both in use."""
    house = Household()
    for name in "ab":
        house.tenant.add_service(name)
    await house.live(10)
    assert house.reason() == "InStep"
    return house


@pytest.mark.parametrize("what", [*REFUSALS, *FAILURES])
async def test_addresses_that_cannot_be_asked_for_are_told_and_asked_for_again(full: Household, what: str) -> None:
    house = full
    house.management.refuses[CREATE] = (REFUSALS | FAILURES)[what]
    house.tenant.add_service("c")
    await house.live(0.1 if what in REFUSALS else 30)
    assert house.reason() == "AllocationsNotWritten"
    assert "shop/c" in house.said()
    await house.live(300)
    assert house.reason() == "AllocationsNotWritten"
    figures = house.cluster().status.load_balancers
    assert figures is not None
    assert figures.waiting_services == 1
    assert house.events.reasons().count("LoadBalancerAllocationsNotWritten") == 1
    assert house.management.counts["create ipallocations"] < 40, "not all the time"
    house.management.refuses.clear()
    await house.live(31)
    assert house.tenant.address_of("c") is not None
    await house.live(10)
    assert house.reason() == "InStep"


@pytest.mark.parametrize("verb", ["get", "create"])
async def test_trouble_with_allocations_never_leaves_the_condition_saying_that_no_service_waits(
    full: Household, verb: str
) -> None:
    house = full
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=9999))
    house.management.refuses[verb, "ipallocations"] = REFUSALS["a policy"]
    for name in "cdefgh":
        house.tenant.add_service(name)
    house.tenant.metallb_hangs = verb == "get"
    await house.live(60)
    waiting = [balancer for balancer in house.tenant.balancers() if not balancer.addresses]
    assert waiting
    assert house.reason() != "InStep"
    figures = house.cluster().status.load_balancers
    assert figures is not None
    assert figures.waiting_services == len(waiting)


async def test_an_error_of_our_own_is_told_too(full: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("no such luck")

    monkeypatch.setattr("butler.controllers.loadbalancers.controller.new_request", broken)
    full.tenant.add_service("c")
    await full.live(30)
    assert full.reason() == "AllocationsNotWritten"
    assert "no such luck" in full.said()


async def test_a_condition_that_says_all_is_well_is_taken_back_also_while_the_cluster_comes_up() -> None:
    house = Household()
    await house.live(10)
    assert house.reason() == "InStep"
    found = house.cluster()
    status = msgspec.structs.replace(found.status, kubeconfig_secret_ref=None)  # as an older Butler said it, too early
    house.management.put("tenantclusters", msgspec.structs.replace(found, status=status))
    house.management.refuses[CREATE] = REFUSALS["a policy"]
    for name in "abc":
        house.tenant.add_service(name)
    await house.live(30)
    assert house.reason() == "AllocationsNotWritten"


async def test_a_kubeconfig_that_cannot_be_read_is_told(full: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> None:
        raise refusal(403, "Forbidden", "secrets are forbidden")

    with monkeypatch.context() as patched:
        patched.setattr(full.feeds, "follow", refused)
        await full.live(30)
        assert full.reason() == "TenantUnreachable"
        assert "secrets are forbidden" in full.said()
    await full.live(30)
    assert full.reason() == "InStep"


async def test_a_paused_cluster_does_not_say_that_no_service_waits(full: Household) -> None:
    full.wish(paused=True)
    full.tenant.add_service("c")
    await full.live(30)
    assert full.reason() == "Paused"
    assert "shop/c" in full.said()
    full.tenant.remove_service("c")
    await full.live(30)
    assert full.reason() == "InStep"


# Drains that no controller goes on with.


def to_cloud(house: Household) -> None:
    house.management.put("providerconfigs", provider(mode="cloud", balancers=None))


def without_provider(house: Household) -> None:
    house.management.objects["providerconfigs"].clear()


def paused(house: Household) -> None:
    house.wish(paused=True)


def to_static(house: Household) -> None:
    house.management.put("providerconfigs", provider(balancers={"allocationMode": "static", "defaultPoolSize": 2}))


def without_pools(house: Household) -> None:
    house.management.put("providerconfigs", provider(balancers={"allocationMode": "elastic"}, pools=()))


def deleted(house: Household) -> None:
    body = house.management.find("tenantclusters", "team-a", "web")
    assert body is not None
    meta = {**body["metadata"], "deletionTimestamp": NOW.isoformat(), "finalizers": ["x"]}
    house.management.put("tenantclusters", {**body, "metadata": meta})


CHANGES: list[Callable[[Household], None]] = [to_cloud, without_provider, paused, to_static, without_pools, deleted]


async def in_a_drain() -> Household:
    """A grown block is being taken back, and MetalLB hands out nothing meanwhile."""
    house = Household()
    for name in "ab":
        house.tenant.add_service(name)
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=590))
    await house.live(5)
    house.pass_(60)
    while house.tenant.hands_out:
        await house.look()
        house.pass_(0.5)
    assert house.marked() == ["web-lb-2"]
    return house


@pytest.mark.parametrize("restarts", [False, True], ids=["", "and restarts"])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_drain_ends_whatever_changes_in_its_middle(change: Callable[[Household], None], restarts: bool) -> None:
    house = await in_a_drain()
    change(house)
    if restarts:
        house.restart()
    house.tenant.add_service("c")
    await house.live(120)
    assert house.tenant.hands_out
    assert house.marked() == []
    assert house.tenant.address_of("c") == "10.40.0.22"


@pytest.mark.parametrize("change", CHANGES)
async def test_a_drain_whose_mark_went_just_before_the_process_ended_ends_too(
    change: Callable[[Household], None],
) -> None:
    """The mark goes first, then the pool is written: between the two there is a moment."""
    house = await in_a_drain()
    found = house.allocation("web-lb-2")
    body = house.management.find("ipallocations", found.metadata.namespace, "web-lb-2")
    assert body is not None
    status = {name: value for name, value in body["status"].items() if name != "drainingSince"}
    house.management.put("ipallocations", {**body, "status": status})
    if change is not deleted:  # of a cluster that goes, only marked allocations are followed
        change(house)
        house.restart()
        await house.live(120)
        assert house.tenant.hands_out
        assert "drained-by" not in str(house.tenant.pool["metadata"].get("annotations") if house.tenant.pool else "")


async def test_a_drain_of_a_tenant_that_goes_to_a_cloud_while_it_is_unreachable_ends_when_it_is_back() -> None:
    house = await in_a_drain()
    house.feeds.feed.trouble = "connection refused"
    to_cloud(house)
    await house.live(600)
    assert house.reason() == "TenantUnreachable"
    house.feeds.feed.trouble = ""
    house.tenant.add_service("c")
    await house.live(60)
    assert house.tenant.hands_out
    assert house.tenant.address_of("c") is not None
