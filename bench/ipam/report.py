"""How the benchmarks print: plain tables, and at the end the goals beside what was measured. Nothing fails here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class Goal:
    """What was wanted, what was seen, and whether the one is the other."""

    wanted: str
    seen: str
    met: bool


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def note(text: str) -> None:
    print(f"  {text}", flush=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The first column to the left, figures to the right."""
    cells = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    for row in cells:
        line = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  " + "  ".join(line).rstrip(), flush=True)


def summary(goals: Sequence[Goal]) -> None:
    heading("Goals")
    table(["wanted", "seen", ""], [[goal.wanted, goal.seen, "met" if goal.met else "NOT MET"] for goal in goals])


def duration(seconds: float) -> str:
    """With a unit that leaves three digits before the point at most."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds / size < 100 else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2f}x"
