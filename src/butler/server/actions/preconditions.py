"""Which version of an object a user means to change, and whether it still says what they saw.

Who changes something sends the version that they looked at (`If-Match`). Butler writes to the status of its objects all
the time, and with each write the version moves on: were every one of them in the way, a busy pool could never be
edited. So `Versions` remembers what each of the last versions said to people: where nothing of that changed, the change
is made to the newest version, fenced by it; where it did, or that is not known any more, they have to look again (412).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from butler.api.ipallocation import IPAllocation
from butler.api.objects import Change, Key
from butler.api.resource import CustomResource
from butler.kube.cache import Cache
from butler.kube.errors import Conflict
from butler.reports.release_impact import said
from butler.server.problems import RequestRefused, not_found

T = TypeVar("T")
R = TypeVar("R")
REMEMBERED: Final = 20_000
ATTEMPTS: Final = 40
PAUSE: Final = 0.05
CATCH_UP: Final = 2.0

Said = Callable[[Any], int]
"""What an object says, in short: two versions with the same look the same to a user."""


def version_named(if_match: str | None) -> str:
    """The version that the header names; 428 without one."""
    text = (if_match or "").strip().removeprefix("W/").strip('"')
    if not text or text == "*":
        raise RequestRefused(
            428, 'say which version you looked at: send its resourceVersion as If-Match: "...", as it was shown to you'
        )
    return text


def written(obj: CustomResource) -> int:
    """What of an object people have written. The status is no part of it."""
    meta = obj.metadata
    words = frozenset(meta.labels.items()), frozenset(meta.annotations.items())
    return hash((meta.uid, meta.generation, meta.deletion_timestamp is not None, words))


def released(allocation: IPAllocation) -> int:
    """What is given back with an allocation: the status is part of it, and the record of its grant is not."""
    return hash(said(allocation))


def changed(kind: str, name: str) -> RequestRefused:
    return RequestRefused(
        412, f"{kind} {name} has been changed since you looked: look at it again, and repeat what you want to do"
    )


class KnownVersions:
    """What the last versions of everything that is followed said."""

    def __init__(self, caches: Mapping[Cache[Any], Said]) -> None:
        self._said = dict(caches)
        self._known: dict[Cache[Any], OrderedDict[tuple[Key, str], int]] = {}
        for cache in caches:
            self._known[cache] = OrderedDict()
            cache.on_change(partial(self._note, cache))

    def _note(self, cache: Cache[Any], change: Change[Any]) -> None:
        if change.new is not None:
            known = self._known[cache]
            known[change.key, change.new.metadata.resource_version] = self._said[cache](change.new)
            if len(known) > REMEMBERED:
                known.popitem(last=False)

    async def meant(self, cache: Cache[T], key: Key, version: str) -> T:
        """The object as it is now, if it says what it said at that version; 404 or 412 otherwise."""
        if version.isdecimal():
            await cache.reached(version, CATCH_UP)  # it may have been read from another replica, a moment ago
        now: Any = cache.get(key)
        kind = cache.resource.kind
        if now is None:
            raise not_found(kind, key.namespace, key.name)
        if now.metadata.resource_version != version:
            then = self._known[cache].get((key, version))
            if then is None or then != self._said[cache](now):
                raise changed(kind, key.name)
        found: T = now
        return found

    async def fenced(self, cache: Cache[T], key: Key, version: str, send: Callable[[T], Awaitable[R]]) -> R:
        """Send a write that is fenced by the version of what it gets; once more where what it met says the same.

        `send` must put uid and resourceVersion of its argument into the write.
        """
        left = ATTEMPTS
        while True:
            now = await self.meant(cache, key, version)
            left -= 1
            try:
                return await send(now)
            except Conflict:
                if not left:
                    raise
                await asyncio.sleep(PAUSE)  # until the change that was in the way is known here
