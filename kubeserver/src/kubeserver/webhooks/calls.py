"""Admission webhooks: programs that may change or refuse a write.

Mutating webhooks are asked one after the other, each seeing what the ones before made of the object; if a later
one changed it, earlier ones that wish so (`reinvocationPolicy: IfNeeded`) are asked once more. Validating
webhooks are asked all at once, and the first refusal in their order counts.

A webhook that cannot be asked refuses the write or is skipped, as its failurePolicy says. All calls of one write
together have a time limit, so a write never hangs for good.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec

from kubeserver.patching.patches import json_patch
from kubeserver.webhooks.client import CallFailed, WebhookClient, no_service
from kubeserver.webhooks.hooks import (
    Admitted,
    Deciding,
    Hook,
    HookTable,
    Served,
    WebhookCall,
    compile_hooks,
    refusal_of,
    review_of,
)
from kubeserver.wire.status import ApiError, bad_request, internal

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

__all__ = ["Admitted", "HookTable", "Served", "Webhooks", "compile_hooks"]

_KNOWN_REVIEWS: Final = ("v1", "v1beta1")
_ASKED_AT_ONCE: Final = 32  # about one write: each gets a copy of the object
_encode: Final = msgspec.json.Encoder().encode


class Webhooks:
    """Calls the webhooks of one logical cluster; `close` it at the end."""

    def __init__(
        self,
        *,
        resolve_service: Callable[[str, str, int], tuple[str, int]] = no_service,
        total_seconds: float = 30.0,
    ) -> None:
        self._client = WebhookClient(resolve_service)
        self._total_seconds = total_seconds

    async def close(self) -> None:
        await self._client.close()

    async def mutate(self, hooks: tuple[Hook, ...], request: Admitted, warnings: list[str]) -> Json | None:
        """The object after all mutating webhooks; None where there is none (a deletion). Raises refusals."""
        try:
            async with asyncio.timeout(self._total_seconds):
                return await self._mutate(hooks, request, warnings)
        except TimeoutError:
            raise _out_of_time() from None

    async def validate(self, hooks: tuple[Hook, ...], request: Admitted, warnings: list[str]) -> None:
        """Ask all validating webhooks; raises the first refusal."""
        deciding = Deciding()
        calls = [call for hook in hooks if (call := await deciding.call(hook, request)) is not None]
        if not calls:
            return
        room = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def asked(call: WebhookCall) -> None:
            async with room:
                await self._asked(call, request, warnings)

        try:
            async with asyncio.timeout(self._total_seconds):
                outcomes = await asyncio.gather(*(asked(call) for call in calls), return_exceptions=True)
        except TimeoutError:
            raise _out_of_time() from None
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _asked(self, call: WebhookCall, request: Admitted, warnings: list[str]) -> None:
        try:
            answer = await self._ask(call, request, mutating=False)
        except CallFailed as failure:
            _unless_ignored(call.hook, failure)
            return
        _note(answer, warnings)
        if not answer.get("allowed"):
            raise refusal_of(call.hook.name, answer.get("status"))

    async def _mutate(self, hooks: tuple[Hook, ...], request: Admitted, warnings: list[str]) -> Json | None:
        request = replace(request)
        asked_before: list[Hook] = []  # webhooks that want to see later changes, and have not yet
        again: list[Hook] = []
        deciding = Deciding()
        for hook in hooks:
            call = await deciding.call(hook, request)
            if call is None:
                continue
            if await self._change(call, request, warnings):
                again += asked_before
                asked_before = []
            if hook.reinvoked:
                asked_before.append(hook)
        for hook in hooks:
            if hook in again and (call := await deciding.call(hook, request)) is not None:
                await self._change(call, request, warnings)
        return request.obj

    async def _change(self, call: WebhookCall, request: Admitted, warnings: list[str]) -> bool:
        """Ask one mutating webhook; whether the object of the request is another one now."""
        try:
            answer = await self._ask(call, request, mutating=True)
            operations = _patch_of(answer)
        except CallFailed as failure:
            _unless_ignored(call.hook, failure)
            return False
        _note(answer, warnings)
        if not answer.get("allowed"):
            raise refusal_of(call.hook.name, answer.get("status"))
        if not operations:
            return False
        if request.obj is None:
            raise internal(
                f'admission webhook "{call.hook.name}" attempted to modify the object, '
                "which is not supported for this operation"
            )
        patched = _patched(call.served.there(request.obj), operations)
        changed = call.served.back(patched)
        request.default(changed)
        before, request.obj = request.obj, changed
        return before != changed

    async def _ask(self, call: WebhookCall, request: Admitted, *, mutating: bool) -> Json:
        hook = call.hook
        if request.dry_run and hook.side_effects not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        version = next(
            (review_version for review_version in hook.review_versions if review_version in _KNOWN_REVIEWS), ""
        )
        if not version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise CallFailed(f"could not create admission objects: {why}")
        uid = str(uuid4())
        body = _encode(review_of(call, request, uid, version))
        review = await self._client.post(hook.client, hook.timeout, body)
        return _checked(review, uid, version, mutating=mutating)


def _checked(review: Json, uid: str, version: str, *, mutating: bool) -> Json:
    """The response of a review, if it is one; raises CallFailed."""

    def bad(why: str) -> CallFailed:
        return CallFailed(f"received invalid webhook response: {why}")

    response = review.get("response")
    if not isinstance(response, dict):
        raise bad("webhook response was absent")
    if version == "v1":
        if response.get("uid") != uid:
            raise bad(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
        kind = (review.get("apiVersion"), review.get("kind"))
        if kind != ("admission.k8s.io/v1", "AdmissionReview"):
            shown = f"{kind[0] or ''}, Kind={kind[1] or ''}"
            raise bad(f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}")
        patch, patch_type = response.get("patch"), response.get("patchType")
        if not mutating and (patch or patch_type is not None):
            raise bad(f"validating webhook may not return response.{'patch' if patch else 'patchType'}")
        if patch and patch_type is None:
            raise bad("webhook returned response.patch but not response.patchType")
        if patch_type is not None and not patch:
            raise bad("webhook returned response.patchType but not response.patch")
    return response


def _patch_of(answer: Json) -> list[Json]:
    patch = answer.get("patch")
    if not patch:
        return []
    if answer.get("patchType", "JSONPatch") != "JSONPatch":
        raise CallFailed(f'unsupported patch type "{answer["patchType"]}"')
    try:
        return msgspec.json.decode(base64.b64decode(patch, validate=True), type=list[dict[str, Any]])
    except (binascii.Error, ValueError, TypeError) as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from None


def _patched(item: Json, operations: list[Json]) -> Json:
    try:
        found = json_patch(item, operations)
    except ApiError as error:
        raise internal(error.message) from None
    if not isinstance(found, dict):
        raise internal("the patch of a webhook left no object")
    return found


def _note(answer: Json, warnings: list[str]) -> None:
    warnings += [str(warning) for warning in answer.get("warnings") or ()]


def _unless_ignored(hook: Hook, failure: CallFailed) -> None:
    if not hook.ignores_failure:
        raise internal(f'failed calling webhook "{hook.name}": {failure}') from None


def _out_of_time() -> ApiError:
    return ApiError(504, "Timeout", "Timeout: request did not complete within requested timeout", details={})
