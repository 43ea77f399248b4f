"""What a TenantCluster's status says about its load-balancer addresses."""

from __future__ import annotations

import msgspec
import pytest

from butler.api.conditions import find_condition, with_condition
from butler.api.labels import ConditionType, LoadBalancerReason
from butler.api.tenantcluster import LoadBalancerUse, PoolChange, TenantClusterStatus
from butler.rules.loadbalancer.growth import Short
from butler.rules.loadbalancer.status import (
    LONGEST_MESSAGE,
    LoadBalancerVerdict,
    Obstacles,
    PoolChanges,
    figures_of,
    is_news,
    new_status,
    says_otherwise,
    unreachable,
    verdict,
)
from unit.controllers.tenantcluster.values import NOW, cluster
from unit.rules.loadbalancer.balancers import asked, lb, look, service, waiting

WELL = Obstacles()
SHORT = Short(LoadBalancerReason.QUOTA_REACHED, "the tenant may hold 2")
CHANGE = PoolChange(time=NOW, addresses=2, reason="2 Services wait")


def test_all_is_well_when_metallb_has_the_addresses_and_no_service_waits() -> None:
    said = verdict(look(lb()), WELL, None)
    assert (said.holds, said.reason, said.passes) == (True, LoadBalancerReason.IN_STEP, False)


def test_addresses_on_their_way_mostly_pass_and_so_does_a_metallb_that_takes_a_moment() -> None:
    said = verdict(look(asked(count=3), services=waiting(2)), WELL, None)
    assert (said.holds, said.reason, said.passes) == (False, LoadBalancerReason.GROWING, True)
    assert "3 more addresses are on their way" in said.message
    said = verdict(look(lb(), services=waiting(2)), WELL, None)
    assert (said.holds, said.reason, said.passes) == (False, LoadBalancerReason.SERVICES_WAITING, True)
    assert "2 are free" in said.message


def test_what_an_administrator_has_to_act_on_is_said_at_once() -> None:
    said = verdict(look(lb(), services=waiting(3)), WELL, SHORT)
    assert said == LoadBalancerVerdict(False, SHORT.reason, SHORT.message)


def test_a_metallb_without_its_addresses_is_worse_than_a_quota() -> None:
    refused = Obstacles("denied the request", problem_reason=LoadBalancerReason.REFUSED)
    said = verdict(look(services=waiting(3)), refused, SHORT)
    assert (said.reason, said.passes) == (LoadBalancerReason.REFUSED, False)
    assert "denied the request" in said.message


def test_a_metallb_that_refuses_its_configuration_is_told_of() -> None:
    said = verdict(look(lb()), Obstacles(refusal="pools overlap"), None)
    assert said.reason is LoadBalancerReason.REFUSED
    assert "pools overlap" in said.message


def test_a_pool_that_others_write_at_the_same_time_mostly_passes() -> None:
    assert verdict(look(), Obstacles("x", problem_reason=LoadBalancerReason.CONTESTED), None).passes
    assert not verdict(look(), Obstacles("x", problem_reason=LoadBalancerReason.NOT_INSTALLED), None).passes


def test_a_tenant_that_cannot_be_reached_keeps_what_it_has_and_is_told_so() -> None:
    said = unreachable("refused")
    assert (said.holds, said.reason, said.passes) == (False, LoadBalancerReason.TENANT_UNREACHABLE, True)
    assert "keeps all addresses" in said.message


# Figures.


def test_the_figures_say_what_is_held_in_use_idle_and_waited_for() -> None:
    services = [service("traefik", "10.40.0.20", platform=True), service("a", "10.40.0.21"), *waiting(2)]
    found = figures_of(look(lb(), lb("web-lb-2", "10.40.0.30", 3, growth=True), services=services), None, PoolChanges())
    assert (found.held, found.in_use, found.idle, found.services) == (5, 2, 3, 2)
    assert (found.platform_services, found.waiting_services) == (1, 2)
    assert (found.last_growth, found.last_shrink) == (None, None)


def test_the_last_growth_and_shrink_stay_until_there_is_another() -> None:
    old = figures_of(look(), None, PoolChanges(growth=CHANGE))
    shrank = msgspec.structs.replace(CHANGE, reason="idle")
    new = figures_of(look(), old, PoolChanges(shrink=shrank))
    assert (new.last_growth, new.last_shrink) == (CHANGE, shrank)


def figures(**fields: int) -> LoadBalancerUse:
    return msgspec.structs.replace(figures_of(look(lb()), None, PoolChanges()), **fields)


# The status as a whole.


def test_what_others_say_in_the_status_stays() -> None:
    before = cluster()
    others = with_condition((), type=ConditionType.WORKERS_READY, status=True, reason="Test", message="", now=NOW)
    before = msgspec.structs.replace(before, status=msgspec.structs.replace(before.status, conditions=others))
    status = new_status(before, verdict(look(lb()), WELL, None), figures(), NOW)
    assert find_condition(status.conditions, ConditionType.WORKERS_READY) == others[0]
    condition = find_condition(status.conditions, ConditionType.LOAD_BALANCERS_READY)
    assert condition is not None
    assert (condition.status, condition.reason, condition.observed_generation) == ("True", "InStep", 4)


def test_nothing_to_say_leaves_as_it_is_what_was_said() -> None:
    of = cluster()
    assert new_status(of, None, None, NOW) == of.status


def test_a_message_is_cut_to_what_a_status_can_hold() -> None:
    said = LoadBalancerVerdict(False, LoadBalancerReason.REFUSED, "x" * 100_000)
    condition = find_condition(new_status(cluster(), said, None, NOW).conditions, ConditionType.LOAD_BALANCERS_READY)
    assert condition is not None
    assert len(condition.message) == LONGEST_MESSAGE


@pytest.mark.parametrize(
    ("fields", "news"),
    [({"held": 4}, True), ({"in_use": 1}, False), ({"waiting_services": 9}, False), ({"services": 2}, False)],
)
def test_figures_that_change_with_every_service_are_no_news(fields: dict[str, int], news: bool) -> None:
    old = msgspec.structs.replace(cluster().status, load_balancers=figures())
    new = msgspec.structs.replace(old, load_balancers=figures(**fields))
    assert is_news(old, new) is news


def test_another_reason_is_news_and_another_message_is_not() -> None:
    def status(reason: LoadBalancerReason, message: str) -> TenantClusterStatus:
        return new_status(cluster(), LoadBalancerVerdict(False, reason, message), None, NOW)

    old = status(LoadBalancerReason.QUOTA_REACHED, "2 wait")
    assert not says_otherwise(old, status(LoadBalancerReason.QUOTA_REACHED, "3 wait"))
    assert says_otherwise(old, status(LoadBalancerReason.POOL_EXHAUSTED, "2 wait"))
    assert says_otherwise(cluster().status, old)
