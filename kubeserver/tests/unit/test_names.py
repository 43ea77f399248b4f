from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.resources import Resource
from kubeserver.schemas.schema import Schema
from kubeserver.wire.names import (
    generated_name,
    random_suffix,
    validate_metadata,
    validate_metadata_update,
    validate_updated_metadata,
)
from kubeserver.wire.status import invalid

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_VALUE = "a valid label must be an empty string"
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def resource(rule: str = "subdomain", *, namespaced: bool = True) -> Resource:
    return Resource(
        group="",
        version="v1",
        plural="things",
        singular="thing",
        kind="Thing",
        namespaced=namespaced,
        schema=Schema(),
        name_rule=rule,
    )


def texts(metadata: dict[str, Any], rule: str = "subdomain") -> list[str]:
    whole = {"name": "a", "namespace": "default", **metadata}
    return [error.text() for error in validate_metadata(resource(rule), whole)]


def owner(**changes: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", **changes}


@pytest.mark.parametrize(
    ("rule", "name", "errors"),
    [
        ("subdomain", "a.b-c", []),
        ("subdomain", "A_b", [f'metadata.name: Invalid value: "A_b": {SUBDOMAIN}']),
        ("subdomain", "a\n", [f'metadata.name: Invalid value: "a\\n": {SUBDOMAIN}']),
        (
            "subdomain",
            "a" * 254,
            [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters'],
        ),
        ("label", "a.b", ['metadata.name: Invalid value: "a.b": must not contain dots']),
        ("label", "-", [f'metadata.name: Invalid value: "-": {LABEL}']),
        ("label-1035", "abc", []),
        (
            "label-1035",
            "1a",
            [
                (
                    'metadata.name: Invalid value: "1a": a DNS-1035 label must consist of lower case alphanumeric '
                    "characters or '-', start with an alphabetic character, and end with an alphanumeric character "
                    "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
        ),
        ("path-segment", "system:Admin", []),
        ("path-segment", "..", ["metadata.name: Invalid value: \"..\": may not be '..'"]),
        (
            "path-segment",
            "a/b%",
            [
                "metadata.name: Invalid value: \"a/b%\": may not contain '/'",
                "metadata.name: Invalid value: \"a/b%\": may not contain '%'",
            ],
        ),
    ],
)
def test_a_name_follows_the_rule_of_its_kind(rule: str, name: str, errors: list[str]) -> None:
    assert texts({"name": name}, rule) == errors


@pytest.mark.parametrize(
    ("metadata", "errors"),
    [
        ({}, []),
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        ({"generateName": "web-"}, []),
        ({"generateName": "Web"}, [f'metadata.generateName: Invalid value: "Web": {SUBDOMAIN}']),
        ({"namespace": ""}, ["metadata.namespace: Required value"]),
        ({"namespace": "No"}, [f'metadata.namespace: Invalid value: "No": {LABEL}']),
        ({"labels": {"a b": "c"}}, [f'metadata.labels: Invalid value: "a b": {QUALIFIED}']),
        (
            {"labels": {"a": "x" * 64}},
            [f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
        ),
        ({"annotations": {"Example.com/A": "anything ☃"}}, []),
        ({"annotations": {"_": ""}}, [f'metadata.annotations: Invalid value: "_": {QUALIFIED}']),
        (
            {"annotations": {"a": "x" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        ({"annotations": {"a": "x" * 262143}}, []),
        ({"finalizers": ["example.com/f"]}, []),
        (
            {"finalizers": ["/f"]},
            ['metadata.finalizers: Invalid value: "/f": prefix part must be non-empty'],
        ),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                (
                    'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                    "finalizer orphan and foregroundDeletion cannot be both set"
                )
            ],
        ),
        (
            {"ownerReferences": [{}]},
            [
                f"metadata.ownerReferences[0].{name}: Required value: must not be empty"
                for name in ("apiVersion", "kind", "name", "uid")
            ],
        ),
        (
            {"ownerReferences": [owner(apiVersion="a/b/c")]},
            [
                (
                    'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": '
                    "must be <group>/<version> or <version>"
                )
            ],
        ),
        (
            {"ownerReferences": [owner(kind="Event")]},
            [
                (
                    'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"p",'
                    '"uid":"u"}: '
                    "/v1, Kind=Event is disallowed from being an owner"
                )
            ],
        ),
        (
            {"ownerReferences": [owner(controller=True), owner(name="q", controller=True)]},
            [
                (
                    'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p",'
                    '"uid":"u",'
                    '"controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u","controller":true}]: '
                    "Only one reference can have Controller set to true. "
                    'Found "true" in references for Pod/p and Pod/q'
                )
            ],
        ),
        ({"managedFields": [{}]}, ["metadata.managedFields[0].operation: Required value: must not be empty"]),
        (
            {"managedFields": [{"operation": "Guess", "fieldsType": "X", "manager": "m" * 129}]},
            [
                (
                    'metadata.managedFields[0].operation: Unsupported value: "Guess": '
                    'supported values: "Apply", "Update"'
                ),
                'metadata.managedFields[0].fieldsType: Invalid value: "X": must be `FieldsV1`',
                "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
            ],
        ),
    ],
)
def test_metadata_is_checked_in_kubernetes_words(metadata: dict[str, Any], errors: list[str]) -> None:
    assert texts(metadata) == errors


def test_a_cluster_wide_object_has_no_namespace() -> None:
    errors = validate_metadata(resource(namespaced=False), {"name": "a", "namespace": "x"})
    assert [error.text() for error in errors] == ["metadata.namespace: Forbidden: not allowed on this type"]


STORED = {
    "name": "a",
    "namespace": "default",
    "uid": "u-1",
    "generation": 2,
    "resourceVersion": "7",
    "creationTimestamp": "2026-02-15T10:00:30Z",
    "finalizers": ["example.com/old"],
}


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({}, []),
        ({"name": "b"}, ['metadata.name: Invalid value: "b": field is immutable']),
        ({"uid": "u-2"}, ['metadata.uid: Invalid value: "u-2": field is immutable']),
        ({"creationTimestamp": None}, ["metadata.creationTimestamp: Invalid value: null: field is immutable"]),
        (
            {"deletionTimestamp": "2026-02-15T10:00:30Z"},
            ['metadata.deletionTimestamp: Invalid value: "2026-02-15T10:00:30Z": field is immutable'],
        ),
        (
            {"deletionGracePeriodSeconds": 30},
            ["metadata.deletionGracePeriodSeconds: Invalid value: 30: field is immutable"],
        ),
        ({"generation": 1}, ["metadata.generation: Invalid value: 1: must not be decremented"]),
        (
            {"resourceVersion": ""},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
        ),
        ({"finalizers": ["example.com/old", "example.com/new"]}, []),
    ],
)
def test_an_update_keeps_what_identifies_the_object(change: dict[str, Any], errors: list[str]) -> None:
    assert [error.text() for error in validate_metadata_update({**STORED, **change}, STORED)] == errors


def test_no_finalizer_joins_an_object_that_is_going() -> None:
    going = {**STORED, "deletionTimestamp": "2026-02-15T10:00:30Z"}
    errors = validate_metadata_update({**going, "finalizers": ["b/b", "a/a", "example.com/old"]}, going)
    assert [error.text() for error in errors] == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"a/a", "b/b"}'
        )
    ]
    assert validate_metadata_update({**going, "finalizers": []}, going) == []


@pytest.mark.parametrize(("custom", "times"), [(True, 3), (False, 1)])
def test_a_bad_label_on_update_is_three_causes_for_a_custom_resource_and_one_for_others(
    custom: bool, times: int
) -> None:
    of = replace(resource(), custom=custom)
    errors = validate_updated_metadata(of, {**STORED, "labels": {"a": "-"}}, STORED)
    assert [error.path for error in errors] == ["metadata.labels"] * times
    assert len(invalid("", "Thing", "a", errors).message.split(LABEL_VALUE)) == 2, "but one phrase"


@pytest.mark.parametrize(
    ("group", "plural", "custom", "free"),
    [
        ("", "configmaps", False, False),
        ("apps", "deployments", False, False),
        ("events.k8s.io", "events", False, False),
        ("", "events", False, True),
        ("coordination.k8s.io", "leases", False, True),
        ("policy", "poddisruptionbudgets", False, True),
        ("example.com", "things", True, True),
    ],
)
def test_finalizers_of_most_built_in_kinds_need_a_domain(group: str, plural: str, custom: bool, free: bool) -> None:
    of = replace(resource(), group=group, plural=plural, custom=custom)
    metadata = {"name": "a", "namespace": "b", "finalizers": ["orphan", "example.com/a", "mine"]}
    found = [error.text() for error in validate_metadata(of, metadata)]
    expected = (
        'metadata.finalizers[2]: Invalid value: "mine": '
        "name is neither a standard finalizer name nor is it fully qualified"
    )
    assert found == ([] if free else [expected])
    stored = {**STORED, "finalizers": ["mine"]}
    assert bool(validate_updated_metadata(of, stored, stored)) is not free


def test_a_random_suffix_has_no_vowels_and_five_characters() -> None:
    assert all(re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", random_suffix()) for _ in range(200))


@given(st.text(max_size=100))
def test_a_generated_name_keeps_the_base_and_fits_a_label(base: str) -> None:
    name = generated_name(base)
    assert base.startswith(name[:-5])
    assert len(name.encode()) <= 63
