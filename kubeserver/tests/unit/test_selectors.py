"""Selectors read and refuse as Kubernetes' do. The messages were compared with its own parser on 180,000 texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.resources import Resource, Strategy
from kubeserver.schemas.schema import Schema
from kubeserver.wire.selectors import (
    label_selector_from_json,
    parse_field_selector,
    parse_label_selector,
)
from kubeserver.wire.status import ApiError

NAME_GRAMMAR = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("selector", "matching", "other"),
    [
        ("a=1", {"a": "1"}, {"a": "2"}),
        ("a==1", {"a": "1"}, {}),
        ("a!=1", {}, {"a": "1"}),
        ("a", {"a": ""}, {"b": ""}),
        ("!a", {"b": ""}, {"a": ""}),
        ("a in (1, 2)", {"a": "2"}, {"a": "3"}),
        ("a in (1,)", {"a": ""}, {}),
        ("a in ()", {"a": ""}, {"a": "x"}),
        ("a notin (1,2)", {}, {"a": "1"}),
        ("a notin (1,2)", {"a": "3"}, {"a": "2"}),
        ("a>3", {"a": "4"}, {"a": "3"}),
        ("a>3", {"a": "10"}, {"a": "x"}),
        ("a<3", {"a": "2"}, {}),
        ("a=", {"a": ""}, {"a": "1"}),
        ("in in (in)", {"in": "in"}, {"in": "notin"}),
        ("a=1,b!=2,!c", {"a": "1"}, {"a": "1", "c": ""}),
        ("example.com/tier=front", {"example.com/tier": "front"}, {"tier": "front"}),
    ],
)
def test_a_label_selector_tells_objects_apart(selector: str, matching: dict[str, str], other: dict[str, str]) -> None:
    parsed = parse_label_selector(selector)
    assert parsed.matches(matching)
    assert not parsed.matches(other)


@pytest.mark.parametrize("text", ["", "  ", "\t"])
def test_an_empty_label_selector_matches_everything(text: str) -> None:
    parsed = parse_label_selector(text)
    assert parsed.everything
    assert parsed.matches({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in 1", "unable to parse requirement: found '1' expected: '('"),
        ("a in (1", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
        ("-a", f'unable to parse requirement: <nil>: Invalid value: "-a": name part {NAME_GRAMMAR}'),
        (
            "a>x",
            (
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
                "the value must be an integer"
            ),
        ),
        (
            "a=-",
            (
                'unable to parse requirement: values[0][a]: Invalid value: "-": a valid label must be '
                "an empty string "
                "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
                "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
                "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
    ],
)
def test_an_unreadable_label_selector_is_refused_in_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_label_selector(text)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert refused.value.message == message


KEYS = ("a", "b", "in", "example.com/c")
VALUES = ("", "1", "2", "30", "in", "x")
one_requirement = st.tuples(
    st.sampled_from(KEYS),
    st.sampled_from(("=", "==", "!=", "in", "notin", "exists", "!")),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
)


def naive(requirement: tuple[str, str, list[str]], labels: dict[str, str]) -> bool:
    key, operator, values = requirement
    if operator == "exists":
        return key in labels
    if operator == "!":
        return key not in labels
    wanted = values if operator in {"in", "notin"} else values[:1]
    inside = key in labels and labels[key] in wanted
    return not inside if operator in {"!=", "notin"} else inside


def written(requirement: tuple[str, str, list[str]], gap: str) -> str:
    key, operator, values = requirement
    if operator in {"exists", "!"}:
        return key if operator == "exists" else f"!{gap}{key}"
    if operator in {"in", "notin"}:
        return f"{key} {operator}{gap}({f'{gap},'.join(values)})"
    return f"{key}{gap}{operator}{gap}{values[0]}"


@given(
    st.lists(one_requirement, min_size=1, max_size=4),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.sampled_from(["", " ", "\t "]),
)
def test_selectors_agree_with_their_definition(
    requirements: list[tuple[str, str, list[str]]], labels: dict[str, str], gap: str
) -> None:
    parsed = parse_label_selector(",".join(written(requirement, gap) for requirement in requirements))
    assert parsed.matches(labels) == all(naive(requirement, labels) for requirement in requirements)
    assert parse_label_selector(str(parsed)) == parsed, "a selector reads back as what it was written from"


@given(st.text(max_size=30))
def test_any_text_is_a_selector_or_a_400(text: str) -> None:
    code = 200
    try:
        parse_label_selector(text).matches({"a": "b"})
    except ApiError as refused:
        code = refused.code
    assert code in {200, 400}


def test_a_json_selector_joins_labels_and_expressions() -> None:
    selector = label_selector_from_json(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "gone", "operator": "DoesNotExist"},
            ],
        }
    )
    assert selector.matches({"app": "web", "tier": "b"})
    assert not selector.matches({"app": "web", "tier": "b", "gone": ""})
    assert str(selector) == "app=web,!gone,tier in (a,b)"


def test_an_absent_json_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not label_selector_from_json(None).matches({})
    assert not label_selector_from_json(None).everything
    assert label_selector_from_json({}).everything


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Near"}, '"Near" is not a valid label selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["1"]},
            'values: Invalid value: ["1"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_bad_json_selector_is_refused(expression: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        label_selector_from_json({"matchExpressions": [expression]})
    assert refused.value.message == message


def resource(*, custom: bool = False, namespaced: bool = True, **selectable: Any) -> Resource:
    fields = {name.replace("_", "."): read for name, read in selectable.items()}
    return Resource(
        group="",
        version="v1",
        plural="things",
        singular="thing",
        kind="Thing",
        namespaced=namespaced,
        schema=Schema(),
        custom=custom,
        strategy=Strategy(selectable=fields),
    )


POD = {"metadata": {"name": "a,b", "namespace": "ns"}, "spec": {"nodeName": "n1"}}


def node_name(obj: dict[str, Any]) -> str:
    return str(obj["spec"].get("nodeName", ""))


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("=", True),
        ("metadata.name=a\\,b", True),
        ("metadata.name==a\\,b,metadata.namespace=ns", True),
        ("metadata.name!=a\\,b", False),
        ("spec.nodeName=n1", True),
        ("spec.nodeName!=n1", False),
        ("spec.nodeName=", False),
        (",,spec.nodeName=n1,", True),
    ],
)
def test_a_field_selector_tells_objects_apart(text: str, matches: bool) -> None:
    assert parse_field_selector(text, resource(spec_nodeName=node_name)).matches(POD) is matches


def test_a_field_selector_names_the_one_object_it_can_match() -> None:
    selector = parse_field_selector("metadata.name=a\\=b,metadata.namespace!=x", resource())
    assert selector.exact("metadata.name") == "a=b"
    assert selector.exact("metadata.namespace") is None
    assert str(selector) == "metadata.name=a\\=b,metadata.namespace!=x"


@pytest.mark.parametrize(
    ("text", "of", "message"),
    [
        ("spec.foo=1", resource(custom=True), "field label not supported: spec.foo"),
        ("spec.foo=1", resource(spec_nodeName=node_name), "field label not supported: spec.foo"),
        (
            "spec.foo=1",
            resource(),
            '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            "metadata.namespace=x",
            resource(custom=True, namespaced=False),
            "field label not supported: metadata.namespace",
        ),
        ("oops", resource(), "invalid selector: 'oops'; can't understand 'oops'"),
        ("metadata.name=a=b", resource(), "invalid field selector: unescaped character in value: 61"),
        ("metadata.name=a\\b", resource(), "invalid field selector: invalid escape sequence: \\b"),
        ("metadata.name=a\\", resource(), "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_field_selector_that_cannot_be_honoured_is_refused(text: str, of: Resource, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_field_selector(text, of)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_a_cluster_wide_built_in_takes_a_namespace_and_matches_nothing_in_it() -> None:
    selector = parse_field_selector("metadata.namespace=x", resource(namespaced=False))
    assert not selector.matches({"metadata": {"name": "a"}})
