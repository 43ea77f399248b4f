"""A live copy of all objects of a kind: one list, then a watch for as long as the process lives.

The promise: whatever happens to the connection, the cache ends up equal to the server, and its handlers have heard
of every object's last state and of every deletion. It is kept by few rules. A watch resumes at the last version
seen (bookmarks move it on while nothing happens). When the server no longer knows that version (410), everything is
listed again and compared with what is here, so that deletions in the gap are reported like any other. A stream that
falls silent is taken for dead. Lines that repeat the past are ignored; a line that is late and tells something new
proves that the stream lost its order, so everything is listed again. Failures are retried for ever with a short
pause, because a cache that gives up is a controller that is blind.

Versions may go back, when a server is restored from a backup (see `timeline`). So every watch that is opened again has
its position compared with a quorum read of the collection, and nothing counts as `reached` before that; after long
without contact everything is listed anew.

A cache may be optional: of a kind whose definition may not be installed yet. No reader waits for it, it asks for the
kind now and then, and it fills when the kind appears. That a kind is not served says nothing about its objects (a
server that starts serves none for a moment), so what is known stays; until `has_synced` an optional cache knows
nothing, and that it holds no object must not be taken for there being none.

A server may not be ours to trust: `Bounds` say what it may cost, and what does not fit them, or does not fit its type,
is a failure like any other. What was known stays, and the server is asked again after a pause that grows.

What readers find here, and who hears of changes, is in `object_copy`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from butler.api.objects import Change, is_newer, is_older, key_of, uid_of, version_of
from butler.kube.errors import ApiError, BadAnswer, Expired, KubeError, NotFound, OutcomeUnknown
from butler.kube.gate import Gate, Leave, nothing
from butler.kube.object_copy import ObjectCopy
from butler.kube.retry import Backoff
from butler.kube.timeline import may_resume

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Key
    from butler.kube.client import Client, WatchEvent
    from butler.kube.metrics import Metrics
    from butler.kube.resource import Resource

T = TypeVar("T")
log = logging.getLogger(__name__)

RECONNECT = Backoff(first=0.1, cap=5.0)
LOOK_FOR_KIND = Backoff(first=1.0, cap=30.0)
"""How often an optional cache asks whether its kind is there by now: soon while things start, calmly later."""
COMPARE_SECONDS = 10.0
TOO_LARGE_VERSION = "ResourceVersionTooLarge"
LONGEST_ERROR = 1000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server may cost that is not ours to trust."""

    items: int
    """Objects, in a list or one by one."""
    list_seconds: float = 30.0
    """Until a list has ended, with all its pages."""
    steady: float = 10.0
    """Seconds that a watch has to last before the failures that came before it no longer count."""


class OutOfOrder(KubeError):
    """A watch told something after what had happened later: others may have been passed over."""


class OutOfTouch(KubeError):
    """There was no contact for so long that nothing is known about what happened meanwhile."""


class WentBack(KubeError):
    """The server's versions are behind what was seen here."""


class Cache(ObjectCopy[T]):
    """The objects of one kind, optionally of one namespace or one selector."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str | None = None,
        field_selector: str | None = None,
        transform: Callable[[T], T] | None = None,
        silence: float = 90.0,
        page_size: int = 500,
        backoff: Backoff = RECONNECT,
        required: bool = True,
        look_for_kind: Backoff = LOOK_FOR_KIND,
        bounds: Bounds | None = None,
        gate: Gate | None = None,
        title: str = "",
        on_state: Callable[[], None] | None = None,
        metrics: Metrics | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """`title` names it in logs; `on_state` is called when a list came, a try failed or ended early or was heard."""
        super().__init__(resource, title=title, transform=transform, metrics=metrics)
        self.namespace = namespace
        self.silence = silence
        self.required = required
        self.last_error = ""
        self.failures = 0  # how many attempts failed in a row, up to now
        self.cut_short = 0  # how many watches in a row did not last, though the server took them
        self.lists = 0  # how many lists were taken over; what came and went before one was reported to no handler
        self._client = client
        self._labels = label_selector
        self._fields = field_selector
        self._page_size = page_size
        self._backoff = backoff
        self._look_for_kind = look_for_kind
        self._bounds = bounds
        self._gate = gate
        self._leave: Leave = nothing
        self._steady = 0.0 if bounds is None else bounds.steady
        self._on_state = on_state
        self._rng = rng or random.Random()  # noqa: S311  # jitter, not secrets
        self._position: str | None = None
        self._answered: str | None = None  # the newest version that came as the answer to a write, not by the watch
        self._must_list = True
        self._listing: dict[Key, str] | None = None  # own writes made known while a list is under way
        self._synced = asyncio.Event()
        self._tried = asyncio.Event()  # the server was asked once, whatever came of it
        self._looked = 0  # how often in a row the kind was not there
        self._moved: set[asyncio.Event] = set()
        self._heard_at: float | None = None
        self._silence: asyncio.Timeout | None = None
        self._is_open = False
        self._quiet_failures = 0
        self._doubts = 0  # how often everything known here was called in question
        self._verified = False  # whether the server that is followed now has all that was seen here
        self._contact_at = float("-inf")  # when that was last known
        client.timeline.join(self)

    # How far it has come.

    @property
    def has_synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def wait_settled(self) -> None:
        """Wait for what a reader should wait for: everything; of an optional kind, the outcome of asking once.

        So a kind that is there is read before any controller works with it, and one that is missing delays none.
        """
        await (self._synced if self.required else self._tried).wait()

    @property
    def is_absent(self) -> bool:
        """Whether the server, when last asked, did not serve this kind."""
        return self._looked > 0

    @property
    def position(self) -> str | None:
        """The version up to which everything has been seen; None before the first list."""
        return self._position

    def silent_for(self) -> float:
        """Seconds since the server was last heard; infinite before the first time."""
        if self._heard_at is None:
            return float("inf")
        return asyncio.get_running_loop().time() - self._heard_at

    @property
    def is_followed(self) -> bool:
        """Whether what is here belongs to the server as it is now, as far as it was heard."""
        return self._verified and not self._must_list and self._position is not None

    async def reached(self, version: str | None, timeout: float) -> bool:
        """Wait until everything up to a version has been seen; False when that takes too long.

        Where the watch lost its place or its order, nothing counts as seen before the next list; where it was opened
        again, not before its position was compared with the server's. Without a version only that is waited for.
        """
        moved = asyncio.Event()
        self._moved.add(moved)
        try:
            async with asyncio.timeout(timeout):
                while not self.is_followed or (version is not None and is_newer(version, self._position or "")):
                    await moved.wait()
                    moved.clear()
        except TimeoutError:
            return False
        finally:
            self._moved.discard(moved)
        return True

    async def confirm(self, within: float) -> None:
        """Make sure that the server was in step with this cache so many seconds ago or less, if need be by asking.

        Raises what stands in the way. Versions that went back are told to everyone, and then wait for `reached`.
        """
        if self.is_followed and asyncio.get_running_loop().time() - self._contact_at <= within:
            return
        await self._compare()

    async def newest(self) -> str:
        """The version of the collection on the server, by a quorum read."""
        return await self._client.newest_version(
            self.resource,
            self.namespace,
            label_selector=self._labels,
            field_selector=self._fields,
            timeout=COMPARE_SECONDS,
        )

    async def read_again(self, key: Key) -> T:
        """The object as the server has it now, taken in like a write; NotFound when it is gone.

        Older than what was known before it was asked for: then the server's versions went back.
        """
        known, uid = self._store.version(key), self._store.uid(key)
        found = await self._client.get(self.resource, key.name, key.namespace)
        if known is not None and uid_of(found) == uid and is_older(version_of(found), known):
            self._client.timeline.went_back(f"{self.resource} {key} was at {known} and is at {version_of(found)}")
        else:
            self.wrote(found)
        return found

    def doubt(self) -> None:
        """List anew before anything else: what is here may never have happened, and more may have."""
        self._doubts += 1
        self._must_list = True
        self._verified = False
        self._position = self._answered = None
        self._synced.clear()
        if self._silence is not None and not self._silence.expired():  # ends the watch that is under way
            self._silence.reschedule(asyncio.get_running_loop().time())

    def wrote(self, obj: T) -> None:
        """Read your writes: take in the server's answer to a write at once, ahead of the watch.

        Sound because the watch will pass through that version later: until then an older line about the object is
        ignored, afterwards the watch has the word. An answer that the watch has already overtaken is dropped, so a
        deletion cannot be undone by a late answer. Under a selector only objects that are here are updated, as
        nothing would ever take away one that does not match.
        """
        key, version = key_of(obj), version_of(obj)
        if self.namespace and key.namespace != self.namespace:
            return
        if (self._labels or self._fields) and key not in self._store:
            return
        if self._position is None and self._listing is None:
            return
        if not version.isdecimal() or (self._position is not None and not is_newer(version, self._position)):
            return
        if self._listing is not None:
            self._listing[key] = version
        if self._answered is None or is_newer(version, self._answered):
            self._answered = version
        if isinstance(obj, dict):  # the caller keeps its own, which we must not trim
            obj = cast("T", {**obj, "metadata": dict(obj["metadata"])})
        self._publish(self._store.put(key, self._entry(obj)))

    # Following.

    def use(self, client: Client) -> None:
        """Go on through another client, from a list on. What is known stays until that is there. Not while it runs."""
        self._client.timeline.leave(self)
        self._client = client
        client.timeline.join(self)
        self._must_list = True
        self._synced.clear()
        self._looked = self.failures = self.cut_short = self._quiet_failures = 0
        self.last_error = ""

    def forget(self) -> None:
        """No reader needs it any more: take its objects out of the metrics. Not while it runs."""
        self._client.timeline.leave(self)
        self._metrics.cache_objects.labels(str(self.resource)).dec(len(self._store))

    async def run(self) -> None:
        """Follow the server until cancelled."""
        while True:
            try:
                if self._must_list or not self._may_resume():
                    await self._list()
                await self._follow()
                continue
            except Expired as error:
                self._restart("expired", error)
                self._must_list = True
            except OutOfOrder as error:
                self._restart("disorder", error)
                self._must_list = True
            except OutOfTouch as error:
                self._restart("out_of_touch", error)
            except WentBack as error:
                self._restart("went_back", error)
            except OutcomeUnknown as error:
                self._restart("lost", error)
            except ApiError as error:
                if isinstance(error, NotFound) and not self.required:
                    await self._wait_for_kind(error)
                    continue
                self._restart(f"http_{error.code}", error)
                self._doubt_version(error)
            except KubeError as error:
                self._restart("unreachable", error)
                if isinstance(error, BadAnswer) and self._bounds is not None:
                    self._must_list = True  # resumed, the watch would tell the same again
            except Exception as error:
                # Whatever this is, a fresh list is the one state from which everything is right again.
                log.exception("cache of %s: unexpected failure, listing anew", self._title)
                self._restart("failure", error)
                self._must_list = True
            self._tried.set()
            await asyncio.sleep(self._backoff.delay(self._quiet_failures, self._rng))
            self._quiet_failures += 1

    async def _wait_for_kind(self, error: NotFound) -> None:
        self._must_list = True  # what a watch from before would report once the kind is back is not defined
        self._heard()  # a clear answer: we are not blind, there is nothing to see
        self._tried.set()
        if not self._looked:
            log.info("cache of %s: the server does not serve this kind; looking for it now and then", self._title)
        self.last_error = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
        delay = self._look_for_kind.delay(self._looked, self._rng)
        self._looked += 1
        self.failures = 0
        await asyncio.sleep(delay)

    def _restart(self, reason: str, error: Exception) -> None:
        self._metrics.watch_restarts.labels(str(self.resource), reason).inc()
        text = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
        if text != self.last_error:  # a server that is down says the same thing every few seconds
            log.info("cache of %s: %s", self._title, text)
        self.last_error = text
        self.failures += 1
        self._tell_state()

    def _tell_state(self) -> None:
        if self._on_state is not None:
            self._on_state()

    def _doubt_version(self, error: ApiError) -> None:
        """A server that is behind our version may catch up; one restored from a backup never will. A list can tell."""
        if any(cause.reason == TOO_LARGE_VERSION for cause in error.causes):
            self._must_list = True

    def _may_resume(self) -> bool:
        """Whether the watch can go on from its position; True for the first one after a list."""
        if self._verified:
            return True
        now, still = asyncio.get_running_loop().time(), self._client.timeline.stood_still_at
        return may_resume(contact_at=self._contact_at, stood_still_at=still, now=now)

    async def _compare(self) -> None:
        """Hold what was seen here against what the server has: a quorum read is never behind what came before it."""
        seen, doubts = self._seen(), self._doubts
        newest = await self.newest()
        if doubts != self._doubts or seen is None:
            return  # a list is due anyhow
        if is_older(newest, seen):
            self._client.timeline.went_back(f"{self.resource} was seen at {seen} and is at {newest}")
            return
        if self._is_open and not self._may_resume():
            self.doubt()  # it took so long that the server may have passed what was seen here
        elif self._is_open:  # else the next watch has to be compared, too
            self._verified = True
            self._in_contact()
            self._wake()

    def _seen(self) -> str | None:
        """The newest version that anything here is of: the watch may not have told of an answered write yet."""
        if self._position is None or self._answered is None or is_older(self._answered, self._position):
            return self._position
        return self._answered

    async def _keep_comparing(self) -> None:
        """Compare until there was an answer: nothing counts as seen on a watch before that."""
        attempt = 0
        while True:
            try:
                await self._compare()
                return
            except KubeError as error:
                log.info("cache of %s: its position could not be compared: %s", self._title, error)
            await asyncio.sleep(self._backoff.delay(attempt, self._rng))
            attempt += 1

    async def _list(self) -> None:
        undecodable: dict[Key, bytes] = {}
        bounds = self._bounds
        await self._enter()
        seen, doubts = self._seen(), self._doubts
        self._listing = {}
        try:
            async with asyncio.timeout(None if bounds is None else bounds.list_seconds):
                listed = await self._client.list(
                    self.resource,
                    self.namespace,
                    label_selector=self._labels,
                    field_selector=self._fields,
                    limit=self._page_size,
                    max_items=None if bounds is None else bounds.items,
                    on_undecodable=None if bounds else partial(self._complain, undecodable),
                )
            ahead = {key for key, version in self._listing.items() if is_newer(version, listed.resource_version)}
        except TimeoutError:
            raise BadAnswer(f"list {self.resource}: the list has no end, not even after a while") from None
        finally:
            self._listing = None
            self._leave()
        if doubts != self._doubts:
            raise WentBack(f"list {self.resource}: the server's versions went back meanwhile")
        if seen is not None and is_older(listed.resource_version, seen):
            proof = f"{self.resource} was seen at {seen} and is at {listed.resource_version}"
            self._client.timeline.went_back(proof, besides=self)
        entries = {key_of(obj): self._entry(obj) for obj in listed.items}
        in_doubt = self._position is None and self.lists > 0
        self._position = listed.resource_version
        self.lists += 1
        self._unreadable = undecodable
        changes = self._store.replace(entries, keep=ahead | undecodable.keys())
        if in_doubt:  # a reader that waits for what never was has to check again
            told = {change.key for change in changes}
            changes += [Change(key, entry.obj, entry.obj) for key, entry in entries.items() if key not in told]
        self._publish(changes)
        # Only now: a transform or an index that fails leaves us blind, however well the server answers.
        self._must_list = False
        self._verified = True
        self._heard()
        self._wake()
        if self._looked:
            log.info("cache of %s: the kind is served now", self._title)
        self._looked = 0
        self._synced.set()
        self._tried.set()
        self.last_error = ""
        self.failures = 0
        self._tell_state()

    async def _follow(self) -> None:
        """One watch, until the server ends it. Raises what went wrong otherwise."""
        await self._enter()
        cut_before = self.cut_short
        comparing: asyncio.Task[None] | None = None
        orderly = False
        started = asyncio.get_running_loop().time()

        def opened() -> None:
            nonlocal comparing
            self._opened()
            if not self._verified:
                comparing = asyncio.create_task(self._keep_comparing())

        events = self._client.watch(
            self.resource,
            self.namespace,
            resource_version=self._position,
            label_selector=self._labels,
            field_selector=self._fields,
            # Spread, so that the caches of many processes do not all come back at the same moment.
            timeout_seconds=300 + self._rng.randrange(300),
            silence=self.silence,
            on_open=opened,
            on_undecodable=None if self._bounds else self._undecodable_event,
        )
        try:
            async with asyncio.timeout(self.silence) as self._silence:
                async with contextlib.aclosing(cast("Any", events)) as stream:
                    async for event in stream:
                        self._heard()
                        self._is_well(asyncio.get_running_loop().time() - started)
                        self._take(event)
            orderly = True
        except TimeoutError:  # also one that talks byte by byte without saying anything is silent
            if self._must_list:
                raise WentBack(f"watch {self.resource}: the server's versions went back") from None
            raise OutcomeUnknown(f"watch {self.resource}: nothing was said for {self.silence:.0f} s") from None
        finally:
            self._leave()
            self._silence = None
            if orderly:
                self._in_contact()
            self._verified = False
            if self._is_open:
                lasted = asyncio.get_running_loop().time() - started
                self.cut_short = 0 if lasted >= self._steady else self.cut_short + 1
                self._is_open = False
            if comparing is not None:
                comparing.cancel()
                await asyncio.gather(comparing, return_exceptions=True)
        self._metrics.watch_restarts.labels(str(self.resource), "closed").inc()
        if self.cut_short != cut_before:  # what was no failure is reported nowhere else
            self._tell_state()
        if asyncio.get_running_loop().time() - started < 1:
            # A proxy that ends every watch at once must not turn us into a busy loop.
            await asyncio.sleep(self._backoff.delay(self._quiet_failures, self._rng))
            self._quiet_failures += 1

    def _is_well(self, lasted: float) -> None:
        self.failures = 0
        self.last_error = ""
        if lasted >= self._steady:
            self._quiet_failures = 0
            if self.cut_short:
                self.cut_short = 0
                self._tell_state()

    def _take(self, event: WatchEvent[T]) -> None:
        if self._is_past(event.resource_version):
            if event.object is not None and self._is_news(event, key_of(event.object)):
                raise OutOfOrder(f"{self.resource}: {event.resource_version} came after {self._position}")
            return
        if event.object is not None:
            key = key_of(event.object)
            self._unreadable.pop(key, None)
            if self._bounds and len(self._store) >= self._bounds.items and key not in self._store:
                raise BadAnswer(f"watch {self.resource}: there are more than {self._bounds.items} objects")
            if event.type == "DELETED":
                changes = self._store.remove(key, event.resource_version)
            else:
                changes = self._store.put(key, self._entry(event.object))
            self._publish(changes)
        self._move(event.resource_version)

    def _is_past(self, version: str) -> bool:
        """Whether a line repeats what was seen, or has no version and so no place in time."""
        return not version or (self._position is not None and is_older(version, self._position))

    def _is_news(self, event: WatchEvent[T], key: Key) -> bool:
        """Whether a line from the past tells of a version that was never seen here."""
        known = self._store.version(key)
        if known is None:
            # Most likely gone since then; but only a list can tell it from one that was passed over.
            return bool(event.resource_version) and event.type != "DELETED"
        return is_older(known, event.resource_version)

    def _undecodable_event(self, key: Key, version: str, error: Exception, deleted: bool, text: bytes) -> None:
        self._heard()
        if self._is_past(version):
            return
        if deleted:
            self._unreadable.pop(key, None)
            self._publish(self._store.remove(key, version))
        else:
            self._complain(self._unreadable, key, version, error, deleted, text)
        self._move(version)

    async def _enter(self) -> None:
        if self._gate is not None:
            self._leave = await self._gate.enter(doubtful=self.failures > 0 or self._quiet_failures > 0)

    def _opened(self) -> None:
        self._leave()
        if not self._may_resume():  # it took long to get here
            self._must_list = True
            raise OutOfTouch(f"watch {self.resource}: too long without contact to go on from {self._position}")
        self._heard()
        self._is_open = True
        if self.failures:
            self.failures = 0
            self.last_error = ""
            self._tell_state()

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        self._in_contact()
        if self._silence is not None and not self._must_list:
            self._silence.reschedule(self._heard_at + self.silence)

    def _in_contact(self) -> None:
        """What was just heard comes from the server that has all that was seen here."""
        if self._verified:
            self._contact_at = asyncio.get_running_loop().time()

    def _move(self, version: str) -> None:
        self._position = version
        self._wake()

    def _wake(self) -> None:
        for moved in self._moved:
            moved.set()
