"""Server-side apply: a manager says which fields it wants and how, and owns exactly those from then on.

The configuration is merged into the live object. A field that another manager owns and that would change is a
conflict, which only `force` overrides. A field that the manager applied before and no longer names goes, unless
another manager owns it too. Applying the same configuration twice changes nothing, not even a time.

kubectl is special, as in Kubernetes: the manager `kubectl` may take over what the last-applied annotation of
client-side apply says it set, and keeps that annotation in step as long as it is there.

The result is not yet defaulted or validated: that is the next step of the write path. Unlike a decoded request it
may hold nulls that the schema forbids; Kubernetes validates them, so they must not be dropped before.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kubeserver.patching.comparison import compare, field_set, same, with_structs
from kubeserver.patching.fieldsets import (
    LEAF,
    FieldSet,
    contains,
    difference,
    intersection,
    of_dotted,
    paths,
    text,
    union,
    without,
)
from kubeserver.patching.managed_fields import (
    APPLY,
    UPDATE,
    Changes,
    Entries,
    EntryKey,
    GoneVersionError,
    ManagedFieldsEntry,
    Shapes,
    Writer,
    decoded,
    encoded,
    identifier,
    reconciled,
    stripped,
    written,
)
from kubeserver.patching.merge import check, merge, remove, without_new_nulls
from kubeserver.patching.shapes import OBJECT_META, NoElementError, Shape, empty_object
from kubeserver.wire.goformat import marshal, quote
from kubeserver.wire.status import ApiError, Cause, bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeserver.schemas.schema import Schema

Json = dict[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LARGEST_ANNOTATIONS: Final = 256 * 1024
_KUBECTL: Final = "kubectl"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"


class _Conflicts(Exception):
    def __init__(self, found: list[tuple[ManagedFieldsEntry, tuple[str, ...]]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found


def apply(
    schema: Schema,
    live: Json | None,
    config: Json,
    writer: Writer,
    *,
    force: bool,
    kind: str = "",
    reset_fields: tuple[str, ...] = (),
    schemas: Mapping[str, Schema] | None = None,
) -> Json:
    """The object after an apply, `metadata.managedFields` included; `live` is None if there was none.

    `kind` is the kind served here (that of `live` if left out); `reset_fields` and `schemas` are as for
    `track_write`. Raises ApiError 409 with one cause per field in conflict.
    """
    expected = kind or str((live or config).get("kind", ""))
    _check_type(config, writer.api_version, expected)
    base = live if live is not None else empty_object(schema, writer.api_version, expected)
    entries = decoded(_managed(base) or [])
    if not entries and live is not None:
        nothing = empty_object(schema, writer.api_version, expected)
        first = replace(writer, manager=_BEFORE_FIRST_APPLY)
        entries = written(schema, nothing, base, {}, first, reset_fields=reset_fields, schemas=schemas)
    if _managed(config) is not None:
        raise bad_request("metadata.managedFields must be nil")
    shapes = Shapes(schema, writer.api_version, schemas)
    applying = _Applying(shapes, writer, of_dotted(*reset_fields), typed=bool(schema.name))
    applying.check(config)
    try:
        return applying.result(base, config, entries, force=force)
    except _Conflicts as conflicts:
        raise _refusal(conflicts.found) from None
    except NoElementError as error:
        raise ApiError(500, "", f"failed to merge config: {error}") from error
    except GoneVersionError as error:
        raise ApiError(500, "", str(error)) from error


def _managed(obj: Json) -> list[Json] | None:
    metadata = obj.get("metadata")
    found = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return found if isinstance(found, list) else None


def _check_type(config: Json, api_version: str, kind: str) -> None:
    if config.get("apiVersion") != api_version or config.get("kind") != kind:
        raise bad_request(f"invalid object type: {_type_text(config)}")


def _type_text(obj: Json) -> str:
    """A group, version and kind as Go prints them: the core group shows as nothing before the slash."""
    api_version = str(obj.get("apiVersion") or "")
    group_version = api_version if "/" in api_version else f"/{api_version}"
    return f"{group_version}, Kind={obj.get('kind') or ''}"


class _Applying:
    """One apply request: who applies, in which version, to which kind."""

    def __init__(self, shapes: Shapes, writer: Writer, reset: FieldSet, *, typed: bool) -> None:
        self._shapes = shapes
        self._writer = writer
        self._reset = reset
        self._typed = typed
        own = shapes.of(writer.api_version)
        assert own is not None, "the version of the request is served"
        self._shape = own

    def check(self, config: Json) -> None:
        problems = check(self._shape, config)
        if not problems:
            return
        metadata = config.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        whose = f"{named.get('namespace') or ''}/{named.get('name') or ''}; {_type_text(config)}"
        listed = (
            problems[0] if len(problems) == 1 else "\n".join(["errors:", *(f"  {problem}" for problem in problems)])
        )
        raise ApiError(500, "", f"failed to create typed patch object ({whose}): {listed}")

    def result(self, live: Json, config: Json, entries: Entries, *, force: bool) -> Json:
        try:
            found = self._merged(live, config, entries, force=force)
        except _Conflicts as conflicts:
            if self._writer.manager != _KUBECTL:
                raise
            allowed = self._applied_by_client(live)
            rest = [pair for pair in conflicts.found if not contains(allowed, pair[1])]
            if rest:
                raise _Conflicts(rest) from None
            found = self._merged(live, config, entries, force=True)
        if self._writer.manager == _KUBECTL:
            return _with_last_applied(found, config)
        return found

    def _merged(self, live: Json, config: Json, entries: Entries, *, force: bool) -> Json:
        current = reconciled(self._shapes, entries)
        fields = without(field_set(self._shape, config), self._reset)
        mine = ManagedFieldsEntry(
            self._writer.manager or "unknown",
            APPLY,
            self._writer.api_version,
            self._writer.subresource,
            "",
            fields,
        )
        last = current.get(mine.key)
        owned: Entries = {**current, mine.key: mine}
        merged = merge(self._shape, live, config)
        # Nothing goes if everything applied last time is applied again, which is by far the usual case.
        gave_up = difference(last.fields, fields) if last is not None else LEAF
        new = self._pruned(merged, owned, last) if last is not None and gave_up else merged
        after = self._owners_after(live, new, owned, mine.key, force=force)
        changed = not same(live, new)
        kept = stripped(fields)
        if kept:
            time = self._writer.time if changed else (last.time if last is not None else "")
            same_entry = last is not None and last.time == time and last.api_version == mine.api_version
            if same_entry and last is not None and last.fields == kept:
                after[mine.key] = last
            else:
                after[mine.key] = replace(mine, fields=kept, time=time)
        else:
            after.pop(mine.key, None)
        result = new if new is merged else self._decoded(new, merged)
        return _with_managed(result if changed else live, encoded(after))

    def _decoded(self, new: Json, merged: Json) -> Json:
        """A pruned object without the nulls that Go's types cannot hold.

        What is emptied while others own it becomes null. In a custom resource it stays null outside metadata,
        and is for validation to refuse, as Kubernetes does.
        """
        if self._typed:
            return without_new_nulls(self._shape, new, merged)
        metadata = without_new_nulls(OBJECT_META, new["metadata"], merged["metadata"])
        return {**new, "metadata": metadata}

    def _owners_after(self, live: Json, new: Json, owned: Entries, mine: EntryKey, *, force: bool) -> Entries:
        changes = Changes(self._shapes, live, new, self._reset)
        conflicts: list[tuple[ManagedFieldsEntry, tuple[str, ...]]] = []
        after: Entries = {}
        for key, entry in owned.items():
            if key == mine:
                after[key] = entry
                continue
            gone = changes.gone(entry.api_version)
            if gone is None:
                continue
            if not force:
                taken = intersection(entry.fields, changes.taken(entry.api_version))
                conflicts.extend((entry, path) for path in paths(taken))
            rest = difference(entry.fields, gone)
            if rest:
                after[key] = entry.with_fields(rest)
        if conflicts:
            raise _Conflicts(conflicts)
        return after

    def _pruned(self, merged: Json, owned: Entries, last: ManagedFieldsEntry) -> Json:
        """The merged object without what this manager applied last time and no manager owns any more."""
        shape = self._shapes.of(last.api_version)
        if shape is None:
            return merged
        gave_up = with_structs(shape, last.fields)
        pruned = remove(shape, merged, gave_up)
        for version, managed in _by_version(owned, last.api_version):
            seen = self._shapes.of(version)
            if seen is not None:
                pruned = _with_owned(seen, merged, pruned, managed)
        lost = difference(_all_fields(shape, merged), _all_fields(shape, pruned))
        dangling = intersection(lost, gave_up)
        return remove(shape, merged, dangling) if dangling else merged

    def _applied_by_client(self, live: Json) -> FieldSet:
        """What client-side apply set and has not changed since: kubectl may take it without a conflict."""
        try:
            config = json.loads(_annotations(live).get(LAST_APPLIED) or "null")
        except ValueError:
            return LEAF
        if not isinstance(config, dict) or config.get("apiVersion") != self._writer.api_version:
            return LEAF
        if check(self._shape, config) or check(self._shape, live):
            return LEAF
        changed = compare(self._shape, config, live)
        found = field_set(self._shape, config)
        for different in changed:
            found = difference(found, different)
        return found


def _all_fields(shape: Shape, obj: Json) -> FieldSet:
    return with_structs(shape, field_set(shape, obj))


def _with_owned(shape: Shape, merged: Json, pruned: Json, managed: FieldSet) -> Json:
    """The pruned object with what others own put back."""
    kept = union(_all_fields(shape, pruned), with_structs(shape, managed))
    return remove(shape, merged, difference(_all_fields(shape, merged), kept))


def _by_version(entries: Entries, first: str) -> list[tuple[str, FieldSet]]:
    """All owned fields by the version they are written in, starting with one."""
    found: dict[str, FieldSet] = {}
    for entry in entries.values():
        found[entry.api_version] = union(found.get(entry.api_version, LEAF), entry.fields)
    return sorted(found.items(), key=lambda item: (item[0] != first, item[0]))


def _refusal(conflicts: list[tuple[ManagedFieldsEntry, tuple[str, ...]]]) -> ApiError:
    ordered = sorted(conflicts, key=lambda conflict: identifier(conflict[0]))
    causes = [
        Cause("FieldManagerConflict", f"conflict with {_who(entry)}", text(path)).to_json() for entry, path in ordered
    ]
    if len(ordered) == 1:
        entry, path = ordered[0]
        message = f"Apply failed with 1 conflict: conflict with {_who(entry)}: {text(path)}"
    else:
        lines = []
        who = None
        for entry, path in ordered:
            if who != entry.key:
                lines.append(f"conflicts with {_who(entry)}:")
                who = entry.key
            lines.append(f"- {text(path)}")
        message = f"Apply failed with {len(ordered)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, details={"causes": causes})


def _who(entry: ManagedFieldsEntry) -> str:
    found = quote(entry.manager)
    if entry.subresource:
        found += f" with subresource {quote(entry.subresource)}"
    return f"{found} using {entry.api_version}" if entry.operation == UPDATE else found


def _with_managed(obj: Json, documents: list[Json]) -> Json:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    if documents:
        metadata["managedFields"] = documents
    return {**obj, "metadata": metadata}


def _annotations(obj: Json) -> dict[str, str]:
    found = (obj.get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}


def _with_last_applied(obj: Json, config: Json) -> Json:
    """The object with the annotation of client-side apply brought up to date, if it has one."""
    annotations = _annotations(obj)
    if not annotations.get(LAST_APPLIED):
        return obj
    metadata = dict(config.get("metadata") or {})
    if isinstance(metadata.get("annotations"), dict):
        others = {key: value for key, value in metadata["annotations"].items() if key != LAST_APPLIED}
        metadata["annotations"] = others
    updated = {**annotations, LAST_APPLIED: marshal({**config, "metadata": metadata}) + "\n"}
    if sum(len(key.encode()) + len(value.encode()) for key, value in updated.items()) > _LARGEST_ANNOTATIONS:
        del updated[LAST_APPLIED]
    return {**obj, "metadata": {**obj["metadata"], "annotations": updated}}
