"""The objects that make up clusters, as they are: views that follow them, and applying those that differ.

Kinds of Cluster API, Steward and the providers are followed from the moment that a cluster needs them, not before:
a platform that uses Butler for addresses alone need not have them installed.

What is wanted is applied (server-side apply, as the one owner of these fields) when the live object lacks or changes
a part of it, or was last applied from something else, which shows in an annotation: without it, a field that is no
longer wanted would stay. So drift is mended, and at rest nothing is written.

A cluster has a dozen of these objects and is looked at seldom, so they are kept as text and unpacked when asked for:
that takes a quarter of the memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from butler.api.labels import FieldManager, Label
from butler.api.objects import Key, covers, key_of, namespace_of
from butler.capi.naming import SECRET, Kind
from butler.kube.cache import Cache
from butler.kube.kinds import WRITE_TIMEOUT
from butler.kube.resource import Resource, untyped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from butler.api.objects import Change, Json
    from butler.kube.client import Client
    from butler.kube.metrics import Metrics

APPLIED: Final = "butler.butlerlabs.dev/applied"
"""Annotation: from what an object was last applied."""
BY_NAMESPACE: Final = "by namespace"
SHOWN_WITHIN: Final = 10.0
"""Seconds within which a view shows what was written. What it does not show then is no longer there."""
PATIENCE: Final = 5.0
"""Seconds that a kind which is new to us is waited for."""

log = logging.getLogger(__name__)


NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)


class NotServed(Exception):
    """A kind that a cluster needs is not there, or cannot be read."""

    def __init__(self, resource: Resource[Json], *, absent: bool, why: str = "") -> None:
        super().__init__(f"the API server has no {resource}" if absent else f"{resource} cannot be read: {why}")


def resource_of_kind(kind: Kind) -> Resource[Json]:
    """A foreign kind, as the client wants it."""
    return untyped(kind.group, kind.version, kind.plural, kind.kind, namespaced=kind.namespaced)


class Packed(NamedTuple):
    """An object as it is kept."""

    namespace: str
    text: bytes


class ForeignObjects:
    """The foreign objects of all clusters. `wake` is told the namespace of each that changed; `clock` is monotonic."""

    def __init__(
        self,
        client: Client,
        wake: Callable[[str], None],
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._wake = wake
        self._metrics = metrics
        self._clock = clock
        self._views: dict[Resource[Json], Cache[Any]] = {}  # of Packed; the caches themselves only see whole objects
        self._ahead: dict[tuple[Resource[Json], Key], tuple[float, Packed]] = {}
        """Secrets that were written and that the view has not shown yet. It has a selector, so it takes in nothing new
        by itself, and who looks again before the watch has told of them would write them once more."""
        self._following: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Follow what is asked for, until cancelled."""
        async with asyncio.TaskGroup() as self._following:
            for view in self._views.values():
                self._following.create_task(view.run())
            await asyncio.Event().wait()

    async def view(self, kind: Kind) -> Cache[Any]:
        """The objects of a kind, all of them; NotServed where there is no such kind."""
        resource = resource_of_kind(kind)
        view = self._views.get(resource)
        if view is None:
            # Of all the Secrets of a management cluster, only those that we made are ours to know.
            labels = Label.TENANT_UID.value if kind == SECRET else None
            view = Cache(
                self._client,
                resource,
                label_selector=labels,
                transform=packed,
                required=False,
                metrics=self._metrics,
            )
            view.index(BY_NAMESPACE, lambda kept: [kept.namespace])
            view.on_change(partial(self._tell, resource))
            self._views[resource] = view
            if self._following is not None:
                self._following.create_task(view.run())
        if not view.has_synced:
            # Asked once, it is known: one that waited on would keep others waiting, for a kind that may never come.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await view.wait_settled()
            if not view.has_synced:
                raise NotServed(resource, absent=view.is_absent, why=view.last_error or "it takes long")
        return view

    def _tell(self, resource: Resource[Json], change: Change[Packed]) -> None:
        self._ahead.pop((resource, change.key), None)
        self._wake(change.key.namespace or change.key.name)

    async def one(self, kind: Kind, namespace: str, name: str) -> Json | None:
        view, key = await self.view(kind), Key(namespace, name)
        found = view.get(key) or self._just_written(view.resource, key)
        return None if found is None else unpacked(found)

    async def all_in(self, kind: Kind, namespace: str) -> list[Json]:
        return [unpacked(packed) for packed in (await self.view(kind)).by(BY_NAMESPACE, namespace)]

    async def apply(self, kind: Kind, wanted: Json) -> Json | None:
        """Bring one object to what is wanted; as it was written, or None when it is so already."""
        view, key = await self.view(kind), key_of(wanted)
        marked = _marked(wanted)
        if covers(await self.one(kind, key.namespace, key.name), marked):
            return None
        written: Json = await self._client.apply(
            view.resource,
            marked,
            force=True,
            field_manager=FieldManager.TENANTS,
            field_validation="Strict",
            timeout=WRITE_TIMEOUT,
        )
        await self.wrote(kind, written)
        return written

    async def is_applied(self, kind: Kind, wanted: Json) -> bool:
        """Whether one object is what is wanted, as far as the view has it."""
        return covers(await self.one(kind, *key_of(wanted)), _marked(wanted))

    async def wrote(self, kind: Kind, written: Json) -> None:
        """Take in the server's answer to a write, ahead of the watch."""
        view, key = await self.view(kind), key_of(written)
        view.wrote(written)
        if kind == SECRET and key not in view:
            self._ahead[view.resource, key] = (self._clock(), packed(written))

    def _just_written(self, resource: Resource[Json], key: Key) -> Packed | None:
        when, written = self._ahead.get((resource, key), (0.0, None))
        if written is not None and self._clock() - when >= SHOWN_WITHIN:
            del self._ahead[resource, key]
            return None
        return written


def _marked(wanted: Json) -> Json:
    digest = hashlib.sha256(msgspec.json.encode(wanted, order="sorted")).hexdigest()[:16]
    annotations = {**wanted["metadata"].get("annotations", {}), APPLIED: digest}
    return {**wanted, "metadata": {**wanted["metadata"], "annotations": annotations}}


def unused(templates: Iterable[Json], used: Iterable[tuple[str, str]]) -> list[Json]:
    """The templates that nothing was or will be made from."""
    keep = set(used)
    # An object that does not say what it is cannot be told from one that is used.
    return [
        template
        for template in templates
        if template.get("kind") and (template["kind"], template["metadata"]["name"]) not in keep
    ]


def packed(obj: Json) -> Packed:
    """An object to be kept, without the record of who owns which field, which is often half of it."""
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return Packed(namespace_of(obj), msgspec.json.encode({**obj, "metadata": meta}))


def unpacked(kept: Packed) -> Json:
    """An object as it was."""
    return cast("Json", msgspec.json.decode(kept.text))
