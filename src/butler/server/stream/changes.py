"""What changed lately, and how far a client has heard of it: the memory of the live stream. Pure, no I/O, no clock.

Everything comes from five caches, the sources. Each numbers its changes with Kubernetes' resourceVersions, which are
the same for every replica. A *position* is one such number for each source: a client that has it was told of all
changes up to there. It goes to the client as opaque text, so any replica can go on where another has died, and none
keeps a list of clients.

For each source a replica remembers the last few thousand changes, as what they touched and not as what it was like:
a client that comes back is sent how things are now, once. Where a replica cannot know what happened after a position
(it was too long ago, or its cache had to list everything again, and what came and went meanwhile was never told), it
says so: `Resumed.reset` names the kinds that have to be loaded again. It may send too much, and never too little.

A position says as well what its owner was allowed to see, so that a permission that came or went is not taken for
objects that came or went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from butler.api.objects import Key
from butler.server.cache.cluster_state import KIND_NAMES, KindName

REMEMBERED: Final = 5_000
"""Changes of each source."""
MOST_REPLAYED: Final = 500
"""Objects that are sent to a client that comes back; beyond that, loading a list costs less."""
FED_BY: Final[Mapping[KindName, frozenset[KindName]]] = {
    "pool": frozenset({"pool", "allocation", "provider"}),
    "allocation": frozenset({"allocation"}),
    "tenant": frozenset({"tenant", "allocation", "provider"}),
    "provider": frozenset({"provider", "tenant"}),
    "activity": frozenset({"activity"}),
}
"""Which sources an item of a kind is made of: a pool's counters change with allocations, too."""


class Touch(NamedTuple):
    """An object that has to be shown again."""

    kind: KindName
    key: Key
    pools: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    itself: bool = True
    """False: it shows something of these tenants that changed, and did not change itself."""


class Past:
    """The changes of one source, as far back as they are remembered."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._entries: deque[tuple[int, tuple[Touch, ...]]] = deque()
        self._most = most
        self.known_from = 0
        """Everything after this version is here."""

    def begin(self, version: int) -> None:
        """Nothing is known of what happened up to a version."""
        self._entries.clear()
        self.known_from = version

    def add(self, version: int, touches: Iterable[Touch]) -> None:
        """Something happened at a version, or a little before it."""
        self._entries.append((version, tuple(touches)))
        while len(self._entries) > self._most:
            # Nearly always in order; where not, what is dropped must still count as unknown.
            self.known_from = max(self.known_from, self._entries.popleft()[0])

    def after(self, version: int) -> list[Touch] | None:
        """What was touched after a version; None where that is not known."""
        if version < self.known_from:
            return None
        return [touch for at, touches in self._entries if at > version for touch in touches]


class StreamPosition(msgspec.Struct, frozen=True, array_like=True):
    """How far a client has heard, and what of it they were allowed to."""

    versions: dict[str, int]
    """For each source, up to where."""
    sights: dict[str, str]
    """For each kind that they follow, a word for what they may see of it; those that they may not see are not there."""


class Resumed(NamedTuple):
    """What a client that comes back has to hear."""

    touches: list[Touch]
    reset: list[KindName]


def merged(touches: Iterable[Touch]) -> list[Touch]:
    """Each object once, at the place where it was first touched."""
    found: dict[tuple[KindName, Key], Touch] = {}
    for touch in touches:
        known = found.get((touch.kind, touch.key))
        if known is None:
            found[touch.kind, touch.key] = touch
        elif touch.pools - known.pools or touch.tenants - known.tenants or touch.itself > known.itself:
            found[touch.kind, touch.key] = known._replace(
                pools=known.pools | touch.pools,
                tenants=known.tenants | touch.tenants,
                itself=known.itself or touch.itself,
            )
    return list(found.values())


def resumed(pasts: Mapping[KindName, Past], since: StreamPosition | None, sights: Mapping[KindName, str]) -> Resumed:
    """What happened after `since` to kinds of which a client may see `sights`."""
    if since is None:
        return Resumed([], _in_order(sights))
    lost: set[KindName] = {kind for kind, sight in sights.items() if since.sights.get(kind) != sight}
    touches: list[Touch] = []
    for source, past in pasts.items():
        version = since.versions.get(source)
        found = None if version is None else past.after(version)
        if found is None:
            lost |= fed_by({source})
        else:
            touches += found
    wanted = merged(touch for touch in touches if touch.kind in sights and touch.kind not in lost)
    if len(wanted) > MOST_REPLAYED:
        return Resumed([], _in_order({touch.kind for touch in wanted} | (lost & sights.keys())))
    return Resumed(wanted, _in_order(lost & sights.keys()))


def fed_by(sources: Collection[KindName]) -> set[KindName]:
    """The kinds that show something of these sources."""
    return {kind for kind, feeds in FED_BY.items() if feeds & set(sources)}


def _in_order(kinds: Collection[KindName]) -> list[KindName]:
    return [kind for kind in KIND_NAMES if kind in kinds]
