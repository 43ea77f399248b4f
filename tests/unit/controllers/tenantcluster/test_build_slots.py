"""Which clusters may be built, and when: all in the end, a few at a time, and with few questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from butler.api.objects import key_of
from butler.controllers.tenantcluster.build_slots import (
    AT_THE_HEAD,
    CALLED_IN_VAIN,
    IN_LINE,
    MOMENT,
    NEXT,
    PLACE_LOST,
    WHILE_OTHERS_ARE_ANSWERED,
    Turnstile,
)
from unit.controllers.tenantcluster.values import cluster

if TYPE_CHECKING:
    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster


def one(name: str, *, begun: bool = False) -> TenantCluster:
    found = cluster()
    meta = msgspec.structs.replace(found.metadata, name=name, uid=f"uid-{name}")
    status = msgspec.structs.replace(found.status, tenant_namespace=f"{name}-ns" if begun else None)
    return msgspec.structs.replace(found, metadata=meta, status=status)


class Door:
    """A turnstile for two, and who was called."""

    def __init__(self) -> None:
        self.now = 100.0
        self.called: list[str] = []
        self.turnstile = Turnstile(lambda: self.now, self._call, at_once=2)

    def _call(self, key: Key) -> None:
        self.called.append(key.name)

    def enter(self, name: str, *, begun: bool = False) -> float:
        return self.turnstile.enter(one(name, begun=begun))

    def leave(self) -> list[str]:
        self.called.clear()
        self.turnstile.leave()
        return self.called


@pytest.fixture
def door() -> Door:
    return Door()


def full(door: Door) -> Door:
    assert [door.enter("x"), door.enter("y")] == [0.0, 0.0]
    return door


def test_only_so_many_are_inside_and_who_comes_first_is_called_first(door: Door) -> None:
    full(door)
    assert [door.enter(name) for name in "abcd"] == [NEXT, NEXT, IN_LINE, IN_LINE]
    assert door.leave() == ["a"]
    assert door.enter("d") > 0, "it is not its turn, though there is a place"
    assert door.enter("a") == 0
    assert door.leave() == ["b"]


def test_who_stands_in_line_keeps_its_place_when_it_comes_too_early(door: Door) -> None:
    full(door)
    for name in "abab":
        door.enter(name)
    assert door.leave() == ["a"]


def test_those_that_are_begun_go_first(door: Door) -> None:
    full(door)
    door.enter("new")
    door.enter("begun", begun=True)
    assert door.leave() == ["begun"]
    assert door.enter("new") > 0
    assert door.enter("begun", begun=True) == 0


def test_one_that_was_begun_meanwhile_stands_in_line_once(door: Door) -> None:
    full(door)
    door.enter("a")
    door.enter("a", begun=True)
    door.leave()
    assert door.enter("a", begun=True) == 0
    assert door.leave() == []


def test_a_cluster_that_does_not_come_when_called_holds_no_other_up_for_long(door: Door) -> None:
    full(door)
    for name in ("gone", "deleted", "a"):
        door.enter(name)
    door.leave()
    assert door.leave() == ["deleted"]
    assert door.enter("a") == IN_LINE, "they may still come"
    door.now += CALLED_IN_VAIN
    assert door.enter("a") == 0


def test_who_comes_late_has_its_place_still(door: Door) -> None:
    full(door)
    for name in "abc":
        door.enter(name)
    door.leave()
    door.now += CALLED_IN_VAIN
    door.enter("c")
    door.leave()
    assert door.enter("a") == 0


def test_who_is_not_seen_for_long_has_no_place(door: Door) -> None:
    full(door)
    door.enter("gone")
    door.now += PLACE_LOST
    door.enter("a")
    assert door.leave() == ["a"]


def test_who_just_asked_is_waited_for_by_those_who_have_theirs(door: Door) -> None:
    door.turnstile.asked("new")
    assert door.enter("a") == AT_THE_HEAD
    assert door.called == [], "it comes by itself"
    door.turnstile.answered("new")
    assert door.called == ["a"]
    assert door.enter("a") == 0


def test_an_answer_that_does_not_come_is_waited_for_a_moment_only(door: Door) -> None:
    door.turnstile.asked("new")
    assert door.enter("a") > 0
    door.now += MOMENT
    assert door.enter("a") == 0


def test_when_the_line_moves_up_while_someone_asks_its_new_head_comes_to_look(door: Door) -> None:
    """Otherwise, when nothing but time has to pass, no cluster would look and notice it."""
    full(door)
    for name in "abc":
        door.enter(name)
    door.leave()
    door.leave()
    assert [door.enter("a"), door.enter("b")] == [0.0, 0.0]
    door.turnstile.asked("new")
    assert door.leave() == ["c"]
    assert door.enter("c") == AT_THE_HEAD


def test_a_cluster_that_asks_in_vain_time_and_again_keeps_no_other_from_being_built(door: Door) -> None:
    """A cluster whose request is never answered asks every second: others must get through in between."""
    let_in = 0
    for _ in range(100):
        door.turnstile.asked("in vain")
        door.now += 0.9
        if not door.enter("a"):
            let_in += 1
            door.leave()
    assert let_in > 90


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_a_crowd_gets_through_with_few_questions_each(door: Door, count: int) -> None:
    """Each comes when it is called, or when its time is up, and stays inside for a tenth of a second."""
    questions, due, inside, done = 0, {f"c{number}": door.now for number in range(count)}, dict[str, float](), 0
    while done < count:
        door.called.clear()
        for name in [name for name, until in inside.items() if until <= door.now]:
            del inside[name]
            done += 1
            door.turnstile.leave()
        for name in [*door.called, *(name for name, at in due.items() if at <= door.now)]:
            if name in due:
                questions += 1
                wait = door.enter(name)
                del due[name]
                if wait:
                    due[name] = door.now + wait
                else:
                    inside[name] = door.now + 0.1
        door.now += 0.05
    assert questions <= 4 * count + (door.now - 100.0) / IN_LINE * count


def test_a_key_is_what_is_called(door: Door) -> None:
    called: list[Key] = []
    turnstile = Turnstile(lambda: door.now, called.append, at_once=1)
    turnstile.enter(one("a"))
    turnstile.enter(one("b"))
    turnstile.leave()
    assert called == [key_of(one("b"))]


def test_as_long_as_answers_come_no_cluster_is_built(door: Door) -> None:
    for name in "abcdefgh":
        door.turnstile.asked(f"uid-{name}")
    for name in "abcdefg":
        door.now += 0.9 * MOMENT
        door.turnstile.answered(f"uid-{name}")
        assert door.enter("x") == AT_THE_HEAD
    door.turnstile.answered("uid-h")
    assert door.enter("x") == 0.0


def test_who_is_not_answered_is_waited_for_while_others_are_but_not_for_ever(door: Door) -> None:
    names = [f"uid-{number}" for number in range(100)]
    for name in names:
        door.turnstile.asked(name)
    began = door.now
    for name in names:
        door.now += 0.5 * MOMENT
        door.turnstile.answered(name)
        if door.enter("x") == 0.0:
            break
    assert door.now - began == pytest.approx(WHILE_OTHERS_ARE_ANSWERED)


def test_where_answers_stop_coming_building_goes_on(door: Door) -> None:
    for name in "abc":
        door.turnstile.asked(f"uid-{name}")
    door.now += 0.9 * MOMENT
    door.turnstile.answered("uid-a")
    door.now += MOMENT
    assert door.enter("x") == 0.0


def test_time_lets_all_through_who_fit(door: Door) -> None:
    door.turnstile.asked("uid-a")
    assert [door.enter("x"), door.enter("y")] == [AT_THE_HEAD, AT_THE_HEAD]
    door.now += MOMENT
    door.called.clear()
    assert door.enter("x") == 0.0
    assert door.called == ["y"]
