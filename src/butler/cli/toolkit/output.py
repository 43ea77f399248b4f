"""Rows as a table, JSON, YAML, CSV, names or by a template: one place for every command.

A command says what it has (`Row`: the object as the server or a view gives it, and what stands in its columns) and the
options say how it is shown. JSON and YAML show whole objects as the server has them; a list is a `List`, as with
kubectl. Tables fit a terminal by shortening the longest cells, or by giving each cell a line of its own where little
would be left of them; they are never cut in a pipe.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import click

from butler.api.printable import in_json, one_line
from butler.cli.toolkit.cells import GAP, cell_text
from butler.cli.toolkit.terminal import has_colour, is_terminal, painted, width
from butler.reports import ages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butler.kube.resource import Resource

T = TypeVar("T")
age = ages.age
FORMATS = ("table", "wide", "json", "yaml", "name", "csv")
TEMPLATES = ("jsonpath", "custom-columns")
SHORTEST = 14
"""To how many characters a cell may be shortened on a narrow terminal: the beginnings of names are often alike."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How cells begin that spreadsheets compute."""


class TableColumn(NamedTuple, Generic[T]):
    """A column: its title, and what it says of a row. `wide` ones are shown by `-o wide` and in CSV."""

    title: str
    cell: Callable[[T], object]
    wide: bool = False
    right: bool = False
    """Numbers, which are read from the right."""
    spare: bool = False
    """What a narrow terminal can do without; the last ones go first."""
    plain: tuple[tuple[str, Callable[[T], object]], ...] = ()
    """What CSV has in its stead, for programs: titles and values, such as a time where people read an age."""


@dataclass(frozen=True, slots=True)
class Output:
    """How to show, as `-o` says."""

    format: str = "table"
    template: str = ""
    headers: bool = True

    @property
    def is_table(self) -> bool:
        return self.format in ("table", "wide")


PLAIN = Output()


@dataclass(frozen=True, slots=True)
class Showing(Generic[T]):
    """A kind of thing that can be shown: its columns, its object for JSON, and its name."""

    columns: Sequence[TableColumn[T]]
    raw: Callable[[T], Any]
    name: Callable[[T], str]
    """As `-o name` prints it: `networkpool.butler.butlerlabs.dev/vlan40`."""

    def table(self, rows: Sequence[T], output: Output) -> str:
        columns = [column for column in self.columns if output.format == "wide" or not column.wide]
        while True:
            cells = [[cell_text(column.cell(row)) for column in columns] for row in rows]
            titles = [column.title for column in columns]
            spare = [column for column in columns if column.spare or column.wide]
            # Whole cells of fewer columns say more than the beginnings of many.
            if not spare or not is_terminal() or _natural([titles, *cells]) <= width():
                return table(titles, cells, output, [column.right for column in columns])
            columns.remove(spare[-1])

    def many(self, rows: Sequence[T], output: Output, *, empty: str = "") -> None:
        """Print a list. `empty` is said on stderr, as kubectl does, where a table would have no rows."""
        if output.is_table:
            if rows:
                click.echo(self.table(rows, output))
            elif empty:
                click.echo(empty, err=True)
            return
        if output.format in ("json", "yaml", "jsonpath"):
            listed = {"apiVersion": "v1", "kind": "List", "items": [self.raw(row) for row in rows]}
            _structured(listed, output)
            return
        self._lines(rows, output)

    def one(self, row: T, output: Output) -> None:
        """Print a single object."""
        if output.is_table:
            click.echo(self.table([row], output))
        elif output.format in ("json", "yaml", "jsonpath"):
            _structured(self.raw(row), output)
        else:
            self._lines([row], output)

    def _lines(self, rows: Sequence[T], output: Output) -> None:
        if output.format == "name":
            for row in rows:
                click.echo(self.name(row))
        elif output.format == "csv":
            plain = [pair for column in self.columns for pair in column.plain or ((column.title, column.cell),)]
            written = [[_csv_cell(cell(row)) for _, cell in plain] for row in rows]
            click.echo(csv_text([title for title, _ in plain], written, output), nl=False)
        else:
            from butler.cli.toolkit.template import custom_columns

            columns = custom_columns(output.template)
            raws = [self.raw(row) for row in rows]
            cells = [[one_line(cell(raw)) for _, cell in columns] for raw in raws]
            if cells or output.headers:
                click.echo(table([title for title, _ in columns], cells, output))


DRY = {"none": "", "client": " (client dry run)", "server": " (server dry run)"}


def done(resource: Resource[Any], name: str, verb: str, dry_run: str = "none") -> None:
    """Print what was done to an object, as kubectl says it: `networkpool.butler.butlerlabs.dev/edge created`."""
    kind = f"{resource.kind.lower()}.{resource.group}" if resource.group else resource.kind.lower()
    click.echo(f"{kind}/{name} {verb}{DRY[dry_run]}")


def structured(value: Any, output: Output) -> None:
    """Print something that is not a Kubernetes object, such as a plan, where `-o` asks for json, yaml or jsonpath."""
    _structured(value, output)


def _structured(value: Any, output: Output) -> None:
    if output.format == "json":
        click.echo(in_json(json.dumps(value, indent=4, ensure_ascii=False, default=_plain)))
    elif output.format == "yaml":
        from butler.cli.toolkit.yaml_writer import dumped

        click.echo(dumped(json.loads(json.dumps(value, default=_plain))), nl=False)
    else:
        from butler.cli.toolkit.template import jsonpath

        click.echo(jsonpath(output.template)(json.loads(json.dumps(value, default=_plain))), nl=is_terminal())


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    raise TypeError(f"{type(value)} cannot be printed")


def _csv_cell(value: object) -> object:
    """A value for programs: what is not known is empty, and times are written as in JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else _plain(value) if isinstance(value, datetime) else value


def csv_text(titles: Sequence[str], rows: Iterable[Sequence[object]], output: Output = PLAIN) -> str:
    """Lines of CSV, with a header."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    if output.headers:
        writer.writerow([title.lower().replace(" ", "_") for title in titles])
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return made.getvalue()


def _harmless(value: object) -> object:
    """A cell that no program takes for a formula, and that leaves its line to the others."""
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if value.startswith(FORMULA) and len(value) > 1 else shown


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], output: Output = PLAIN, right: Sequence[bool] = ()
) -> str:
    """Columns side by side; on a terminal that is too narrow, the longest cells are shortened, or rows become cards."""
    head = [[title.upper() for title in titles]] if output.headers else []
    every = [*head, *rows]
    widths = [max((len(row[index]) for row in every), default=0) for index in range(len(titles))]
    if is_terminal():
        widths = fitted(widths, width())
        if sum(widths) + GAP * (len(widths) - 1) > width():
            from butler.cli.toolkit.screen import cards

            return cards(titles, rows)
    lines = [_line(row, widths, right or [False] * len(titles)) for row in every]
    if head and has_colour():
        lines[0] = painted(lines[0], bold=True)
    return "\n".join(lines)


def _natural(rows: Sequence[Sequence[str]]) -> int:
    """How wide a table is whose cells are not shortened."""
    return sum(max(map(len, column)) for column in zip(*rows, strict=True)) + GAP * (len(rows[0]) - 1)


def fitted(widths: Sequence[int], most: int) -> list[int]:
    """Widths whose sum fits, by taking from the widest ones; as near as it gets where they are many, or say little."""
    found = list(widths)
    while sum(found) + GAP * (len(found) - 1) > most and max(found, default=0) > SHORTEST:
        found[found.index(max(found))] -= 1
    return found


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    shown = [
        _shortened(cell, size).rjust(size) if is_right else _shortened(cell, size).ljust(size)
        for cell, size, is_right in zip(cells, widths, right, strict=True)
    ]
    return (" " * GAP).join(shown).rstrip()


def _shortened(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
