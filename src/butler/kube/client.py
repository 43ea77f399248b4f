"""The verbs of a Kubernetes API, typed: get, list, watch, create, replace, patch, apply, delete.

One small surface that reads as Kubernetes does. A `Resource` says which kind, and with it comes the type that
answers decode to. Status is a subresource like any other (`subresource="status"`). Names of arguments are those of
the API. The client keeps no state about objects and never decides: whether a write is repeated is settled in
`retry`, what to do about a conflict is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

import aiohttp
import msgspec

from butler.api.objects import Json, Key, version_of
from butler.kube.errors import BadAnswer, Expired, Status, error_from_status
from butler.kube.objects import to_json
from butler.kube.resource import BadName, Resource
from butler.kube.timeline import Timeline
from butler.kube.transport import ApiRequest, Params, Transport, explain

if TYPE_CHECKING:
    from types import TracebackType

    from butler.kube.config import Connection
    from butler.kube.retry import Allowance

T = TypeVar("T")
PatchKind = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]
Validation = Literal["Strict", "Warn", "Ignore"]

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
LINE_COST = 2048
"""What a line of a watch is counted for beside its bytes, where speed is limited: short ones are work, too."""
_APPLY_TYPE = "application/apply-patch+yaml"  # JSON is YAML, and every server knows this name


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _ListBody(msgspec.Struct):
    # Kubernetes writes null for an empty list in places.
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    items: list[msgspec.Raw] | None = None


class _WatchLine(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_read_list = msgspec.json.Decoder(_ListBody).decode
_read_line = msgspec.json.Decoder(_WatchLine).decode
_read_name = msgspec.json.Decoder(_Named).decode


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """The objects of a list, and the version of the whole at which a watch takes over."""

    items: list[T]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch. A BOOKMARK has no object: it only says how far the server has come."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T | None
    resource_version: str


Undecodable = Callable[[Key, str, msgspec.ValidationError, bool, bytes], None]
"""Told of an object that does not fit its type: its key, its resourceVersion, why, whether it was deleted, its text."""


class Client:
    """A typed client for one API server. Options are those of `Transport`."""

    def __init__(self, connection: Connection, *, field_manager: str = "butler", **options: Any) -> None:
        self.transport = Transport(connection, **options)
        self.timeline = Timeline()
        self.field_manager = field_manager

    @property
    def connection(self) -> Connection:
        return self.transport.connection

    async def close(self, *, wait: float = 0.0) -> None:
        """Take no new requests, give those under way so many seconds to end, and hang up."""
        await self.transport.close(wait=wait)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def get(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Read one object; NotFound when it is not there."""
        path = _path_of_one(resource, namespace, name, subresource)
        request = ApiRequest("get", "GET", path, str(resource), {"resourceVersion": resource_version}, repeatable=True)
        return self._decode(resource, await self.transport.send(request, timeout=timeout), request)

    async def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        resource_version: str | None = None,
        timeout: float | None = None,
        max_items: int | None = None,
        on_undecodable: Undecodable | None = None,
    ) -> Listed[T]:
        """Read all objects at one version, page by page; a list that expires half way starts again.

        With `max_items`, a list that does not end there is a BadAnswer: some servers are not ours to trust.
        """
        params: dict[str, str | int | None] = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
        }
        read = partial(
            self._list_pages,
            resource,
            namespace,
            params,
            timeout=timeout,
            max_items=max_items,
            on_undecodable=on_undecodable,
        )
        for _ in range(2):
            try:
                return await read(limit)
            except Expired:
                if resource_version is not None:
                    raise
        # Twice a page came too late: ask for all at once, for a list without a second page cannot expire.
        return await read(0)

    async def newest_version(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout: float | None = None,
    ) -> str:
        """The version of a collection now, by a quorum read; its objects are not read."""
        params: dict[str, str | int | None] = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": 1,
        }
        request = ApiRequest("list", "GET", resource.path(namespace), str(resource), params, repeatable=True)
        body = await self.transport.send(request, timeout=timeout)
        try:
            return _read_list(body).metadata.resource_version
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadAnswer(f"{request}: the list cannot be read: {error}") from error

    async def _list_pages(
        self,
        resource: Resource[T],
        namespace: str,
        params: Params,
        limit: int,
        *,
        timeout: float | None,
        max_items: int | None,
        on_undecodable: Undecodable | None,
    ) -> Listed[T]:
        items: list[T] = []
        token: str | None = None
        while True:
            # A continued list carries its version in the token and refuses another one beside it.
            version = params["resourceVersion"] if token is None else None
            page = {**params, "limit": limit or None, "continue": token, "resourceVersion": version}
            request = ApiRequest("list", "GET", resource.path(namespace), str(resource), page, repeatable=True)
            body = await self.transport.send(request, timeout=timeout)
            try:
                head = _read_list(body)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise BadAnswer(f"{request}: the list cannot be read: {error}") from error
            if max_items is not None and len(items) + len(head.items or ()) > max_items:
                raise BadAnswer(f"{request}: the list has more than {max_items} items")
            for raw in head.items or ():
                try:
                    items.append(_decoder(resource.type).decode(raw))
                except msgspec.ValidationError as error:
                    meta = _metadata(raw, request)
                    if on_undecodable is None:
                        raise BadAnswer(f"{request}: {meta.name[:253]}: {error}") from error
                    on_undecodable(Key(meta.namespace, meta.name), meta.resource_version, error, False, bytes(raw))
                except (msgspec.DecodeError, RecursionError) as error:
                    raise BadAnswer(f"{request}: an item cannot be read: {error}") from error
            token = head.metadata.continue_
            if not token:
                return Listed(items, head.metadata.resource_version)
            if max_items is not None and (len(items) >= max_items or not head.items):
                raise BadAnswer(f"{request}: the list has no end ({len(items)} items, and more to come)")

    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        resource_version: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        timeout_seconds: int | None = None,
        silence: float = 90.0,
        on_open: Callable[[], None] | None = None,
        on_undecodable: Undecodable | None = None,
    ) -> AsyncIterator[WatchEvent[T]]:
        """Follow changes until the server ends the stream; Expired when it no longer knows the version.

        Hold it with `contextlib.aclosing`. A stream that is silent for `silence` seconds is taken for dead and
        raises OutcomeUnknown; with bookmarks an idle server talks about once a minute.
        """
        params: dict[str, str | int | None] = {
            "watch": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "allowWatchBookmarks": "true" if bookmarks else None,
            "timeoutSeconds": timeout_seconds,
        }
        if send_initial_events:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = ApiRequest("watch", "GET", resource.path(namespace), str(resource), params, repeatable=True)
        try:
            async with self.transport.stream(request, silence=silence) as answer:
                if on_open is not None:
                    on_open()
                async for line in _lines(answer.content, self.transport.max_answer, self.transport.allowance):
                    event = self._event(resource, line, request, on_undecodable)
                    if event is not None:
                        yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise explain(error, request, self.connection) from error

    def _event(
        self, resource: Resource[T], line: bytes, request: ApiRequest, on_undecodable: Undecodable | None
    ) -> WatchEvent[T] | None:
        try:
            event = _read_line(line)
            if event.type == "ERROR":
                raise error_from_status(msgspec.json.decode(event.object, type=Status), request=str(request))
            if event.type == "BOOKMARK":
                return WatchEvent("BOOKMARK", None, _metadata(event.object, request).resource_version)
            obj = _decoder(resource.type).decode(event.object)
        except msgspec.ValidationError as error:
            if on_undecodable is None:
                raise BadAnswer(f"{request}: an event cannot be read: {error}") from error
            broken = _broken_line(line, request)
            meta = _metadata(broken.object, request)
            deleted = broken.type == "DELETED"
            on_undecodable(Key(meta.namespace, meta.name), meta.resource_version, error, deleted, bytes(broken.object))
            return None
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadAnswer(f"{request}: a line is not JSON: {error}") from error
        return WatchEvent(cast("Any", event.type), obj, version_of(obj))

    async def create(
        self,
        resource: Resource[T],
        obj: T | Json,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        dry_run: bool = False,
        field_validation: Validation | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Create an object (or, with name and subresource, post to one); AlreadyExists when the name is taken."""
        body = to_json(obj, resource if not subresource else None)
        namespace = namespace or body.get("metadata", {}).get("namespace") or ""
        if resource.namespaced and not namespace:
            raise ValueError(f"create {resource}: a namespace is needed")
        request = ApiRequest(
            "create",
            "POST",
            resource.path(namespace, name, subresource),
            str(resource),
            self._write(dry_run, field_validation, field_manager),
            msgspec.json.encode(body),
        )
        return self._decode(resource, await self.transport.send(request, timeout=timeout), request)

    async def replace(
        self,
        resource: Resource[T],
        obj: T | Json,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: Validation | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Write a whole object; Conflict when its resourceVersion is no longer the newest."""
        body = to_json(obj, resource)
        meta = body["metadata"]
        request = ApiRequest(
            "update",
            "PUT",
            resource.path(meta.get("namespace") or "", meta["name"], subresource),
            str(resource),
            self._write(dry_run, field_validation, field_manager),
            msgspec.json.encode(body),
        )
        return self._decode(resource, await self.transport.send(request, timeout=timeout), request)

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Json | Sequence[Json],
        namespace: str = "",
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
        dry_run: bool = False,
        field_validation: Validation | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Change some fields. Put uid and resourceVersion into a merge patch's metadata to fence it."""
        request = ApiRequest(
            "patch",
            "PATCH",
            _path_of_one(resource, namespace, name, subresource),
            str(resource),
            self._write(dry_run, field_validation, field_manager),
            msgspec.json.encode(patch),
            _PATCH_TYPES[kind],
        )
        return self._decode(resource, await self.transport.send(request, timeout=timeout), request)

    async def apply(
        self,
        resource: Resource[T],
        obj: T | Json,
        *,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: Validation | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Server-side apply: own exactly these fields; Conflict when another manager owns one, unless forced."""
        body = to_json(obj, resource)
        meta = body["metadata"]
        params = dict(self._write(dry_run, field_validation, field_manager)) | {"force": "true" if force else None}
        request = ApiRequest(
            "apply",
            "PATCH",
            resource.path(meta.get("namespace") or "", meta["name"], subresource),
            str(resource),
            params,
            msgspec.json.encode(body),
            _APPLY_TYPE,
            # Applying twice is applying once, unless a version is demanded, which the first one has then used up.
            repeatable="resourceVersion" not in meta,
        )
        return self._decode(resource, await self.transport.send(request, timeout=timeout), request)

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Json:
        """Delete an object; Conflict when it is not the one that uid or resource_version names.

        Answers with the object where it lives on for its finalizers, else with a Status.
        """
        preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
        options = _delete_options(preconditions, propagation, grace_period_seconds, dry_run=dry_run)
        # With a uid a repeat can only hit the same object; without, it might hit its successor of the same name.
        request = ApiRequest(
            "delete",
            "DELETE",
            _path_of_one(resource, namespace, name),
            str(resource),
            None,
            msgspec.json.encode(options),
            repeatable=uid is not None,
        )
        return cast("Json", msgspec.json.decode(await self.transport.send(request, timeout=timeout)))

    async def delete_collection(
        self,
        resource: Resource[Any],
        namespace: str = "",
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Delete all objects of a namespace that the selectors match."""
        params = {"labelSelector": label_selector, "fieldSelector": field_selector}
        body = msgspec.json.encode(_delete_options({}, propagation, None, dry_run=dry_run))
        path = resource.path(namespace)
        await self.transport.send(
            ApiRequest("deletecollection", "DELETE", path, str(resource), params, body), timeout=timeout
        )

    async def raw(
        self, path: str, *, method: str = "GET", body: bytes | None = None, timeout: float | None = None
    ) -> bytes:
        """Any other path of the server, such as /version or a discovery document."""
        return await self.transport.send(
            ApiRequest("raw", method, path, body=body, repeatable=method == "GET"), timeout=timeout
        )

    def _write(self, dry_run: bool, validation: Validation | None, manager: str | None) -> Params:
        return {
            "fieldManager": manager or self.field_manager,
            "dryRun": "All" if dry_run else None,
            "fieldValidation": validation,
        }

    def _decode(self, resource: Resource[T], body: bytes, request: ApiRequest) -> T:
        try:
            return _decoder(resource.type).decode(body)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadAnswer(f"{request}: the answer cannot be read: {error}") from error


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """One for each type, whichever client asks: there are kinds by the dozen and clients by the thousand."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder


def _metadata(raw: msgspec.Raw, request: ApiRequest) -> _Metadata:
    """Which object it is, of one that does not fit its type; BadAnswer when not even that can be told."""
    try:
        return _read_name(raw).metadata
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadAnswer(f"{request}: an object's metadata cannot be read: {error}") from error


def _broken_line(line: bytes, request: ApiRequest) -> _WatchLine:
    try:
        return _read_line(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadAnswer(f"{request}: a line is no event: {error}") from error


def _delete_options(preconditions: Json, propagation: Propagation | None, grace: int | None, *, dry_run: bool) -> Json:
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions:
        options["preconditions"] = preconditions
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def _path_of_one(resource: Resource[Any], namespace: str, name: str, subresource: str = "") -> str:
    """The path of a single object; without a name it would be that of all of them, which no caller means."""
    if not name:
        raise BadName(f"{resource}: the name is empty")
    return resource.path(namespace, name, subresource)


async def _lines(
    content: aiohttp.StreamReader, longest: int | None, allowance: Allowance | None
) -> AsyncIterator[bytes]:
    """Whole lines of a stream. A last line without its end was cut off, and is dropped."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk if rest else chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
        if longest is not None and len(rest) > longest:
            raise BadAnswer(f"a watch sent a line of more than {longest} bytes")
        if allowance is not None:
            amount = len(chunk) + len(whole) * LINE_COST
            if (wait := allowance.take(amount, asyncio.get_running_loop().time())) > 0:
                await asyncio.sleep(wait)
