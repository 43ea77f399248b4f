"""Watching the watchers: what handlers and controllers were told, and what the server says.

Shared by the tests of the runtime. A `Witness` writes down every change a cache reports; its story must be a possible
one (no update of something unknown, no step back in time) and must end in the server's state.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from butler.api.objects import Json, Key, is_newer, uid_of, version_of
from butler.kube.cache import Cache
from butler.kube.errors import OutcomeUnknown
from butler.kube.resource import CONFIGMAPS
from butler.kube.retry import Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from butler.api.objects import Change
    from butler.kube.client import Client

HEALING = 15.0


@dataclass
class Witness:
    """Everything the handlers and the controller were told, in order."""

    cache: Cache[Json]
    changes: list[Change[Json]] = field(default_factory=list)
    looked_at: dict[Key, str | None] = field(default_factory=dict)
    looks: int = 0

    def __post_init__(self) -> None:
        self.cache.on_change(self.changes.append)

    async def reconcile(self, key: Key) -> None:
        """Look, take a while over it, and fail now and then: only what was looked at to the end counts."""
        self.looks += 1
        seen, look = self.cache.get(key), self.looks
        await asyncio.sleep(0.005 * (look % 5))
        if look % 7 == 0:
            raise OutcomeUnknown("a reconcile that fails must not lose its key")
        self.looked_at[key] = None if seen is None else version_of(seen)

    def told_state(self) -> dict[Key, str]:
        """The state known to a client that only heard the changes; fails when they contradict each other."""
        state: dict[Key, Json] = {}
        for change in self.changes:
            known = state.get(change.key)
            story = f"{change.key}: told {change}, but knew {known and version_of(known)}"
            if change.old is None:
                assert known is None, story
            else:
                assert known is not None, story
                assert version_of(known) == version_of(change.old), story
            if change.new is None:
                state.pop(change.key)
                continue
            if change.old is not None:
                assert uid_of(change.old) == uid_of(change.new), f"{story}: a new object is no update of the old"
                assert is_newer(version_of(change.new), version_of(change.old)), f"{story}: went back in time"
            state[change.key] = change.new
        return {key: version_of(obj) for key, obj in state.items()}

    def none_returned(self) -> None:
        """Fails when an object that was reported gone was reported again."""
        gone: set[str] = set()
        for change in self.changes:
            if change.new is None:
                gone.add(uid_of(change.old))
            else:
                assert uid_of(change.new) not in gone, f"{change.key} came back from the dead"

    def uids_told(self, *, gone: bool) -> set[str]:
        told = (
            [change.old for change in self.changes if change.new is None]
            if gone
            else [change.new for change in self.changes]
        )
        return {uid_of(obj) for obj in told if obj is not None}


@asynccontextmanager
async def following(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(item) for item in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def server_state(client: Client, namespace: str, **selectors: str) -> dict[Key, str]:
    listed = await client.list(CONFIGMAPS, namespace, **selectors)  # type: ignore[arg-type]
    return {Key(namespace, item["metadata"]["name"]): version_of(item) for item in listed.items}


def cache_state(cache: Cache[Json]) -> dict[Key, str]:
    return {Key(obj["metadata"]["namespace"], obj["metadata"]["name"]): version_of(obj) for obj in cache.values()}


async def until(condition: Any, what: str | Callable[[], object], timeout: float = HEALING) -> None:
    try:
        async with asyncio.timeout(timeout):
            while not condition():  # noqa: ASYNC110  # the condition is the state of another task
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"not within {timeout} s: {what() if callable(what) else what}")


def hasty(client: Client, namespace: str, seed: int, **options: Any) -> Cache[Json]:
    """A cache that notices and retries in test time."""
    quick = Backoff(first=0.01, cap=0.1)
    rng = random.Random(seed)
    return Cache(client, CONFIGMAPS, namespace=namespace, silence=0.7, page_size=4, backoff=quick, rng=rng, **options)
