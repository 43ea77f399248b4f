"""How long ago something was, in a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, as kubectl says it: `12s`, `5m`, `3h`, `4d`."""
    if since is None:
        return ""
    seconds = max(0, int((now - since).total_seconds()))
    for size, unit, longest in ((1, "s", 120), (60, "m", 120 * 60), (3600, "h", 48 * 3600)):
        if seconds < longest:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"
