"""The same search, deciding with Butler's own code; and what breaks when that code forgets a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from butler.rules.pool import next_status as planning
from model.allocations import AllocationsModel, Budget, World
from model.deciding import Rules
from model.product import Product
from model.search import Outcome, search

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.networkpool import NetworkPoolStatus

ANY = 0  # any number of controllers
FIRST, SECOND = "1", "10"  # asks for exactly this address

SMALL: dict[str, tuple[World, tuple[int | str, ...]]] = {
    "two_controllers": (World(), (1, 1)),
    "two_controllers_and_a_pinned_request": (World(), (1, FIRST)),
    "two_controllers_and_edits_of_the_pool": (World(addresses=(3, 2), budget=Budget(edits=1)), (1, 1)),
    "labels": (World(ANY, budget=Budget(labels=1)), (1, FIRST)),
    "releases": (World(ANY, addresses=(1,), budget=Budget(releases=1)), (1, FIRST)),
    "two_addresses_at_once": (World(ANY, addresses=(7,), budget=Budget(releases=1)), (1, 2)),
    "others_of_the_same_name": (World(ANY, budget=Budget(creations=3, deletions=1)), (1, FIRST)),
    "edits_of_the_pool": (World(ANY, addresses=(3, 2), budget=Budget(edits=2)), (1, FIRST)),
    "finalizers_taken_off_by_hand": (World(ANY, budget=Budget(vanishings=1)), (1, FIRST)),
}
LARGE: dict[str, tuple[World, tuple[int | str, ...]]] = {
    "two_controllers_and_labels": (World(budget=Budget(labels=1)), (1, FIRST)),
    "two_controllers_and_a_release": (World(addresses=(1,), budget=Budget(releases=1)), (1, FIRST)),
    "two_controllers_and_two_addresses_at_once": (World(addresses=(7,), budget=Budget(releases=1)), (1, 2)),
    "two_controllers_and_a_late_write": (World(budget=Budget(releases=1, given_up=1)), (1, FIRST)),
    "two_controllers_and_a_deletion": (World(budget=Budget(deletions=1)), (1, FIRST)),
    "two_controllers_and_three_requests": (World(names=3, budget=Budget(creations=3)), (1, 1, SECOND)),
    "three_requests": (World(ANY, names=3, budget=Budget(creations=3, releases=1)), (1, FIRST, 1)),
    "three_requests_of_all_sizes": (
        World(ANY, names=3, addresses=(7,), budget=Budget(creations=3, releases=1, labels=1)),
        (1, 2, SECOND),
    ),
    "another_pool_of_the_same_name": (
        World(ANY, addresses=(1,), budget=Budget(releases=1, pool_deletions=1)),
        (1, FIRST),
    ),
    "much_at_once": (
        World(ANY, addresses=(3, 2), budget=Budget(creations=3, labels=1, deletions=1, releases=1, edits=1)),
        (1, FIRST),
    ),
}


def explore(world: World, asks: tuple[int | str, ...], *, only_duplicates: bool = False) -> Outcome:
    model = AllocationsModel(Rules(), world, Product(*asks), only_duplicates)
    outcome = search(model, progress=not only_duplicates)
    print(f"{outcome.figures()}\n{outcome.told() if outcome.violation else ''}")
    return outcome


@pytest.mark.parametrize("name", SMALL)
def test_butlers_own_decisions_never_hold_an_address_twice_and_serve_who_can_be_served(name: str) -> None:
    outcome = explore(*SMALL[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_butlers_own_decisions_never_hold_an_address_twice_in_larger_worlds(name: str) -> None:
    outcome = explore(*LARGE[name])
    assert not outcome.violation, outcome.told()


# What the code must not forget. Each breaks the product in one place, as a careless change would.


def _nothing_is_seen(patch: pytest.MonkeyPatch) -> None:
    def seen(status: NetworkPoolStatus, *_: object) -> str | None:
        return status.allocations_seen

    patch.setattr(planning, "_seen", seen)


def _grants_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    honest = planning._seen

    def seen(status: NetworkPoolStatus, view: planning.PoolView, granted: set[str]) -> str | None:
        return honest(status, view, set())

    patch.setattr(planning, "_seen", seen)


def _forgotten_intents_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    honest = planning._seen

    def seen(status: NetworkPoolStatus, view: planning.PoolView, granted: set[str]) -> str | None:
        waiting = {allocation.metadata.uid: allocation for allocation in view.waiting}
        only_waiting = planning.PoolView(view.waiting, view.leaving, view.live, waiting.get)
        return honest(status, only_waiting, granted)

    patch.setattr(planning, "_seen", seen)


def _intents_are_not_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planning._Borrowed, "take", lambda *_: None)


def _intents_are_forgotten_at_once(patch: pytest.MonkeyPatch) -> None:
    honest = planning.plan

    def plan(pool: Any, layout: Any, book: Any, view: planning.PoolView, **more: Any) -> planning.PoolPlan:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(planning, "_is_settled", lambda _: True)
            return honest(pool, layout, book, view, **more)

    patch.setattr(planning, "plan", plan)


MUTATIONS = {
    "nothing_is_seen": _nothing_is_seen,
    "grants_are_not_seen": _grants_are_not_seen,
    "forgotten_intents_are_not_seen": _forgotten_intents_are_not_seen,
    "intents_are_not_held": _intents_are_not_held,
    "intents_are_forgotten_at_once": _intents_are_forgotten_at_once,
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_search_finds_what_a_careless_change_would_break(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate: Callable[[pytest.MonkeyPatch], None] = MUTATIONS[name]
    mutate(monkeypatch)
    assert "both hold" in explore(World(), (1, FIRST), only_duplicates=True).violation
