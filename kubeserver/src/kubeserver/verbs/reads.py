"""The read path: get, list and watch, in whichever representation the client asked for.

The common case sends stored bytes as they are: nothing is decoded to answer a get, a list or a watch event in plain
JSON without selectors. Only what is committed is ever shown.
"""

from __future__ import annotations

import asyncio
import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from kubeserver import patience
from kubeserver.storage.store import Compacted, Entry
from kubeserver.verbs.glance import labels
from kubeserver.views.representations import View
from kubeserver.wire.messages import LARGE, ClientLeft, Request, Response, Stream, encode
from kubeserver.wire.options import ListOptions, list_options, resource_version
from kubeserver.wire.selectors import (
    FieldSelector,
    LabelSelector,
    parse_field_selector,
    parse_label_selector,
)
from kubeserver.wire.status import ApiError, bad_request, expired, not_found

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource

Json = dict[str, Any]

_FUTURE_WAIT: Final = 3.0  # seconds a read waits for a resourceVersion that is not there yet

_LONG_SELECTOR: Final = 1024  # characters that are read on the loop
_LONGEST_SELECTOR: Final = 64 * 1024  # one takes a third of a second to read

_LOOKED_AT: Final = 128 * 1024  # bytes of objects that are decoded before others get a turn
_PASSED_ON: Final = 256 * 1024  # bytes of objects that are sent as they are before others get a turn
_EACH: Final = 1024  # and what one costs besides, as if it were so many bytes
_REQUIREMENT: Final = 16  # and what it costs to hold one against one requirement of a selector
_LONG_LIST: Final = 200  # objects; one of more, or of more bytes than this, is sent while it is made
_LONG_LIST_BYTES: Final = 1024 * 1024

_OLD_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(slots=True)
class Selection:
    """Which objects of a table a request is about."""

    labels: LabelSelector
    fields: FieldSelector

    @property
    def everything(self) -> bool:
        return self.labels.everything and self.fields.everything

    @property
    def weight(self) -> int:
        """What it costs to look at one object, as if it had so many bytes more."""
        return _EACH + _REQUIREMENT * (len(self.labels.requirements) + len(self.fields.terms))

    def matches(self, obj: Json) -> bool:
        return self.labels.matches(obj["metadata"].get("labels") or {}) and self.fields.matches(obj)


async def selection(cluster: LogicalCluster, resource: Resource, request: Request, options: ListOptions) -> Selection:
    """What a request selects; to read a long selector takes as long as to read a large body."""
    of_labels, of_fields = options.label_selector, options.field_selector
    for name, text in (("labelSelector", of_labels), ("fieldSelector", of_fields)):
        if len(text) > _LONGEST_SELECTOR:
            raise bad_request(f"{name} has {len(text)} characters, and may have {_LONGEST_SELECTOR}: select in steps")

    def read() -> Selection:
        return Selection(parse_label_selector(of_labels), parse_field_selector(of_fields, resource))

    if len(of_labels) + len(of_fields) <= _LONG_SELECTOR:
        return read()
    return await cluster.lane.run(request.caller(cluster.name), read, request.gone)


async def get(cluster: LogicalCluster, resource: Resource, request: Request) -> Response:
    view = View(cluster, resource, request)
    if version := request.query.get("resourceVersion", ""):
        await until_revision(cluster, resource_version(version))
    info = request.info
    entry = cluster.store.get(cluster.key(resource, info.namespace if resource.namespaced else "", info.name))
    if entry is None:
        raise not_found(resource.group, resource.plural, info.name)
    as_it_is = view.as_it_is and cluster.stored_form_is_shown(resource, entry.revision)
    if as_it_is or len(entry.value) <= LARGE:
        return view.answer_entry(200, entry)
    return await cluster.lane.run(request.caller(cluster.name), lambda: view.answer_entry(200, entry))


async def until_revision(cluster: LogicalCluster, revision: int) -> None:
    """Wait a moment for a revision that a client saw elsewhere; Kubernetes gives up with 504, and so do we."""
    if revision <= cluster.store.revision:
        return
    try:
        async with asyncio.timeout(_FUTURE_WAIT):
            await cluster.store.reached(revision)
    except TimeoutError:
        current = cluster.store.revision
        raise ApiError(
            504,
            "Timeout",
            f"Timeout: Too large resource version: {revision}, current: {current}",
            details={
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            },
            headers={"Retry-After": "1"},
        ) from None


async def list_(cluster: LogicalCluster, resource: Resource, request: Request) -> Response | Stream:
    """A list, whole or page by page, now or as it was."""
    view = View(cluster, resource, request)
    options = list_options(request.query)
    wanted = await selection(cluster, resource, request, options)
    page = await _page(cluster, resource, request, options, wanted)
    metadata: Json = {"resourceVersion": str(page.revision)}
    if page.continue_ or resource.custom:  # lists of custom resources always say it, be it empty
        metadata["continue"] = page.continue_
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    return await listed(cluster, resource, request, view, metadata, page.entries)


async def listed(
    cluster: LogicalCluster, resource: Resource, request: Request, view: View, metadata: Json, entries: list[Entry]
) -> Response | Stream:
    """The answer that shows a list: a long one goes out piece by piece, so that it is never in memory as a whole."""
    pieces = _pieces(cluster, resource, request, view, metadata, entries)
    if _is_long(entries) and not view.wanted.yaml:
        return Stream(pieces, content_type=view.wanted.content_type)
    return await _written(view, cluster, request, b"".join([piece async for piece in pieces]))


async def in_turns(
    cluster: LogicalCluster, request: Request, entries: list[Entry], *, each: int = _EACH, most: int = _LOOKED_AT
) -> AsyncIterator[list[Entry]]:
    """A few entries at a time, of large ones fewer, with turns for others in between."""
    some: list[Entry] = []
    size = 0
    for entry in entries:
        some.append(entry)
        size += each + len(entry.value)
        if size > most:
            yield some
            some, size = [], 0
            if request.gone():
                raise ClientLeft
            await cluster.turns.take(request.caller(cluster.name))
    if some:
        yield some


async def _written(view: View, cluster: LogicalCluster, request: Request, body: bytes) -> Response:
    """The answer in JSON or YAML; much YAML takes seconds to write."""
    if view.wanted.yaml and len(body) > LARGE:
        return await cluster.lane.run(request.caller(cluster.name), lambda: view.answer(200, body))
    return view.answer(200, body)


async def _pieces(
    cluster: LogicalCluster, resource: Resource, request: Request, view: View, metadata: Json, entries: list[Entry]
) -> AsyncIterator[bytes]:
    """The text of a list, a few hundred objects at a time."""
    empty = encode(view.many([], metadata))
    assert empty.endswith(b"[]}")
    before = empty[:-2]
    as_stored = view.plain and cluster.stored_form_is_shown(resource, cluster.store.revision)
    most = _PASSED_ON if as_stored else _LOOKED_AT
    async for some in in_turns(cluster, request, entries, most=most):
        yield before + await _items(cluster, resource, request, view, metadata, some)
        before = b","
    yield b"]}\n" if entries else before + b"]}\n"


async def _items(
    cluster: LogicalCluster, resource: Resource, request: Request, view: View, metadata: Json, entries: list[Entry]
) -> bytes:
    """Objects inside a list. Built-in kinds do not repeat there what the list says of itself."""
    if not view.plain:
        objects = [cluster.load(resource, entry) for entry in entries]
        try:
            with patience.limited():
                part = view.many(objects, metadata)
        except patience.Costly:  # columns of definitions may take long on objects that are not large
            part = await cluster.lane.run(request.caller(cluster.name), lambda: view.many(objects, metadata))
        return encode(part["rows" if "rows" in part else "items"])[1:-1]
    values = [cluster.show(resource, entry.value, entry.revision) for entry in entries]
    if not resource.custom:
        said = b'{"apiVersion":"%s","kind":"%s",' % (resource.api_version.encode(), resource.kind.encode())
        values = [b"{" + value[len(said) :] if value.startswith(said) else value for value in values]
    return b",".join(values)


def _is_long(entries: list[Entry]) -> bool:
    return len(entries) > _LONG_LIST or sum(len(entry.value) for entry in entries) > _LONG_LIST_BYTES


class Position(msgspec.Struct, omit_defaults=True):
    """Where a paged list goes on: the inside of a continue token."""

    version: ClassVar[str] = "meta.k8s.io/v1"

    v: str
    rv: int = 0
    start: str = ""  # "<namespace>/<name>" of the last object given


@dataclass(slots=True)
class Page:
    entries: list[Entry]
    revision: int
    continue_: str = ""
    remaining: int = 0


async def _page(
    cluster: LogicalCluster, resource: Resource, request: Request, options: ListOptions, wanted: Selection
) -> Page:
    namespace = request.info.namespace or None
    store, table = cluster.store, cluster.table(resource)
    revision, after = store.revision, None
    if options.continue_:
        position = _position(options)
        revision, after = position.rv, _split(position.start)
        if revision < 0:  # the consistent snapshot is gone; the client chose to go on with what is there now
            revision = store.revision
    elif options.resource_version not in ("", "0"):
        asked = _listed_version(options.resource_version)
        await until_revision(cluster, asked)
        exact = options.resource_version_match == "Exact" or (options.limit and not options.resource_version_match)
        revision = asked if exact else store.revision
    if revision == store.revision and after is None and not options.limit:
        entries = await matching(cluster, resource, request, list(store.entries(table, namespace)), wanted)
        return Page(entries, revision)
    try:
        return await _cut(cluster, resource, request, options, wanted, revision, after)
    except Compacted:
        if not options.continue_:
            raise expired(f"The resourceVersion for the provided list is too old: {revision}") from None
        assert after is not None
        refusal = expired(_OLD_CONTINUE)
        refusal.metadata = {"continue": _token(-1, after)}
        raise refusal from None


def _listed_version(text: str) -> int:
    try:
        return resource_version(text)
    except ApiError as problem:
        raise bad_request(f"invalid resource version: {problem.message}") from None


async def _cut(
    cluster: LogicalCluster,
    resource: Resource,
    request: Request,
    options: ListOptions,
    wanted: Selection,
    revision: int,
    after: tuple[str, str] | None,
) -> Page:
    namespace = request.info.namespace or None
    store, table = cluster.store, cluster.table(resource)
    found: list[Entry] = []
    while True:
        room = options.limit - len(found) if options.limit else None
        entries, remaining = await store.page(table, namespace, revision=revision, start_after=after, limit=room)
        found += await matching(cluster, resource, request, entries, wanted)
        if entries:
            after = entries[-1].key.namespace, entries[-1].key.name
        if not remaining or (options.limit and len(found) >= options.limit):
            break
    page = Page(found, revision)
    if remaining and after is not None:
        page.continue_ = _token(revision, after)
        page.remaining = remaining if wanted.everything else 0
    return page


async def matching(
    cluster: LogicalCluster, resource: Resource, request: Request, entries: list[Entry], wanted: Selection
) -> list[Entry]:
    if wanted.everything:
        return entries
    found: list[Entry] = []
    async for some in in_turns(cluster, request, entries, each=wanted.weight):
        found += [entry for entry in some if _is_wanted(cluster, resource, entry, wanted)]
    return found


def _is_wanted(cluster: LogicalCluster, resource: Resource, entry: Entry, wanted: Selection) -> bool:
    if wanted.fields.everything:  # labels are the same in every version, and quick to find
        return wanted.labels.matches(labels(entry.value))
    return wanted.matches(cluster.load(resource, entry))


def _token(revision: int, after: tuple[str, str]) -> str:
    return (
        base64.urlsafe_b64encode(msgspec.json.encode(Position(Position.version, revision, "/".join(after))))
        .decode()
        .rstrip("=")
    )


def _position(options: ListOptions) -> Position:
    if options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    text = options.continue_
    wrong = re.search(r"[^A-Za-z0-9_-]", text)
    try:
        if wrong:
            raise ValueError(f"illegal base64 data at input byte {wrong.start()}")
        position = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Position)
        if position.v != Position.version:
            raise ValueError(f"server does not recognize this encoded version {position.v}")
    except ValueError as problem:
        raise bad_request(f"invalid continue token: continue key is not valid: {problem}") from None
    return position


def _split(start: str) -> tuple[str, str]:
    namespace, _, name = start.partition("/")
    return namespace, name
