"""CEL rules in schemas: what they refuse, in which words, and what they know of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP, rule
from conformance.wire import invalid

if TYPE_CHECKING:
    from conformance.wire import Api, Causes, Object

ORDER = "Invalid value: failed rule: !has(self.low) || !has(self.high) || self.low <= self.high"

REFUSED: list[tuple[Object, Causes]] = [
    ({"low": 5, "high": 1}, [("FieldValueInvalid", "spec", ORDER)]),
    ({"word": "secret"}, [("FieldValueForbidden", "spec.word", "Forbidden: the word is secret")]),
    ({"nick": "longnick"}, [("FieldValueInvalid", "spec", "Invalid value: nick longnick is too long")]),
    ({"once": "x"}, [("FieldValueInvalid", "spec.once", 'Invalid value: "x": once must start as first')]),
    ({"address": "x"}, [("FieldValueInvalid", "spec.address", 'Invalid value: "x": not an address')]),
    (
        {"network": "10.0.0.0/30"},
        [("FieldValueInvalid", "spec.network", 'Invalid value: "10.0.0.0/30": too small')],
    ),
    (
        {"servers": [{"name": "a", "weight": 0}, {"name": "b", "weight": 1}]},
        [("FieldValueInvalid", "spec.servers[0]", "Invalid value: weight must be positive")],
    ),
    (
        {"servers": [{"name": "a", "weight": 1}, {"name": "a", "weight": 1}]},
        [("FieldValueInvalid", "spec.servers", "Invalid value: names must differ")],
    ),
    (
        {"servers": [{"name": "a"}]},
        [
            (
                "FieldValueInvalid",
                "spec.servers[0]",
                'Invalid value: "object": no such key: weight evaluating rule: weight must be positive',
            )
        ],
    ),
    ({"quantity": "2Gi"}, [("FieldValueInvalid", "spec.quantity", 'Invalid value: "2Gi": too much')]),
    (
        {"quantity": "x"},
        [
            (
                "FieldValueInvalid",
                "spec.quantity",
                (
                    'Invalid value: "string": quantities must match the regular expression '
                    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' evaluating rule: too much"
                ),
            )
        ],
    ),
    (
        {"low": 5, "high": 1, "nick": "longnick"},
        [
            ("FieldValueInvalid", "spec", ORDER),
            ("FieldValueInvalid", "spec", "Invalid value: nick longnick is too long"),
        ],
    ),
    (
        {"word": 5, "low": 3, "high": 1},
        [
            (
                "FieldValueTypeInvalid",
                "spec.word",
                'Invalid value: "integer": spec.word in body must be of type string: "integer"',
            ),
            (
                "FieldValueInvalid",
                "<nil>",
                (
                    "Invalid value: null: some validation rules were not checked because the object was invalid; "
                    "correct the existing errors to complete validation"
                ),
            ),
        ],
    ),
]


@pytest.mark.parametrize(("spec", "causes"), REFUSED, ids=[str(spec) for spec, _ in REFUSED])
async def test_what_breaks_a_rule_is_refused(
    api: Api, namespace: str, rules: str, spec: Object, causes: Causes
) -> None:
    answer = await api.post(f"{rules}/namespaces/{namespace}/rules", rule("one", spec))
    assert answer.body == invalid("Rule", "one", *causes, group=GROUP)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"low": 1, "high": 5},
        {"low": 5},
        {"word": "public", "nick": "nick"},
        {"once": "first"},
        {"address": "fd00::1"},
        {"network": "10.0.0.0/24"},
        {"servers": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]},
        {"quantity": "5Mi"},
        {"fixed": "anything", "owner": "any-owner"},
    ],
    ids=str,
)
async def test_what_keeps_the_rules_is_taken(api: Api, namespace: str, rules: str, spec: Object) -> None:
    answer = await api.post(f"{rules}/namespaces/{namespace}/rules", rule("one", spec))
    assert answer.made["spec"] == spec


@pytest.mark.parametrize(
    ("before", "patch", "causes"),
    [
        (
            {"fixed": "a"},
            {"fixed": "b"},
            [("FieldValueInvalid", "spec.fixed", 'Invalid value: "b": fixed is immutable')],
        ),
        ({"fixed": "a"}, {"fixed": "a", "low": 1}, []),
        ({"fixed": "a"}, {"fixed": None}, []),
        ({}, {"fixed": "a"}, []),
        (
            {},
            {"owner": "a"},
            [("FieldValueInvalid", "spec", "Invalid value: owner may not come or go")],
        ),
        (
            {"owner": "a"},
            {"owner": None},
            [("FieldValueInvalid", "spec", "Invalid value: owner may not come or go")],
        ),
        ({"owner": "a"}, {"owner": "b"}, []),
        ({"once": "first"}, {"once": "second"}, []),
        (
            {},
            {"once": "second"},
            [("FieldValueInvalid", "spec.once", 'Invalid value: "second": once must start as first')],
        ),
    ],
    ids=str,
)
async def test_transition_rules_compare_with_what_was(
    api: Api, namespace: str, rules: str, before: Object, patch: Object, causes: Causes
) -> None:
    path = f"{rules}/namespaces/{namespace}/rules"
    assert (await api.post(path, rule("one", before))).status == 201
    answer = await api.merge(f"{path}/one", {"spec": patch})
    if causes:
        assert answer.body == invalid("Rule", "one", *causes, group=GROUP)
    else:
        assert answer.status == 200
