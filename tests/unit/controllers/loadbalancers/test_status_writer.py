"""What the status tells at once, what waits a moment, and what is told once."""

from __future__ import annotations

import msgspec
import pytest

from butler.api.conditions import condition_holds, find_condition
from butler.api.labels import ConditionType
from butler.api.meta import LocalObjectReference
from butler.api.objects import key_of
from butler.api.tenantcluster import ManagementMode, TenantClusterStatus
from butler.controllers.loadbalancers.controller import SETTLES
from butler.controllers.loadbalancers.status_writer import FIGURES_WAIT, PASSES_WITHIN
from unit.controllers.loadbalancers.household import SECRET, Household
from unit.controllers.tenantcluster.management import refusal

WRITES = "patch tenantclusters"


@pytest.fixture
async def house() -> Household:
    found = Household()
    await found.live(10)
    found.management.counts.clear()
    return found


async def test_figures_that_change_with_every_service_are_written_now_and_then(house: Household) -> None:
    for _ in range(40):
        house.tenant.add_service("a")
        house.answer()
        await house.look()
        house.tenant.remove_service("a")
        await house.look()
        house.pass_(FIGURES_WAIT / 10)
    assert house.management.counts[WRITES] <= 6


async def test_the_last_of_the_figures_are_written_too(house: Household) -> None:
    for name in "ab":
        house.tenant.add_service(name)
        house.answer()
        await house.look()
    await house.live(FIGURES_WAIT + 1)
    found = house.cluster().status.load_balancers
    assert found is not None
    assert (found.in_use, found.idle, found.services) == (2, 0, 2)


async def test_nothing_is_written_while_nothing_changes(house: Household) -> None:
    await house.live(3600)
    assert house.management.counts[WRITES] == 0


async def test_a_service_that_waits_for_a_moment_does_not_turn_the_condition(house: Household) -> None:
    house.tenant.metallb_hangs = True
    house.tenant.add_service("a")
    await house.live(PASSES_WITHIN - 1)
    assert house.reason() == "InStep"
    await house.live(2)
    assert house.reason() == "ServicesWaiting"
    house.tenant.metallb_hangs = False
    await house.live(1)
    assert house.reason() == "InStep"


async def test_a_tenant_that_does_not_answer_for_a_moment_is_no_news(house: Household) -> None:
    house.feeds.feed.trouble = "connection refused"
    await house.look()
    house.pass_(PASSES_WITHIN - 1)
    await house.look()
    house.feeds.feed.trouble = ""
    await house.live(10)
    assert house.management.counts[WRITES] == 0


async def test_a_tenant_that_cannot_be_reached_keeps_its_last_figures(house: Household) -> None:
    before = house.cluster().status.load_balancers
    house.feeds.feed.trouble = "connection refused"
    await house.live(600)
    assert house.reason() == "TenantUnreachable"
    assert house.cluster().status.load_balancers == before
    assert house.management.counts[WRITES] == 1


async def test_a_status_that_another_wrote_at_the_same_time_is_written_again_and_its_event_told_once() -> None:
    house = Household(quota={"maxLoadBalancerIPs": 2})
    await house.live(10)
    for name in "abc":
        house.tenant.add_service(name)
    house.answer()
    house.management.refuses["patch", "tenantclusters"] = refusal(409, "Conflict", "modified")
    for _ in range(3):
        after = await house.look()
        assert after is not None
        assert after.seconds < 1
        house.pass_(after.seconds)
    assert house.events.found == []
    house.management.refuses.clear()
    await house.live(60)
    assert house.reason() == "QuotaReached"
    assert house.events.reasons() == ["LoadBalancerQuotaReached"]
    house.restart()
    await house.live(60)
    assert house.events.found == [], "nor by the next process"


async def test_a_cluster_that_went_meanwhile_is_no_trouble(house: Household) -> None:
    house.tenant.add_service("a")
    house.answer()
    house.management.refuses["patch", "tenantclusters"] = refusal(404, "NotFound", "gone")
    house.pass_(10)
    assert await house.look() is not None


async def test_growth_is_told_in_the_status_even_if_the_first_write_fails(house: Household) -> None:
    for name in "abc":
        house.tenant.add_service(name)
    house.management.refuses["patch", "tenantclusters"] = refusal(409, "Conflict", "modified")
    for _ in range(4):
        await house.look()
        house.answer()
    house.management.refuses.clear()
    await house.live(10)
    found = house.cluster().status.load_balancers
    assert found is not None
    assert found.last_growth is not None
    assert found.last_growth.addresses == 2


async def test_the_condition_says_which_generation_of_the_cluster_it_is_about(house: Household) -> None:
    found = find_condition(house.cluster().status.conditions, ConditionType.LOAD_BALANCERS_READY)
    assert found is not None
    assert found.observed_generation == house.cluster().metadata.generation


# The first word of a cluster that comes up.


@pytest.fixture
def newcomer() -> Household:
    """A cluster that cannot be used yet, and whose addons are not for Butler to install."""
    found = Household()
    body = msgspec.structs.replace(found.cluster(), status=TenantClusterStatus())
    policy = msgspec.structs.replace(body.spec.management_policy, mode=ManagementMode.OBSERVE)
    spec = msgspec.structs.replace(body.spec, management_policy=policy)
    found.management.put("tenantclusters", msgspec.structs.replace(body, spec=spec))
    return found


def usable(house: Household) -> TenantClusterStatus:
    """What its other controller writes, as soon as it can be used."""
    status = msgspec.structs.replace(house.cluster().status, kubeconfig_secret_ref=LocalObjectReference(name=SECRET))
    return house.controller.with_first_word(house.cluster(), status)


async def test_one_write_says_that_a_cluster_can_be_used_and_how_its_load_balancers_stand(newcomer: Household) -> None:
    newcomer.tenant.add_service("web")
    await newcomer.live(PASSES_WITHIN)
    assert newcomer.controller.problem(newcomer.cluster()) == ""
    status = usable(newcomer)
    assert condition_holds(status.conditions, ConditionType.LOAD_BALANCERS_READY)
    assert status.load_balancers is not None
    assert (status.load_balancers.services, status.load_balancers.in_use) == (1, 1)
    newcomer.management.put("tenantclusters", msgspec.structs.replace(newcomer.cluster(), status=status))
    newcomer.management.counts.clear()
    await newcomer.live(60)
    assert newcomer.management.counts[WRITES] == 0


async def test_a_cluster_is_held_for_a_moment_until_its_services_have_their_addresses(newcomer: Household) -> None:
    newcomer.tenant.metallb_hangs = True
    newcomer.tenant.add_service("web")
    await newcomer.look()
    assert newcomer.controller.problem(newcomer.cluster()) == SETTLES
    assert find_condition(usable(newcomer).conditions, ConditionType.LOAD_BALANCERS_READY) is None
    newcomer.tenant.metallb_hangs = False
    newcomer.answer()
    newcomer.told.clear()
    await newcomer.look()
    assert newcomer.controller.problem(newcomer.cluster()) == ""
    assert newcomer.told == [key_of(newcomer.cluster())], "who waits for it is told"


async def test_a_service_that_gets_no_address_holds_a_cluster_no_longer_than_that(newcomer: Household) -> None:
    newcomer.tenant.metallb_hangs = True
    newcomer.tenant.add_service("web")
    await newcomer.live(PASSES_WITHIN + 1)
    assert newcomer.controller.problem(newcomer.cluster()) == ""
    assert find_condition(usable(newcomer).conditions, ConditionType.LOAD_BALANCERS_READY) is None
    newcomer.management.put("tenantclusters", msgspec.structs.replace(newcomer.cluster(), status=usable(newcomer)))
    await newcomer.live(PASSES_WITHIN + 1)
    assert newcomer.reason() == "ServicesWaiting"


async def test_nor_does_a_tenant_that_cannot_be_looked_at_any_more(newcomer: Household) -> None:
    newcomer.tenant.metallb_hangs = True
    newcomer.tenant.add_service("web")
    await newcomer.look()
    newcomer.pass_(PASSES_WITHIN)
    assert newcomer.controller.problem(newcomer.cluster()) == ""
