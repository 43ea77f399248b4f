"""What a client was told by the live stream is in whatever it asks for next, whichever replica it asks.

Every frame says what the replica that sent it had heard of by then: for each source, the resourceVersion of its last
change. A client sends that back with its requests, in a header. A replica that is behind it waits a moment, and shows
nothing that was counted before (`pool_summaries`).

Only changes count, not positions: a bookmark takes one replica further without anything having happened, and the others
would wait in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from butler.server.cache.cluster_state import ClusterState, KindName
from butler.server.cursor import decode_cursor

HEADER: Final = "Butler-Heard"
PATIENCE: Final = 0.5
"""Seconds to catch up: a replica that is further behind has lost its API server, and tells what it knows."""
NOTHING: Final[Mapping[str, int]] = {}
_heard: ContextVar[Mapping[str, int]] = ContextVar("heard", default=NOTHING)


def by_the_client() -> Mapping[str, int]:
    """What the client of this request has been told."""
    return _heard.get()


async def catch_up(state: ClusterState, text: str | None) -> None:
    """Know at least what the client has heard of, for the rest of this request."""
    heard = (decode_cursor(text, dict[str, int]) if text else None) or NOTHING
    _heard.set(heard)
    behind = [source for source, version in state.versions().items() if version < heard.get(source, 0)]
    await asyncio.gather(*(state.caches[source].reached(str(heard[source]), PATIENCE) for source in behind))


def reaches(versions: Mapping[KindName, int], heard: Mapping[str, int]) -> bool:
    """Whether `versions` include all that was heard of the same sources."""
    return all(version >= heard.get(source, 0) for source, version in versions.items())
