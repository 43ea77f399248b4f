"""Who is told to have how many machines, by cases and by playing whole updates to their end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.local.world.rollout import Limits, MachineSet, limits, plan, template_hash


@pytest.mark.parametrize(
    ("strategy", "replicas", "allowed"),
    [
        ({}, 3, Limits(1, 0)),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, 3, Limits(0, 1)),
        ({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}, 6, Limits(2, 1)),
        ({"rollingUpdate": {"maxSurge": "2", "maxUnavailable": 0}}, 6, Limits(2, 0)),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}, 3, Limits(0, 1)),
    ],
)
def test_how_far_an_update_may_stray(strategy: dict[str, object], replicas: int, allowed: Limits) -> None:
    assert limits(strategy, replicas) == allowed


@pytest.mark.parametrize(
    ("newest", "older", "allowed", "told"),
    [
        pytest.param((0, 0), [], Limits(1, 0), {"new": 3}, id="the first set gets all at once"),
        pytest.param((5, 5), [], Limits(1, 0), {"new": 3}, id="fewer are wanted"),
        pytest.param((3, 1), [], Limits(1, 0), {}, id="nothing to do"),
        pytest.param((0, 0), [(3, 3)], Limits(1, 0), {"new": 1}, id="surge: a new one first"),
        pytest.param((1, 0), [(3, 3)], Limits(1, 0), {}, id="surge: wait for it"),
        pytest.param((1, 1), [(3, 3)], Limits(1, 0), {"old0": 2}, id="surge: then an old one goes"),
        pytest.param((0, 0), [(3, 3)], Limits(0, 1), {"old0": 2}, id="no surge: an old one goes first"),
        pytest.param((0, 0), [(2, 2)], Limits(0, 1), {"new": 1}, id="no surge: then a new one comes"),
        pytest.param((1, 0), [(2, 2)], Limits(0, 1), {}, id="no surge: wait for it, too"),
        pytest.param((1, 1), [(2, 0)], Limits(1, 0), {"new": 2}, id="dead machines of old are not missed"),
        pytest.param((3, 3), [(2, 2)], Limits(1, 0), {"old0": 0}, id="the rest goes at once"),
    ],
)
def test_one_step(newest: tuple[int, int], older: list[tuple[int, int]], allowed: Limits, told: dict[str, int]) -> None:
    old = [MachineSet(f"old{number}", *counts, age=str(number)) for number, counts in enumerate(older)]
    assert plan(3, allowed, MachineSet("new", *newest), old) == told


@given(
    replicas=st.integers(1, 6),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    old=st.lists(st.integers(0, 6), max_size=3),
)
def test_every_update_ends_and_never_strays(replicas: int, surge: int, unavailable: int, old: list[int]) -> None:
    allowed = limits({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}, replicas)
    told = {"new": 0} | {f"old{number}": count for number, count in enumerate(old)}
    available = dict(told)
    most, least = max(sum(told.values()), replicas + allowed.surge), min(sum(old), replicas - allowed.unavailable)
    for _ in range(200):
        sets = [MachineSet(name, told[name], available[name], name) for name in told]
        step = plan(replicas, allowed, sets[0], sets[1:])
        if not step and available == told:
            break
        told |= step
        assert sum(told.values()) <= most
        # Machines that are to go are gone at once; those that are to come take a step.
        going = {name: min(available[name], told[name]) for name in told}
        assert sum(going.values()) >= least
        available = dict(told)
    else:
        pytest.fail(f"no end: {told}, {available}")
    assert told == {"new": replicas} | {name: 0 for name in told if name != "new"}


def test_a_template_counts_as_new_only_when_machines_have_to_be_replaced() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"version": "v1.33.2", "nodeDrainTimeout": "10s"}}
    same = {"metadata": {}, "spec": {"version": "v1.33.2", "nodeDrainTimeout": "20s"}}
    other = {"metadata": {}, "spec": {"version": "v1.34.0"}}
    assert template_hash(template) == template_hash(same)
    assert template_hash(template) != template_hash(other)
