"""What becomes of a write when the world changes while a webhook thinks, and what a webhook may not change."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import configmap
from conformance.test_webhooks import CONFIGMAPS, Hook, hook
from conformance.wire import failure, not_found

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from conformance.wire import Answer, Object

__all__ = ["hook"]

ELSEWHERE = "the namespace of the provided object does not match the namespace sent on the request"
IMMUTABLE = "field is immutable"


class Gate:
    """A webhook that keeps its first answer back until the case has done what it wants in between."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._open = threading.Event()

    def __call__(self, _: Object) -> Object:
        if not self._asked.is_set():
            self._asked.set()
            self._open.wait(4)
        return {"allowed": True}

    async def passed_by(
        self, write: Coroutine[Any, Any, Answer], between: Coroutine[Any, Any, Answer]
    ) -> tuple[Answer, Answer]:
        task = asyncio.create_task(write)
        assert await asyncio.to_thread(self._asked.wait, 10)
        other = await between
        self._open.set()
        return await task, other


@pytest.mark.parametrize("verb", ["merge", "put", "put-versioned", "delete"])
async def test_an_object_that_goes_while_a_webhook_thinks_is_not_found(hook: Hook, verb: str) -> None:
    operations = ["CREATE", "UPDATE", *(["DELETE"] if verb == "delete" else [])]
    await hook.register("Validating", rules=[{**CONFIGMAPS, "operations": operations}])
    await hook.called()
    made = (await hook.create("one")).made
    path = f"/api/v1/namespaces/{hook.namespace}/configmaps/one"
    gate = hook.decide = Gate()
    writes = {
        "merge": lambda: hook.api.merge(path, {"data": {"a": "2"}}),
        "put": lambda: hook.api.put(path, configmap("one", {"a": "2"})),
        "put-versioned": lambda: hook.api.put(path, {**made, "data": {"a": "2"}}),
        "delete": lambda: hook.api.delete(path),
    }
    answer, _ = await gate.passed_by(writes[verb](), hook.api.delete(path))
    assert answer.body == not_found("configmaps", "one")


async def test_what_goes_while_it_is_applied_is_made_anew(hook: Hook) -> None:
    await hook.register("Validating", rules=[{**CONFIGMAPS, "operations": ["CREATE", "UPDATE"]}])
    await hook.called()
    made = (await hook.create("one")).made
    path = f"/api/v1/namespaces/{hook.namespace}/configmaps/one"
    gate = hook.decide = Gate()
    applied = hook.api.apply(path, configmap("one", {"a": "2"}), force="true")
    answer, _ = await gate.passed_by(applied, hook.api.delete(path))
    assert answer.status == 201
    assert answer.body["metadata"]["uid"] != made["metadata"]["uid"]


async def test_two_who_apply_the_same_new_object_both_succeed(hook: Hook) -> None:
    await hook.register("Validating")
    await hook.called()
    path = f"/api/v1/namespaces/{hook.namespace}/configmaps/one"
    gate = hook.decide = Gate()
    one = hook.api.apply(path, configmap("one", {"a": "1"}), "first")
    two = hook.api.apply(path, configmap("one", {"b": "1"}), "second")
    late, early = await gate.passed_by(one, two)
    assert (early.status, late.status) == (201, 200)
    assert late.body["data"] == {"a": "1", "b": "1"}


async def with_metadata(hook: Hook, operation: str, field: str, value: object) -> tuple[Object, Answer]:
    """Create or change an object with a webhook that sets a field of its metadata."""
    await hook.register("Mutating")
    await hook.called()
    made = (await hook.create("one")).made if operation == "UPDATE" else {"metadata": {}}
    patch = base64.b64encode(json.dumps([{"op": "add", "path": f"/metadata/{field}", "value": value}]).encode())
    hook.decide = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch.decode()}
    if operation == "CREATE":
        answer = await hook.create("one")
    else:
        answer = await hook.api.merge(f"/api/v1/namespaces/{hook.namespace}/configmaps/one", {"data": {"a": "2"}})
    return made["metadata"], answer


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
async def test_a_webhook_cannot_move_an_object(hook: Hook, operation: str) -> None:
    _, answer = await with_metadata(hook, operation, "namespace", "elsewhere")
    assert answer.body == failure(400, "BadRequest", ELSEWHERE)


@pytest.mark.parametrize(("field", "value"), [("uid", "mine"), ("creationTimestamp", "2020-01-01T00:00:00Z")])
async def test_a_webhook_cannot_say_who_a_new_object_is(hook: Hook, field: str, value: str) -> None:
    _, answer = await with_metadata(hook, "CREATE", field, value)
    assert answer.made["metadata"][field] != value


@pytest.mark.parametrize(("field", "value"), [("generation", 7), ("creationTimestamp", "2020-01-01T00:00:00Z")])
async def test_what_the_server_keeps_of_an_object_is_not_a_webhooks_to_change(
    hook: Hook, field: str, value: object
) -> None:
    before, answer = await with_metadata(hook, "UPDATE", field, value)
    assert answer.made["metadata"].get(field) == before.get(field)


@pytest.mark.parametrize("field", ["name", "uid"])
async def test_a_webhook_cannot_make_another_object_of_one(hook: Hook, field: str) -> None:
    _, answer = await with_metadata(hook, "UPDATE", field, "other")
    assert answer.causes == [("FieldValueInvalid", f"metadata.{field}", f'Invalid value: "other": {IMMUTABLE}')]


async def test_a_webhook_cannot_set_the_version_of_an_object(hook: Hook) -> None:
    _, answer = await with_metadata(hook, "UPDATE", "resourceVersion", "1")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
