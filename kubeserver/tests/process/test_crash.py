"""`kill -9` under load: what was acknowledged is there, nothing is torn, versions never go back, watchers catch up.

Writers keep a *ledger*: for each object every state they tried to write, and which of them the server acknowledged.
After a crash an object may be in its last acknowledged state or in a later one that was under way; anything else is
a lost write. Watchers follow over HTTP from the last resourceVersion they saw, list again on 410, and must end with
exactly what the server has. The seed is in every failure, so that a run can be repeated with CRASH_SEED.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from server_process import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]

CONFIGS = "/api/v1/namespaces/default/configmaps"
POOLS = "/apis/crash.example.com/v1/namespaces/default/pools"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
FINALIZER = "crash.example.com/hold"
GONE = -1  # the number that stands for "deleted"
UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError)

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "pools.crash.example.com"},
    "spec": {
        "group": "crash.example.com",
        "scope": "Namespaced",
        "names": {"plural": "pools", "kind": "Pool"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["number", "copy"],
                                "properties": {"number": {"type": "integer"}, "copy": {"type": "string"}},
                            },
                            "status": {"type": "object", "properties": {"number": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


@dataclass
class Account:
    """What is known of one object: the last acknowledged number and those that may have been written since."""

    path: str
    acknowledged: int = GONE
    in_flight: set[int] = field(default_factory=set)
    uid: str = ""
    version: int = 0  # the highest resourceVersion seen
    status: int | None = None
    status_in_flight: set[int] = field(default_factory=set)
    story: list[str] = field(default_factory=list)

    def may_be(self) -> set[int]:
        return {self.acknowledged, *self.in_flight}


class Ledger:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.accounts: dict[str, Account] = {}
        self.highest = 0  # resourceVersion that any client saw
        self.writes = 0

    def saw(self, version: str | int) -> None:
        self.highest = max(self.highest, int(version))

    def lost(self, account: Account, why: str) -> AssertionError:
        story = "\n  ".join(account.story[-15:])
        return AssertionError(f"seed {self.seed}: {account.path}: {why}\nits story:\n  {story}")


class Client:
    """Requests whose outcome is known: an answer, or None if the server went away in between."""

    def __init__(self, session: aiohttp.ClientSession, ledger: Ledger) -> None:
        self._session = session
        self._ledger = ledger

    async def call(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Any:
        headers = {"Content-Type": kind} if body is not None else {}
        data = None if body is None else json.dumps(body).encode()
        try:
            async with self._session.request(method, path, data=data, headers=headers) as answer:
                found = await answer.json(content_type=None)
        except (*UNREACHABLE, ValueError):
            return None
        if answer.status >= 500:
            return None  # stopping: refused or not, we cannot know
        if answer.status < 300:
            self._ledger.writes += method != "GET"
            with contextlib.suppress(KeyError):
                self._ledger.saw(found["metadata"]["resourceVersion"])
        return answer.status, found


def config(name: str, number: int) -> Json:
    """The number stands in it twice, far apart: a torn object would show."""
    data = {"number": str(number), "filler": f"{number} " * 200, "copy": str(number)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pool(name: str, number: int) -> Json:
    spec = {"number": number, "copy": str(number)}
    return {"apiVersion": "crash.example.com/v1", "kind": "Pool", "metadata": {"name": name}, "spec": spec}


def number_in(obj: Json) -> int:
    """The number of an object, once it is clear that the object is whole."""
    metadata = obj["metadata"]
    for wanted in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp"):
        assert metadata.get(wanted), f"torn: no metadata.{wanted} in {obj}"
    if "data" in obj:
        number = int(obj["data"]["number"])
        assert obj["data"]["copy"] == str(number), f"torn: {obj}"
        assert obj["data"]["filler"] == f"{number} " * 200, f"torn: {obj}"
        return number
    assert obj["spec"]["copy"] == str(obj["spec"]["number"]), f"torn: {obj}"
    return int(obj["spec"]["number"])


class Writer:
    """Owns a few objects and changes them in every way there is, until it is told to stop."""

    def __init__(self, name: str, client: Client, ledger: Ledger, chance: random.Random) -> None:
        self._client = client
        self._ledger = ledger
        self._chance = chance
        self._number = 0
        self._accounts = [Account(f"{base}/{name}-{index}") for index in range(4) for base in (CONFIGS, POOLS)]
        ledger.accounts.update({account.path: account for account in self._accounts})

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            account = self._chance.choice(self._accounts)
            if account.in_flight or account.status_in_flight:
                await self._ask(account)
            elif account.acknowledged == GONE:
                await self._write(account, self._chance.choice(("create", "apply")))
            else:
                way = self._chance.choice(("replace", "replace", "merge", "apply", "status", "status", "delete"))
                await self._write(account, way)

    async def _ask(self, account: Account) -> None:
        """After a crash: which of the writes under way happened."""
        answer = await self._client.call("GET", account.path)
        if answer is None:
            await asyncio.sleep(0.02)
            return
        settle(self._ledger, account, answer[1] if answer[0] == 200 else None)

    async def _write(self, account: Account, way: str) -> None:
        self._number += 1
        number = self._number
        base, _, name = account.path.rpartition("/")
        made = (config if base == CONFIGS else pool)(name, number)
        if way == "status":
            if base == CONFIGS:
                return
            account.status_in_flight = {number}
            answer = await self._client.call("PATCH", f"{account.path}/status", {"status": {"number": number}}, MERGE)
        elif way == "delete":
            await self._delete(account)
            return
        else:
            account.in_flight = {number}
            if way == "create":
                answer = await self._client.call("POST", base, made)
            elif way == "replace":
                made["metadata"]["resourceVersion"] = str(account.version)
                answer = await self._client.call("PUT", account.path, made)
            elif way == "merge":
                answer = await self._client.call("PATCH", account.path, {**made, "metadata": {}}, MERGE)
            else:
                query = "?fieldManager=crash&force=true"
                answer = await self._client.call("PATCH", account.path + query, made, APPLY)
        account.story.append(f"{way} {number}: {answer and answer[0]}")
        if answer is None:
            return
        code, found = answer
        if code not in (200, 201):
            raise self._ledger.lost(account, f"{way} was refused although no other client writes: {found}")
        self._acknowledge(account, found, number, status=way == "status")

    def _acknowledge(self, account: Account, found: Json, number: int, *, status: bool) -> None:
        version = int(found["metadata"]["resourceVersion"])
        if version <= account.version:
            raise self._ledger.lost(account, f"resourceVersion went from {account.version} to {version}")
        if account.acknowledged != GONE and account.uid != found["metadata"]["uid"]:
            raise self._ledger.lost(account, "its uid changed")
        account.version, account.uid = version, found["metadata"]["uid"]
        if status:
            account.status, account.status_in_flight = number, set()
            return
        if account.acknowledged == GONE:
            account.status = None
        account.acknowledged, account.in_flight = number, set()

    async def _delete(self, account: Account) -> None:
        """Half of the time through a finalizer, which makes it three writes."""
        if self._chance.random() < 0.5:
            held = {"metadata": {"finalizers": [FINALIZER]}}
            answer = await self._client.call("PATCH", account.path, held, MERGE)
            account.story.append(f"hold: {answer and answer[0]}")
            if answer is None:
                account.in_flight = {account.acknowledged}
                return
            account.version = int(answer[1]["metadata"]["resourceVersion"])
        account.in_flight = {GONE}
        for method, body in (("DELETE", None), ("PATCH", {"metadata": {"finalizers": None}})):
            answer = await self._client.call(method, account.path, body, MERGE)
            account.story.append(f"{method} to delete: {answer and answer[0]}")
            if answer is None:
                return
            if answer[0] == 404:
                break
            if answer[0] != 200:
                raise self._ledger.lost(account, f"{method} was refused: {answer[1]}")
        account.acknowledged, account.in_flight, account.status = GONE, set(), None


def settle(ledger: Ledger, account: Account, found: Json | None) -> None:
    """Compare what the server has with what it may have, and take note of it."""
    number = GONE if found is None else number_in(found)
    account.story.append(f"found {number if found else 'nothing'}")
    if number not in account.may_be():
        raise ledger.lost(account, f"it is {number}, but may only be one of {sorted(account.may_be())}")
    if found is not None:
        metadata = found["metadata"]
        if account.acknowledged != GONE and metadata["uid"] != account.uid:
            raise ledger.lost(account, "its uid changed")
        if account.acknowledged != GONE and int(metadata["resourceVersion"]) < account.version:
            raise ledger.lost(account, f"its version went back from {account.version}")
        status = (found.get("status") or {}).get("number")
        if account.acknowledged != GONE and status not in {account.status, *account.status_in_flight}:
            raise ledger.lost(account, f"its status is {status}, not {account.status} or {account.status_in_flight}")
        account.uid, account.version, account.status = metadata["uid"], int(metadata["resourceVersion"]), status
    else:
        account.status = None
    account.acknowledged, account.in_flight, account.status_in_flight = number, set(), set()
    if found is not None and found["metadata"].get("deletionTimestamp"):
        account.in_flight = {GONE}


class Watcher:
    """Follows one collection through every crash, as an informer does."""

    def __init__(self, path: str, session: aiohttp.ClientSession, ledger: Ledger) -> None:
        self._path = path
        self._session = session
        self._ledger = ledger
        self.version = 0
        self.objects: dict[str, int] = {}
        self.resumed = self.relisted = 0

    async def run(self) -> None:
        while True:
            try:
                if not self.version:
                    await self._list()
                await self._follow()
            except UNREACHABLE:
                await asyncio.sleep(0.02)

    async def _list(self) -> None:
        async with self._session.get(self._path) as answer:
            if answer.status != 200:
                raise TimeoutError
            found = await answer.json()
        self.relisted += 1
        self.version = int(found["metadata"]["resourceVersion"])
        assert self.version >= self._ledger.highest or self.relisted == 1, "a list is older than what was seen before"
        self._ledger.saw(self.version)
        self.objects = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in found["items"]}

    async def _follow(self) -> None:
        query = {"watch": "true", "resourceVersion": str(self.version), "allowWatchBookmarks": "true"}
        async with self._session.get(self._path, params=query, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            if answer.status != 200:
                raise TimeoutError
            self.resumed += 1
            while line := await answer.content.readline():
                if not line.endswith(b"\n"):
                    return  # cut off by the crash
                self._take(json.loads(line))
                if not self.version:
                    return

    def _take(self, event: Json) -> None:
        if event["type"] == "ERROR":
            assert event["object"]["code"] == 410, event
            self.version = 0
            return
        metadata = event["object"]["metadata"]
        version = int(metadata["resourceVersion"])
        assert version > self.version or event["type"] == "BOOKMARK", f"seed {self._ledger.seed}: out of order: {event}"
        self.version = version
        self._ledger.saw(version)
        if event["type"] == "DELETED":
            assert metadata["name"] in self.objects, f"seed {self._ledger.seed}: deleted, but never seen: {event}"
            del self.objects[metadata["name"]]
        elif event["type"] != "BOOKMARK":
            number_in(event["object"])
            assert (event["type"] == "ADDED") != (metadata["name"] in self.objects), f"missed before: {event}"
            self.objects[metadata["name"]] = version


async def establish(session: aiohttp.ClientSession) -> None:
    async with session.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=DEFINITION) as answer:
        assert answer.status == 201, await answer.text()
    for _ in range(500):
        async with session.get(POOLS) as answer:
            if answer.status == 200:
                return
        await asyncio.sleep(0.02)
    raise AssertionError("the definition was not established")


async def check_everything(session: aiohttp.ClientSession, ledger: Ledger, watchers: list[Watcher]) -> None:
    """With the writers at rest: the server, the ledger and every watcher agree."""
    for watcher_path in (CONFIGS, POOLS):
        async with session.get(watcher_path) as answer:
            assert answer.status == 200
            listed = await answer.json()
        version = int(listed["metadata"]["resourceVersion"])
        assert version >= ledger.highest, f"seed {ledger.seed}: the list is at {version}, but {ledger.highest} was seen"
        found = {f"{watcher_path}/{item['metadata']['name']}": item for item in listed["items"]}
        for path, account in ledger.accounts.items():
            if path.startswith(watcher_path):
                settle(ledger, account, found.pop(path, None))
        assert not found, f"seed {ledger.seed}: no client wrote {list(found)}"
        exact = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in listed["items"]}
        for watcher in [entry for entry in watchers if entry._path == watcher_path]:
            deadline = time.monotonic() + 20
            while watcher.objects != exact:
                assert time.monotonic() < deadline, (
                    f"seed {ledger.seed}: a watcher of {watcher_path} at {watcher.version} has"
                    f" {set(watcher.objects.items()) ^ set(exact.items())} different"
                )
                await asyncio.sleep(0.02)


async def crash(directory: Path, *, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    ledger = Ledger(seed)
    with ServerProcess(directory) as server:
        async with server.session(timeout=aiohttp.ClientTimeout(total=20)) as session:
            await establish(session)
            watchers = [Watcher(path, session, ledger) for path in (CONFIGS, POOLS) for _ in range(2)]
            watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
            writers = [Writer(f"w{n}", Client(session, ledger), ledger, chance) for n in range(6)]
            try:
                for turn in range(rounds):
                    stop = asyncio.Event()
                    writing = [asyncio.create_task(writer.run(stop)) for writer in writers]
                    await asyncio.sleep(chance.uniform(0.05, 0.6))
                    server.kill()
                    stop.set()
                    await asyncio.gather(*writing)
                    await asyncio.to_thread(server.start)
                    await check_everything(session, ledger, watchers)
                    ended = [task for task in watching if task.done()]
                    assert not ended, f"seed {seed}, round {turn}: {ended[0].exception()}"
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
    assert "Traceback" not in server.log(), server.log()[-3000:]
    print(
        f"{rounds} crashes, {ledger.writes} acknowledged writes, {sum(item.resumed for item in watchers)} watches"
        f" opened, {sum(item.relisted for item in watchers)} lists, last version {ledger.highest}, seed {seed}"
    )
    assert ledger.writes > rounds * 5, "hardly anything was written"


def seed_of_this_run(default: int) -> int:
    return int(os.environ.get("CRASH_SEED", default))


async def test_a_few_crashes_under_load_lose_nothing(tmp_path: Path) -> None:
    await crash(tmp_path, rounds=6, seed=seed_of_this_run(20_260))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_fifty_crashes_under_load_lose_nothing(tmp_path: Path) -> None:
    await crash(tmp_path, rounds=50, seed=seed_of_this_run(random.randrange(1 << 32)))


async def test_sigterm_under_load_stops_quickly_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    seed = seed_of_this_run(7)
    chance, ledger = random.Random(seed), Ledger(seed)
    with ServerProcess(tmp_path) as server:
        async with server.session(timeout=aiohttp.ClientTimeout(total=20)) as session:
            await establish(session)
            watcher = Watcher(CONFIGS, session, ledger)
            watching = asyncio.create_task(watcher.run())
            writers = [Writer(f"w{n}", Client(session, ledger), ledger, chance) for n in range(6)]
            for _ in range(3):
                stop = asyncio.Event()
                writing = [asyncio.create_task(writer.run(stop)) for writer in writers]
                await asyncio.sleep(0.5)
                stopping = asyncio.create_task(asyncio.to_thread(server.terminate))
                code, seconds = await stopping
                stop.set()
                await asyncio.gather(*writing)
                assert code == 0
                assert seconds < 20
                await asyncio.to_thread(server.start)
                await check_everything(session, ledger, [watcher])
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    assert "Traceback" not in server.log(), server.log()[-3000:]
    assert ledger.writes > 30
