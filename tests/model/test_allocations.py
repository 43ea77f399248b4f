"""No address is ever held twice, and who can be served is, whatever the order of writes, crashes, pauses and edits."""

from __future__ import annotations

import pytest

from model.allocations import AllocationsModel, Budget, World
from model.deciding import Designed, Rules
from model.search import Outcome, search

ANY = 0  # any number of controllers


def explore(rules: Rules, world: World, *, only_duplicates: bool = False) -> Outcome:
    model = AllocationsModel(rules, world, Designed(rules), only_duplicates)
    outcome = search(model, progress=not only_duplicates)
    print(f"{outcome.figures()}\n{outcome.told() if outcome.violation else ''}")
    return outcome


SMALL = {
    "two_controllers": World(),
    "two_controllers_and_one_address": World(addresses=(1,), budget=Budget(releases=1)),
    "two_controllers_and_a_write_that_arrives_late": World(budget=Budget(given_up=1)),
    "labels": World(ANY, budget=Budget(labels=1)),
    "releases": World(ANY, budget=Budget(releases=1)),
    "deletions": World(ANY, budget=Budget(deletions=1)),
    "finalizers_taken_off_by_hand": World(ANY, budget=Budget(vanishings=1)),
    "edits_of_the_pool": World(ANY, addresses=(3, 2), budget=Budget(edits=2)),
    "others_of_the_same_name": World(ANY, budget=Budget(creations=3, deletions=1)),
    "three_requests": World(ANY, names=3, addresses=(3,), budget=Budget(creations=3)),
}
LARGE = {
    "two_controllers_and_labels": World(budget=Budget(labels=1)),
    "two_controllers_and_a_release": World(budget=Budget(releases=1, given_up=1)),
    "two_controllers_and_a_deletion": World(budget=Budget(deletions=1)),
    "two_controllers_and_edits": World(addresses=(3, 2), budget=Budget(edits=2, given_up=1)),
    "two_controllers_and_another_of_the_same_name": World(addresses=(1,), budget=Budget(creations=3, deletions=1)),
    "two_controllers_and_three_requests": World(names=3, addresses=(3,), budget=Budget(creations=3)),
    "two_controllers_and_another_pool": World(addresses=(1,), budget=Budget(releases=1, pool_deletions=1)),
    "another_pool_of_the_same_name": World(ANY, addresses=(1,), budget=Budget(releases=1, pool_deletions=1)),
    "three_requests_and_a_release": World(ANY, names=3, budget=Budget(creations=3, releases=1)),
    "three_requests_three_addresses": World(ANY, names=3, addresses=(7,), budget=Budget(creations=3)),
    "labels_and_releases": World(ANY, budget=Budget(labels=1, releases=1)),
    "edits_and_others_of_the_same_name": World(ANY, addresses=(3, 2), budget=Budget(creations=3, deletions=1, edits=1)),
    "much_at_once": World(ANY, addresses=(3, 2), budget=Budget(labels=1, deletions=1, releases=1, edits=1)),
}

TWO_EDITS = World(addresses=(3, 2), budget=Budget(edits=2))
WITHOUT = {
    "nothing_is_reserved": (Rules(reserve_first=False), World()),
    "the_reserve_overwrites": (Rules(reserve_for_the_version_decided_on=False), World()),
    "the_commit_overwrites": (
        Rules(commit_for_the_version_decided_on=False),
        World(addresses=(1,), budget=Budget(releases=1)),
    ),
    "views_may_be_older_than_what_the_pool_has_seen": (Rules(views_reach_what_the_pool_has_seen=False), World()),
    "the_pool_has_not_seen_whom_it_promised_something": (Rules(seen_covers_grants=False), World()),
    "the_pool_has_not_seen_what_it_forgets": (Rules(seen_covers_carried_out_intents=False), World()),
    "intents_are_forgotten_once_the_commit_is_sent": (Rules(intents_stay_until_carried_out=False), World()),
    "intents_are_not_held": (Rules(intents_are_held=False), World()),
    "an_edit_takes_intents_back": (Rules(intents_survive_edits=False), TWO_EDITS),
    "a_pool_goes_while_addresses_are_held": (
        Rules(pool_stays_while_held=False),
        World(ANY, budget=Budget(pool_deletions=1)),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_no_address_is_held_twice_and_who_can_be_served_is(name: str) -> None:
    outcome = explore(Rules(), SMALL[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize("name", WITHOUT)
def test_without_its_guard_an_address_is_held_twice(name: str) -> None:
    rules, world = WITHOUT[name]
    assert "both hold" in explore(rules, world, only_duplicates=True).violation


@pytest.mark.parametrize("name", WITHOUT)
def test_without_its_guard_a_promise_is_broken(name: str) -> None:
    """Often long before two hold the same address: a grant without a reservation, or one that changes."""
    rules, world = WITHOUT[name]
    assert explore(rules, world).violation


FORCED = World(ANY, addresses=(1,), budget=Budget(pool_deletions=1, forced=1))


def test_a_pool_whose_finalizer_is_taken_off_by_hand_is_no_danger() -> None:
    """What was promised and what was seen goes with the pool, and a new one knows nothing of it."""
    outcome = explore(Rules(), FORCED, only_duplicates=True)
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize(
    "rules",
    [
        Rules(requests_of_a_lost_pool_are_written=False),
        Rules(commit_what_was_read_while_the_pool_was_there=False),
        Rules(first_view_is_as_new_as_the_claim=False),
    ],
    ids=["no request is written", "commits are for any version", "the first view is of any age"],
)
def test_without_its_guard_a_pool_whose_finalizer_is_taken_off_is_a_danger(rules: Rules) -> None:
    outcome = explore(rules, FORCED, only_duplicates=True)
    assert "both hold" in outcome.violation
    assert any("by hand" in words for words in outcome.story)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_no_address_is_held_twice_in_larger_worlds(name: str) -> None:
    outcome = explore(Rules(), LARGE[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.slow
def test_safety_does_not_rest_on_the_pool_taking_note_of_a_release() -> None:
    """That keeps the pool's counters right; `allocationsSeen` alone keeps old views from deciding."""
    world = World(ANY, budget=Budget(creations=3, deletions=1))
    outcome = explore(Rules(leaving_awaits_the_pool=False), world)
    assert not outcome.violation, outcome.told()
