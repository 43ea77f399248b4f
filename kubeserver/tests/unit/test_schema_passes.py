"""Pruning, defaulting and validating objects against schemas: facts, and properties that hold for any JSON."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeserver.resources import ScaleSubresource
from kubeserver.schemas.correlation import Correlated
from kubeserver.schemas.defaults import apply_defaults
from kubeserver.schemas.fits import compiled
from kubeserver.schemas.pruning import prune
from kubeserver.schemas.schema import parse
from kubeserver.verbs.validation import validate

Json = dict[str, Any]

SPEC: Json = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]+$"},
        "size": {"type": "integer", "format": "int32", "minimum": 1, "default": 3},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
        "nested": {
            "type": "object",
            "default": {},
            "properties": {"on": {"type": "boolean", "default": True}},
        },
        "ports": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
            },
        },
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        },
        "either": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "inner": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
SCHEMA = parse({"type": "object", "properties": {"spec": SPEC}})


NO_LABEL = (
    'spec.inner.metadata.namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
    "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
    "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NOT_RUN = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def complaints(spec: Json, old: Json | None = None) -> list[str]:
    before = None if old is None else {"spec": old}
    return [error.text() for error in validate(SCHEMA, {"spec": spec}, before)]


# Pruning


@pytest.mark.parametrize(
    ("obj", "left", "unknown"),
    [
        ({"spec": {"name": "a"}}, {"spec": {"name": "a"}}, []),
        ({"spec": {"nope": 1}, "other": {}}, {"spec": {}}, ["other", "spec.nope"]),
        ({"spec": {"ports": [{"x": 1}, {"port": 1}]}}, {"spec": {"ports": [{}, {"port": 1}]}}, ["spec.ports[0].x"]),
        ({"spec": {"labels": {"any": "x"}}}, {"spec": {"labels": {"any": "x"}}}, []),
        ({"spec": {"free": {"x": {"y": 1}}}}, {"spec": {"free": {"x": {"y": 1}}}}, []),
        (
            {"spec": {"free": {"known": {"a": 1, "b": 2}}}},
            {"spec": {"free": {"known": {"a": 1}}}},
            ["spec.free.known.b"],
        ),
        (
            {"metadata": {"x": 1}, "kind": "K", "apiVersion": "v"},
            {"metadata": {"x": 1}, "kind": "K", "apiVersion": "v"},
            [],
        ),
        ({"spec": {"name": {"a": 1}}}, {"spec": {"name": {}}}, ["spec.name.a"]),
        ({"spec": {"tags": [{"a": 1}]}}, {"spec": {"tags": [{}]}}, ["spec.tags[0].a"]),
    ],
)
def test_what_a_schema_does_not_name_is_dropped_and_reported(obj: Json, left: Json, unknown: list[str]) -> None:
    assert prune(SCHEMA, obj) == unknown
    assert obj == left


# Defaulting


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ({}, {"size": 3, "mode": "slow", "nested": {"on": True}}),
        ({"size": 5, "mode": "fast", "nested": {"on": False}}, {"size": 5, "mode": "fast", "nested": {"on": False}}),
        ({"size": None, "nested": None}, {"size": 3, "mode": "slow", "nested": {"on": True}}),
        ({"name": None}, {"size": 3, "mode": "slow", "nested": {"on": True}}),
        ({"maybe": None}, {"maybe": None, "size": 3, "mode": "slow", "nested": {"on": True}}),
        (
            {"ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]},
            {
                "ports": [{"port": 1, "protocol": "TCP"}, {"port": 2, "protocol": "UDP"}],
                "size": 3,
                "mode": "slow",
                "nested": {"on": True},
            },
        ),
    ],
)
def test_absent_fields_get_their_defaults(spec: Json, left: Json) -> None:
    obj = {"spec": spec}
    apply_defaults(SCHEMA, obj)
    assert obj == {"spec": left}


def test_a_default_is_copied_and_never_shared() -> None:
    first: Json = {"spec": {}}
    second: Json = {"spec": {}}
    apply_defaults(SCHEMA, first)
    first["spec"]["nested"]["on"] = "changed"
    apply_defaults(SCHEMA, second)
    assert second["spec"]["nested"] == {"on": True}


# Validating


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        ({"name": "abc"}, []),
        ({}, ["spec.name: Required value"]),
        ({"name": 5}, ['spec.name: Invalid value: "integer": spec.name in body must be of type string: "integer"']),
        ({"name": "toolong"}, ["spec.name: Too long: may not be more than 5 bytes"]),
        ({"name": "A"}, ["spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]+$'"]),
        ({"name": ""}, ['spec.name: Invalid value: "": spec.name in body should be at least 1 chars long']),
        (
            {"name": "a", "mode": "odd"},
            ['spec.mode: Unsupported value: "odd": supported values: "fast", "slow"'],
        ),
        (
            {"name": "a", "size": 0},
            ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
        ),
        (
            {"name": "a", "size": 3000000000},
            ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.size'],
        ),
        ({"name": "a", "size": 2.0}, []),
        ({"name": "a", "tags": ["x", "y", "x"]}, ['spec.tags[2]: Duplicate value: "x"']),
        ({"name": "a", "ports": [{"port": 1}, {"port": 1}]}, ['spec.ports[1]: Duplicate value: {"port":1}']),
        (
            {"name": "a", "ports": [{"port": n} for n in range(4)]},
            ["spec.ports: Too many: 4: must have at most 3 items"],
        ),
        ({"name": "a", "either": 5}, []),
        (
            {"name": "a", "either": True},
            ['spec.either: Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"'],
        ),
        ({"name": "a", "inner": {"kind": "Pod"}}, ["spec.inner.apiVersion: Required value"]),
        (
            {"name": "a", "inner": {"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "A"}}},
            [
                NO_LABEL,
            ],
        ),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_kubernetes(spec: Json, texts: list[str]) -> None:
    assert complaints(spec) == texts


def test_an_update_is_forgiven_what_it_left_alone_but_not_what_it_changed() -> None:
    old = {"name": "TOO-LONG", "size": 0}
    assert complaints(copy.deepcopy(old), old) == []
    assert complaints({"name": "TOO-LONG", "size": -1}, old) == [
        "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 1"
    ]


def test_items_of_a_map_list_are_forgiven_by_key_not_by_place() -> None:
    old = {"name": "a", "ports": [{"port": 1, "protocol": 5}, {"port": 2}]}
    assert complaints({"name": "a", "ports": [{"port": 2}, {"port": 1, "protocol": 5}]}, old) == []
    assert complaints({"name": "a", "ports": [{"port": 2, "protocol": 5}]}, old) != []


def test_a_status_update_is_held_against_the_status_alone() -> None:
    schema = parse(
        {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "required": ["a"]},
                "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
            },
        }
    )
    obj = {"spec": {}, "status": {"n": "x"}}
    errors = validate(schema, obj, {"spec": {}}, subresource="status")
    assert [error.text() for error in errors] == [
        'status.n: Invalid value: "string": n in body must be of type integer: "string"'
    ]


def test_the_numbers_behind_scale_are_checked() -> None:
    schema = parse({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    scale = ScaleSubresource(".spec.replicas", ".status.replicas", ".status.selector")
    errors = validate(schema, {"spec": {"replicas": -1}, "status": {"replicas": "x", "selector": 5}}, scale=scale)
    assert [error.text() for error in errors] == [
        ".spec.replicas: Invalid value: -1: should be a non-negative integer",
        ".status.replicas: Invalid value: 0: .status.replicas accessor error: x is of the type string, expected int64",
        '.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string',
    ]


def test_rules_are_not_run_on_what_has_the_wrong_shape() -> None:
    ruled = {**SPEC, "x-kubernetes-validations": [{"rule": "self.size < 2"}]}
    schema = parse({"type": "object", "properties": {"spec": ruled}})
    texts = [error.text() for error in validate(schema, {"spec": {"size": 5}})]
    assert texts == [
        "spec.name: Required value",
        NOT_RUN,
    ]


# Properties

SCALARS = st.none() | st.booleans() | st.integers(-10, 10) | st.floats(allow_nan=False) | st.text(max_size=4)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*SPEC["properties"], "port", "protocol", "known", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.builds(lambda spec: {"spec": spec}, ANYTHING)


@settings(max_examples=300, deadline=None)
@given(OBJECTS)
def test_a_pruned_and_defaulted_object_stays_as_it_is(obj: Json) -> None:
    prune(SCHEMA, obj)
    apply_defaults(SCHEMA, obj)
    again = copy.deepcopy(obj)
    assert prune(SCHEMA, again) == []
    apply_defaults(SCHEMA, again)
    assert again == obj


@settings(max_examples=300, deadline=None)
@given(OBJECTS, OBJECTS)
def test_validation_takes_any_json_and_unchanged_objects_pass_again(obj: Json, old: Json) -> None:
    validate(SCHEMA, obj, old)
    prune(SCHEMA, obj)
    # Embedded resources, items without a key and fields unknown to the schema are judged anew each time.
    spec = obj["spec"] if isinstance(obj["spec"], dict) else {}
    if not {"free", "inner", "ports"} & set(spec):
        assert validate(SCHEMA, obj, copy.deepcopy(obj)) == []


@settings(max_examples=300, deadline=None)
@given(OBJECTS)
def test_what_fits_quickly_has_nothing_wrong_with_it(obj: Json) -> None:
    if compiled(SCHEMA)(obj):
        kinds = {error.kind for error in validate(SCHEMA, obj)}
        assert kinds <= {"FieldValueDuplicate", "FieldValueRequired", "FieldValueInvalid"}
        assert all(error.path.startswith("spec.") for error in validate(SCHEMA, obj))


@given(
    OBJECTS.filter(
        lambda obj: not {"free", "inner", "ports"} & set(obj["spec"] if isinstance(obj["spec"], dict) else ())
    )
)
def test_every_object_equals_its_copy(obj: Json) -> None:
    prune(SCHEMA, obj)
    assert Correlated(SCHEMA, obj, copy.deepcopy(obj)).equal()
