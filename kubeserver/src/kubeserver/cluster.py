"""One logical cluster: a name space of objects of its own inside the one process and the one store.

It knows which resources it serves and how a stored object is shown in a served version. It decides nothing about
requests (`verbs/`) and runs nothing in the background (`background/`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kubeserver.lane import Lane
from kubeserver.registry import Registry
from kubeserver.schemas.defaults import apply_defaults
from kubeserver.schemas.pruning import prune
from kubeserver.storage.store import Entry, ObjectKey, Store, StoredChange, Table
from kubeserver.turns import Turns
from kubeserver.wire.messages import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.resources import Resource

Json = dict[str, Any]


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class LogicalCluster:
    def __init__(
        self,
        name: str,
        store: Store,
        builtin: Iterable[Resource],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        lane: Lane | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.name = name
        self.store = store
        self.registry = Registry(builtin)
        self.clock = clock
        self.lane = lane or Lane()
        self.turns = turns or Turns()
        self._table_versions: dict[tuple[str, str], int] = {}

    # What strategies may look at (resources.World).

    def now(self) -> str:
        return timestamp(self.clock())

    def objects(self, group: str, plural: str, namespace: str | None = None) -> Iterable[Json]:
        """Every object of a table as decisions must see it: writes under way included."""
        for entry in self.store.entries_latest(Table(self.name, group, plural), namespace):
            yield decode(entry.value)

    # Addresses in the store.

    def table(self, resource: Resource) -> Table:
        return Table(self.name, *resource.table)

    def key(self, resource: Resource, namespace: str, name: str) -> ObjectKey:
        return ObjectKey(self.name, *resource.table, namespace, name)

    def version_of(self, group: str, plural: str) -> int:
        """Changes whenever an object of the table does: what is derived from the table may be cached by it."""
        return self._table_versions.get((group, plural), 0)

    def note(self, change: StoredChange) -> None:
        self._table_versions[change.key.group, change.key.plural] = change.revision

    # How a stored object is shown.

    def stored_form_is_shown(self, resource: Resource, revision: int) -> bool:
        """Whether the stored bytes can be sent as they are."""
        return (
            resource.storage_version in ("", resource.version)
            and revision >= resource.since
            and resource.from_storage is None
        )

    def show(self, resource: Resource, value: bytes, revision: int) -> bytes:
        if self.stored_form_is_shown(resource, revision):
            return value
        return encode(self.shown(resource, decode(value), revision))

    def shown(self, resource: Resource, obj: Json, revision: int) -> Json:
        """The object in the served version, with defaults that its definition gained after it was written."""
        if self.stored_form_is_shown(resource, revision):
            return obj
        if resource.from_storage is not None:
            return resource.from_storage(obj)
        obj["apiVersion"] = resource.api_version
        if resource.custom:
            if revision < resource.since:
                storage = self.registry.storage(resource.group, resource.plural)
                apply_defaults((storage or resource).schema, obj)
            prune(resource.schema, obj)
        return obj

    def kept(self, resource: Resource, obj: Json) -> Json:
        """The object as it is stored."""
        if resource.to_storage is not None:
            return resource.to_storage(obj)
        if not resource.custom:
            return obj
        # As of now, and not of when the request came: the definition may have changed while a webhook was asked.
        storage = self.registry.storage(resource.group, resource.plural)
        if storage is not None and storage.version != resource.version:
            obj = {**obj, "apiVersion": storage.api_version}
            prune(storage.schema, obj)
        return obj

    def load(self, resource: Resource, entry: Entry) -> Json:
        return self.shown(resource, decode(entry.value), entry.revision)
