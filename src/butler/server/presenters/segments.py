"""Segments of a pool: as columns for pictures, as rows for tables and downloads. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from butler.ipam.addresses import Family, address_text, range_cidr
from butler.reports.pool.segments import Kind, PoolSegments, Segment
from butler.server.models.common import FieldError
from butler.server.models.pools import Elsewhere, SegmentColumns, SegmentHolder, SegmentRow, Segments
from butler.server.presenters.common import range_of

KINDS = list(Kind)

COLUMNS = (
    "start",
    "end",
    "count",
    "cidr",
    "kind",
    "description",
    "allocation",
    "tenant",
    "type",
    "role",
    "held_by",
    "stranded",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def columns_of(shown: PoolSegments) -> Segments:
    """All segments of a pool, column by column: what bars and maps draw from."""
    columns = SegmentColumns(first=[], size=[], kind=[], holder=[], note=[], held_by=[], stranded=[])
    holders: dict[SegmentHolder, int] = {}
    notes: dict[str, int] = {}
    numbers = {kind: number for number, kind in enumerate(KINDS)}
    start = shown.network.first if shown.network else 0
    for segment in shown.segments:
        holder = -1
        if segment.holders:
            first = segment.holders[0]
            made = SegmentHolder(
                allocation=first.allocation, tenant=first.tenant, type=first.type, role=first.role, pool=first.pool
            )
            holder = holders.setdefault(made, len(holders))
        columns.first.append(segment.first - start)
        columns.size.append(segment.size)
        columns.kind.append(numbers[segment.kind])
        columns.holder.append(holder)
        columns.note.append(notes.setdefault(segment.description, len(notes)) if segment.description else -1)
        columns.held_by.append(segment.held_by)
        columns.stranded.append(segment.stranded)
    whole = range_of(shown.network, shown.family) if shown.network else None
    return Segments(
        pool=shown.pool,
        cidr=shown.cidr,
        start=whole.start if whole else None,
        end=whole.end if whole else None,
        count=whole.count if whole else 0,
        kinds=[kind.value for kind in KINDS],
        columns=columns,
        holders=list(holders),
        notes=list(notes),
        elsewhere=[
            Elsewhere(
                allocation=elsewhere.allocation, tenant=elsewhere.tenant, start=elsewhere.start, end=elsewhere.end
            )
            for elsewhere in shown.elsewhere
        ],
        problems=[FieldError(field=problem.field, message=problem.message) for problem in shown.problems],
    )


def row(segment: Segment, family: Family) -> SegmentRow:
    holder = segment.holders[0] if segment.holders else None
    return SegmentRow(
        start=address_text(segment.first, family),
        end=address_text(segment.last, family),
        count=segment.size,
        cidr=range_cidr(segment.range, family),
        kind=segment.kind.value,
        description=segment.description,
        allocation=holder.allocation if holder else "",
        tenant=holder.tenant if holder else "",
        type=holder.type if holder else "",
        role=holder.role if holder else "",
        held_by=segment.held_by,
        stranded=segment.stranded,
    )


def as_csv(segments: Iterable[Segment], family: Family) -> bytes:
    """All of them, with a head line. No cell is taken for a formula by whatever opens it."""
    written = io.StringIO()
    to = csv.writer(written)
    to.writerow(COLUMNS)
    for segment in segments:
        shown = row(segment, family)
        to.writerow([_cell(getattr(shown, column)) for column in COLUMNS])
    return written.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
