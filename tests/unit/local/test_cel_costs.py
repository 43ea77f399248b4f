"""No rule runs for long: what would take minutes or gigabytes stops at once, with the error Kubernetes gives."""

from __future__ import annotations

import time
from typing import Any

import pytest

from butler.local.apiserver.cel.rules import check_rules
from butler.local.apiserver.schemas.schema import parse

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
    assert time.perf_counter() - began < 2
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
