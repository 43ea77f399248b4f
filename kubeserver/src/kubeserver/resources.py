"""What is served: one `Resource` per group, version and plural, built in or from a CustomResourceDefinition.

A `Resource` holds facts only. What a built-in kind does beyond its schema (a Service gets a cluster address, a
Secret folds `stringData`) is its `Strategy`: plain functions in `builtin/`, called by the write path at fixed
moments. Custom resources have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.schemas.schema import Schema
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(slots=True, frozen=True)
class PrintedColumn:
    """A printed column. Custom resources read `json_path`; built-ins may compute the cell instead."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = ""
    cell: Callable[[Json], Any] | None = None


@dataclass(slots=True, frozen=True)
class ScaleSubresource:
    """Where the scale subresource finds its numbers, as dotted paths with a leading dot (`.spec.replicas`)."""

    spec_path: str
    status_path: str
    selector_path: str = ""


class World(Protocol):
    """What a strategy may look at: the objects of its own logical cluster, writes under way included."""

    def objects(self, group: str, plural: str, namespace: str | None = None) -> Iterable[Json]: ...

    def now(self) -> str:
        """The time as metadata carries it: `2026-02-15T10:00:30Z`."""
        ...


def _nothing(*_: Any) -> None:
    return None


def _no_errors(*_: Any) -> list[FieldError]:
    return []


@dataclass(slots=True, frozen=True)
class Strategy:
    """What a built-in kind does at each moment of a write. All change the object in place.

    `default` runs on every decoded object and must be idempotent. `prepare_create` and `prepare_update` run after
    metadata is filled and before validation; `prepare_update` sees the stored object as `old`.
    `validate_update` is called in addition to `validate`.
    """

    default: Callable[[Json], None] = _nothing
    prepare_create: Callable[[World, Json], None] = _nothing
    prepare_update: Callable[[World, Json, Json], None] = _nothing
    validate: Callable[[Json], list[FieldError]] = _no_errors
    validate_update: Callable[[Json, Json], list[FieldError]] = _no_errors
    warnings: Callable[[Json], list[str]] = lambda _: []
    # fields a list may be filtered by, beyond metadata.name and metadata.namespace: dotted path -> text of it
    selectable: dict[str, Callable[[Json], str]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Resource:
    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    schema: Schema
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    status: bool = False  # has a status subresource
    scale: ScaleSubresource | None = None
    columns: tuple[PrintedColumn, ...] = ()
    strategy: Strategy = field(default_factory=Strategy)
    storage_version: str = ""  # the version objects are kept in; empty: this one
    custom: bool = False  # from a CustomResourceDefinition
    stored_as: tuple[str, str] | None = None  # (group, plural) under which objects are kept; None: its own
    since: int = 0  # revision of the definition: objects written before it are defaulted again when read
    deprecated: bool = False
    deprecation_warning: str = ""
    # how a stored object is shown and kept, where that is more than its apiVersion (the two faces of an Event)
    from_storage: Callable[[Json], Json] | None = None
    to_storage: Callable[[Json], Json] | None = None
    name_rule: str = "subdomain"  # subdomain, label, path-segment: what metadata.name may look like

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def table(self) -> tuple[str, str]:
        """Which objects this resource shows: versions of one kind, and both event groups, share them."""
        return self.stored_as or (self.group, self.plural)
