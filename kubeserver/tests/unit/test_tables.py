from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubeserver.resources import PrintedColumn, Resource
from kubeserver.schemas.schema import Schema
from kubeserver.views.tables import (
    Representation,
    TableView,
    include_object,
    negotiate,
    partial_metadata,
    partial_metadata_list,
    table,
)
from kubeserver.wire.status import ApiError

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
DISCOVERY = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


def resource(*columns: PrintedColumn, custom: bool = True) -> Resource:
    return Resource(
        group="example.com",
        version="v1",
        plural="things",
        singular="thing",
        kind="Thing",
        namespaced=True,
        schema=Schema(),
        custom=custom,
        columns=columns,
    )


THING = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "a", "creationTimestamp": "2026-11-16T11:55:00Z"},
    "spec": {"s": "hello", "i": 5, "f": 2.5, "b": True, "l": ["x", "y"], "d": "2026-11-16T08:00:00Z", "bad": "?"},
}


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".spec.s", "hello"),
        ("string", ".spec.i", "5"),
        ("string", ".spec.b", "true"),
        ("string", ".spec.l", '["x","y"]'),
        ("string", ".spec.l[*]", "x"),
        ("string", ".spec.missing", None),
        ("integer", ".spec.i", 5),
        ("integer", ".spec.f", 2),
        ("integer", ".spec.s", None),
        ("integer", ".spec.b", None),
        ("number", ".spec.f", 2.5),
        ("boolean", ".spec.b", True),
        ("boolean", ".spec.s", None),
        ("date", ".spec.d", "4h"),
        ("date", ".spec.bad", "<invalid>"),
        ("date", ".spec.i", None),
        ("date", ".spec.missing", None),
    ],
)
def test_a_column_shows_a_value_of_its_type_or_nothing(kind: str, path: str, cell: Any) -> None:
    view = TableView(resource(PrintedColumn("C", type=kind, json_path=path)))
    assert view.row(THING, NOW)["cells"] == ["a", cell]


def test_a_custom_resource_without_columns_shows_its_age() -> None:
    shown = table(resource(), [THING], include_object="None", list_metadata={"resourceVersion": "9"}, now=NOW)
    assert [column_definition["name"] for column_definition in shown["columnDefinitions"]] == ["Name", "Age"]
    assert shown["rows"] == [{"cells": ["a", "5m"], "object": None}]
    assert list(shown) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert shown["metadata"] == {"resourceVersion": "9"}


def test_a_column_definition_says_where_its_values_come_from() -> None:
    shown = table(
        resource(PrintedColumn("I", type="integer", format="int32", priority=1, json_path=".spec.i")),
        [],
        include_object="Metadata",
        list_metadata={},
        now=NOW,
    )
    assert shown["columnDefinitions"][1] == {
        "name": "I",
        "type": "integer",
        "format": "int32",
        "description": "Custom resource definition column (in JSONPath format): .spec.i",
        "priority": 1,
    }


def test_a_row_carries_as_much_of_the_object_as_was_asked_for() -> None:
    assert TableView(resource(), "Object").row(THING, NOW)["object"] is THING
    assert TableView(resource(), "Metadata", "v1beta1").row(THING, NOW)["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1beta1",
        "metadata": THING["metadata"],
    }


def test_later_tables_of_a_watch_have_no_headers() -> None:
    later = TableView(resource()).table([THING], {}, NOW, headers=False)
    assert later["columnDefinitions"] is None


def test_an_unreadable_column_stays_empty() -> None:
    assert TableView(resource(PrintedColumn("C", json_path=".a["))).row(THING, NOW)["cells"] == ["a", None]


def test_the_row_of_a_finished_pod_says_so() -> None:
    pods = Resource(group="", version="v1", plural="pods", singular="pod", kind="Pod", namespaced=True, schema=Schema())
    row = TableView(pods).row({"metadata": {"name": "p"}, "status": {"phase": "Failed"}}, NOW)
    assert row["conditions"] == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]


def test_partial_metadata_is_metadata_alone() -> None:
    partial = partial_metadata(THING)
    assert partial == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": THING["metadata"],
    }
    assert partial_metadata_list([THING], {"resourceVersion": "9"}) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9"},
        "items": [partial],
    }


@pytest.mark.parametrize(
    ("accept", "representation"),
    [
        ("", Representation()),
        ("*/*", Representation()),
        ("application/*", Representation()),
        ("application/json", Representation()),
        ("application/json;pretty=1", Representation(pretty=True)),
        ("application/yaml", Representation("application/yaml")),
        ("application/json;q=0.5, application/yaml", Representation("application/yaml")),
        ("*/*, application/yaml", Representation("application/yaml")),
        ("application/vnd.kubernetes.protobuf,application/json", Representation()),
        (KUBECTL, Representation(shape="Table")),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Representation(shape="Table", version="v1beta1")),
        (
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            ),
            Representation(shape="PartialObjectMetadata"),
        ),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Representation()),
        (DISCOVERY, Representation()),
    ],
)
def test_the_first_wish_that_can_be_fulfilled_wins(accept: str, representation: Representation) -> None:
    assert negotiate(accept) == representation


def test_discovery_has_a_shape_of_its_own() -> None:
    found = negotiate(DISCOVERY, discovery=True)
    assert found.shape == "APIGroupDiscoveryList"
    assert found.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert negotiate(KUBECTL, discovery=True) == Representation()


@pytest.mark.parametrize(
    ("accept", "streaming"),
    [
        ("application/xml", False),
        ("text/html", False),
        ("application/json;as=Pie;v=v1;g=meta.k8s.io", False),
        ("application/vnd.kubernetes.protobuf", False),
        ("application/yaml", True),
    ],
)
def test_a_wish_that_cannot_be_fulfilled_is_a_406(accept: str, streaming: bool) -> None:
    with pytest.raises(ApiError) as refused:
        negotiate(accept, streaming=streaming)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
    assert refused.value.message == ("only the following media types are accepted: application/json, application/yaml")


def test_include_object_is_one_of_three() -> None:
    assert include_object("") == "Metadata"
    assert include_object("None") == "None"
    with pytest.raises(ApiError) as refused:
        include_object("Foo")
    assert refused.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Foo": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )
