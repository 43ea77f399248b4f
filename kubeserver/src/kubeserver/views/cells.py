"""The pieces that the columns of built-in kinds are made of.

A cell is a plain function of the object. One that shows a length of time returns `Since`, and the caller that builds
the table, who knows what time it is, turns that into text; so nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kubeserver.resources import PrintedColumn
from kubeserver.wire.selectors import label_selector_from_json
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

Json = dict[str, Any]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
SHOWN_AT_MOST: Final = 3


@dataclass(slots=True, frozen=True)
class Since:
    """The time from `timestamp` until the table is made, as text, between two other texts."""

    timestamp: str | None
    before: str = ""
    after: str = ""


def age(duration: timedelta) -> str:
    """A length of time as people read it: `45s`, `5m10s`, `3h`, `7d`, `2y10d`."""
    seconds = duration.days * 86400 + duration.seconds
    if seconds < 0 and duration.microseconds:
        seconds += 1  # towards zero, as Kubernetes rounds
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def part(obj: Json, *path: str) -> Any:
    """What is found along a path, or None."""
    value: Any = obj
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text(*path: str, default: str = "") -> Callable[[Json], str]:
    """A cell that shows a field."""
    return lambda obj: str(part(obj, *path) or default)


def number(*path: str) -> Callable[[Json], int]:
    """A cell that shows a number, zero where there is none."""
    return lambda obj: int(part(obj, *path) or 0)


def count(*paths: str) -> Callable[[Json], int]:
    """A cell that counts the entries of one or more top-level fields."""
    return lambda obj: sum(len(obj.get(path) or ()) for path in paths)


def since(*path: str) -> Callable[[Json], Since]:
    return lambda obj: Since(part(obj, *path))


def name_of(obj: Json) -> str:
    return str(obj["metadata"].get("name", ""))


def labels_text(labels: dict[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Json | None, *, empty: str = NONE, invalid: str = "<error>") -> str:
    try:
        return str(label_selector_from_json(selector)) or empty
    except ApiError:
        return invalid


def wide(name: str, cell: Callable[[Json], Any]) -> PrintedColumn:
    return PrintedColumn(name, priority=1, cell=cell)


NAME: Final = PrintedColumn("Name", format="name", description="The name of the object.", cell=name_of)
AGE: Final = PrintedColumn(
    "Age", description="Time since the object was created.", cell=since("metadata", "creationTimestamp")
)
CREATED_AT: Final = PrintedColumn(
    "Created At",
    type="date",
    description="When the object was created.",
    cell=lambda obj: part(obj, "metadata", "creationTimestamp"),
)
DEFAULT_COLUMNS: Final = (NAME, CREATED_AT)


def some_of(found: Iterable[str], *, total: int | None = None, empty: str = "") -> str:
    """At most three of a list, and how many more there are."""
    listed = list(found)
    shown = ",".join(listed[:SHOWN_AT_MOST])
    more = (len(listed) if total is None else total) - SHOWN_AT_MOST
    return f"{shown} + {more} more..." if len(listed) > SHOWN_AT_MOST else shown or empty
