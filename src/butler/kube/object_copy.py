"""The objects of a kind as far as this process knows them: found by key and index, with handlers that hear of changes.

How they come here, and how far they can be trusted, is the matter of `cache`, which fills it.

Handlers are plain functions and must be quick; one that raises is logged and does not harm the others. Objects are
shared with every reader: treat them as frozen.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar

from butler.api.objects import Change, uid_of, version_of
from butler.kube.metrics import Metrics
from butler.kube.store import IndexFunction, ObjectStore, RangeFunction, StoreEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from butler.api.objects import Key
    from butler.ipam.addresses import Range
    from butler.kube.resource import Resource

T = TypeVar("T")
log = logging.getLogger(__name__)


class ObjectCopy(Generic[T]):
    """Objects that are known here, and who is told of changes."""

    def __init__(
        self, resource: Resource[T], *, title: str, transform: Callable[[T], T] | None, metrics: Metrics | None
    ) -> None:
        self.resource = resource
        self._title = title or str(resource)
        self._transform = transform
        self._metrics = metrics or Metrics()
        self._store: ObjectStore[T] = ObjectStore()
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._unreadable: dict[Key, bytes] = {}

    def get(self, key: Key) -> T | None:
        return self._store.get(key)

    def values(self) -> list[T]:
        return self._store.values()

    def by(self, index: str, value: Hashable) -> list[T]:
        """The objects that an index files under a value."""
        return self._store.by(index, value)

    def count(self, index: str, value: Hashable) -> int:
        return self._store.count(index, value)

    def touching(self, index: str, space: Hashable, addresses: Range) -> list[T]:
        """The objects with any of these addresses in a space, as an index of ranges has it."""
        return self._store.touching(index, space, addresses)

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, key: object) -> bool:
        return key in self._store

    @property
    def unreadable(self) -> Mapping[Key, bytes]:
        """Objects whose newest version, given as text, does not fit its type: an older one is here, or none at all."""
        return self._unreadable

    def index(self, name: str, function: IndexFunction[T]) -> None:
        """Keep objects findable by what `function` says of them; it must depend on the object alone."""
        self._store.add_index(name, function)

    def index_ranges(self, name: str, function: RangeFunction[T]) -> None:
        """Keep objects findable by addresses; as with `index`, and `function` must not raise for any object."""
        self._store.add_range_index(name, function)

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        """Call `handler` for every change from now on, beginning with an addition for each object already here."""
        self._handlers.append(handler)
        self.replay(handler)

    def replay(self, handler: Callable[[Change[T]], None]) -> None:
        """Tell one handler of everything here, as if it had just been added."""
        for key in list(self._store):
            self._tell(handler, Change(key, None, self._store.get(key)))

    # Filling, by the cache.

    def _complain(
        self, seen: dict[Key, bytes], key: Key, version: str, error: Exception, _deleted: bool, text: bytes
    ) -> None:
        # To drop it would look like a deletion, and controllers give things back on deletions.
        seen[key] = text
        self._metrics.undecodable.labels(str(self.resource)).inc()
        log.error("%s %s at %s does not fit its type, keeping what was known: %s", self.resource, key, version, error)

    def _entry(self, obj: T) -> StoreEntry[T]:
        version, uid = version_of(obj), uid_of(obj)
        if isinstance(obj, dict):
            obj.get("metadata", {}).pop("managedFields", None)
        return StoreEntry(obj if self._transform is None else self._transform(obj), version, uid)

    def _publish(self, changes: list[Change[T]]) -> None:
        for change in changes:
            for handler in self._handlers:
                self._tell(handler, change)
        if changes:
            # Counted up and down, as several caches may be of one kind.
            more = sum((change.old is None) - (change.new is None) for change in changes)
            self._metrics.cache_objects.labels(str(self.resource)).inc(more)

    def _tell(self, handler: Callable[[Change[T]], None], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            self._metrics.handler_errors.labels(str(self.resource)).inc()
            log.exception("cache of %s: a handler failed on %s", self._title, change.key)
