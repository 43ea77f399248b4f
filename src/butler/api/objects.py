"""Reading and preparing objects of any kind: names, metadata, conditions, finalizers, owners. Pure, no I/O, no clock.

Objects come in two shapes, msgspec structs with snake_case attributes (our kinds) and dicts as the JSON has them
(foreign kinds); everything here takes both. The functions that prepare a change return the new list and leave their
argument alone: what is in a cache is shared and must never be changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

import msgspec

T = TypeVar("T")
Json = dict[str, Any]
EventType = Literal["Normal", "Warning"]


class Key(NamedTuple):
    """The name of one object among its kind. Cluster-scoped objects have namespace ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """An object before and after: added when there is no old, deleted when there is no new."""

    key: Key
    old: T | None
    new: T | None


def _meta(obj: object, snake: str, camel: str) -> Any:
    if isinstance(obj, Mapping):
        return obj.get("metadata", {}).get(camel)
    return getattr(cast("Any", obj).metadata, snake, None)


def key_of(obj: object) -> Key:
    return Key(_meta(obj, "namespace", "namespace") or "", _meta(obj, "name", "name") or "")


def name_of(obj: object) -> str:
    return _meta(obj, "name", "name") or ""


def namespace_of(obj: object) -> str:
    return _meta(obj, "namespace", "namespace") or ""


def uid_of(obj: object) -> str:
    return _meta(obj, "uid", "uid") or ""


def version_of(obj: object) -> str:
    return _meta(obj, "resource_version", "resourceVersion") or ""


def annotations_of(obj: object) -> Mapping[str, str]:
    return _meta(obj, "annotations", "annotations") or {}


def labels_of(obj: object) -> Mapping[str, str]:
    return _meta(obj, "labels", "labels") or {}


def finalizers_of(obj: object) -> list[str]:
    return list(_meta(obj, "finalizers", "finalizers") or ())


def is_being_deleted(obj: object) -> bool:
    return bool(_meta(obj, "deletion_timestamp", "deletionTimestamp"))


def owners_of(obj: object) -> list[Json]:
    """The owner references as JSON has them, whatever the object's shape."""
    return [
        dict(owner) if isinstance(owner, Mapping) else cast("Json", msgspec.to_builtins(owner))
        for owner in _meta(obj, "owner_references", "ownerReferences") or ()
    ]


def controller_of(obj: object) -> Json | None:
    """The one owner that manages this object."""
    return next((owner for owner in owners_of(obj) if owner.get("controller")), None)


def is_newer(version: str, than: str) -> bool:
    """Whether a resourceVersion lies after another of the same kind of object.

    Kubernetes has declared them comparable integers within a kind; anything else counts as newer when it differs,
    so that a server with other versions is obeyed rather than ignored.
    """
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than


def is_older(version: str, than: str) -> bool:
    """Whether a resourceVersion surely lies before another of the same kind of object."""
    return version != than and not is_newer(version, than)


def with_finalizer(obj: object, finalizer: str) -> list[str] | None:
    """The finalizers to write so that `finalizer` is among them; None when nothing is to be written."""
    present = finalizers_of(obj)
    # The server refuses new finalizers on an object that is going away.
    return None if finalizer in present or is_being_deleted(obj) else [*present, finalizer]


def without_finalizer(obj: object, finalizer: str) -> list[str] | None:
    """The finalizers to write so that `finalizer` is gone; None when nothing is to be written."""
    present = finalizers_of(obj)
    return [entry for entry in present if entry != finalizer] if finalizer in present else None


def finalizers_patch(obj: object, finalizers: Sequence[str]) -> Json:
    """A merge patch that replaces the finalizers of exactly this version of this object, or conflicts."""
    return {
        "metadata": {
            "uid": uid_of(obj),
            "resourceVersion": version_of(obj),
            "finalizers": list(finalizers) or None,
        }
    }


def condition_of(obj: Json, kind: str) -> Json | None:
    """A condition of a foreign object; for our own kinds see `butler.api.conditions`."""
    return next((entry for entry in obj.get("status", {}).get("conditions") or () if entry.get("type") == kind), None)


def covers(live: Any, wanted: Any) -> bool:
    """Whether the live object says all that is wanted; it may say more. What is wanted to be null may be left out."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            covers(live.get(name), value) if name in live or value is None else False for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(covers, live, wanted))
    return bool(live == wanted)
