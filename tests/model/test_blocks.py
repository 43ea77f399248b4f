"""Tenants that are not built get both of their blocks or neither, as many as fit; and what breaks without each guard.

Most guards are those of the order of writes, and are switches of the model. Two are decisions of Butler's own code,
which is broken in one place, as a careless change would.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from model import butler_code
from model.blocks import BlocksModel
from model.blocks_state import Budget, Rules, World
from model.search import Outcome, search

if TYPE_CHECKING:
    from collections.abc import Callable

ONE_POOL = World(pools=(2,), late=False)
TWO_POOLS = World(late=False)
PATIENT = replace(TWO_POOLS, patient=True)
# One tenant, whose second block fits only after an edit of its pool, which may be taken back.
NO_ROOM = World(tenants=1, edited=(1, 2), sizes=(1, 2), budget=Budget(crashes=1))
ROOM_LATER = replace(NO_ROOM, budget=Budget(edits=1))
ROOM_COMES_AND_GOES = replace(NO_ROOM, budget=Budget(edits=2, crashes=1))
LABELLED = replace(NO_ROOM, budget=Budget(edits=1, labels=1))

SMALL = {
    "one_pool": ONE_POOL,
    "one_pool_with_room_for_two_of_three": World(tenants=3, pools=(4,), late=False),
    "one_pool_that_refuses_who_asks_late": replace(ONE_POOL, others_are_overdue=True),
    "two_pools_and_patient_tenants": PATIENT,
    "one_tenant_and_no_room": NO_ROOM,
}
LARGE = {
    "two_pools": TWO_POOLS,
    "two_pools_and_crashes": replace(TWO_POOLS, budget=Budget(crashes=1)),
    "two_pools_of_which_one_has_more_room": replace(TWO_POOLS, pools=(1, 2)),
    "two_pools_that_refuse_who_asks_late": replace(TWO_POOLS, others_are_overdue=True),
    "room_that_comes_later": ROOM_LATER,
    "room_that_comes_and_goes": replace(ROOM_COMES_AND_GOES, budget=Budget(edits=2)),
    "room_that_comes_later_and_a_crash": replace(ROOM_LATER, budget=Budget(edits=1, crashes=1)),
    "room_that_comes_later_and_edits_of_the_cluster": LABELLED,
    "one_pool_and_a_late_controller": replace(ONE_POOL, late=True),
}

WITHOUT: dict[str, tuple[World, str]] = {
    "asked_together": (ONE_POOL, "halves"),
    "reserve_for_the_version_decided_on": (replace(ONE_POOL, late=True), "S1"),
    "halves_are_given_back": (NO_ROOM, "rest"),
    "younger_ones_first": (PATIENT, "order"),
    "mark_before_releasing": (ROOM_LATER, "S4"),
    "look_for_marks": (ROOM_LATER, "S4"),
    "all_that_is_not_built_begins": (ROOM_COMES_AND_GOES, "S4"),
    "only_machines_are_in_the_way": (replace(ROOM_LATER, budget=Budget(edits=1, crashes=1)), "rest"),
    "begin_for_the_version_seen": (LABELLED, "S4"),
    "read_before_making_machines": (ROOM_LATER, "S4"),
    "namespaces_are_left_alone": (ROOM_LATER, "torn"),
    "mark_for_the_version_seen": (ROOM_COMES_AND_GOES, ""),
    "marks_stay": (ROOM_COMES_AND_GOES, ""),
}
TAKE_LONGER = (
    "begin_for_the_version_seen",
    "namespaces_are_left_alone",
    "mark_for_the_version_seen",
    "marks_stay",
)


def explore(rules: Rules, world: World) -> Outcome:
    model = BlocksModel(rules, world)
    outcome = search(model, home=model.is_well)
    print(f"{outcome.figures()}\n{outcome.told() if outcome.violation else ''}")
    return outcome


@pytest.mark.parametrize("name", SMALL)
def test_tenants_get_both_blocks_or_neither_and_as_many_as_fit(name: str) -> None:
    outcome = explore(Rules(), SMALL[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_tenants_get_both_blocks_or_neither_in_larger_worlds(name: str) -> None:
    outcome = explore(Rules(), LARGE[name])
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize(
    "guard", [pytest.param(guard, marks=[pytest.mark.slow] if guard in TAKE_LONGER else []) for guard in WITHOUT]
)
def test_each_guard_is_needed(guard: str) -> None:
    world, broken = WITHOUT[guard]
    found = explore(replace(Rules(), **{guard: False}), world).violation
    assert found
    assert found.startswith(broken)


# What Butler's own code must not forget.


def _pools_do_not_ask_each_other(patch: pytest.MonkeyPatch) -> None:
    """A block is granted though the other pool has said that it cannot grant the other one: again and again."""
    honest = butler_code.PoolView

    def view(**more: Any) -> Any:
        return honest(**{**more, "blocks_of": lambda uid: [_pending(block) for block in more["blocks_of"](uid)]})

    patch.setattr(butler_code, "PoolView", view)


def _pending(block: Any) -> Any:
    if block.status.phase != "Failed":
        return block
    return msgspec.structs.replace(block, status=msgspec.structs.replace(block.status, phase="Pending", conditions=()))


def _tenants_keep_what_they_have(patch: pytest.MonkeyPatch) -> None:
    honest = butler_code.plan_addresses
    patch.setattr(butler_code, "plan_addresses", lambda *facts: _without_giving_back(honest(*facts)))


def _without_giving_back(plan: Any) -> Any:
    return replace(plan, give_back=())


def _the_oldest_gives_back_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(butler_code.Views, "younger_halves_hold", lambda *_: False)


MUTATIONS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], World, str]] = {
    "pools_do_not_ask_each_other": (_pools_do_not_ask_each_other, NO_ROOM, "from here no way"),
    "tenants_keep_what_they_have": (_tenants_keep_what_they_have, NO_ROOM, "rest"),
    "the_oldest_gives_back_first": (_the_oldest_gives_back_first, PATIENT, "order"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_search_finds_what_a_careless_change_would_break(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, world, broken = MUTATIONS[name]
    mutate(monkeypatch)
    assert explore(Rules(), world).violation.startswith(broken)
