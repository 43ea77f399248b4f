"""How fast the console's server answers, and how soon it tells: `make bench-server`.

    python bench/bench_server.py [--allocations 10000] [--seconds 10] [--profile FILE]

An embedded control plane with one full pool, the server as a process of its own, and a third process that asks for what
the page of that pool shows: 16 connections that ask again as soon as they are answered, and 300 requests a second that
come when they come; with and without If-None-Match, at rest and while allocations come and go. Then a hundred live
streams. Beside it, what the embedded API server takes for the raw list of the same allocations. All share one machine,
so each figure has the others' work in it. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

import aiohttp  # noqa: E402 - after the path is set
from ipam.report import Goal, duration, heading, note, summary, table, times  # noqa: E402

from control_planes import ControlPlane, embedded  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

HOME, POOL = "butler-system", "full"
API = "butler.butlerlabs.dev/v1alpha1"
ALLOCATIONS = f"/apis/{API}/namespaces/{HOME}/ipallocations"
POOLS = f"/apis/{API}/namespaces/{HOME}/networkpools"
PAGE = {
    "detail": f"/api/v1/pools/{HOME}/{POOL}",
    "segments": f"/api/v1/pools/{HOME}/{POOL}/segments",
    "allocations": f"/api/v1/allocations?pool={POOL}",
    "history": f"/api/v1/pools/{HOME}/{POOL}/history",
    "free": f"/api/v1/pools/{HOME}/{POOL}/free",
}
RATE, CONNECTIONS, STREAMS = 300, 16, 100
SLOWEST = 0.100


def wanted(name: str) -> dict[str, Any]:
    tenant = {"name": f"tenant-{name}", "namespace": "default"}
    spec = {"poolRef": {"name": POOL}, "type": "nodes", "count": 4, "tenantClusterRef": tenant}
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": API, "kind": "IPAllocation", "metadata": meta, "spec": spec}


class Kubernetes:
    """The control plane, asked directly."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self.plane = plane
        self._session = session

    async def call(self, method: str, path: str, body: object = None) -> Any:
        async with self._session.request(method, self.plane.url + path, json=body) as answer:
            return await answer.json()

    async def fill(self, allocations: int) -> None:
        """A pool with many allocations, all granted."""
        meta = {"name": POOL, "namespace": HOME}
        await self.call(
            "POST", POOLS, {"apiVersion": API, "kind": "NetworkPool", "metadata": meta, "spec": {"cidr": "10.1.0.0/16"}}
        )
        names = iter(f"a-{number}" for number in range(allocations))

        async def some() -> None:
            for name in names:
                await self.call("POST", ALLOCATIONS, wanted(name))

        await asyncio.gather(*(some() for _ in range(32)))
        granted = f"--for=jsonpath={{.status.allocationCount}}={allocations}"
        await asyncio.to_thread(
            self.plane.kubectl, "wait", f"networkpool/{POOL}", "-n", HOME, granted, "--timeout=115s"
        )

    async def churn(self, rate: float) -> None:
        """Allocations come, and go a second later."""
        number = 0
        due = time.perf_counter()
        while True:
            await self.call("POST", ALLOCATIONS, wanted(f"churn-{number}"))
            if number >= rate:
                await self.call("DELETE", f"{ALLOCATIONS}/churn-{number - int(rate)}")
            number += 1
            due += 1 / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))

    async def raw(self) -> tuple[float, int]:
        """Seconds for the list of all allocations, as it comes over the wire, and its size."""
        began = time.perf_counter()
        async with self._session.get(self.plane.url + ALLOCATIONS) as answer:
            size = len(await answer.read())
        return time.perf_counter() - began, size


@dataclass(frozen=True)
class Server:
    """The server's process, and the way in."""

    pid: int
    url: str
    cookies: dict[str, str]

    def cpu(self) -> float:
        """Seconds of processor time up to now."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0


def program(name: str) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name(name))]


@contextlib.asynccontextmanager
async def serving(plane: ControlPlane, profile: str | None) -> AsyncIterator[Server]:
    pipe = asyncio.subprocess.PIPE
    command = [*program("bench_server_process.py"), str(plane.kubeconfig), *([profile] if profile else [])]
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        told = json.loads(await process.stdout.readline())
        yield Server(process.pid, told["url"], await come_in(told["url"], told["link"]))
    finally:
        process.stdin.close()
        await process.wait()


async def come_in(url: str, link: str) -> dict[str, str]:
    """The cookies of a session, by a one-time link."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(link) as page:
            token = re.search(r'name="token" value="([^"]*)"', await page.text())
        assert token is not None, "the link shows no button"
        async with session.post(
            f"{url}/link", data={"token": token[1]}, headers={"Origin": url}, allow_redirects=False
        ) as answer:
            return {name: cookie.value for name, cookie in answer.cookies.items()}


@dataclass(frozen=True)
class Figures:
    rate: float
    median: float
    slow: float
    """Of a hundred, one takes longer."""
    slow_by_path: dict[str, float]
    cpu: float
    """Share of one processor."""
    cpu_each: float
    """Seconds of it for each request."""
    failed: int
    unchanged: float
    megabytes: float


def percentile(found: Sequence[float], share: float) -> float:
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


async def load(server: Server, *, rate: float, etags: bool, seconds: float, paths: Sequence[str] = ()) -> Figures:
    order = {
        "url": server.url,
        "cookies": server.cookies,
        "paths": list(paths) or list(PAGE.values()),
        "seconds": seconds,
        "connections": CONNECTIONS,
        "rate": rate,
        "etags": etags,
    }
    before, began = server.cpu(), time.perf_counter()
    answer = await ask_program("bench_server_load.py", order)
    spent, elapsed = server.cpu() - before, time.perf_counter() - began
    taken = [seconds for _, seconds in answer["taken"]]
    names = {path: name for name, path in PAGE.items()}
    by_path = {
        name: percentile([took for path, took in answer["taken"] if names.get(path) == name], 0.99) for name in PAGE
    }
    good = {"200", "304"}
    return Figures(
        rate=len(taken) / seconds,
        median=percentile(taken, 0.5),
        slow=percentile(taken, 0.99),
        slow_by_path=by_path,
        cpu=spent / elapsed,
        cpu_each=spent / len(taken) if taken else float("nan"),
        failed=sum(count for status, count in answer["statuses"].items() if status not in good),
        unchanged=answer["statuses"].get("304", 0) / max(1, len(taken)),
        megabytes=server.megabytes(),
    )


async def ask_program(name: str, order: dict[str, Any]) -> Any:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*program(name), stdin=pipe, stdout=pipe)
    said, _ = await process.communicate(json.dumps(order).encode() + b"\n")
    return json.loads(said.splitlines()[-1])


async def streams(server: Server, kubernetes: Kubernetes, folder: Path, seconds: float) -> dict[str, Any]:
    order = {
        "url": server.url,
        "cookies": server.cookies,
        "streams": STREAMS,
        "changes": int(seconds * 5),
        "pause": 0.2,
        "kubernetes": kubernetes.plane.url,
        "path": f"{ALLOCATIONS}/a-0",
        "ca": str(kubernetes.plane.ca_file),
        "cert": str(folder / "client" / "client-certificate"),
        "key": str(folder / "client" / "client-key"),
    }
    before = server.megabytes()
    found = await ask_program("bench_server_streams.py", order)
    return {**found, "before": before, "after": server.megabytes()}


@contextlib.asynccontextmanager
async def meanwhile(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        await asyncio.sleep(2)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def pages(server: Server, kubernetes: Kubernetes, seconds: float) -> list[Goal]:
    """The pool page in all ways; the goals that were met by it."""
    rows, goals = [], []
    for churning in (False, True):
        async with contextlib.AsyncExitStack() as stack:
            if churning:
                await stack.enter_async_context(meanwhile(kubernetes.churn(10)))
            for etags in (False, True):
                for rate in (0, RATE):
                    found = await load(server, rate=rate, etags=etags, seconds=seconds)
                    how = f"{rate}/s" if rate else f"{CONNECTIONS} connections"
                    when = "10 changes/s" if churning else "at rest"
                    rows.append(_row(f"{when}, {how}{', If-None-Match' if etags else ''}", found))
                    note("  ".join(rows[-1]))
                    if rate:
                        met = found.slow < SLOWEST and not found.failed and found.rate > 0.98 * RATE
                        name = f"pool page at {RATE}/s, {when}{', If-None-Match' if etags else ''}: p99 under 100 ms"
                        goals.append(Goal(name, duration(found.slow), met))
    columns = [
        "",
        "requests/s",
        "p50",
        "p99",
        *(f"p99 {name}" for name in PAGE),
        "304",
        "CPU",
        "CPU each",
        "MB",
        "failed",
    ]
    table(columns, rows)
    return goals


def _row(name: str, found: Figures) -> list[str]:
    return [
        name,
        f"{found.rate:.0f}",
        duration(found.median),
        duration(found.slow),
        *(duration(found.slow_by_path[text]) for text in PAGE),
        f"{found.unchanged:.0%}",
        f"{found.cpu:.0%}",
        duration(found.cpu_each),
        f"{found.megabytes:.0f}",
        str(found.failed),
    ]


async def telling(server: Server, kubernetes: Kubernetes, folder: Path, seconds: float) -> list[Goal]:
    goals = []
    rows = []
    for churning in (False, True):
        async with contextlib.AsyncExitStack() as stack:
            if churning:
                await stack.enter_async_context(meanwhile(kubernetes.churn(10)))
            found = await streams(server, kubernetes, folder, seconds)
        sent = [delay for delay, _ in found["since"]]
        when = "10 changes/s beside" if churning else "at rest"
        heard = f"{len(sent)} of {found['wanted']}"
        memory = f"{found['before']:.0f} -> {found['after']:.0f}"
        rows.append([when, heard, duration(statistics.median(sent)), duration(percentile(sent, 0.99)), memory])
        slow = percentile(sent, 0.99)
        goals.append(Goal(f"a change is heard within 500 ms by {STREAMS}, {when} (p99)", duration(slow), slow < 0.5))
    table(["from the write to the frame", "heard", "p50", "p99", "MB"], rows)
    note("changes of one object that come within 50 ms are told once, as the newest")
    return goals


async def beside(server: Server, kubernetes: Kubernetes, seconds: float) -> None:
    raw = [await kubernetes.raw() for _ in range(10)]
    began = time.perf_counter()
    await asyncio.to_thread(kubernetes.plane.kubectl, "get", "--raw", ALLOCATIONS)
    kubectl = time.perf_counter() - began
    alone = statistics.median(seconds for seconds, _ in raw)
    rows = [
        ["embedded API server: raw list", duration(alone), f"{raw[0][1] / 1e6:.1f} MB", ""],
        ["  the same by kubectl get --raw", duration(kubectl), "", times(kubectl / alone)],
    ]
    for name, path in PAGE.items():
        found = await load(server, rate=20, etags=False, seconds=min(3.0, seconds), paths=[path])
        rows.append([f"server: {name}", duration(found.median), "", times(found.median / alone)])
    table(["", "median", "size", "of the raw list"], rows)


async def bench(allocations: int, seconds: float, profile: str | None) -> None:
    with tempfile.TemporaryDirectory() as name, embedded(Path(name), controllers=True) as plane:
        folder = Path(name)
        connector = aiohttp.TCPConnector(ssl=plane.tls, limit=40)
        async with aiohttp.ClientSession(connector=connector, headers=dict(plane.headers)) as session:
            kubernetes = Kubernetes(plane, session)
            began = time.perf_counter()
            await kubernetes.fill(allocations)
            note(f"{allocations} allocations made and granted in {duration(time.perf_counter() - began)}")
            began = time.perf_counter()
            async with serving(plane, profile) as server:
                note(f"server up in {duration(time.perf_counter() - began)}, {server.megabytes():.0f} MB")
                heading(f"The page of a pool with {allocations} allocations")
                goals = await pages(server, kubernetes, seconds)
                heading(f"{STREAMS} live streams")
                goals += await telling(server, kubernetes, folder, seconds)
                heading(f"Beside the API server's list of {allocations} allocations")
                await beside(server, kubernetes, seconds)
    summary(goals)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--allocations", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--profile", metavar="FILE", help="where the server's time went, for pstats; slows it down")
    options = parser.parse_args(arguments)
    asyncio.run(bench(options.allocations, options.seconds, options.profile))


if __name__ == "__main__":
    main(sys.argv[1:])
