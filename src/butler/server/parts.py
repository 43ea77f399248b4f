"""What every route may use, given to it by name: `parts: TheParts`, `person: ThePerson`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from litestar.di import NamedDependency

from butler.server.access.doors import Doors
from butler.server.access.person import Person
from butler.server.keeping.feed import Feed
from butler.server.keeping.shelves import Shelves
from butler.server.sight import Sight
from butler.server.stream import Stream
from butler.server.writing.acting import Acting


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Parts:
    feed: Feed
    sight: Sight
    acting: Acting
    home: str
    """Namespace of pools, allocations and providers."""
    shelves: Shelves
    doors: Doors
    stream: Stream
    world: bool = False
    """Whether this is a world on one machine, with stand-ins."""
    clock: Callable[[], datetime] = now


TheParts = NamedDependency[Parts]
ThePerson = NamedDependency[Person]
