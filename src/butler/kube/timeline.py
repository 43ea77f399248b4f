"""Whether the versions of an API server still run forward, as far as one client can tell.

Everything here rests on resourceVersions that only grow: a watch resumes after one, a cache compares by them. An
etcd that is restored from a snapshot under running processes breaks that. The server counts on from an older version,
gives the numbers between to other writes, and takes a watch from its own future with 200 and stays silent.

So each client has one `Timeline`. Code that has proof that versions went back (a quorum read that is behind what was
seen before it was sent, an object that is older than it was) says so here, and every cache of that client lists
anew before anything is decided on it. What cannot be proven is not trusted either: a cache that was out of contact for
longer than `LONGEST_BLIND`, or while the process stood still, does not resume its watch, because the server may have
passed the old position by then (`may_resume`).
"""

from __future__ import annotations

import logging
from typing import Final, Protocol
from weakref import WeakSet

log = logging.getLogger(__name__)

LONGEST_BLIND: Final = 10.0
"""Seconds without contact after which a watch is not resumed: shorter than any restore takes to be followed by as
many writes as were lost."""
STANDSTILL: Final = 5.0
"""Seconds for which a process has to stand still (stopped, suspended) before it doubts what it hears on waking up."""
WAKING: Final = 1.0
"""Seconds after a standstill in which what is heard may be older than it looks."""


class Doubter(Protocol):
    """Someone whose knowledge rests on versions."""

    def doubt(self) -> None: ...


class Timeline:
    """What the users of one client share. Times are those of the event loop."""

    def __init__(self) -> None:
        self.returns = 0
        """How often versions were seen to have gone back."""
        self.stood_still_at = float("-inf")
        """When the process last came out of a standstill."""
        self._doubters: WeakSet[Doubter] = WeakSet()

    def join(self, who: Doubter) -> None:
        """Let someone know whenever versions went back, for as long as it lives."""
        self._doubters.add(who)

    def leave(self, who: Doubter) -> None:
        self._doubters.discard(who)

    def went_back(self, proof: str, besides: Doubter | None = None) -> None:
        """Let everyone list anew, except the one who just did."""
        self.returns += 1
        log.warning("the API server's versions went back, as if it was restored from a backup: %s", proof)
        for who in list(self._doubters):
            if who is not besides:
                who.doubt()

    def stood_still(self, now: float) -> None:
        """The process did nothing for a while; what happened meanwhile is not known."""
        self.stood_still_at = now


def may_resume(*, contact_at: float, stood_still_at: float, now: float) -> bool:
    """Whether a watch may go on from where it was. `contact_at`: when the server was last known to be the same."""
    return now - contact_at <= LONGEST_BLIND and contact_at > stood_still_at + WAKING
