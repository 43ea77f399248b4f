"""What an import would do, and did, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butler.cli.toolkit.output import PLAIN, Showing, TableColumn
from butler.cli.toolkit.screen import sentence
from butler.ipam.addresses import Family, address_text, range_text
from butler.reports.exchange.import_check import RowVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.cli.estate.bulk_create import Made
    from butler.reports.exchange.import_check import Difference, Item
    from butler.reports.exchange.rows import BadRow

MOST_SHOWN = 100
"""How many sentences of a sort are printed; who makes more mistakes than that makes the same ones."""


def drawn(found: Difference) -> str:
    """The difference, with one mark for each sort: + to be made, = there, ! in conflict, ? no sense, - passed over."""
    making, contents = found.of(RowVerdict.MAKE), found.contents
    parts = []
    if making:
        columns: list[TableColumn[Item]] = [
            TableColumn("", lambda _: "+"),
            TableColumn("Row", places),
            TableColumn("Tenant", lambda item: item.tenant),
            TableColumn("Type", lambda item: item.type, spare=True),
            TableColumn("Addresses", lambda item: range_text(item.addresses, Family.V4)),
            TableColumn("Count", lambda item: item.addresses.size, right=True, spare=True),
            TableColumn("Pool", lambda item: item.pool, spare=True),
            TableColumn("Allocation", lambda item: item.names[0], spare=True),
        ]
        parts.append(Showing(columns, raw=lambda _: None, name=lambda _: "").table(making, PLAIN))
    if there := found.of(RowVerdict.THERE):
        parts.append(f"= {counted(len(there), 'range')} {'is' if len(there) == 1 else 'are'} there already")
    parts += _sentences("-", [(bad_row.where, bad_row.message) for bad_row in contents.passed_over])
    parts += _sentences("!", [(places(item), item.why) for item in found.of(RowVerdict.CONFLICT)])
    parts += _sentences("?", [(bad_row.where, bad_row.message) for bad_row in contents.bad])
    return "\n".join(parts)


def _sentences(mark: str, said: list[tuple[str, str]]) -> list[str]:
    shown = [sentence(f"{mark} {where}: {message}") for where, message in said[:MOST_SHOWN]]
    more = len(said) - MOST_SHOWN
    return [*shown, f"{mark} and {more} more"] if more > 0 else shown


def places(item: Item) -> str:
    """The rows of an item: `line 4`, `line 4 and 3 more`."""
    first, *others = item.where
    return f"{first} and {len(others)} more" if others else first


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def as_json(found: Difference, made: Mapping[str, Made], *, dry_run: str) -> dict[str, Any]:
    """The difference and what became of it, for programs."""
    items = [_item_json(item, made) for item in found.items]
    contents = found.contents
    return {
        "dryRun": dry_run != "none",
        "summary": {
            "toMake": len(found.of(RowVerdict.MAKE)),
            "made": sum(result.ok for result in made.values()),
            "failed": sum(not result.ok for result in made.values()),
            "there": len(found.of(RowVerdict.THERE)),
            "conflicts": len(found.of(RowVerdict.CONFLICT)),
            "invalid": len(contents.bad),
            "passedOver": len(contents.passed_over),
        },
        "items": items,
        "invalid": [_bad_json(bad_row) for bad_row in contents.bad],
        "passedOver": [_bad_json(bad_row) for bad_row in contents.passed_over],
    }


def _item_json(item: Item, made: Mapping[str, Made]) -> dict[str, Any]:
    outcome = made.get(item.names[0]) if item.names else None
    first, last = item.addresses
    return {
        "rows": list(item.where),
        "verdict": item.verdict.value,
        "pool": item.pool or None,
        "tenant": str(item.tenant),
        "type": str(item.type),
        "range": {
            "start": address_text(first, Family.V4),
            "end": address_text(last, Family.V4),
            "count": item.addresses.size,
        },
        "allocations": list(item.names),
        "why": item.why or (outcome.why if outcome else "") or None,
        "phase": outcome.phase if outcome else None,
    }


def _bad_json(bad: BadRow) -> dict[str, str]:
    return {"row": bad.where, "why": bad.message}
