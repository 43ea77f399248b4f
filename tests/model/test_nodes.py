"""A node range that a person deletes is released when no machine can have an address of it, and not before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from model import butler_code, nodes_product
from model.nodes import NodesModel
from model.nodes_state import Budget, Rules, World
from model.search import Outcome, search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TWO_RANGES = World()
SCALED = World(scaled_to=(0, 1, 2), budget=Budget(scalings=1))
SCALED_TWICE = replace(SCALED, budget=Budget(scalings=2))
ONE_RANGE = World(blocks=1, scaled_to=(0, 1), budget=Budget(scalings=2))
NOT_BUILT = World(built=False)
ONE_RANGE_NOT_BUILT = World(built=False, blocks=1, budget=Budget(crashes=1))
CLUSTER_DELETED = World(budget=Budget(cluster_deletions=1))

SMALL = {
    "two_ranges": TWO_RANGES,
    "two_ranges_and_a_scaling": SCALED,
    "one_range_and_two_scalings": ONE_RANGE,
    "not_built": NOT_BUILT,
    "one_range_not_built_and_a_crash": ONE_RANGE_NOT_BUILT,
    "the_cluster_is_deleted_too": CLUSTER_DELETED,
    "a_machine_is_deleted": World(budget=Budget(machine_deletions=1)),
    "a_person_insists": World(budget=Budget(insists=1)),
}
LARGE = {
    "two_scalings": SCALED_TWICE,
    "a_scaling_and_a_crash": replace(SCALED, budget=Budget(scalings=1, crashes=1)),
    "a_scaling_and_machines_deleted": replace(SCALED, budget=Budget(scalings=1, machine_deletions=1)),
    "two_deletions": replace(SCALED, budget=Budget(deletions=2, scalings=1)),
    "one_range_and_much_at_once": replace(ONE_RANGE, budget=Budget(scalings=2, machine_deletions=1, crashes=1)),
    "not_built_and_two_deletions": replace(NOT_BUILT, budget=Budget(deletions=2)),
    "not_built_and_deleted": replace(NOT_BUILT, budget=Budget(cluster_deletions=1)),
    "not_built_and_scaled": World(built=False, scaled_to=(0, 2), budget=Budget(scalings=1)),
    "scaled_and_the_cluster_is_deleted": replace(SCALED, budget=Budget(scalings=1, cluster_deletions=1)),
    "a_person_insists_and_a_crash": World(budget=Budget(insists=1, crashes=1, machine_deletions=1)),
}

WITHOUT: dict[str, tuple[World, str]] = {
    "deletion_is_a_wish": (TWO_RANGES, "S4"),
    "list_machines_before_releasing": (SCALED, "S4"),
    "no_machines_are_asked_for": (ONE_RANGE, "S4"),
    "mark_before_taking_back": (SCALED, "S4"),
    "what_goes_gets_no_more_machines": (ONE_RANGE, "S4"),
    "read_before_writing": (SCALED, "S4"),
    "begin_for_the_version_seen": (ONE_RANGE_NOT_BUILT, "S4"),
    "namespace_goes_before_addresses": (CLUSTER_DELETED, "S4"),
    "deleted_ones_are_taken_back": (TWO_RANGES, "rest"),
}
NOT_NEEDED_FOR_SAFETY = "release_for_the_version_seen"
"""A deletion is not taken back, nor is a mark: who would release another version would release that one, too."""


def explore(rules: Rules, world: World) -> Outcome:
    model = NodesModel(rules, world)
    outcome = search(model, home=model.is_well)
    print(f"{outcome.figures()}\n{outcome.told() if outcome.violation else ''}")
    return outcome


@pytest.mark.parametrize("name", SMALL)
def test_a_node_range_is_released_when_no_machine_can_have_its_addresses(name: str) -> None:
    outcome = explore(Rules(), SMALL[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_a_node_range_is_released_in_larger_worlds(name: str) -> None:
    outcome = explore(Rules(), LARGE[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize("guard", WITHOUT)
def test_each_guard_is_needed(guard: str) -> None:
    world, broken = WITHOUT[guard]
    assert explore(replace(Rules(), **{guard: False}), world).violation.startswith(broken)


@pytest.mark.slow
def test_safety_does_not_rest_on_what_only_saves_time() -> None:
    outcome = explore(replace(Rules(), **{NOT_NEEDED_FOR_SAFETY: False}), SCALED)
    assert not outcome.violation, outcome.told()


def test_who_sleeps_between_reading_allocations_and_writing_objects_names_what_was_released() -> None:
    """The known limit: the objects of Cluster API are not written for the version that was seen."""
    assert explore(Rules(), replace(NOT_BUILT, sleeps_before_writing=True)).violation.startswith("S4")


# What Butler's own code must not forget.


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    """What was answered by other code is not to be remembered."""
    answers = (nodes_product.given_up, nodes_product.are_used, nodes_product.releases)
    for answer in answers:
        answer.cache_clear()
    yield
    for answer in answers:
        answer.cache_clear()


def _nothing_is_in_the_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(butler_code, "judge", lambda *_: None)


def _machines_without_an_address_have_none(patch: pytest.MonkeyPatch) -> None:
    honest = butler_code.machines_that_use
    patch.setattr(
        butler_code,
        "machines_that_use",
        lambda allocation, machines: honest(allocation, tuple(machine for machine in machines if machine.addresses)),
    )


def _marks_mean_nothing(patch: pytest.MonkeyPatch) -> None:
    """A range that is marked is used again as soon as more machines are wanted."""
    patch.setattr("butler.rules.tenant.node_addresses._is_marked", lambda _: False)


def _nothing_is_given_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(butler_code, "give_up", lambda *_: butler_code.NOTHING_GIVEN_UP)


MUTATIONS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], World, str]] = {
    "nothing_is_in_the_way": (_nothing_is_in_the_way, TWO_RANGES, "S4"),
    "machines_without_an_address_have_none": (_machines_without_an_address_have_none, SCALED, "S4"),
    "marks_mean_nothing": (_marks_mean_nothing, SCALED, "S4"),
    "nothing_is_given_up": (_nothing_is_given_up, TWO_RANGES, "rest"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_search_finds_what_a_careless_change_would_break(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, world, broken = MUTATIONS[name]
    mutate(monkeypatch)
    assert explore(Rules(), world).violation.startswith(broken)
