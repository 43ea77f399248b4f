"""A load-balancer allocation that a person deletes stays as long as a Service uses its address, and no longer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from model import butler_code, elastic_product
from model.elastic_deletion import DeletionModel
from model.elastic_state import AUTOMATIC, BY_ADDRESS, BY_POOL, Budget, Rules, World
from model.search import Outcome, search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVERYTHING = ("S4", "S5", "moved")
A_DELETION = Budget(marks=0, deletions=1)
BARE = World(crashes=False, budget=Budget(marks=0, services=0, deletions=1))
A_SERVICE = World(crashes=False, budget=A_DELETION)
TWO_DELETIONS = World(addresses=2, crashes=False, budget=Budget(marks=0, deletions=2))
ASKED_FOR = replace(A_SERVICE, kinds=(BY_ADDRESS,))

SMALL = {
    "nothing_uses_it": BARE,
    "a_service": A_SERVICE,
    "nothing_uses_it_and_crashes": replace(BARE, crashes=True),
}
LARGE = {
    "a_service_and_crashes": World(budget=A_DELETION),
    "all_kinds_of_services": World(kinds=(AUTOMATIC, BY_ADDRESS, BY_POOL), budget=A_DELETION),
    "one_of_two_addresses": World(addresses=2, budget=A_DELETION),
    "two_deletions": replace(TWO_DELETIONS, budget=Budget(marks=0, services=0, deletions=2)),
    "services_that_take_their_time_to_go": World(lingering=True, budget=A_DELETION),
    "two_services": World(crashes=False, kinds=(AUTOMATIC, BY_ADDRESS), budget=A_DELETION._replace(services=2)),
    "a_drain_that_was_under_way": World(budget=A_DELETION._replace(marks=1)),
    "granted_to_another_afterwards": World(tenants=2, crashes=False, budget=A_DELETION._replace(grants=1)),
    "a_write_that_arrives_late": World(crashes=False, budget=A_DELETION._replace(given_up=1)),
    "edits_of_the_pool_by_hand": World(crashes=False, budget=A_DELETION._replace(edits=1)),
}

WITHOUT: dict[str, tuple[World, str]] = {
    "deletion_is_a_wish": (A_SERVICE, "S4"),
    "deleted_ones_are_drained": (BARE, "from here no way"),
    "list_before_withdrawing": (A_SERVICE, "moved"),
    "list_before_the_release": (ASKED_FOR, "S4"),
    "mark_before_withdrawing": (BARE, "S5"),
    "fresh_read_before_adding": (BARE, "S5"),
    "pool_for_the_version_read": (BARE, "S5"),
    "release_for_the_version_marked": (ASKED_FOR, "S5"),
}


def explore(rules: Rules, world: World, asks: tuple[str, ...] = EVERYTHING) -> Outcome:
    model = DeletionModel(rules, world, asks)
    outcome = search(model, progress=False, home=model.is_well if asks == EVERYTHING else None)
    print(f"{outcome.figures()}\n{outcome.told() if outcome.violation else ''}")
    return outcome


@pytest.mark.parametrize("name", SMALL)
def test_what_a_person_deletes_is_released_when_no_service_uses_it_and_not_before(name: str) -> None:
    outcome = explore(Rules(), SMALL[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_what_a_person_deletes_is_released_in_larger_worlds(name: str) -> None:
    outcome = explore(Rules(), LARGE[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.slow
def test_a_stamp_that_looks_like_a_hold_is_waited_for_anew() -> None:
    """It shows in a world that is too large to be searched to its end each time."""
    assert explore(replace(Rules(), stamps_hold_nothing=False), TWO_DELETIONS, ("moved",)).violation.startswith("moved")


@pytest.mark.parametrize("guard", WITHOUT)
def test_each_guard_is_needed(guard: str) -> None:
    world, broken = WITHOUT[guard]
    asks = EVERYTHING if broken.startswith("from") else (broken,)
    assert explore(replace(Rules(), **{guard: False}), world, asks).violation.startswith(broken)


# What Butler's own code must not forget.


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    """What was answered by other code is not to be remembered."""
    elastic_product._surveyed.cache_clear()
    yield
    elastic_product._surveyed.cache_clear()


def _services_claim_nothing(patch: pytest.MonkeyPatch) -> None:
    honest = butler_code.usage_of

    def usage_of(*facts: Any) -> Any:
        found = honest(*facts)
        return replace(found, blocks=tuple(replace(block, used=0, claimed=0) for block in found.blocks))

    patch.setattr(butler_code, "usage_of", usage_of)


def _nothing_is_due(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(butler_code, "due", lambda *_: ())


def _what_goes_is_a_reason_to_break_off(patch: pytest.MonkeyPatch) -> None:
    """A Service that waits keeps what was deleted, though it is not given it."""
    patch.setattr(butler_code.Usage, "is_held_up", property(lambda found: found.demand > 0))


MUTATIONS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], World, str]] = {
    "services_claim_nothing": (_services_claim_nothing, A_SERVICE, "S4"),
    "nothing_is_due": (_nothing_is_due, BARE, "from here no way"),
    "what_goes_is_a_reason_to_break_off": (_what_goes_is_a_reason_to_break_off, A_SERVICE, "from here no way"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_search_finds_what_a_careless_change_would_break(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, world, broken = MUTATIONS[name]
    mutate(monkeypatch)
    asks = EVERYTHING if broken.startswith("from") else (broken,)
    assert explore(Rules(), world, asks).violation.startswith(broken)
