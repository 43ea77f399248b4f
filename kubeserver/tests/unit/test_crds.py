"""Definitions of custom resources: defaults, names, what they are refused for, and what they bring."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from kubeserver.definitions import validation
from kubeserver.definitions.definition import accept_names, default_crd, resources_of
from kubeserver.definitions.schemas import validate_schema
from kubeserver.definitions.validation import changes_refused, validate_crd, warnings_of
from kubeserver.schemas.defaults import apply_defaults
from kubeserver.schemas.pruning import prune
from kubeserver.verbs.validation import validate

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


def definition(spec: Json | None = None, **changes: Any) -> Json:
    schema = {"type": "object", "properties": {"spec": spec or {"type": "object"}}}
    crd: Json = {
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **changes}
            ],
        },
    }
    default_crd(crd)
    return crd


def complaints(crd: Json) -> list[str]:
    return [error.text() for error in validate_crd(crd)]


def test_what_an_author_leaves_out_is_filled_in() -> None:
    crd = definition()
    assert crd["spec"]["names"] == {
        "plural": "things",
        "kind": "Thing",
        "singular": "thing",
        "listKind": "ThingList",
    }
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert crd["status"]["storedVersions"] == ["v1"]
    assert complaints(crd) == []


def test_a_definition_that_is_right_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def look(*given: Any, **more: Any) -> list[FieldError]:
        nonlocal looked
        looked += 1
        return validate_schema(*given, **more)

    monkeypatch.setattr(validation, "validate_schema", look)
    right = {"type": "object", "properties": {"looked": {"type": "string"}}}
    wrong = {"type": "object", "properties": {"looked": {"type": "strung"}}}
    assert [complaints(definition(right)) for _ in range(3)] == [[], [], []]
    assert looked == 1
    first, again = complaints(definition(wrong)), complaints(definition(wrong))
    assert first == again != []
    assert looked == 3


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"properties": {"a": {"type": "string"}}},
            "{}.type: Required value: must not be empty for specified object fields",
        ),
        ({"type": "array"}, "{}.items: Required value: must be specified"),
        (
            {"type": "text"},
            (
                '{}.type: Unsupported value: "text": supported values: '
                '"array", "boolean", "integer", "number", "object", "string"'
            ),
        ),
        (
            {"type": "string", "pattern": "["},
            (
                '{}.pattern: Invalid value: "[": must be a valid regular expression, but isn\'t: '
                "error parsing regexp: missing closing ]: `[`"
            ),
        ),
        (
            {"type": "string", "default": 5},
            '{}.default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            (
                "{}.uniqueItems: Forbidden: uniqueItems cannot be set to true "
                "since the runtime complexity becomes quadratic"
            ),
        ),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": "self.x == 1"}]},
            (
                '{}.x-kubernetes-validations[0].rule: Invalid value: {{"Rule":"self.x == 1","Message":"",'
                '"MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}}: compilation failed: '
                "ERROR: <input>:1:5: type 'string' does not support field selection\n | self.x == 1\n | ....^"
            ),
        ),
    ],
)
def test_a_bad_schema_is_refused_where_kubernetes_sees_it(spec: Json, text: str) -> None:
    where = "spec.validation.openAPIV3Schema.properties[spec]"
    assert complaints(definition(spec)) == [text.format(where)]


def test_conversion_by_webhook_is_refused_rather_than_ignored() -> None:
    crd = definition()
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
    assert complaints(crd) == [
        (
            "spec.conversion.strategy: Forbidden: conversion by webhook is not available in the embedded API server: "
            "versions are converted by None only"
        )
    ]


def test_what_names_and_places_objects_cannot_change() -> None:
    old = definition()
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["group"] = "other.org"
    assert [error.text() for error in changes_refused(new, old)] == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.group: Invalid value: "other.org": field is immutable',
    ]


def test_unknown_formats_and_sets_of_objects_are_warned_about() -> None:
    items = {"type": "object", "x-kubernetes-map-type": "atomic"}
    spec = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "format": "odd"},
            "b": {"type": "array", "items": items, "x-kubernetes-list-type": "set"},
        },
    }
    assert warnings_of(definition(spec)) == [
        'unrecognized format "odd"',
        (
            'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL '
            "validation rules"
        ),
    ]


def test_free_names_are_accepted_and_the_definition_is_established() -> None:
    status = accept_names(definition(), [], NOW)
    assert status["acceptedNames"]["plural"] == "things"
    assert [(condition["type"], condition["status"], condition["reason"]) for condition in status["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert accept_names({**definition(), "status": status}, [], "later") == status


def test_a_taken_name_keeps_a_definition_from_being_established() -> None:
    other = definition()
    other["status"] = accept_names(other, [], NOW)
    late = definition()
    late["spec"]["names"].update(plural="items", kind="Thing", shortNames=["thing"])
    status = accept_names(late, [other], NOW)
    assert [
        (condition["type"], condition["status"], condition["reason"], condition["message"])
        for condition in status["conditions"]
    ] == [
        ("NamesAccepted", "False", "ListKindConflict", '"ThingList" is already in use'),
        ("Established", "False", "NotAccepted", "not all names are accepted"),
    ]
    assert status["acceptedNames"] == {"plural": "items"}


def test_each_served_version_is_a_resource() -> None:
    crd = definition(
        {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}},
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        additionalPrinterColumns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        selectableFields=[{"jsonPath": ".spec.size"}],
    )
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v0", "served": False, "storage": False})
    (resource,) = resources_of(crd, 7)
    assert (resource.api_version, resource.kind, resource.list_kind) == ("example.org/v1", "Thing", "ThingList")
    assert resource.status
    assert resource.scale is not None
    assert resource.scale.spec_path == ".spec.size"
    assert [column.name for column in resource.columns] == ["Size"]
    assert resource.strategy.selectable["spec.size"]({"spec": {"size": 5}}) == "5"
    assert resource.strategy.selectable["spec.size"]({}) == ""
    assert resource.since == 7


def test_metadata_is_shown_whole_and_validated_as_written() -> None:
    crd = definition()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}},
    }
    assert complaints(crd) == []
    (resource,) = resources_of(crd, 1)
    assert "ownerReferences" in resource.schema.properties["metadata"].properties
    obj = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "long", "labels": {"a": "b"}}}
    assert prune(resource.schema, obj) == []
    apply_defaults(resource.schema, obj)
    assert [error.text() for error in validate(resource.schema, obj)] == [
        "metadata.name: Too long: may not be more than 3 bytes"
    ]
