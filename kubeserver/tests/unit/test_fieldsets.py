"""Sets of field paths: the algebra of sets must hold for the trees they are kept in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.patching.fieldsets import (
    SELF,
    BadFieldSetError,
    FieldSet,
    contains,
    difference,
    element_of_key,
    element_of_value,
    intersection,
    of_document,
    of_dotted,
    of_path,
    ordered,
    paths,
    text,
    union,
    without,
)

Path = tuple[str, ...]

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', "v:1", 'v:"x"'])
many_paths = st.sets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=8)


def tree(wanted: set[Path]) -> FieldSet:
    found: FieldSet = {}
    for path in wanted:
        found = union(found, of_path(*path))
    return found


def members(fields: FieldSet) -> set[Path]:
    return set(paths(fields))


def is_canonical(fields: FieldSet) -> bool:
    """No node says it is a field without having children, and the root never does."""
    return SELF not in fields and all(
        not (SELF in node and len(node) == 1) and is_canonical({k: v for k, v in node.items() if k != SELF})
        for node in fields.values()
    )


@given(many_paths)
def test_a_set_holds_the_paths_it_was_made_of(wanted: set[Path]) -> None:
    fields = tree(wanted)
    assert members(fields) == wanted
    assert is_canonical(fields)
    assert all(contains(fields, path) for path in wanted)
    assert not contains(fields, ("f:a", "f:zzz"))
    assert not contains(fields, ())


@given(many_paths, many_paths)
def test_union_intersection_and_difference_are_those_of_sets(left: set[Path], right: set[Path]) -> None:
    ours, theirs = tree(left), tree(right)
    kept = json.dumps([ours, theirs])
    for result, expected in (
        (union(ours, theirs), left | right),
        (intersection(ours, theirs), left & right),
        (difference(ours, theirs), left - right),
        (difference(difference(ours, theirs), theirs), left - right),
    ):
        assert members(result) == expected
        assert is_canonical(result)
    assert json.dumps([ours, theirs]) == kept, "sets are values"


@given(many_paths, many_paths)
def test_without_takes_everything_below_a_field_too(left: set[Path], right: set[Path]) -> None:
    rest = without(tree(left), tree(right))
    gone = {path for path in left if any(path[: len(root)] == root for root in right)}
    assert members(rest) == left - gone
    assert is_canonical(rest)


@given(many_paths)
def test_a_set_survives_its_text(wanted: set[Path]) -> None:
    fields = tree(wanted)
    again = of_document(json.loads(json.dumps(ordered(fields))))
    assert again == fields
    assert list(ordered(fields)) == sorted(fields)


def test_what_clients_write_is_brought_into_one_form() -> None:
    document = {
        ".": {},
        "f:spec": {
            'k:{"protocol":"TCP", "port":80}': {".": {}},
            'v: "a"': {},
            "i:07": {},
            "z:from the future": {"f:x": {}},
        },
        "f:metadata": {".": {}, "f:labels": {}},
    }
    assert of_document(document) == {
        "f:spec": {'k:{"port":80,"protocol":"TCP"}': {}, 'v:"a"': {}, "i:7": {}},
        "f:metadata": {".": {}, "f:labels": {}},
    }
    assert of_document(None) == {}


@pytest.mark.parametrize("document", [{"f": {}}, {"spec": {}}, {"v:{": {}}, {"k:3": {}}, {"i:x": {}}, {"f:a": 3}, "x"])
def test_what_is_no_set_of_fields_is_refused(document: Any) -> None:
    with pytest.raises(BadFieldSetError):
        of_document(document)


def test_elements_are_written_as_go_writes_json() -> None:
    assert element_of_value("a<b") == 'v:"a\\u003cb"'
    assert element_of_value(1.0) == "v:1"
    assert element_of_value(True) == "v:true"
    assert element_of_key((("name", "é"), ("port", 80))) == 'k:{"name":"é","port":80}'


def test_a_path_reads_as_in_a_conflict() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:hosts", 'v:"a\\u003cb"')
    assert text(path) == '.spec.ports[port=80,protocol="TCP"].hosts[="a<b"]'
    assert text(("f:a", "i:3")) == ".a[3]"


def test_paths_come_level_by_level_and_numbers_in_their_order() -> None:
    fields = union(of_dotted("b", "a.z"), tree({("f:l", "v:10"), ("f:l", "v:9"), ("f:l", 'k:{"n":1}')}))
    assert [text(path) for path in paths(fields)] == [".b", ".a.z", ".l[n=1]", ".l[=9]", ".l[=10]"]
