"""Who owns which field: `metadata.managedFields`, kept up to date by every write.

An entry says that a manager set these fields, by updating or by applying, in this version of the kind, through
this subresource. A write takes the fields it adds or changes from all other managers and gives them to its writer;
fields that are gone leave every entry; an entry without fields goes. A write that changes nothing changes no entry
and no time. Clients may edit the list, or empty it with `[{}]` (or `[]`, on
built-in kinds), which ends tracking until the next apply.

`track_write` is for creates, updates and patches (operation Update); server-side apply is in `apply`. It must see
objects as they are decoded and defaulted, before the server fills in anything of its own: what the server sets has
no owner. Entries that did not change are handed on as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubeserver.patching.comparison import Comparison, compare, same
from kubeserver.patching.fieldsets import (
    LEAF,
    SELF,
    BadFieldSetError,
    FieldSet,
    contains,
    difference,
    of_document,
    of_dotted,
    of_path,
    ordered,
    union,
    without,
)
from kubeserver.patching.shapes import ATOMIC, DEDUCED, Shape, empty_object, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubeserver.schemas.schema import Schema

Json = dict[str, Any]
EntryKey = tuple[str, str, str, str]

UPDATE: Final = "Update"
APPLY: Final = "Apply"

_MOST_UPDATERS: Final = 10
_OLDEST: Final = "ancient-changes"
_LONGEST_MANAGER: Final = 128

# Fields that every object has and no manager owns.
_NEVER_OWNED: Final = of_dotted(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)


class GoneVersionError(Exception):
    """An entry in a version of a custom kind that is not served any more, and cannot be read."""


@dataclass(slots=True, frozen=True)
class Writer:
    """Who writes: the field manager, the subresource written through, the version used, and when."""

    manager: str
    subresource: str
    api_version: str
    time: str  # as metadata carries it: 2026-02-15T10:00:30Z


@dataclass(slots=True, frozen=True)
class ManagedFieldsEntry:
    """One line of managedFields. `document` is the JSON it came from, as long as it says the same."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: FieldSet
    document: Json | None = None

    @property
    def key(self) -> EntryKey:
        """What tells entries apart: one who applies has one entry, whatever version it uses."""
        version = "" if self.operation == APPLY else self.api_version
        return self.manager, self.operation, version, self.subresource

    def with_fields(self, fields: FieldSet) -> ManagedFieldsEntry:
        return self if fields is self.fields else replace(self, fields=fields, document=None)

    def to_json(self) -> Json:
        if self.document is not None:
            return self.document
        found: Json = {
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": ordered(self.fields),
            "manager": self.manager,
            "operation": self.operation,
        }
        if self.subresource:
            found["subresource"] = self.subresource
        if self.time:
            found["time"] = self.time
        return found


Entries = dict[EntryKey, ManagedFieldsEntry]


def manager_name(field_manager: str, user_agent: str) -> str:
    """The manager of a request: what it says, or the first word of its user agent."""
    if field_manager:
        return field_manager
    printable = "".join(part for part in user_agent.split("/", 1)[0] if part.isprintable())
    while len(printable.encode()) > _LONGEST_MANAGER:
        printable = printable[:-1]
    return printable


def track_write(
    schema: Schema,
    old: Json | None,
    new: Json,
    writer: Writer,
    *,
    reset_fields: tuple[str, ...] = (),
    schemas: Mapping[str, Schema] | None = None,
) -> list[Json]:
    """The managedFields of `new`, after a create (`old` is None), update or patch.

    `reset_fields` are the dotted paths this endpoint ignores: `status` on the main resource; `metadata` and `spec`
    on the status of a custom resource. `schemas` are those of every version of the kind by apiVersion; without
    them all versions are taken to be alike. Entries of a version that is not there are dropped; those of a custom
    kind stop all tracking until a client removes them.
    """
    live = _list_of(old)
    sent = _list_of(new)
    if writer.subresource or sent is None or sent is live:
        entries = decoded(live or [])
    elif sent == [{}] or (not sent and schema.name):
        entries = {}  # a custom resource loses an empty list when it is decoded, so only [{}] counts there
    elif sent == live:
        entries = decoded(live)
    else:
        entries = _trusted(sent) or decoded(live or [])
    if not entries and old is not None and (old.get("metadata") or {}).get("uid"):
        return []
    before = old
    if before is None:
        before = empty_object(schema, writer.api_version, str(new.get("kind", "")))
    try:
        after = written(schema, before, new, entries, writer, reset_fields=reset_fields, schemas=schemas)
    except GoneVersionError:
        return live or []
    if after is entries and live and sent in (None, live):
        return live
    return encoded(after)


def written(
    schema: Schema,
    old: Json,
    new: Json,
    entries: Entries,
    writer: Writer,
    *,
    reset_fields: tuple[str, ...] = (),
    schemas: Mapping[str, Schema] | None = None,
) -> Entries:
    """The entries after a write that is no apply; the same object if nothing changed."""
    shapes = Shapes(schema, writer.api_version, schemas)
    changes = Changes(shapes, old, new, of_dotted(*reset_fields) if reset_fields else LEAF)
    current = reconciled(shapes, entries)
    after = _others_after(changes, current)
    mine = difference(changes.taken(writer.api_version), _NEVER_OWNED)
    if mine:
        name = writer.manager or "unknown"
        entry = ManagedFieldsEntry(name, UPDATE, writer.api_version, writer.subresource, writer.time, mine)
        previous = after.get(entry.key)
        if previous is not None:
            entry = replace(entry, fields=union(previous.fields, mine))
        after = {**after, entry.key: entry}
    return _capped(after)


def _others_after(changes: Changes, entries: Entries) -> Entries:
    found: Entries = {}
    changed = False
    for key, entry in entries.items():
        gone = changes.gone(entry.api_version)
        if gone is None:
            changed = True
            continue
        rest = entry.with_fields(difference(entry.fields, gone))
        changed = changed or rest is not entry
        if rest.fields:
            found[key] = rest
    return found if changed else entries


class Shapes:
    """The shape of each version of one kind."""

    def __init__(self, schema: Schema, api_version: str, schemas: Mapping[str, Schema] | None) -> None:
        self._api_version = api_version
        self._own = shape_of(schema)
        self._custom = not schema.name
        self._schemas = schemas

    def of(self, api_version: str) -> Shape | None:
        """None if a built-in kind has no such version any more; raises GoneVersionError for a custom one."""
        if api_version == self._api_version or self._schemas is None:
            return self._own
        schema = self._schemas.get(api_version)
        if schema is None and self._custom:
            raise GoneVersionError(f"request to convert CR to an invalid group/version: {api_version}")
        return shape_of(schema) if schema is not None else None


class Changes:
    """What changes from one object to another, as each version of the kind sees it."""

    def __init__(self, shapes: Shapes, old: Json, new: Json, reset: FieldSet) -> None:
        self._shapes = shapes
        self._old = old
        self._new = new
        self._reset = reset
        self._compared: dict[int, Comparison] = {}
        self._gone: dict[int, FieldSet] = {}

    def comparison(self, shape: Shape) -> Comparison:
        found = self._compared.get(id(shape))
        if found is None:
            found = compare(shape, self._old, self._new)
            if self._reset:
                found = Comparison(*(without(fields, self._reset) for fields in found))
            self._compared[id(shape)] = found
        return found

    def taken(self, api_version: str) -> FieldSet:
        """What the write set: added or changed."""
        shape = self._shapes.of(api_version)
        if shape is None:
            return LEAF
        found = self.comparison(shape)
        return union(found.modified, found.added)

    def gone(self, api_version: str) -> FieldSet | None:
        """What others no longer own; None if the version is not served, and nothing written in it counts."""
        shape = self._shapes.of(api_version)
        if shape is None:
            return None
        found = self._gone.get(id(shape))
        if found is None:
            found = union(self.taken(api_version), self.comparison(shape).removed)
            self._gone[id(shape)] = found
        return found


def _list_of(obj: Json | None) -> list[Json] | None:
    metadata = obj.get("metadata") if obj is not None else None
    found = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return found if isinstance(found, list) else None


def decoded(documents: Sequence[Json]) -> Entries:
    """The entries of a list this server wrote."""
    found: Entries = {}
    for document in documents:
        entry = ManagedFieldsEntry(
            document.get("manager", ""),
            document["operation"],
            document["apiVersion"],
            document.get("subresource", ""),
            document.get("time", ""),
            document.get("fieldsV1") or {},
            document,
        )
        found[entry.key] = entry
    return found


def _trusted(documents: Sequence[object]) -> Entries | None:
    """The entries of a list a client sent; None if any of it makes no sense, and all of it is ignored."""
    found: Entries = {}
    for document in documents:
        entry = _entry_of(document)
        if entry is None:
            return None
        found[entry.key] = entry
    return found


def _entry_of(document: object) -> ManagedFieldsEntry | None:
    if not isinstance(document, dict):
        return None
    if document.get("operation") not in (UPDATE, APPLY) or not document.get("apiVersion"):
        return None
    if document.get("fieldsType") != "FieldsV1":
        return None
    try:
        return ManagedFieldsEntry(
            str(document.get("manager", "")),
            document["operation"],
            str(document["apiVersion"]),
            str(document.get("subresource", "")),
            _utc(document.get("time")),
            of_document(document.get("fieldsV1")),
        )
    except ValueError:  # of which BadFieldSetError is one
        return None


def _utc(time: object) -> str:
    if not time:
        return ""
    moment = datetime.fromisoformat(str(time))
    if moment.tzinfo is None:
        raise BadFieldSetError(f"{time} has no time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def encoded(entries: Entries) -> list[Json]:
    """The list as it stands in an object: appliers first, then by time, manager, version and subresource."""
    return [entry.to_json() for entry in sorted(entries.values(), key=_position)]


def _position(entry: ManagedFieldsEntry) -> tuple[str, str, str, str, str]:
    return entry.operation, entry.time, entry.manager, entry.api_version, entry.subresource


def stripped(fields: FieldSet) -> FieldSet:
    """The set without the fields that no manager owns."""
    return difference(fields, _NEVER_OWNED)


def _capped(entries: Entries) -> Entries:
    """At most ten updaters are told apart: the oldest of each version share one entry."""
    updaters = [entry for entry in entries.values() if entry.operation == UPDATE]
    if len(updaters) <= _MOST_UPDATERS:
        return entries
    updaters.sort(key=lambda entry: (entry.time, identifier(entry)))
    found = dict(entries)
    first: dict[str, ManagedFieldsEntry] = {}
    count = len(updaters)
    for entry in updaters:
        if count <= _MOST_UPDATERS:
            break
        version = entry.api_version
        if version not in first:
            first[version] = entry
            continue
        bucket = replace(entry, manager=_OLDEST, subresource="", document=None)
        if bucket.key not in found:
            found[bucket.key] = found.pop(first[version].key)
        found[bucket.key] = replace(bucket, fields=union(found[bucket.key].fields, entry.fields))
        # If the shared entry itself is the one to be merged, Kubernetes loses it, and so do we.
        del found[entry.key]
        count -= 1
    return found


def identifier(entry: ManagedFieldsEntry) -> str:
    """The text Kubernetes tells entries apart by, and puts them in order where nothing else does."""
    parts = {"manager": entry.manager, "operation": entry.operation}
    if entry.operation == UPDATE:
        parts["apiVersion"] = entry.api_version
    if entry.subresource:
        parts["subresource"] = entry.subresource
    return msgspec.json.encode(parts).decode()


def reconciled(shapes: Shapes, entries: Entries) -> Entries:
    """The entries with fields that have become atomic since they were written owned as a whole."""
    found: Entries = {}
    changed = False
    for key, entry in entries.items():
        shape = shapes.of(entry.api_version)
        if shape is None:
            changed = True  # nothing can be said in a version that is gone
            continue
        if not _fits(shape, msgspec.json.encode(entry.fields)):
            changed = True
            entry = entry.with_fields(_coarsened(shape, entry.fields))  # noqa: PLW2901
        found[key] = entry
    return found if changed else entries


@lru_cache(maxsize=512)
def _fits(shape: Shape, document: bytes) -> bool:
    """Whether a set needs no coarsening. Objects of a kind are owned alike: the answer is nearly always known."""
    fields = msgspec.json.decode(document)
    return _coarsened(shape, fields) is fields


def _coarsened(shape: Shape, fields: FieldSet) -> FieldSet:
    found: FieldSet = {}
    changed = False
    for element, node in fields.items():
        kept = node
        if element != SELF:
            child = _child(shape, element)
            if child is not None and node:
                kept = LEAF if _has_become_atomic(child) else _coarsened(child, node)
        changed = changed or kept is not node
        found[element] = kept
    return found if changed else fields


def _child(shape: Shape, element: str) -> Shape | None:
    if element[0] == "f":
        return shape.child(element[2:]) if shape.map else None
    return shape.items if shape.list else None


def _has_become_atomic(shape: Shape) -> bool:
    if shape is DEDUCED or (shape.map and shape.scalar):
        return False
    return shape.atomic_map if shape.map else shape.list and shape.list_type == ATOMIC


def keep_times_if_unchanged(old: Json, new: Json) -> Json:
    """`new` with the times of `old` if nothing else in it changed, so that the server can see a write of nothing.

    Compares everything but the times of managedFields; run it last, when the object is ready to be stored.
    """
    ours, theirs = _list_of(old), _list_of(new)
    if not ours or not theirs or len(ours) != len(theirs) or ours == theirs:
        return new
    if any(_timeless(mine) != _timeless(other) for mine, other in zip(ours, theirs, strict=True)):
        return new
    candidate = {**new, "metadata": {**new["metadata"], "managedFields": ours}}
    return candidate if same(candidate, old) else new


def _timeless(document: Json) -> Json:
    return {key: value for key, value in document.items() if key != "time"}


def track_scale(
    documents: list[Json], replicas: tuple[str, ...], writer: Writer, *, changed: bool, versions: Sequence[str] = ()
) -> list[Json]:
    """managedFields of a resource whose scale subresource was written.

    `replicas` are the names on the way to the number (`("spec", "replicas")`), `changed` says whether it did, and
    `versions` are the served ones: entries of others are dropped; empty means all are kept.

    Kubernetes shows the scale its own list, in the version of Scale, and folds it back. Updaters do not survive
    the round trip as what they were: the number leaves their entry for one of its own without a time, and if
    no manager owned the number, none will. Run `keep_times_if_unchanged` on the result as for any other write.
    """
    single = of_path(*(f"f:{name}" for name in replicas))
    path = tuple(f"f:{name}" for name in replicas)
    entries = [entry for entry in decoded(documents).values() if not versions or entry.api_version in versions]
    owners = [entry for entry in entries if contains(entry.fields, path)]
    name = writer.manager or "unknown"
    if owners and changed:
        scaled = {(name, UPDATE, "scale")}
    else:
        scaled = {(entry.manager, entry.operation, entry.subresource) for entry in owners}
    found: list[ManagedFieldsEntry] = []
    for entry in entries:
        whose = (entry.manager, entry.operation, entry.subresource)
        if entry.operation == APPLY and whose in scaled:
            scaled.remove(whose)
            found.append(entry)
        else:
            rest = difference(entry.fields, single)
            if rest:
                found.append(entry.with_fields(rest))
    found += [ManagedFieldsEntry(*whose[:2], writer.api_version, whose[2], "", single) for whose in scaled]
    return [item.to_json() for item in sorted(found, key=_position)]
