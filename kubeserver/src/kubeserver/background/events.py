"""Events do not last: they tell what happened lately, and a server that keeps them all only grows.

As in Kubernetes, an event goes an hour after it was last told. One sweep serves all logical clusters of the process.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kubeserver.cluster import timestamp
from kubeserver.storage.store import Table
from kubeserver.wire.messages import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.background.actor import Actor

Json = dict[str, Any]

log = logging.getLogger(__name__)

LIFETIME: Final = timedelta(hours=1)
_EVERY_SECONDS: Final = 300.0
_TO_THE_SECOND: Final = len("2026-02-15T10:00:30")


async def keep_sweeping(actors: Callable[[], Iterable[Actor]]) -> None:
    """Run until cancelled."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        for actor in list(actors()):
            try:
                await sweep(actor)
            except Exception:
                log.exception("old events of %s could not be removed", actor.cluster.name or "the root cluster")


async def sweep(actor: Actor) -> None:
    """Remove the events of one logical cluster that have not been reported for an hour."""
    cluster = actor.cluster
    oldest = timestamp(cluster.clock() - LIFETIME)[:_TO_THE_SECOND]
    for entry in list(cluster.store.entries(Table(cluster.name, "", "events"))):
        event = decode(entry.value)
        if last_told(event) < oldest:
            await actor.delete(entry.key, uid=event["metadata"]["uid"])


def last_told(event: Json) -> str:
    """The latest of an event's times, to the second; they are all UTC, so texts compare as times do."""
    metadata = event["metadata"]
    times = [
        metadata.get("creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
        *(entry.get("time") for entry in metadata.get("managedFields") or ()),
    ]
    return max(str(time)[:_TO_THE_SECOND] for time in times if time)
