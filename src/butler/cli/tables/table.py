"""What the tables of all kinds have in common: where, the name, and the age."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from butler.api import GROUP
from butler.cli.toolkit.output import Showing, TableColumn, age

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.cli.toolkit.objects import LoadedObject


def showing_of(
    kind: str, columns: Sequence[TableColumn[LoadedObject[Any]]], *, namespaces: bool
) -> Showing[LoadedObject[Any]]:
    """A kind with these columns between its name and its age."""
    where: list[TableColumn[LoadedObject[Any]]] = [
        TableColumn("Namespace", lambda loaded: loaded.obj.metadata.namespace)
    ]
    named: list[TableColumn[LoadedObject[Any]]] = [TableColumn("Name", lambda loaded: loaded.name)]
    aged: list[TableColumn[LoadedObject[Any]]] = [TableColumn("Age", _age, spare=True, plain=(("created", _created),))]
    return Showing(
        [*(where if namespaces else ()), *named, *columns, *aged],
        raw=lambda loaded: loaded.raw,
        name=lambda loaded: f"{kind}.{GROUP}/{loaded.name}",
    )


def _age(loaded: LoadedObject[Any]) -> str:
    return age(loaded.obj.metadata.creation_timestamp, datetime.now(UTC))


def _created(loaded: LoadedObject[Any]) -> object:
    return loaded.obj.metadata.creation_timestamp


def percent(part: int | None, whole: int | None) -> str:
    """`87%`; empty where nothing is known."""
    found = percentage(part, whole)
    return "" if found is None else f"{found}%"


def percentage(part: int | None, whole: int | None) -> int | None:
    """Rounded down as Butler's own tiers are; None where nothing is known."""
    return None if part is None or not whole else part * 100 // whole
