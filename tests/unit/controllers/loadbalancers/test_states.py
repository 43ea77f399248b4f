"""What is remembered of a tenant, and how often it is looked at on the way of a Service from created to served."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from butler.controllers.loadbalancers import look as look_module
from butler.controllers.loadbalancers import states
from butler.controllers.loadbalancers.draining import DrainProgress
from butler.controllers.loadbalancers.next_look import AT_ONCE, ON_CHANGE, SELDOM, SOON, NextLook, pause
from butler.controllers.loadbalancers.publisher import PublishedPool
from butler.controllers.loadbalancers.states import LastLook
from butler.controllers.loadbalancers.status_writer import StatusProgress
from unit.controllers.loadbalancers.household import Household

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(states.__file__).parent
WRITERS = {
    "publisher": PublishedPool,
    "draining": DrainProgress,
    "status_writer": StatusProgress,
    "controller": LastLook,
}
MUTATIONS = {"update", "pop", "clear", "add", "discard", "setdefault", "remove", "append"}


def attributes_changed(tree: ast.AST) -> Iterator[str]:
    """The names of attributes of other objects than `self` that a module assigns to, or changes by a method."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("self")):
                continue
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=owner, attr=name), attr=verb)):
                if verb in MUTATIONS and not (isinstance(owner, ast.Name) and owner.id == "self"):
                    yield name


@pytest.mark.parametrize("module", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_each_state_is_changed_in_one_module_alone(module: str) -> None:
    others = {field.name for home, state in WRITERS.items() if home != module for field in fields(state)}
    assert not others & set(attributes_changed(ast.parse((FOLDER / f"{module}.py").read_text())))


async def test_a_third_service_is_served_within_three_looks_and_usage_is_computed_when_the_caches_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house, computed = Household(initial=2), 0
    usage_of = look_module.usage_of

    def counted(*about: object) -> object:
        nonlocal computed
        computed += 1
        return usage_of(*about)  # type: ignore[arg-type]

    for name in "ab":
        house.tenant.add_service(name)
    await house.live(30)
    monkeypatch.setattr(look_module, "usage_of", counted)
    house.tenant.add_service("c")
    looks = 0
    while not next(service for service in house.tenant.balancers() if service.name == "c").addresses:
        await house.look()
        house.answer()
        looks += 1
    await house.look()
    assert looks + 1 <= 3
    assert computed <= 4, "once a look, and once more after the request for addresses"


def test_the_soonest_of_several_looks_comes_next() -> None:
    assert min(SELDOM, ON_CHANGE, SOON) is SOON
    assert NextLook.within(-3.0) == AT_ONCE
    assert NextLook.within(-3.0).is_due
    assert ON_CHANGE.after() is None
    assert [pause(tries).seconds for tries in (1, 2, 3, 9)] == [1.0, 2.0, 4.0, 30.0]
