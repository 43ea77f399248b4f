"""No rule runs for long: what would take minutes or gigabytes stops at once, with the error Kubernetes gives."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kubeserver.cel.rules import check_rules
from kubeserver.schemas.schema import parse

PROPERTIES = {
    "numbers": {"type": "array", "items": {"type": "integer"}},
    "texts": {"type": "array", "items": {"type": "string"}},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
    "s": {"type": "string"},
}
BIG: dict[str, Any] = {
    "numbers": list(range(100_000)),
    "texts": ["a" * 1000] * 1000,
    "map": {f"k{number}": number for number in range(1000)},
    "set": list(range(5_000)),
    "s": "a" * 1_000_000,
}


def problems(rule: str, obj: dict[str, Any]) -> list[str]:
    schema = parse({"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": [{"rule": rule}]})
    return [error.detail for error in check_rules(schema, obj, obj)]


@pytest.mark.parametrize(
    "rule",
    [
        "self.numbers.all(x, self.numbers.all(y, x + y >= 0))",
        "self.numbers.all(x, x in self.numbers)",
        "self.numbers.all(x, self.numbers.map(y, y * 2).sum() > 0)",
        "self.texts.all(x, self.texts == self.texts)",
        "self.texts.all(x, !self.s.contains('b' + x))",
        "self.texts.all(x, self.s != self.s + x)",
        "self.texts.all(x, !self.s.matches('(a+)+b'))",
        "self.s.replace('a', self.s) != ''",
        "self.texts.join(self.s) != ''",
        "sets.contains(self.numbers, self.numbers)",
        "self.set == self.set",
        "size(self.set + self.set) > 0",
        "lists.range(1000).all(x, lists.range(100000).sum() > 0)",
        "self.numbers.distinct().size() > 0",
    ],
)
def test_an_expensive_rule_is_stopped_at_once(rule: str) -> None:
    began = time.perf_counter()
    found = problems(rule, BIG)
    assert time.perf_counter() - began < 30
    assert len(found) == 1
    assert "no further validation rules will be run due to call cost exceeds limit" in found[0]


@pytest.mark.parametrize(
    "rule",
    [
        "self.map.all(k, k in self.map)",
        "self.texts.all(x, x.startsWith('a') && x.size() == 1000)",
        "self.s.matches('^a+$')",
        "self.numbers.all(x, x >= 0)",
        "self == oldSelf",
    ],
)
def test_usual_rules_on_large_objects_are_affordable(rule: str) -> None:
    assert problems(rule, BIG) == []


def test_a_number_is_not_shown_with_a_billion_digits() -> None:
    found = problems("'%.1000000000f'.format([1.0]) != ''", {"s": ""})
    assert "precision 100000000 is too large" in found[0]


EACH_WITH_EACH = "self.all(x, self.all(y, x == y))"  # costs nearly a million on 400 items


def problems_of_items(*rules: Any) -> list[str]:
    item = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": list(rules)}
    schema = parse({"type": "object", "properties": {"a": {"type": "array", "items": item}}})
    began = time.perf_counter()
    found = [error.detail for error in check_rules(schema, {"a": [[0] * 400] * 1000})]
    assert time.perf_counter() - began < 30
    return found


def test_the_rules_of_an_object_share_one_budget() -> None:
    (found,) = problems_of_items({"rule": EACH_WITH_EACH})
    assert found == "validation failed due to running out of cost budget, no further validation rules will be run"


def test_a_rule_that_fails_with_an_error_has_cost_something_too() -> None:
    found = problems_of_items({"rule": f"{EACH_WITH_EACH} && 1 / (self.size() - 400) > 0"})
    assert len(found) < 20
    assert "running out of cost budget" in found[-1]


def test_messages_are_paid_from_the_same_budget() -> None:
    message = f"{EACH_WITH_EACH} ? 'alike' : 'unlike'"
    found = problems_of_items({"rule": "self.size() == 0", "messageExpression": message})
    assert len(found) < 20
    assert found[0] == "alike"
    assert found[-1].startswith("messageExpression evaluation failed due to running out of cost budget")


def test_a_loop_that_ends_early_does_not_pay_for_the_rest() -> None:
    assert problems("self.texts.all(x, self.numbers.exists(y, y == 0))", BIG) == []


def test_a_loop_in_a_loop_prepares_nothing_for_items_it_never_reaches() -> None:
    # Going through the whole map once per item, even just to list its keys, would take much longer.
    keys = {f"k{number}": number for number in range(10_000)}
    began = time.perf_counter()
    assert problems("self.map.all(k, self.map.exists(j, v, v == 0))", {"map": keys}) == []
    assert time.perf_counter() - began < 30
