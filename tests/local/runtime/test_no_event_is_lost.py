"""The proof: whatever happens between cache and server, nothing is lost, made up or left undone.

A seed gives a history of writes and a plan of faults. Writes go straight to the server; a cache and a controller
follow through a proxy that cuts, delays, stalls, duplicates, replays, refuses and forgets. When the network has
healed, the cache must equal the server, the handlers' story must be a possible one, and the controller must have
looked at each object after its last change. To repeat a failure run its seed; to search for one, raise
BUTLER_FAULT_SEEDS.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from butler.kube.cache import Cache
from butler.kube.controller import Controller
from butler.kube.objects import is_newer, uid_of, version_of
from butler.kube.resource import CONFIGMAPS, Json, Key
from butler.kube.retry import Backoff
from fault_proxy import FAITHFUL, FaultProxy, Seeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.kube.client import Client
    from butler.kube.store import Change

SEEDS = int(os.environ.get("BUTLER_FAULT_SEEDS", "6"))
WRITES = 120
NAMES = [f"thing-{number}" for number in range(10)]
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
        self.looks += 1
        seen = self.cache.get(key)
        self.looked_at[key] = None if seen is None else version_of(seen)
        if self.looks % 7 == 0:
            raise RuntimeError("a reconcile that fails now and then must not lose its key")

    def told_state(self) -> dict[Key, str]:
        """The state that somebody has who only heard the changes; fails when they contradict each other."""
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

    def uids_told(self, *, gone: bool) -> set[str]:
        told = (
            [change.old for change in self.changes if change.new is None]
            if gone
            else [change.new for change in self.changes]
        )
        return {uid_of(obj) for obj in told if obj is not None}


@dataclass
class Ledger:
    """What was really written, by the server's own answers."""

    versions: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    uids: set[str] = field(default_factory=set)

    def note(self, obj: Json) -> None:
        self.versions[Key(obj["metadata"]["namespace"], obj["metadata"]["name"])].add(version_of(obj))
        self.uids.add(uid_of(obj))


async def write_history(client: Client, namespace: str, rng: random.Random, ledger: Ledger) -> None:
    """Create, change, delete and recreate a few objects in an order that the seed decides, in bursts and pauses."""
    present: dict[str, Json] = {}
    for step in range(WRITES):
        name = rng.choice(NAMES)
        labels = {"parity": rng.choice(["odd", "even"])}
        if name not in present:
            body = {"metadata": {"name": name, "labels": labels}, "data": {"step": str(step)}}
            present[name] = await client.create(CONFIGMAPS, body, namespace)
            ledger.note(present[name])
        elif rng.random() < 0.3:
            await client.delete(CONFIGMAPS, name, namespace)
            del present[name]
        else:
            patch = {"metadata": {"labels": labels}, "data": {"step": str(step)}}
            present[name] = await client.patch(CONFIGMAPS, name, patch, namespace)
            ledger.note(present[name])
        if rng.random() < 0.3:
            await asyncio.sleep(rng.choice([0.005, 0.05, 0.2]))


@asynccontextmanager
async def following(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in work]
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


async def until(condition: Any, what: str, timeout: float = HEALING) -> None:
    try:
        async with asyncio.timeout(timeout):
            while not condition():  # noqa: ASYNC110  # the condition is somebody else's state
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"not within {timeout} s: {what() if callable(what) else what}")


def hasty(client: Client, namespace: str, seed: int, **options: Any) -> Cache[Json]:
    """A cache that notices and retries in test time."""
    quick = Backoff(first=0.01, cap=0.1)
    rng = random.Random(seed)
    return Cache(
        client, CONFIGMAPS, namespace=namespace, silence=0.7, page_size=4, backoff=quick, rng=rng, **options
    )


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_cache_and_controller_survive_any_network(
    client: Client, shaken: Client, proxy: FaultProxy, namespace: str, seed: int
) -> None:
    rng = random.Random(seed)
    cache = hasty(shaken, namespace, seed)
    witness, ledger = Witness(cache), Ledger()
    controller = Controller("witness", witness.reconcile, backoff=Backoff(first=0.01, cap=0.05)).watches(cache)
    proxy.plan = Seeded(seed, rate=0.75)
    async with following(cache.run(), controller.run()):
        await write_history(client, namespace, rng, ledger)
        truth = await server_state(client, namespace)
        proxy.plan = FAITHFUL
        await until(lambda: cache_state(cache) == truth, lambda: f"cache {cache_state(cache)} == server {truth}")
        await until(
            lambda: all(witness.looked_at.get(key) == truth.get(key) for key in {*truth, *witness.looked_at}),
            lambda: f"last looks {witness.looked_at} at the last states {truth}",
        )
    assert witness.told_state() == truth
    told = {(change.key, version_of(change.new)) for change in witness.changes if change.new is not None}
    made_up = {(key, version) for key, version in told if version not in ledger.versions[key]}
    assert not made_up, "the handlers were told of versions that never were"
    here = {uid_of(obj) for obj in cache.values()}
    assert witness.uids_told(gone=False) - here == witness.uids_told(gone=True), "a deletion was not reported"
    assert sum(count for (_, kind), count in proxy.counts.items() if kind != "none") > 5, (
        "too calm to prove anything"
    )


@pytest.mark.parametrize("seed", range(100, 100 + max(2, SEEDS // 3)))
async def test_a_selection_survives_any_network(
    client: Client, shaken: Client, proxy: FaultProxy, namespace: str, seed: int
) -> None:
    """Objects come and go from a selection by their labels, which a watch shows as deletions."""
    cache = hasty(shaken, namespace, seed, label_selector="parity=odd")
    witness = Witness(cache)
    proxy.plan = Seeded(seed, rate=0.75)
    async with following(cache.run()):
        await write_history(client, namespace, random.Random(seed), Ledger())
        truth = await server_state(client, namespace, label_selector="parity=odd")
        proxy.plan = FAITHFUL
        await until(lambda: cache_state(cache) == truth, lambda: f"cache {cache_state(cache)} == server {truth}")
    assert witness.told_state() == truth


@pytest.mark.parametrize("seed", range(200, 200 + max(2, SEEDS // 3)))
async def test_own_writes_through_a_bad_network_are_read_back_at_once(
    client: Client, shaken: Client, proxy: FaultProxy, namespace: str, seed: int
) -> None:
    """`wrote` runs ahead of the watch; it must neither be undone by old lines nor bring back the dead."""
    rng = random.Random(seed)
    cache = hasty(shaken, namespace, seed)
    witness = Witness(cache)
    proxy.plan = Seeded(seed, rate=0.6, only=("list", "watch"))
    async with following(cache.run()):
        await until(lambda: cache.has_synced, "first list")
        for step in range(60):
            key = Key(namespace, rng.choice(NAMES))
            body = {"metadata": {"name": key.name, "namespace": namespace}, "data": {"step": str(step)}}
            written = await shaken.apply(CONFIGMAPS, body, force=True)
            if rng.random() < 0.3:
                await client.delete(CONFIGMAPS, key.name, namespace)  # behind the cache's back, before it is told
                await asyncio.sleep(rng.choice([0, 0.01, 0.1]))
                cache.wrote(written)
            else:
                cache.wrote(written)
                known = cache.get(key)
                if known is not None:  # None only while a list is due
                    assert not is_newer(version_of(written), version_of(known)), "an own write is read back at once"
        truth = await server_state(client, namespace)
        proxy.plan = FAITHFUL
        await until(lambda: cache_state(cache) == truth, lambda: f"cache {cache_state(cache)} == server {truth}")
    assert witness.told_state() == truth
