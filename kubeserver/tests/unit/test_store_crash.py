"""kill -9 at random moments under load: what was acknowledged is there, whole, and time does not run backwards.

A child process writes with sixteen tasks at once and tells us, line by line, which revision it was given ("try",
before the disk has it) and which write was acknowledged ("ack"). We kill it at a random moment, read the rest of
what it said, and open what it left.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from kubeserver.storage.store import Entry, ObjectKey, Store, Table

if TYPE_CHECKING:
    from collections.abc import Callable

PODS = Table("main", "", "pods")
TASKS = 16


class Said(NamedTuple):
    """One line of the child."""

    word: str  # "open", "try" or "ack"
    action: str  # "put" or "delete"
    name: str
    revision: int


def body(name: str, revision: int) -> bytes:
    """A value of a size that depends on its revision, which says itself whether it is whole."""
    pad = f"{revision:08x}" * (20 + revision % 400)
    return json.dumps(
        {"metadata": {"name": name, "resourceVersion": str(revision)}, "pad": pad, "sum": zlib.crc32(pad.encode())}
    ).encode()


def whole(entry: Entry) -> bool:
    return entry.value == body(entry.key.name, entry.revision)


# The child.


def say(word: str, action: str, name: str, revision: int) -> None:
    os.write(1, f"{word} {action} {name} {revision}\n".encode())  # one write, so never half a line


async def keep_writing(directory: Path) -> None:
    store = await Store.open(directory)
    say("open", "-", "-", store.revision)

    def told(action: str, name: str) -> Callable[[int], bytes]:
        def encode(revision: int) -> bytes:
            say("try", action, name, revision)
            return body(name, revision)

        return encode

    async def work(task: int) -> None:
        chance = random.Random()
        while True:
            name = f"task{task}-{chance.randrange(8)}"
            key = ObjectKey("main", "", "pods", "default", name)
            current = store.latest(key)
            if current is None:
                entry = await store.create(key, told("put", name))
                say("ack", "put", name, entry.revision)
            elif chance.random() < 0.2:
                entry = await store.delete(key, current.revision, told("delete", name))
                say("ack", "delete", name, entry.revision)
            else:
                entry = await store.update(key, current.revision, told("put", name))
                say("ack", "put", name, entry.revision)
            if task == 0 and chance.random() < 0.05:
                await store.compact(max(1, store.revision - 2000))

    await asyncio.gather(*(work(task) for task in range(TASKS)))


# The parent.


def killed_while_writing(directory: Path, patience: float) -> list[Said]:
    """Let a child write for a moment, kill it, and return all it said."""
    child = subprocess.Popen([sys.executable, __file__, str(directory)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        first = child.stdout.readline()
        timer = time.monotonic() + patience
        lines = [first]
        while time.monotonic() < timer and lines[-1]:
            lines.append(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    finally:
        child.kill()
        child.wait(10)
        child.stdout.close()
    assert child.returncode == -signal.SIGKILL, "the child must not end by itself"
    said = []
    for line in lines:
        if line.endswith(b"\n"):
            word, action, name, revision = line.decode().split()
            said.append(Said(word, action, name, int(revision)))
    return said


async def check(directory: Path, story: list[Said]) -> None:
    """Open what was left, compare it with everything ever said, and close it as a crash would find it."""
    store = await Store.open(directory)
    try:
        seen = max(line.revision for line in story)
        assert store.revision >= seen, "a revision that was given out may come again"
        acknowledged: dict[str, Said] = {}
        tried: dict[str, list[Said]] = {}
        for line in story:
            if line.word == "ack":
                acknowledged[line.name] = line
            elif line.word == "try":
                tried.setdefault(line.name, []).append(line)
        present = {entry.key.name: entry for entry in store.entries(PODS)}
        assert all(whole(entry) for entry in present.values())
        for name, last in acknowledged.items():
            # The last acknowledged write, or one that was tried after it and got to the disk just in time.
            later = [line for line in tried[name] if line.revision >= last.revision]
            entry = present.get(name)
            if entry is None:
                assert any(line.action == "delete" for line in later), f"{last} was lost"
            else:
                assert entry.revision in {line.revision for line in later if line.action == "put"}, f"{last} was lost"
        assert set(present) <= set(tried)
        await resumed(store, story)
    finally:
        await store.close()


async def resumed(store: Store, story: list[Said]) -> None:
    """A watcher that comes back with the oldest revision still kept sees every acknowledged write after it."""
    acks = [line.revision for line in story if line.word == "ack" and line.revision > store.compacted]
    watch = store.watch(PODS, since=store.compacted)
    revisions: list[int] = []
    while found := await watch.next_batch(timeout=0):
        for change in found:
            revisions.append(change.revision)
            assert change.value == body(change.key.name, change.revision)
    assert revisions == sorted(set(revisions))
    assert set(acks) <= set(revisions)
    assert watch.progress == store.revision


@pytest.mark.parametrize("rounds", [pytest.param(15, id="few"), pytest.param(50, id="many", marks=pytest.mark.slow)])
async def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path, rounds: int) -> None:
    chance = random.Random(rounds)
    story: list[Said] = []
    for turn in range(rounds):
        said = await asyncio.to_thread(killed_while_writing, tmp_path, chance.uniform(0.0, 0.4))
        opened = [line for line in said if line.word == "open"]
        assert len(opened) == 1, f"the child of round {turn} could not open the store"
        if story:
            assert opened[0].revision >= max(line.revision for line in story)
        story += said
        # Only now and then by us: opening and closing in between would hide a start from a crash after a crash.
        if turn % 3 == 2 or turn == rounds - 1:
            await check(tmp_path, story)
    assert sum(line.word == "ack" for line in story) > 50 * rounds, "too little load to mean anything"


if __name__ == "__main__":
    asyncio.run(keep_writing(Path(sys.argv[1])))
