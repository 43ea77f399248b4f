"""The store against a model that is too simple to be wrong: a list of everything that ever happened.

Hypothesis plays many writers, readers and watchers, with clean restarts, crashes (the files as they are on disk are
copied away and opened elsewhere) and compactions in between. Feeds are kept tiny, so that watches and pages cross
between memory and disk all the time.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from kubeserver.storage.store import (
    Compacted,
    Entry,
    Exists,
    Feed,
    Missing,
    ObjectKey,
    Stale,
    Store,
    Table,
    Watch,
)

PODS = Table("main", "", "pods")
TABLES = st.sampled_from([PODS, Table("main", "", "secrets"), Table("other", "", "pods")])
NAMESPACES = st.sampled_from(["a", "a-b", "b"])
NAMES = st.sampled_from(["x", "y", "x-y", "x.y"])
SPACES = st.one_of(st.none(), NAMESPACES)
MOMENTS = st.integers(0, 100)
WORDS = st.text("abc", max_size=3)


class Event(NamedTuple):
    revision: int
    kind: str
    key: ObjectKey
    value: bytes
    previous: bytes | None


class Follower(NamedTuple):
    watch: Watch
    table: Table
    namespace: str | None
    since: int
    seen: list[Event]


def encoded(word: str, revision: int) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": str(revision)}, "word": word}).encode()


class StoreAgainstModel(RuleBasedStateMachine):
    followers: Bundle[Follower] = Bundle("followers")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.root = Path(tempfile.mkdtemp(prefix="kubeserver-store-model-"))
        self.generation = 0
        self.events: list[Event] = []  # all that was decided, acknowledged or not yet
        self.decided: dict[ObjectKey, Event] = {}
        self.writing: list[tuple[asyncio.Future[Entry], Event]] = []
        self.compacted = 0

    def teardown(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()
        shutil.rmtree(self.root)

    def open(self) -> Store:
        directory = self.root / str(self.generation)
        return self.loop.run_until_complete(Store.open(directory, feed=partial(Feed, max_changes=4, max_bytes=1 << 20)))

    @initialize()
    def begin(self) -> None:
        self.store = self.open()

    # Writing. The same model serves writes that overlap and writes that wait for each other.

    @rule(table=TABLES, namespace=NAMESPACES, name=NAMES, word=WORDS, stale=st.integers(0, 5))
    def write(self, table: Table, namespace: str, name: str, word: str, stale: int) -> None:
        key = ObjectKey(*table, namespace, name)
        current = self.decided.get(key)
        if current is None:
            with pytest.raises(Missing):
                self.store.update(key, 1, partial(encoded, word))
            self._decide("ADDED", key, word)
        elif stale == 0:
            with pytest.raises(Stale):
                self.store.update(key, current.revision - 1, partial(encoded, word))
            with pytest.raises(Exists):
                self.store.create(key, partial(encoded, word))
        else:
            self._decide("DELETED" if stale == 1 else "MODIFIED", key, word)

    def _decide(self, kind: str, key: ObjectKey, word: str) -> None:
        current = self.decided.get(key)
        given: list[int] = []

        def encode(revision: int) -> bytes:
            given.append(revision)
            return encoded(word, revision)

        async def submit() -> asyncio.Future[Entry]:
            if current is None:
                return self.store.create(key, encode)
            write = self.store.delete if kind == "DELETED" else self.store.update
            return write(key, current.revision, encode)

        future = self.loop.run_until_complete(submit())
        (revision,) = given
        assert revision > max((event.revision for event in self.events), default=1)
        event = Event(revision, kind, key, encoded(word, revision), current.value if current else None)
        self.events.append(event)
        self.writing.append((future, event))
        if kind == "DELETED":
            del self.decided[key]
        else:
            self.decided[key] = event

    @rule()
    def settle(self) -> None:
        for future, event in self.writing:
            entry = self.loop.run_until_complete(future)
            assert (entry.key, entry.revision, entry.value) == (event.key, event.revision, event.value)
        self.writing.clear()

    @rule()
    def pause(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0.001))

    # Reading.

    def _moment(self, at: int) -> int:
        """A revision that is on disk; how far the disk is may differ from run to run, what is drawn may not."""
        revisions = [1, *(event.revision for event in self.events)]
        return min(revisions[-1 - at % len(revisions)], self.store.revision)

    def _state(self, revision: int, table: Table, namespace: str | None) -> list[tuple[ObjectKey, int, bytes]]:
        state: dict[ObjectKey, Event] = {}
        for event in self.events:
            if event.revision <= revision and event.key.table == table and namespace in (None, event.key.namespace):
                if event.kind == "DELETED":
                    del state[event.key]
                else:
                    state[event.key] = event
        found = [(event.key, event.revision, event.value) for event in state.values()]
        return sorted(found, key=lambda item: f"{item[0].namespace}/{item[0].name}")

    @rule(table=TABLES, namespace=SPACES)
    def read(self, table: Table, namespace: str | None) -> None:
        shown = [(entry.key, entry.revision, entry.value) for entry in self.store.entries(table, namespace)]
        assert shown == self._state(self.store.revision, table, namespace)
        assert self.store.count(table, namespace) == len(shown)
        for key, revision, _ in shown:
            entry = self.store.get(key)
            assert entry is not None
            assert entry.revision == revision
        latest = [(entry.key, entry.revision, entry.value) for entry in self.store.entries_latest(table, namespace)]
        assert latest == self._state(1 << 62, table, namespace)

    @rule(table=TABLES, namespace=SPACES, at=MOMENTS, limit=st.integers(1, 5))
    def page(self, table: Table, namespace: str | None, at: int, limit: int) -> None:
        revision = self._moment(at)
        wanted = self._state(revision, table, namespace)
        got: list[tuple[ObjectKey, int, bytes]] = []
        after: tuple[str, str] | None = None
        while True:
            asking = self.store.page(table, namespace, revision=revision, start_after=after, limit=limit)
            if revision < self.store.compacted or revision in self.store.skipped:
                with pytest.raises(Compacted):
                    self.loop.run_until_complete(asking)
                return
            entries, remaining = self.loop.run_until_complete(asking)
            got += [(entry.key, entry.revision, entry.value) for entry in entries]
            assert remaining == len(wanted) - len(got)
            if not remaining:
                break
            after = (entries[-1].key.namespace, entries[-1].key.name)
        assert got == wanted

    # Watching.

    @rule(target=followers, table=TABLES, namespace=SPACES, at=MOMENTS)
    def follow(self, table: Table, namespace: str | None, at: int) -> Any:
        since = self._moment(at)
        if since < self.store.compacted or since in self.store.skipped:
            with pytest.raises(Compacted):
                self.store.watch(table, namespace, since=since)
            return multiple()
        return Follower(self.store.watch(table, namespace, since=since), table, namespace, since, [])

    @rule(follower=followers, limit=st.integers(1, 6))
    def observe(self, follower: Follower, limit: int) -> None:
        if follower.watch.closed:
            return
        behind = follower.watch.progress < self.compacted
        try:
            batch = self.loop.run_until_complete(follower.watch.next_batch(limit, timeout=0))
        except Compacted:
            assert behind, "only a watch that fell behind the compaction may lose its place"
            follower.watch.close()
            return
        for change in batch or ():
            follower.seen.append(Event(change.revision, change.type, change.key, change.value, change.previous))
        progress = follower.watch.progress
        assert follower.since <= progress <= max(self.store.revision, follower.since)
        assert follower.seen == [
            event
            for event in self.events
            if follower.since < event.revision <= progress
            and event.key.table == follower.table
            and follower.namespace in (None, event.key.namespace)
        ]

    # Time passing.

    @rule(at=MOMENTS)
    def compact(self, at: int) -> None:
        revision = self._moment(at)
        self.loop.run_until_complete(self.store.compact(revision))
        self.compacted = max(self.compacted, revision)

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.settle()
        before = self.store.revision
        self.store = self.open()
        assert self.store.revision == before

    @rule()
    def crash(self) -> None:
        self.settle()
        before, old = self.store.revision, self.root / str(self.generation)
        self.generation += 1
        shutil.copytree(old, self.root / str(self.generation), ignore=shutil.ignore_patterns("*.lock", "*-shm"))
        self.loop.run_until_complete(self.store.close())
        self.store = self.open()
        assert self.store.revision >= before

    @invariant()
    def nothing_is_shown_before_it_is_on_disk(self) -> None:
        if hasattr(self, "store"):
            assert self.store.compacted == self.compacted
            acknowledged = [event.revision for future, event in self.writing if future.done()]
            assert self.store.revision >= max(acknowledged, default=1)


StoreAgainstModel.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_the_store_does_what_the_model_says = StoreAgainstModel.TestCase


@pytest.mark.slow
def test_the_store_does_what_the_model_says_for_long() -> None:
    run_state_machine_as_test(
        StoreAgainstModel,
        settings=settings(
            max_examples=1000, stateful_step_count=80, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
