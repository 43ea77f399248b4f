"""What the store keeps and what it says: keys, entries, changes, and the ways it can refuse.

Plain values, no I/O. A value is the JSON of one object as bytes, exactly as it is on disk; it is decoded only by
those who look inside, and a `Change` remembers the decoded form for a while, so that a hundred watchers of the
same change pay for one decoding and not for a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import msgspec

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Hashable

Json = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Table(NamedTuple):
    """All objects of one resource in one logical cluster."""

    cluster: str
    group: str
    plural: str


class ObjectKey(NamedTuple):
    """One object. The first three fields are its `Table`; a cluster-scoped object has the namespace ""."""

    cluster: str
    group: str
    plural: str
    namespace: str
    name: str

    @property
    def table(self) -> Table:
        return Table(self.cluster, self.group, self.plural)

    @property
    def path(self) -> str:
        """The place in its table's order, which is the order in which Kubernetes lists: "namespace/name"."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(slots=True, frozen=True)
class Entry:
    """One object as of `revision`; `value` carries the same number in metadata.resourceVersion."""

    key: ObjectKey
    revision: int
    value: bytes

    def object(self) -> Json:
        """The decoded object, anew on every call: the caller may change it."""
        return cast("Json", msgspec.json.decode(self.value))


class StoredChange:
    """One step in the life of one object.

    `value` is the object after the change; for DELETED it is the last state, carrying the revision of the
    deletion. `previous` is the object before it, None for ADDED. Both decoded forms, and whatever the HTTP layer
    puts into `encoded`, are shared by all readers (do not modify them) and are dropped once `recently_used`
    has moved on.
    """

    __slots__ = (
        "_encoded",
        "_object",
        "_previous_object",
        "_recently_used",
        "key",
        "previous",
        "previous_revision",
        "revision",
        "type",
        "value",
    )

    def __init__(
        self,
        type: ChangeType,  # noqa: A002 - the word of the watch protocol
        key: ObjectKey,
        revision: int,
        value: bytes,
        *,
        previous: bytes | None = None,
        previous_revision: int = 0,
        recently_used: deque[StoredChange] | None = None,
    ) -> None:
        self.type = type
        self.key = key
        self.revision = revision
        self.value = value
        self.previous = previous
        self.previous_revision = previous_revision
        self._encoded: dict[Hashable, bytes] | None = None
        self._object: Json | None = None
        self._previous_object: Json | None = None
        self._recently_used = recently_used

    def __repr__(self) -> str:
        return f"StoredChange({self.type} {self.key.plural} {self.key.path} @{self.revision})"

    def object(self) -> Json:
        """`value`, decoded once for all readers: read only."""
        if self._object is None:
            self._remember()
            self._object = msgspec.json.decode(self.value)
        return cast("Json", self._object)

    def previous_object(self) -> Json | None:
        """`previous`, decoded once for all readers: read only."""
        if self._previous_object is None and self.previous is not None:
            self._remember()
            self._previous_object = msgspec.json.decode(self.previous)
        return self._previous_object

    @property
    def encoded(self) -> dict[Hashable, bytes]:
        """Where the HTTP layer keeps encoded watch lines, by representation, for all who want the same."""
        if self._encoded is None:
            self._remember()
            self._encoded = {}
        return self._encoded

    def forget(self) -> None:
        """Drop everything that can be computed again."""
        self._object = self._previous_object = self._encoded = None

    def _remember(self) -> None:
        """Take a place among the recently used, unless there already; the one that falls out forgets."""
        recent = self._recently_used
        known = self._object is not None or self._previous_object is not None or self._encoded is not None
        if recent is None or known:
            return
        if len(recent) == recent.maxlen:
            recent[0].forget()
        recent.append(self)


class StoreError(Exception):
    """Anything the store says no to."""


class Exists(StoreError):
    """There is an object with this key already."""

    def __init__(self, current: Entry | None = None) -> None:
        super().__init__(f"{current.key.plural} {current.key.path} exists already" if current else "exists already")
        self.current = current


class Missing(StoreError):
    """There is no object with this key."""

    def __init__(self, key: ObjectKey) -> None:
        super().__init__(f"{key.plural} {key.path} does not exist")
        self.key = key


class Stale(StoreError):
    """The write was based on a revision that is no longer the latest."""

    def __init__(self, current: Entry, expected: int) -> None:
        super().__init__(
            f"{current.key.plural} {current.key.path} is at revision {current.revision}, not at {expected}"
        )
        self.current = current
        self.expected = expected


class Compacted(StoreError):
    """The history asked for is gone; Kubernetes answers 410 Gone, and the client lists again."""

    def __init__(self, requested: int, compacted: int) -> None:
        super().__init__(f"revision {requested} is gone: history begins at {compacted}")
        self.requested = requested
        self.compacted = compacted


class TooSlow(Compacted):
    """A running watch was read so slowly that what comes next has been compacted away."""


class StorageFailed(StoreError):
    """The disk did not take the write. It did not happen, and may be tried again."""


class StoreRefused(StoreError):
    """The data directory cannot be opened; the text says why and what to do."""
