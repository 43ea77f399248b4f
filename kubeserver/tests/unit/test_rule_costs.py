"""What rules may cost, before any object comes; `tests/agreement` compares the numbers with a real kube-apiserver."""

from __future__ import annotations

from typing import Any

import cost_cases
import pytest

from kubeserver.cel import types as cel_types
from kubeserver.cel.amounts import MOST, plus, scaled, times
from kubeserver.cel.extents import extent_of
from kubeserver.cel.rules import check_rules, compile_rules
from kubeserver.definitions.definition import default_crd
from kubeserver.definitions.validation import validate_crd
from kubeserver.schemas.schema import parse

Json = dict[str, Any]

TEXT: Json = {"type": "string", "maxLength": 10}
NUMBERS: Json = {"type": "array", "items": {"type": "integer"}, "maxItems": 100}


def ruled(schema: Json, *rules: str | Json) -> Json:
    return {**schema, "x-kubernetes-validations": [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def cost(schema: Json, rule: str) -> int:
    parsed = parse(ruled(schema, rule))
    kind, extent = cel_types.of_schema(parsed), extent_of(parsed)
    assert kind is not None
    (compiled,) = compile_rules(parsed.rules, kind, parsed, extent)
    assert compiled.problem == ""
    return compiled.cost


def definition(spec: Json) -> Json:
    schema = {"type": "object", "properties": {"spec": spec}}
    crd: Json = {
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
        "status": {"storedVersions": ["v1"]},
    }
    default_crd(crd)
    return crd


def refusals(spec: Json) -> list[str]:
    return [error.text() for error in validate_crd(definition(spec))]


@pytest.mark.parametrize(
    ("schema", "rule", "expected"),
    [
        ({"type": "integer"}, "self == 1", 1),
        ({"type": "integer"}, "self > 1", 2),
        (TEXT, "self == 'abcdefghijklm'", 3),
        (TEXT, "self.contains('abcdefghijklm')", 9),
        (NUMBERS, "self.all(x, x > 0)", 502),
        (NUMBERS, "self.all(x, self.all(y, x == y))", 100 * (3 + 1 + 1 + 100 * 5) + 2),
    ],
)
def test_a_rule_costs_what_its_largest_value_would(schema: Json, rule: str, expected: int) -> None:
    assert cost(schema, rule) == expected


def test_a_value_without_limit_is_as_large_as_a_request_may_be() -> None:
    request = 3 * 1024 * 1024
    texts = extent_of(parse({"type": "array", "items": {"type": "string"}}))
    assert texts is not None
    assert texts.most == (request - 2) // 3
    assert texts.item is not None
    assert texts.item.most == request - 2


def test_required_fields_make_fewer_objects_fit_into_a_request() -> None:
    def most(*required: str) -> int:
        properties = {"name": {"type": "string"}, "kind": {"type": "string", "default": "x"}}
        item = {"type": "object", "properties": properties, "required": list(required)}
        found = extent_of(parse({"type": "array", "items": item}))
        assert found is not None
        return found.most

    assert most("name") < most()
    assert most("kind") == most()  # its default need not be sent


def test_a_rule_in_a_list_counts_once_per_item() -> None:
    item = ruled({"type": "string", "maxLength": 1000}, "self.contains('abc')")  # costs 401
    assert refusals({"type": "array", "maxItems": 24_937, "items": item}) == []
    (refusal,) = refusals({"type": "array", "maxItems": 24_938, "items": item})
    assert "estimated rule cost exceeds budget by factor of 1.000014x (try simplifying the rule" in refusal


def test_the_four_dearest_rules_are_named_when_all_together_are_too_dear() -> None:
    lists = {
        f"l{length}": ruled({**NUMBERS, "maxItems": length}, "self.all(x, self.all(y, x == y))")
        for length in range(1300, 1320)
    }
    found = refusals({"type": "object", "properties": lists})
    named = [text for text in found if "contributed to estimated rule cost total" in text]
    assert [text.partition("properties[spec].properties[")[2][:5] for text in named] == [
        "l1319",
        "l1318",
        "l1317",
        "l1316",
    ]
    assert "estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.7x" in found[-1]
    assert len(found) == 5


def test_a_message_may_be_too_dear_as_well() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    found = refusals(ruled(texts, {"rule": "self.size() > 1", "messageExpression": "self.join(', ')"}))
    assert "x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost" in found[0]


def test_a_rule_that_was_accepted_before_may_stay_while_its_schema_does_not_change() -> None:
    crd = definition(ruled({**NUMBERS, "maxItems": 2000}, "self.all(x, self.all(y, x == y))"))
    assert len(validate_crd(crd)) == 1
    assert validate_crd(crd, crd) == []


def test_estimates_stop_at_the_largest_number() -> None:
    assert plus(MOST, 1) == times(MOST, 2) == scaled(MOST, 1.5) == MOST
    assert scaled(1, 0.1) == 1
    assert scaled(0, 0.1) == 0


def small(schema: Json) -> Any:
    """Some value of a schema."""
    kind = schema.get("type")
    if kind == "object":
        if "additionalProperties" in schema:
            return {"x": small(schema["additionalProperties"])}
        return {name: small(each) for name, each in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [small(schema["items"])] * 3
    if kind == "string" and schema.get("format"):
        texts = {"date-time": "2020-01-01T00:00:00Z", "date": "2020-01-01", "duration": "1h", "byte": "aGVsbG8="}
        return texts[schema["format"]]
    return {"string": "abc", "boolean": True, "number": 1.5}.get(str(kind), 5)


@pytest.mark.parametrize("name", cost_cases.EXACT)
def test_what_is_estimated_also_runs(name: str) -> None:
    """No rule of the table takes more than a small part of what the estimate allows it on a small value."""
    schema, rules = cost_cases.EXACT[name]
    value = small(schema)
    for rule in rules:
        object_schema = parse({"type": "object", "properties": {"v": ruled(schema, rule)}})
        details = [error.detail for error in check_rules(object_schema, {"v": value}, {"v": value})]
        assert not any("cost" in detail or "compile error" in detail for detail in details), rule
