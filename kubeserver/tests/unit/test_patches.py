"""JSON patch and merge patch: the examples of their RFCs, and what Kubernetes does differently."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.patching.patches import MOST_OPERATIONS, json_patch, merge_patch
from kubeserver.wire.status import ApiError

Json = dict[str, Any]

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=4)

RFC_6902 = [
    ("A.1 add a member", {"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    (
        "A.2 add an element",
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    ("A.3 remove a member", {"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    (
        "A.4 remove an element",
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    (
        "A.5 replace a value",
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    (
        "A.6 move a value",
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        "A.7 move an element",
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        "A.8 test values",
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    (
        "A.10 add a nested object",
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    (
        "A.11 ignore unknown members",
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        {"foo": "bar", "baz": "qux"},
    ),
    (
        "A.14 escapes in order",
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}],
        {"/": 9, "~1": 10},
    ),
    (
        "A.16 add an array",
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
]


@pytest.mark.parametrize(
    ("document", "operations", "result"), [case[1:] for case in RFC_6902], ids=[c[0] for c in RFC_6902]
)
def test_json_patch_does_the_examples_of_its_rfc(document: Json, operations: list[Json], result: Json) -> None:
    before = copy.deepcopy(document)
    assert json_patch(document, operations) == result
    assert document == before, "the document itself is never changed"


KUBERNETES = [
    ("replace adds a missing member", {}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
    ("a negative index counts from the end", {"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
    ("a copy of nothing is null", {}, [{"op": "copy", "from": "/a", "path": "/b"}], {"b": None}),
    ("an add without a value adds null", {}, [{"op": "add", "path": "/a"}], {"a": None}),
    ("what stands before the first slash is ignored", {}, [{"op": "add", "path": "x/a", "value": 1}], {"a": 1}),
    ("a missing member tests as null", {}, [{"op": "test", "path": "/a", "value": None}], {}),
    ("null instead of operations changes nothing", {"a": 1}, None, {"a": 1}),
    ("the whole document can be replaced", {"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
]


@pytest.mark.parametrize(
    ("document", "operations", "result"), [c[1:] for c in KUBERNETES], ids=[c[0] for c in KUBERNETES]
)
def test_json_patch_has_the_habits_of_kubernetes(document: Json, operations: object, result: Json) -> None:
    assert json_patch(document, operations) == result


INAPPLICABLE = [
    ("A.9 a test that fails", [{"op": "test", "path": "/a", "value": "bar"}]),
    ("A.12 add to a nonexistent target", [{"op": "add", "path": "/baz/bat", "value": "qux"}]),
    ("A.15 text is not a number", [{"op": "test", "path": "/n", "value": "10"}]),
    ("1 is not true", [{"op": "test", "path": "/n", "value": True}]),
    ("10 is not 10.0", [{"op": "test", "path": "/n", "value": 10.0}]),
    ("an unknown operation", [{"op": "grow", "path": "/a"}]),
    ("no operation", [{"path": "/a"}]),
    ("no path", [{"op": "remove"}]),
    ("no place to take from", [{"op": "move", "path": "/a"}]),
    ("null for an operation", [None]),
    ("remove what is not there", [{"op": "remove", "path": "/zzz"}]),
    ("move what is not there", [{"op": "move", "from": "/zzz", "path": "/a"}]),
    ("an index past the end", [{"op": "remove", "path": "/l/2"}]),
    ("an index that is no number", [{"op": "remove", "path": "/l/1_0"}]),
    ("an index far below zero", [{"op": "add", "path": "/l/-4", "value": 1}]),
    ("a path through a scalar", [{"op": "add", "path": "/a/b", "value": 1}]),
    ("the document cannot be removed", [{"op": "remove", "path": ""}]),
    ("the document cannot become a scalar", [{"op": "replace", "path": "", "value": 3}]),
    ("one of many fails", [{"op": "add", "path": "/b", "value": 1}, {"op": "remove", "path": "/zzz"}]),
]


@pytest.mark.parametrize("operations", [case[1] for case in INAPPLICABLE], ids=[case[0] for case in INAPPLICABLE])
def test_a_json_patch_that_does_not_apply_is_refused_without_a_word_why(operations: list[Any]) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({"a": "x", "n": 10, "l": [1, 2]}, operations)
    status = refused.value.status()
    assert (status["code"], status["reason"], status["details"]) == (422, "Invalid", {})
    assert status["message"] == "the server rejected our request due to an error in our request"


UNDECODABLE = [
    ({}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
    ("x", "json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
    ([1], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
    ([{"op": 1}], "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
    ([{"op": "add", "path": []}], "json: cannot unmarshal array into Go struct field jsonPatchOp.path of type string"),
    ([{"from": False}], "json: cannot unmarshal bool into Go struct field jsonPatchOp.from of type string"),
]


@pytest.mark.parametrize(("operations", "why"), UNDECODABLE)
def test_what_is_no_json_patch_is_a_bad_request(operations: object, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({}, operations)
    assert (refused.value.code, refused.value.message) == (400, f"error decoding patch: {why}")


def test_more_than_ten_thousand_operations_are_too_many() -> None:
    operation = {"op": "test", "path": "/a", "value": 1}
    json_patch({"a": 1}, [operation] * MOST_OPERATIONS)
    with pytest.raises(ApiError) as refused:
        json_patch({"a": 1}, [operation] * (MOST_OPERATIONS + 1))
    assert refused.value.code == 413
    assert refused.value.reason == "RequestEntityTooLarge"
    assert refused.value.message.endswith("maximum operations in a JSON patch is 10000, got 10001")


# The table of RFC 7396, as far as its documents are objects: everything Kubernetes stores is one.
RFC_7396 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    # and what is Kubernetes' own: nulls below lists are dropped where something is added
    ({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
    ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
]


@pytest.mark.parametrize(("document", "patch", "result"), RFC_7396)
def test_merge_patch_does_the_examples_of_its_rfc(document: Json, patch: Json, result: Json) -> None:
    before = copy.deepcopy(document)
    assert merge_patch(document, patch) == result
    assert document == before


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (None, "Invalid JSON Patch"),
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (3, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
    ],
)
def test_a_merge_patch_is_an_object(patch: object, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        merge_patch({}, patch)
    assert (refused.value.code, refused.value.message) == (400, why)


@given(objects)
def test_an_empty_patch_changes_nothing(document: Json) -> None:
    assert merge_patch(document, {}) == document
    assert json_patch(document, []) == document


# Nulls below lists are kept or dropped depending on what was there before, so they are left out here.
patches = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        scalars | st.lists(st.integers(0, 3), max_size=2),
        lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(objects, patches)
def test_merging_the_same_patch_twice_is_merging_it_once(document: Json, patch: Json) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(objects, objects)
def test_what_a_merge_patch_does_not_name_is_kept_as_it_is(document: Json, patch: Json) -> None:
    result = merge_patch(document, patch)
    for name in document.keys() - patch.keys():
        assert result[name] is document[name]


@given(objects, st.text(max_size=3), values)
def test_added_removed_and_tested_members_agree(document: Json, name: str, value: object) -> None:
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    added = json_patch(
        document, [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]
    )
    assert added == {**document, name: value}
    removed = json_patch(added, [{"op": "remove", "path": path}])
    assert removed == {key: each for key, each in document.items() if key != name}
