"""Wrong turns: paths, methods, media types and bodies that lead nowhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import yarl

from conformance.kinds import configmap, widget
from conformance.wire import JSON, MERGE_PATCH, failure, not_found

if TYPE_CHECKING:
    from conformance.wire import Api, Object

NOT_FOUND = "404 page not found\n"
NO_SUCH_RESOURCE = failure(404, "NotFound", "the server could not find the requested resource") | {"details": {}}
NOT_ALLOWED = failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource") | {
    "details": {}
}


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.mark.parametrize("path", ["/nothing", "/apis/unknown.example.com/v1"])
async def test_an_unknown_path_is_plain_text(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.text) == (404, NOT_FOUND)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v9",
        "/apis/apps/v9",
        "/api/v1/nonsense",
        "/apis/apps/v1/namespaces/default/nonsense",
        "/api/v1/namespaces/default/configmaps/one/two",
        "/api/v1/namespaces/default/configmaps/one/status",
    ],
)
async def test_an_unknown_place_in_a_known_group_is_a_status(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert answer.status == 404
    assert answer.body == NO_SUCH_RESOURCE


async def test_an_unknown_custom_resource_is_plain_text(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.get(f"{widgets}/namespaces/{namespace}/nonsense")
    assert (answer.status, answer.text) == (404, NOT_FOUND)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/default"),
        ("PUT", "/api/v1/namespaces"),
        ("PATCH", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/api/v1/secrets"),
    ],
)
async def test_a_method_that_a_resource_lacks_is_not_allowed(api: Api, method: str, path: str) -> None:
    answer = await api.call(method, path, None if method == "GET" else {})
    assert answer.status == 405
    assert answer.body == NOT_ALLOWED


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_custom_resource_is_changed_by_name(api: Api, namespace: str, widgets: str, method: str) -> None:
    content_type = MERGE_PATCH if method == "PATCH" else JSON
    path = f"{widgets}/namespaces/{namespace}/widgets"
    answer = await api.call(method, path, widget("one"), content_type=content_type)
    assert answer.body == failure(400, "BadRequest", "name must be provided")


@pytest.mark.parametrize("accept", ["text/html", "application/xml"])
async def test_a_built_in_cannot_be_had_in_any_form(api: Api, namespace: str, accept: str) -> None:
    answer = await api.get(maps(namespace), accept=accept)
    assert answer.body == failure(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
        "application/vnd.kubernetes.protobuf;stream=watch",
    ) | {"details": {}}


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Nope;v=v1;g=meta.k8s.io"])
async def test_a_custom_resource_cannot_be_had_in_any_form(api: Api, namespace: str, widgets: str, accept: str) -> None:
    answer = await api.get(f"{widgets}/namespaces/{namespace}/widgets", accept=accept)
    assert answer.body == failure(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf",
    )


@pytest.mark.parametrize("accept", ["*/*", "text/html, application/json;q=0.5", ""])
async def test_json_is_given_to_those_who_take_it(api: Api, namespace: str, accept: str) -> None:
    answer = await api.get(maps(namespace), accept=accept)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"


async def test_a_body_of_more_than_three_megabytes_is_too_large(api: Api, namespace: str) -> None:
    body = configmap("big", {"a": "x" * 3_200_000})
    answer = await api.post(maps(namespace), body)
    assert answer.status == 413
    assert answer.body == failure(
        413,
        "RequestEntityTooLarge",
        "Request entity too large: limit is 3145728",
    )
    await asyncio.sleep(0.2)  # the rest of the body is dropped with its connection, which must not outlive the loop


async def test_a_custom_resource_may_be_as_large_as_the_store_takes(api: Api, namespace: str, widgets: str) -> None:
    body = widget("big", {"color": "x" * 1_000_000})
    answer = await api.post(f"{widgets}/namespaces/{namespace}/widgets", body)
    assert answer.status == 201


async def test_deep_nesting_is_refused(api: Api, namespace: str, widgets: str) -> None:
    text = '{"a":' * 20_000 + "1" + "}" * 20_000
    body = (
        f'{{"apiVersion":"{widgets.removeprefix("/apis/")}","kind":"Widget","metadata":{{"name":"deep"}},'
        f'"spec":{{"free":{text}}}}}'
    )
    answer = await api.post(f"{widgets}/namespaces/{namespace}/widgets", body)
    assert answer.status == 400
    assert answer.body["reason"] == "BadRequest"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("..", failure(400, "BadRequest", "Name parameter invalid: \"..\": may not be '..'")),
        ("%2e%2e", failure(400, "BadRequest", "Name parameter invalid: \"..\": may not be '..'")),
        (".", failure(400, "BadRequest", "Name parameter invalid: \".\": may not be '.'")),
        ("a%2Fb", NO_SUCH_RESOURCE),
        ("..%2F..%2Fsecrets", NO_SUCH_RESOURCE),
        ("a%00b", not_found("configmaps", "a\x00b") | {"message": 'configmaps "a\\x00b" not found'}),
    ],
)
async def test_tricks_in_a_path_find_nothing(api: Api, namespace: str, name: str, expected: Object) -> None:
    url = yarl.URL(f"{api.url}{maps(namespace)}/{name}", encoded=True)
    async with api.session.get(url, headers=api.headers) as response:
        assert await response.json() == expected


async def test_the_server_keeps_serving(api: Api, namespace: str) -> None:
    for body in ("{", "[]", "null", '"x"', "\x00", "{}" * 1000):
        assert (await api.post(maps(namespace), body)).status in (400, 422)
    assert (await api.get("/readyz")).text == "ok"


async def test_every_answer_can_be_traced(api: Api, namespace: str) -> None:
    answer = await api.get(maps(namespace))
    assert len(answer.headers["Audit-Id"]) == 36
    assert answer.headers["Cache-Control"] == "no-cache, private"
