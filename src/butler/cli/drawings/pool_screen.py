"""One pool on one screen: what it is, how full, how scattered, who holds most, and what happened to it. Pure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from butler.api.printable import one_line
from butler.cli.tables.pools import pool_state
from butler.cli.toolkit.output import age
from butler.ipam.addresses import range_cidr, range_text
from butler.reports.pool.segments import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.cli.estate.events import Event
    from butler.ipam.addresses import Family, Range
    from butler.reports.pool.summary import Standing, Summary

MOST_BLOCKS = 12
MOST_SHARES = 8
MOST_EVENTS = 8
MOST_WRONG = 10
LABEL = 12
NARROWEST_BAR = 4
ROOMY = 60
"""From this width on it is also told how many allocations a tenant has."""
NARROWEST_TEXT = 20
"""Below this many columns a text stands below its label."""


def screen(
    pool: NetworkPool, summary: Summary, events: Sequence[Event] | None, *, now: datetime, width: int, unicode: bool
) -> str:
    """All there is to say. `events`: newest last; None where they may not be read."""
    made = [*_facts(pool, summary, now, width), *_holes(summary, width, unicode=unicode)]
    made += [*_holders(summary, width), *_conditions(pool, now, width), *_events(events, now, width)]
    return "\n".join(made)


def _facts(pool: NetworkPool, summary: Summary, now: datetime, width: int) -> Iterator[str]:
    meta, shown, standing = pool.metadata, summary.segments, summary.standing
    network = f"{pool.spec.cidr} ({shown.network.size:,} addresses)" if shown.network else pool.spec.cidr
    if pool.status.claimed_cidr and pool.status.claimed_cidr != pool.spec.cidr:
        network += f"; hands out from {pool.status.claimed_cidr} until that is free for it"
    yield from _field("Pool", f"{meta.name} in {meta.namespace}, {age(meta.creation_timestamp, now) or '?'} old", width)
    state = f"{pool_state(pool)}{', being deleted' if meta.deletion_timestamp else ''}"
    yield from _field("State", state, width)
    for index, problem in enumerate(summary.wrong[:MOST_WRONG]):
        yield from _field("" if index else "Wrong", problem, width)
    if len(summary.wrong) > MOST_WRONG:
        yield from _field("", f"and {len(summary.wrong) - MOST_WRONG} more: see `butleradm pool overlaps`", width)
    for index, doubt in enumerate(summary.doubts):
        yield from _field("" if index else "Doubtful", doubt, width)
    yield from _field("Network", network, width)
    if standing is not None:
        yield from _counted(summary, standing, width)
    yield from _reserved(pool, summary, width)


def _counted(summary: Summary, standing: Standing, width: int) -> Iterator[str]:
    layout, counted, free = standing.layout, standing.capacity, standing.free
    for index, window in enumerate(layout.windows):
        yield from _field("" if index else "Windows", f"{_spelled(window, layout.family)} ({window.size:,})", width)
    defaults = f"{layout.nodes_default} for nodes, {layout.load_balancer_default} for load balancers"
    yield from _field("Defaults", f"{defaults}, where a request names no number", width)
    held = f"{counted.allocated:,} of {counted.total:,} addresses held ({counted.percent}%), {counted.available:,} free"
    moving = [
        f"{count:,} {words}"
        for kind, words in ((Kind.GRANTING, "being granted"), (Kind.DRAINING, "being taken back"))
        if (count := summary.segments.addresses(kind))
    ]
    yield from _field("Use", "; ".join([held, *moving]), width)
    marks = [
        f"{mark.tier.removeprefix('Capacity').lower()} from {mark.addresses:,} on ({mark.percent}%)"
        + (": reached" if mark.reached else f": {mark.addresses - counted.allocated:,} to go")
        for mark in summary.tiers
    ]
    for index, mark in enumerate(marks):
        yield from _field("" if index else "Tiers", mark, width)
    if free.holes:
        largest = free.largest_holes(1)[0]
        holes = "in one block" if free.holes == 1 else f"in {free.holes:,} blocks"
        text = f"{free.free:,} {holes}, the largest {largest.size:,} ({_spelled(largest, layout.family)})"
        yield from _field("Free", f"{text}; fragmentation {counted.fragmentation_percent}%", width)
    else:
        yield from _field("Free", "nothing", width)


def _reserved(pool: NetworkPool, summary: Summary, width: int) -> Iterator[str]:
    if not pool.spec.reserved:
        yield from _field("Reserved", "nothing", width)
    for index, block in enumerate(pool.spec.reserved[:MOST_BLOCKS]):
        text = block.cidr + (f"  {block.description}" if block.description else "")
        yield from _field("" if index else "Reserved", text, width)
    if len(pool.spec.reserved) > MOST_BLOCKS:
        yield from _field("", f"and {len(pool.spec.reserved) - MOST_BLOCKS} more blocks", width)
    outside = summary.segments.addresses(Kind.OUTSIDE)
    if outside:
        some = "1 address is" if outside == 1 else f"{outside:,} addresses are"
        yield from _field("Left out", f"{some} in no window and not reserved", width)


def _holes(summary: Summary, width: int, *, unicode: bool) -> Iterator[str]:
    """How many free blocks there are of each size, and how much of the free space is in them."""
    if not summary.holes:
        return
    most = max(hole.addresses for hole in summary.holes)
    sizes = [f"{hole.least:,}" if hole.least == 1 else f"{hole.least:,}-{hole.most:,}" for hole in summary.holes]
    wide = max(len("SIZE"), *map(len, sizes))
    counts = max(len("BLOCKS"), *(len(f"{hole.holes:,}") for hole in summary.holes))
    totals = max(len("ADDRESSES"), *(len(f"{hole.addresses:,}") for hole in summary.holes))
    room = min(40, width - 2 - wide - counts - totals - 9)
    yield ""
    yield "Free blocks by size:"
    yield f"  {'SIZE':>{wide}}   {'BLOCKS':>{counts}}   {'ADDRESSES':>{totals}}"
    for size, hole in zip(sizes, summary.holes, strict=True):
        bar = ("█" if unicode else "#") * (-(-hole.addresses * room // most) if room >= NARROWEST_BAR else 0)
        yield f"  {size:>{wide}}   {hole.holes:>{counts},}   {hole.addresses:>{totals},}   {bar}".rstrip()


def _holders(summary: Summary, width: int) -> Iterator[str]:
    yield ""
    if not summary.shares:
        yield "No tenant holds addresses of it."
        return
    total = sum(share.addresses for share in summary.shares)
    shown = summary.shares[:MOST_SHARES]
    names = [share.tenant or "unknown" for share in shown]
    roomy = width >= ROOMY
    wide = min(max(len("TENANT"), *map(len, names)), max(12, width - (39 if roomy else 22)))
    yield "Who holds most:"
    yield f"  {'TENANT':<{wide}}   ADDRESSES   SHARE" + ("   ALLOCATIONS" if roomy else "")
    for name, share in zip(names, shown, strict=True):
        percent = f"{share.addresses * 100 // total}%"
        cut = name if len(name) <= wide else name[: wide - 3] + "..."
        told = f"  {cut:<{wide}}   {share.addresses:>9,}   {percent:>5}"
        yield told + (f"   {share.allocations:>11,}" if roomy else "")
    rest = summary.shares[MOST_SHARES:]
    if rest:
        yield f"  and {len(rest):,} more with {sum(share.addresses for share in rest):,} addresses"


def _conditions(pool: NetworkPool, now: datetime, width: int) -> Iterator[str]:
    yield ""
    if not pool.status.conditions:
        yield "No conditions: Butler's controllers have not looked at it yet."
        return
    yield "Conditions:"
    wide = max(len(condition.type) for condition in pool.status.conditions)
    for condition in pool.status.conditions:
        since = age(condition.last_transition_time, now)
        head = f"  {condition.type:<{wide}}  {condition.status:<7}  {since:>4}  "
        yield from _hanging(head, f"{condition.message or condition.reason}", width)


def _events(events: Sequence[Event] | None, now: datetime, width: int) -> Iterator[str]:
    if events is None:
        yield ""
        yield "Events: you may not read them."
    elif events:
        yield ""
        yield "Recent events:"
        for event in events[-MOST_EVENTS:]:
            times = f" (x{event.times})" if event.times > 1 else ""
            head = f"  {age(event.last, now):>4}  {event.type:<7}  "
            yield from _hanging(head, f"{event.reason}{times}: {event.message}", width)


def _field(label: str, text: str, width: int) -> Iterator[str]:
    return _hanging(f"{label + ':' if label else '':<{LABEL}}", text, width)


def _hanging(head: str, text: str, width: int) -> Iterator[str]:
    """A label, and a text beside it that goes on below itself."""
    room = width - len(head)
    if room < NARROWEST_TEXT:
        yield head.rstrip()
        head, room = "    ", width - 4
    lines = textwrap.wrap(one_line(text), room, break_on_hyphens=False, break_long_words=False) or [""]
    for index, line in enumerate(lines):
        yield f"{head if not index else ' ' * len(head)}{line}".rstrip()


def _spelled(addresses: Range, family: Family) -> str:
    return range_cidr(addresses, family) or range_text(addresses, family)
