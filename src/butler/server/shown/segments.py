"""Segments of a pool as rows, for tables and downloads. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from butler.ipam.addresses import Family, address_text, range_cidr
from butler.server.models.pools import SegmentRow
from butler.views.segments import Segment

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
    for each in segments:
        shown = row(each, family)
        to.writerow([_cell(getattr(shown, column)) for column in COLUMNS])
    return written.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
