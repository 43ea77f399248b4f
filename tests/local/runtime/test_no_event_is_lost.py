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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from butler.api.objects import Json, Key, is_newer, uid_of, version_of
from butler.kube.controller import Controller
from butler.kube.resource import CONFIGMAPS
from butler.kube.retry import Backoff
from fault_proxy import FAITHFUL, FaultProxy, Seeded
from local.runtime.witness import Witness, cache_state, following, hasty, server_state, until

if TYPE_CHECKING:
    from butler.kube.client import Client

SEEDS = int(os.environ.get("BUTLER_FAULT_SEEDS", "6"))
WRITES = 120
NAMES = [f"thing-{number}" for number in range(10)]


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
    made_up = [pair for pair in told if pair[0].name in NAMES and pair[1] not in ledger.versions[pair[0]]]
    assert not made_up, "the handlers were told of versions that never were"
    witness.none_returned()
    here = {uid_of(obj) for obj in cache.values()}
    assert witness.uids_told(gone=False) - here == witness.uids_told(gone=True), "a deletion was not reported"
    assert sum(count for (_, kind), count in proxy.counts.items() if kind != "none") > 5, "too calm to prove anything"


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
    witness, answers = Witness(cache), list[Json]()
    proxy.plan = Seeded(seed, rate=0.6, only=("list", "watch"))
    async with following(cache.run()):
        await until(lambda: cache.has_synced, "first list")
        for step in range(60):
            key = Key(namespace, rng.choice(NAMES))
            body = {"metadata": {"name": key.name, "namespace": namespace}, "data": {"step": str(step)}}
            written = await shaken.apply(CONFIGMAPS, body, force=True)
            answers.append(written)
            if rng.random() < 0.3:
                await client.delete(CONFIGMAPS, key.name, namespace)  # behind the cache's back, before it is told
                await asyncio.sleep(rng.choice([0, 0.05, 0.3]))
                cache.wrote(written)
            else:
                cache.wrote(written)
                known = cache.get(key)
                if known is not None:  # None only while a list is due
                    assert not is_newer(version_of(written), version_of(known)), "an own write is read back at once"
        truth = await server_state(client, namespace)
        proxy.plan = FAITHFUL
        await until(lambda: cache_state(cache) == truth, lambda: f"cache {cache_state(cache)} == server {truth}")
        for answer in answers:
            cache.wrote(answer)
        assert cache_state(cache) == truth, "answers that come very late bring no object back"
    assert witness.told_state() == truth
