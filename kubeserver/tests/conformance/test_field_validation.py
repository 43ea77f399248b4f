"""Unknown and duplicate fields: refused, warned about or ignored, as the request asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP, configmap, widget
from conformance.wire import JSON_PATCH, MERGE_PATCH, failure, invalid, unexplained

if TYPE_CHECKING:
    from conformance.wire import Api

UNKNOWN_MAP = '{"metadata":{"name":"x","nonsense":1},"data":{"a":"b"},"extra":true}'
TWICE_MAP = '{"metadata":{"name":"x"},"data":{"a":"1"},"data":{"b":"2"}}'
HEAD = f'{{"apiVersion":"{GROUP}/v1","kind":"Widget","metadata":{{"name":"x"}}'
UNKNOWN_WIDGET = HEAD + ',"spec":{"size":1,"nonsense":{"a":1}},"extra":2}'
TWICE_WIDGET = HEAD + ',"spec":{"size":1,"size":2,"color":"red"}}'


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def test_strict_refuses_unknown_fields(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), UNKNOWN_MAP, fieldValidation="Strict")
    assert answer.body == failure(
        400,
        "BadRequest",
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "metadata.nonsense", unknown field "extra"',
    )


async def test_strict_refuses_duplicate_fields(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), TWICE_MAP, fieldValidation="Strict")
    assert answer.body == failure(
        400,
        "BadRequest",
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data"',
    )


async def test_warn_keeps_the_object_and_tells(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), UNKNOWN_MAP, fieldValidation="Warn")
    assert answer.status == 201
    assert answer.warnings == ['unknown field "metadata.nonsense"', 'unknown field "extra"']
    assert "extra" not in answer.body


async def test_warnings_are_the_default(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), UNKNOWN_MAP)
    assert answer.status == 201
    assert answer.warnings == ['unknown field "metadata.nonsense"', 'unknown field "extra"']
    assert answer.headers["Warning"] == '299 - "unknown field \\"metadata.nonsense\\""'


async def test_duplicate_maps_of_a_built_in_are_merged(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), TWICE_MAP, fieldValidation="Warn")
    assert answer.warnings == ['duplicate field "data"']
    assert answer.made["data"] == {"a": "1", "b": "2"}


async def test_ignore_says_nothing(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), UNKNOWN_MAP, fieldValidation="Ignore")
    assert answer.status == 201
    assert answer.warnings == []


async def test_field_validation_has_three_levels(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), UNKNOWN_MAP, fieldValidation="Maybe")
    assert answer.body == invalid(
        "CreateOptions",
        "",
        (
            "FieldValueNotSupported",
            "fieldValidation",
            'Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"',
        ),
        group="meta.k8s.io",
    )


async def test_strict_refuses_unknown_fields_of_a_custom_resource(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.post(f"{widgets}/namespaces/{namespace}/widgets", UNKNOWN_WIDGET, fieldValidation="Strict")
    assert answer.body == failure(
        400,
        "BadRequest",
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: '
        'unknown field "extra", unknown field "spec.nonsense"',
    )


async def test_strict_refuses_duplicate_fields_of_a_custom_resource(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.post(f"{widgets}/namespaces/{namespace}/widgets", TWICE_WIDGET, fieldValidation="Strict")
    assert answer.body == failure(
        400,
        "BadRequest",
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size"',
    )


async def test_a_custom_resource_is_pruned_with_warnings(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.post(f"{widgets}/namespaces/{namespace}/widgets", UNKNOWN_WIDGET)
    assert answer.warnings == ['unknown field "extra"', 'unknown field "spec.nonsense"']
    assert answer.made["spec"] == {"size": 1}


async def test_the_last_of_duplicate_custom_fields_wins(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.post(f"{widgets}/namespaces/{namespace}/widgets", TWICE_WIDGET)
    assert answer.warnings == ['duplicate field "spec.size"']
    assert answer.made["spec"] == {"size": 2, "color": "red"}


async def test_strict_holds_for_replace(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("x"))
    answer = await api.put(f"{maps(namespace)}/x", UNKNOWN_MAP, fieldValidation="Strict")
    assert answer.status == 400
    assert "strict decoding error" in answer.body["message"]


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (MERGE_PATCH, '{"nonsense":1}'),
        (JSON_PATCH, '[{"op":"add","path":"/nonsense","value":1}]'),
    ],
)
async def test_strict_holds_for_patches(api: Api, namespace: str, content_type: str, patch: str) -> None:
    await api.post(maps(namespace), configmap("x"))
    answer = await api.patch(f"{maps(namespace)}/x", patch, content_type, fieldValidation="Strict")
    assert answer.status == 422
    ((reason, field, message),) = answer.causes
    assert (reason, field) == ("FieldValueInvalid", "patch")
    assert message.startswith('Invalid value: "{\\"apiVersion\\":\\"v1\\"')
    assert message.endswith('": strict decoding error: unknown field "nonsense"')
    assert answer.body["message"] == f' "" is invalid: patch: {message}'


async def test_apply_refuses_unknown_fields_at_any_level(api: Api, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "nonsense": 1}
    for level in ("Strict", "Warn", "Ignore"):
        answer = await api.apply(f"{maps(namespace)}/x", body, fieldValidation=level)
        assert answer.body == unexplained(
            500,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .nonsense: field not declared in schema",
        )


async def test_patches_warn_by_default(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("x"))
    answer = await api.merge(f"{path}/x", {"spec": {"nonsense": 1}})
    assert answer.status == 200
    assert answer.warnings == ['unknown field "spec.nonsense"']
