"""What an operator may set about address management."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class IpamSettings:
    """Defaults are right for production; tests shorten the times."""

    namespace: str = ""
    """Look after pools and allocations of this namespace only; empty: of all."""
    home_namespace: str = "butler-system"
    """Where Butler keeps its own records."""
    retention: timedelta = timedelta(hours=24)
    """How long a released allocation is kept for audit."""
    note_after: timedelta = timedelta(seconds=3)
    """How long after a grant it is repeated in the metadata: off the way of who waits for addresses."""
    sweep_every: float = 60.0
    """Seconds between looks for allocations whose tenant is gone."""
    sighting_gap: float = 60.0
    """Seconds between the two looks that a missing tenant takes."""
    commit_concurrency: int = 40
    """How many allocations are written at the same time: some connections of the client are left for others."""
