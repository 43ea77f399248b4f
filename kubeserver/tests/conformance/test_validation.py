"""What a schema makes of an object: errors, defaults, pruning, nulls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import GROUP, gadget
from conformance.wire import failure, invalid

if TYPE_CHECKING:
    from conformance.wire import Api, Object

DEFAULTS: Object = {
    "maybeDefault": "set",
    "mode": "slow",
    "name": "abc",
    "nested": {"depth": 3},
    "nullDefault": "filled",
}


def wrong_type(field: str, wanted: str, found: str) -> tuple[str, str, str]:
    message = f'Invalid value: "{found}": spec.{field} in body must be of type {wanted}: "{found}"'
    return ("FieldValueTypeInvalid", f"spec.{field}", message)


def bad_value(field: str, value: object, problem: str) -> tuple[str, str, str]:
    return ("FieldValueInvalid", f"spec.{field}", f"Invalid value: {value}: spec.{field} in body {problem}")


REFUSED: list[tuple[str, Any, list[tuple[str, str, str]]]] = [
    ("name", None, [("FieldValueRequired", "spec.name", "Required value")]),
    ("name", "a", [bad_value("name", '"a"', "should be at least 2 chars long")]),
    ("name", "abcdef", [("FieldValueTooLong", "spec.name", "Too long: may not be more than 5 bytes")]),
    ("name", 5, [wrong_type("name", "string", "integer")]),
    (
        "mode",
        "x",
        [("FieldValueNotSupported", "spec.mode", 'Unsupported value: "x": supported values: "fast", "slow"')],
    ),
    ("code", "A1", [bad_value("code", '"A1"', "should match '^[a-z]+$'")]),
    ("count", 0, [bad_value("count", 0, "should be greater than or equal to 1")]),
    ("count", 10, [bad_value("count", 10, "should be less than or equal to 9")]),
    ("count", "5", [wrong_type("count", "integer", "string")]),
    ("open", 0, [bad_value("open", 0, "should be greater than 0")]),
    ("even", 3, [bad_value("even", 3, "should be a multiple of 2")]),
    ("ratio", "x", [wrong_type("ratio", "number", "string")]),
    (
        "small",
        2**40,
        [
            (
                "FieldValueInvalid",
                "<nil>",
                'Invalid value: "": Checked value must be of type integer with format int32 in spec.small',
            )
        ],
    ),
    ("on", "yes", [wrong_type("on", "boolean", "string")]),
    ("when", "today", [wrong_type("when", "date-time", "today")]),
    ("lasts", "long", [wrong_type("lasts", "duration", "long")]),
    ("address", "1.2.3", [wrong_type("address", "ipv4", "1.2.3")]),
    ("id", "nope", [wrong_type("id", "uuid", "nope")]),
    ("raw", "***", [wrong_type("raw", "byte", "***")]),
    ("port", True, [wrong_type("port", "integer,string", "boolean")]),
    ("port", 1.5, [wrong_type("port", "integer,string", "number")]),
    ("list", [], [bad_value("list", 0, "should have at least 1 items")]),
    (
        "list",
        ["a", "b", "c"],
        [("FieldValueTooMany", "spec.list", "Too many: 3: must have at most 2 items")],
    ),
    ("list", "a", [wrong_type("list", "array", "string")]),
    ("list", [5], [wrong_type("list[0]", "string", "integer")]),
    ("rows", [5], [wrong_type("rows[0]", "object", "integer")]),
    ("set", ["a", "a"], [("FieldValueDuplicate", "spec.set[1]", 'Duplicate value: "a"')]),
    (
        "map",
        [{"key": "a"}, {"key": "a"}],
        [("FieldValueDuplicate", "spec.map[1]", 'Duplicate value: {"key":"a"}')],
    ),
    ("map", [{"value": "x"}], [("FieldValueRequired", "spec.map[0].key", "Required value")]),
    (
        "labels",
        {"a": "b", "c": "d"},
        [("FieldValueTooMany", "spec.labels", "Too many: 2: must have at most 1 item")],
    ),
    ("labels", {"a": 5}, [wrong_type("labels.a", "string", "integer")]),
    (
        "either",
        {"a": "1", "b": "2"},
        [
            (
                "FieldValueInvalid",
                "<nil>",
                (
                    'Invalid value: "": "spec.either" must validate one and only one schema (oneOf). '
                    "Found 2 valid alternatives"
                ),
            )
        ],
    ),
    (
        "either",
        {},
        [
            (
                "FieldValueInvalid",
                "<nil>",
                'Invalid value: "": "spec.either" must validate one and only one schema (oneOf). Found none valid',
            ),
            ("FieldValueRequired", "spec.either.a", "Required value"),
        ],
    ),
    (
        "unlike",
        "forbidden",
        [
            (
                "FieldValueInvalid",
                "<nil>",
                'Invalid value: "": "spec.unlike" must not validate the schema (not)',
            )
        ],
    ),
    (
        "template",
        {"spec": 1},
        [
            ("FieldValueRequired", "spec.template.apiVersion", "Required value"),
            ("FieldValueRequired", "spec.template.kind", "Required value"),
        ],
    ),
]


@pytest.mark.parametrize(("field", "value", "causes"), REFUSED, ids=[f"{f}={v!r}" for f, v, _ in REFUSED])
async def test_a_value_that_breaks_the_schema_is_refused(
    api: Api, namespace: str, gadgets: str, field: str, value: Any, causes: list[tuple[str, str, str]]
) -> None:
    body = gadget("one", {"name": "abc", field: value})
    answer = await api.post(f"{gadgets}/namespaces/{namespace}/gadgets", body)
    assert answer.body == invalid("Gadget", "one", *causes, group=GROUP)


async def test_every_error_is_told(api: Api, namespace: str, gadgets: str) -> None:
    body = gadget("one", {"name": "a", "mode": "x", "count": 0})
    answer = await api.post(f"{gadgets}/namespaces/{namespace}/gadgets", body)
    assert sorted(answer.causes) == [
        bad_value("count", 0, "should be greater than or equal to 1"),
        bad_value("name", '"a"', "should be at least 2 chars long"),
        ("FieldValueNotSupported", "spec.mode", 'Unsupported value: "x": supported values: "fast", "slow"'),
    ]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, {}),
        ({"mode": "fast"}, {"mode": "fast"}),
        ({"nested": {"kept": "x"}}, {"nested": {"depth": 3, "kept": "x"}}),
        ({"nested": {"depth": 7}}, {"nested": {"depth": 7}}),
        ({"rows": [{}, {"title": "t"}]}, {"rows": [{"width": 10}, {"title": "t", "width": 10}]}),
        ({"maybe": None}, {"maybe": None}),
        ({"maybeDefault": None}, {"maybeDefault": None}),
        ({"nullDefault": None}, {}),
        ({"count": None}, {}),
        ({"port": 80}, {"port": 80}),
        ({"port": "http"}, {"port": "http"}),
        ({"ratio": 1}, {"ratio": 1}),
        ({"ratio": 1.5}, {"ratio": 1.5}),
        ({"either": {"a": "1"}}, {"either": {"a": "1"}}),
        ({"unlike": "fine"}, {"unlike": "fine"}),
        ({"address": "10.0.0.1", "lasts": "1h", "raw": "aGk="}, {"address": "10.0.0.1", "lasts": "1h", "raw": "aGk="}),
    ],
    ids=str,
)
async def test_a_value_is_kept_and_defaults_fill_the_rest(
    api: Api, namespace: str, gadgets: str, given: Object, kept: Object
) -> None:
    body = gadget("one", {"name": "abc", **given})
    created = (await api.post(f"{gadgets}/namespaces/{namespace}/gadgets", body)).made
    assert created["spec"] == {**DEFAULTS, **kept}


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("nested", {"depth": 7, "zz": 1}, {"depth": 7}),
        ("free", {"x": 1, "typed": {"known": "a", "unknown": "b"}}, {"x": 1, "typed": {"known": "a"}}),
        (
            "template",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "zz": 1}, "spec": {"a": 1}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}},
        ),
    ],
    ids=["nested", "preserved", "inner resource"],
)
async def test_unknown_fields_are_pruned(
    api: Api, namespace: str, gadgets: str, field: str, given: Object, kept: Object
) -> None:
    body = gadget("one", {"name": "abc", field: given})
    created = (await api.post(f"{gadgets}/namespaces/{namespace}/gadgets", body)).made
    assert created["spec"][field] == kept


async def test_a_removed_default_comes_back(api: Api, namespace: str, gadgets: str) -> None:
    path = f"{gadgets}/namespaces/{namespace}/gadgets"
    await api.post(path, gadget("one", {"name": "abc", "mode": "fast"}))
    changed = (await api.merge(f"{path}/one", {"spec": {"mode": None}})).made
    assert changed["spec"]["mode"] == "slow"


async def test_unknown_fields_in_metadata_are_dropped(api: Api, namespace: str, gadgets: str) -> None:
    body = gadget("one", {"name": "abc"}, nonsense="x")
    answer = await api.post(f"{gadgets}/namespaces/{namespace}/gadgets", body)
    assert "nonsense" not in answer.made["metadata"]
    assert answer.warnings == ['unknown field "metadata.nonsense"']


async def test_metadata_of_the_wrong_type_is_a_bad_request(api: Api, namespace: str, gadgets: str) -> None:
    body = gadget("one", {"name": "abc"}, labels={"a": 5})
    answer = await api.post(f"{gadgets}/namespaces/{namespace}/gadgets", body)
    assert answer.body == failure(
        400,
        "BadRequest",
        'Gadget in version "v1" cannot be handled as a Gadget: json: cannot unmarshal number into Go struct field '
        "ObjectMeta.labels of type string",
    )


async def test_an_old_error_does_not_block_other_changes(api: Api, namespace: str, gadgets: str) -> None:
    path = f"{gadgets}/namespaces/{namespace}/gadgets"
    await api.post(path, gadget("one", {"name": "abc"}))
    answer = await api.merge(f"{path}/one", {"spec": {"count": 99}})
    assert answer.causes == [bad_value("count", 99, "should be less than or equal to 9")]
    assert (await api.get(f"{path}/one")).body["metadata"]["generation"] == 1
