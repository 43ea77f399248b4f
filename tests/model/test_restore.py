"""No address is held twice across a restore of etcd under running controllers, with Butler's own decisions.

What the documentation says is left is searched as well, and found: a checker that cannot see it would prove nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.product import Product
from model.restore import Budget, RestoreModel, Rules, World
from model.search import Outcome, search

PINNED = (1, "1")
"""The second request asks for exactly what the first would get."""
RELEASED = World(addresses=1, budget=Budget(releases=1))
PROMISED = World(held=0, waiting=1)
FROM_ELSEWHERE = World(seen=50)
BUMPED = World(bumped=True, budget=Budget(releases=1))
DEAD = World(dead_connections=True)

SMALL: dict[str, tuple[World, tuple[int | str, ...]]] = {
    "a_request": (World(), (1, 1)),
    "a_status_from_elsewhere": (FROM_ELSEWHERE, (1, 1)),
    "a_higher_revision": (BUMPED, (1, 1)),
}
LARGE: dict[str, tuple[World, tuple[int | str, ...]]] = {
    "a_release": (World(budget=Budget(releases=1)), (1, 1)),
    "a_release_that_is_lost": (RELEASED, (1, 1)),
    "a_promise_that_is_lost": (PROMISED, PINNED),
    "dead_connections": (DEAD, (1, 1)),
    "dead_connections_and_a_release": (replace(RELEASED, dead_connections=True), (1, 1)),
    "two_who_live_through_it": (World(survivors=2, addresses=1, held=0, waiting=1, budget=Budget(creations=0)), (1, 1)),
}

WITHOUT: dict[str, tuple[World, tuple[int | str, ...]]] = {
    "reopened_watches_are_compared": (RELEASED, (1, 1)),
    "answers_are_compared": (PROMISED, PINNED),
    "nothing_is_resumed_after_long": (RELEASED, (1, 1)),
    "compared_in_time": (RELEASED, (1, 1)),
    "pools_are_followed": (PROMISED, PINNED),
    "a_grant_confirms_contact": (replace(RELEASED, dead_connections=True), (1, 1)),
}
NOT_NEEDED_FOR_SAFETY = ("all_caches_doubt", "older_objects_are_proof")
"""Every cache finds out by itself; that one tells all others, and that any old object tells, saves time."""

LEFT = {
    "a_connection_that_is_dead_for_long": replace(RELEASED, dead_connections=True, dead_for_long=True),
    "a_write_that_is_on_its_way_during_the_restore": replace(RELEASED, budget=Budget(releases=1, given_up=1)),
    "a_restore_within_seconds": replace(RELEASED, dead_connections=True, a_restore_takes_time=False),
}


def explore(rules: Rules, world: World, asks: tuple[int | str, ...], *, only_duplicates: bool = False) -> Outcome:
    if only_duplicates:
        world = replace(world, writes=8)
    model = RestoreModel(rules, world, Product(*asks), only_duplicates)
    outcome = search(model, progress=not only_duplicates)
    print(f"{outcome.figures()}\n{outcome.told() if outcome.violation else ''}")
    return outcome


@pytest.mark.parametrize("name", SMALL)
def test_across_a_restore_no_address_is_held_twice_and_who_can_be_served_is(name: str) -> None:
    outcome = explore(Rules(), *SMALL[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize("guard", WITHOUT)
def test_without_its_guard_a_restore_leads_to_an_address_held_twice(guard: str) -> None:
    outcome = explore(replace(Rules(), **{guard: False}), *WITHOUT[guard], only_duplicates=True)
    assert "both hold" in outcome.violation
    assert any("is restored" in words for words in outcome.story)


def test_a_pool_that_has_seen_too_much_would_wait_for_ever() -> None:
    assert "waits for ever" in explore(Rules(seen_is_taken_back=False), FROM_ELSEWHERE, (1, 1)).violation


def test_a_restore_with_a_higher_revision_needs_none_of_the_guards() -> None:
    none = Rules(**dict.fromkeys((*WITHOUT, *NOT_NEEDED_FOR_SAFETY), False))
    outcome = explore(none, BUMPED, (1, 1))
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_is_found(name: str) -> None:
    """The exceptions that docs/safety.md names."""
    assert "both hold" in explore(Rules(), LEFT[name], (1, 1), only_duplicates=True).violation


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_across_a_restore_no_address_is_held_twice_in_larger_worlds(name: str) -> None:
    outcome = explore(Rules(), *LARGE[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.slow
@pytest.mark.parametrize("guard", NOT_NEEDED_FOR_SAFETY)
def test_safety_does_not_rest_on_what_only_saves_time(guard: str) -> None:
    outcome = explore(replace(Rules(), **{guard: False}), RELEASED, (1, 1))
    assert not outcome.violation, outcome.told()
