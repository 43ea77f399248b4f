"""JSON patches and merge patches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP, configmap, widget
from conformance.wire import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, failure, invalid, not_found

if TYPE_CHECKING:
    from conformance.wire import Api, Object

CHANGED = "the object has been modified; please apply your changes to the latest version and try again"


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def made(api: Api, namespace: str) -> str:
    await api.post(maps(namespace), configmap("one", {"a": "1", "b": "2"}, labels={"x": "y"}))
    return f"{maps(namespace)}/one"


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}),
        ([{"op": "add", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}),
        ([{"op": "replace", "path": "/data", "value": {"z": "0"}}], {"z": "0"}),
        ([{"op": "remove", "path": "/data/a"}], {"b": "2"}),
        ([{"op": "replace", "path": "/data/new", "value": "3"}], {"a": "1", "b": "2", "new": "3"}),
        ([{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/c"}], {"a": "1", "b": "2", "c": "1"}),
        (
            [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}],
            {"b": "2"},
        ),
        ([{"op": "add", "path": "/data/x~1y~0z", "value": "3"}], None),
        ([], {"a": "1", "b": "2"}),
    ],
    ids=lambda value: "+".join(item["op"] for item in value) if isinstance(value, list) else "",
)
async def test_a_json_patch_is_done_in_order(
    api: Api, namespace: str, operations: list[Object], data: Object | None
) -> None:
    path = await made(api, namespace)
    answer = await api.patch(path, operations, JSON_PATCH)
    if data is None:
        assert answer.status == 422
        assert "x/y~z" in answer.body["message"]
    else:
        assert answer.made["data"] == data


async def test_a_json_patch_counts_list_elements(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one", {"steps": ["a", "b", "c"]}))
    operations = [
        {"op": "add", "path": "/spec/steps/1", "value": "a2"},
        {"op": "add", "path": "/spec/steps/-", "value": "d"},
        {"op": "remove", "path": "/spec/steps/0"},
    ]
    answer = await api.patch(f"{path}/one", operations, JSON_PATCH)
    assert answer.made["spec"]["steps"] == ["a2", "b", "c", "d"]


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/data/a", "value": "no"}],
        [{"op": "remove", "path": "/data/missing"}],
        [{"op": "add", "path": "/missing/deep", "value": "x"}],
        [{"op": "move", "from": "/data/missing", "path": "/data/x"}],
        [{"op": "dance", "path": "/data/a"}],
        [{"op": "add", "value": "x"}],
        [{"path": "/data/a", "value": "x"}],
        [{"op": "add", "path": "/data/c", "value": "3"}, {"op": "test", "path": "/data/a", "value": "no"}],
    ],
    ids=["test fails", "remove missing", "below missing", "move missing", "bad op", "no path", "no op", "half"],
)
async def test_a_json_patch_that_does_not_fit_changes_nothing(
    api: Api, namespace: str, operations: list[Object]
) -> None:
    path = await made(api, namespace)
    before = (await api.get(path)).body
    answer = await api.patch(path, operations, JSON_PATCH)
    assert answer.body == failure(422, "Invalid", "the server rejected our request due to an error in our request") | {
        "details": {}
    }
    assert (await api.get(path)).body == before


NOT_A_LIST = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
NOT_A_MAP = "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}"


@pytest.mark.parametrize(
    ("content_type", "patch", "message"),
    [
        (JSON_PATCH, '{"op": "add"}', NOT_A_LIST),
        (JSON_PATCH, "nonsense", "invalid JSON patch"),
        (MERGE_PATCH, "[]", NOT_A_MAP.format("array")),
        (MERGE_PATCH, '"text"', NOT_A_MAP.format("string")),
        (MERGE_PATCH, "nonsense", "invalid JSON patch"),
        (MERGE_PATCH, "{", "invalid JSON patch"),
    ],
)
async def test_a_malformed_patch_is_a_bad_request(
    api: Api, namespace: str, content_type: str, patch: str, message: str
) -> None:
    path = await made(api, namespace)
    answer = await api.patch(path, patch, content_type)
    assert answer.body == failure(400, "BadRequest", message)


async def test_a_merge_patch_merges_maps_and_removes_nulls(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    patch = {"data": {"a": None, "c": "3"}, "metadata": {"labels": {"x": None, "z": "1"}}}
    body = (await api.merge(path, patch)).made
    assert body["data"] == {"b": "2", "c": "3"}
    assert body["metadata"]["labels"] == {"z": "1"}


async def test_a_merge_patch_replaces_lists(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one", {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}))
    body = (await api.merge(f"{path}/one", {"spec": {"ports": [{"name": "c", "port": 3}]}})).made
    assert body["spec"]["ports"] == [{"name": "c", "port": 3}]


async def test_a_merge_patch_can_remove_a_whole_map(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    assert "data" not in (await api.merge(path, {"data": None})).made


async def test_a_patch_that_changes_nothing_writes_nothing(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    before = (await api.get(path)).body
    assert (await api.merge(path, {"data": {"a": "1"}})).made == before
    assert (await api.merge(path, {})).made == before


async def test_a_patch_may_name_the_version_it_is_for(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    old = (await api.get(path)).body["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": old}, "data": {"a": "2"}}
    assert (await api.merge(path, patch)).status == 200
    answer = await api.merge(path, patch)
    assert answer.body == failure(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on configmaps "one": {CHANGED}',
        name="one",
        kind="configmaps",
    )


async def test_a_patch_may_name_the_uid_it_is_for(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    uid = (await api.get(path)).body["metadata"]["uid"]
    assert (await api.merge(path, {"metadata": {"uid": uid}, "data": {"a": "2"}})).status == 200
    answer = await api.merge(path, {"metadata": {"uid": "other"}, "data": {"a": "3"}})
    assert answer.body == invalid(
        "ConfigMap",
        "one",
        ("FieldValueInvalid", "metadata.uid", 'Invalid value: "other": field is immutable'),
    )


async def test_a_patch_cannot_rename(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    answer = await api.merge(path, {"metadata": {"name": "two"}})
    assert answer.body == failure(
        400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)"
    )


async def test_a_patch_cannot_change_the_kind(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one"))
    answer = await api.merge(f"{path}/one", {"kind": "Other"})
    cause = ("FieldValueInvalid", "kind", 'Invalid value: "Other": must be Widget')
    assert answer.body == invalid("Other", "one", cause, group=GROUP)


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_missing_object_cannot_be_patched(api: Api, namespace: str, content_type: str) -> None:
    answer = await api.patch(f"{maps(namespace)}/missing", [] if content_type == JSON_PATCH else {}, content_type)
    assert answer.body == not_found("configmaps", "missing")


async def test_the_result_of_a_patch_is_validated(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one", {"size": 1}))
    answer = await api.merge(f"{path}/one", {"spec": {"size": "big"}})
    assert answer.body == invalid(
        "Widget",
        "one",
        (
            "FieldValueTypeInvalid",
            "spec.size",
            'Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        group=GROUP,
    )


async def test_an_unknown_patch_type_is_refused(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    answer = await api.patch(path, {}, "application/json")
    assert answer.body == failure(415, "UnsupportedMediaType", "415: Unsupported Media Type") | {"details": {}}


async def test_a_custom_resource_has_no_strategic_patch(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one"))
    answer = await api.patch(f"{path}/one", {"spec": {"size": 1}}, STRATEGIC_PATCH)
    assert answer.body == failure(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )


async def test_a_dry_run_of_a_patch_changes_nothing(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    before = (await api.get(path)).body
    assert (await api.merge(path, {"data": {"a": "9"}}, dryRun="All")).made["data"]["a"] == "9"
    assert (await api.get(path)).body == before


async def test_concurrent_patches_of_one_object_all_arrive(api: Api, namespace: str) -> None:
    path = await made(api, namespace)
    answers = await asyncio.gather(*(api.merge(path, {"data": {f"k{n}": str(n)}}) for n in range(8)))
    assert {answer.status for answer in answers} == {200}
    data = (await api.get(path)).body["data"]
    assert {f"k{n}" for n in range(8)} <= set(data)
