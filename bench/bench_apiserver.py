"""Both API servers side by side, in one run on this machine: `make bench-apiserver`.

Each round starts one server, loads it with the same client, and stops it; rounds alternate, and the figures are the
medians. etcd and SQLite both sync to disk before a write is answered. Figures move with the machine's neighbours: the
ratios are what to read. Nothing here fails on a number.

    python bench/bench_apiserver.py [--objects 10000] [--rounds 2] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

sys.path[:0] = [
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

from control_planes import ControlPlane, embedded, kubernetes  # noqa: E402 - after the path is set

CRDS = Path(__file__).parents[1] / "charts/butler/crds"
NAMESPACE = "butler-system"
PATH = f"/apis/butler.butlerlabs.dev/v1alpha1/namespaces/{NAMESPACE}/ipallocations"
CONNECTIONS = 32
WATCHERS = 100
FAN_OUT_WRITES = 100


def allocation(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "IPAllocation",
        "metadata": {
            "name": f"tenant-{number:05}-nodes",
            "finalizers": ["butler.butlerlabs.dev/ipallocation"],
            "labels": {
                "butler.butlerlabs.dev/team": f"team-{number % 50}",
                "butler.butlerlabs.dev/tenant": f"tenant-{number:05}",
                "butler.butlerlabs.dev/network-pool": "bench-pool",
                "butler.butlerlabs.dev/allocation-type": "nodes",
            },
        },
        "spec": {
            "poolRef": {"name": "bench-pool"},
            "tenantClusterRef": {"name": f"tenant-{number:05}", "namespace": f"team-{number % 50}"},
            "type": "nodes",
            "count": 5,
        },
    }


def granted(number: int, turn: int) -> dict[str, Any]:
    addresses = [f"10.{number // 250 % 250}.{number % 250}.{last}" for last in range(10, 15)]
    return {
        "status": {
            "phase": "Allocated",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Allocated",
                    "message": f"5 IPs allocated from bench-pool ({turn})",
                    "lastTransitionTime": "2026-02-15T10:00:30Z",
                }
            ],
            "startAddress": addresses[0],
            "endAddress": addresses[-1],
            "addresses": addresses,
            "allocatedCount": 5,
            "observedGeneration": 1,
            "allocatedAt": "2026-02-15T10:00:30Z",
            "allocatedBy": "networkpool-controller",
        }
    }


class Load:
    """The client of one round; it costs both servers the same."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self._url = plane.url
        self._session = session

    async def create(self, number: int) -> None:
        async with self._session.post(self._url + PATH, json=allocation(number)) as answer:
            await self._expect(answer, 201)

    async def write_status(self, number: int, turn: int) -> None:
        url = f"{self._url}{PATH}/tenant-{number:05}-nodes/status"
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self._session.patch(url, data=json.dumps(granted(number, turn)), headers=headers) as answer:
            await self._expect(answer, 200)

    async def get(self, number: int) -> None:
        async with self._session.get(f"{self._url}{PATH}/tenant-{number:05}-nodes") as answer:
            await self._expect(answer, 200)

    async def list_all(self) -> int:
        async with self._session.get(self._url + PATH) as answer:
            body = await answer.read()
            assert answer.status == 200, body[:300]
            return len(body)

    @staticmethod
    async def _expect(answer: aiohttp.ClientResponse, code: int) -> None:
        body = await answer.read()
        assert answer.status == code, body[:500]

    async def per_second(self, jobs: list[Any]) -> float:
        """Run coroutines made by the given functions over all connections; how many a second."""
        waiting = iter(jobs)
        began = time.perf_counter()

        async def worker() -> None:
            for job in waiting:
                await job()

        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
        return len(jobs) / (time.perf_counter() - began)

    async def fan_out(self) -> tuple[float, float]:
        """Events a second delivered to all watchers together, and the p99 of write to last delivery in ms."""
        started = asyncio.Barrier(WATCHERS + 1)
        done: dict[str, list[float]] = {}

        async def watcher() -> None:
            query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "300"}
            async with self._session.get(self._url + PATH, params=query) as answer:
                await started.wait()
                seen = 0
                async for line in answer.content:
                    event = json.loads(line)
                    if event["type"] != "MODIFIED":
                        continue
                    message = event["object"]["status"]["conditions"][0]["message"]
                    done.setdefault(message, []).append(time.perf_counter())
                    seen += 1
                    if seen == FAN_OUT_WRITES:
                        return

        async with self._session.get(self._url + PATH, params={"limit": "1"}) as answer:
            version = (await answer.json())["metadata"]["resourceVersion"]
        tasks = [asyncio.create_task(watcher()) for _ in range(WATCHERS)]
        await started.wait()
        began = time.perf_counter()
        sent: dict[str, float] = {}
        for turn in range(FAN_OUT_WRITES):
            sent[granted(0, 1000 + turn)["status"]["conditions"][0]["message"]] = time.perf_counter()
            await self.write_status(0, 1000 + turn)
        await asyncio.gather(*tasks)
        seconds = time.perf_counter() - began
        late = sorted(max(times) - sent[message] for message, times in done.items())
        return WATCHERS * FAN_OUT_WRITES / seconds, late[int(len(late) * 0.99) - 1] * 1000


def memory_of(pids: list[int]) -> float:
    """Resident memory in MB."""
    found = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                found += int(line.split()[1])
    return found / 1024


def server_pids(data_dir: Path) -> list[int]:
    """Processes whose command line names this round's directory, controllers left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(data_dir) in command and "kube-controller-manager" not in command:
            found.append(int(entry.name))
    return found


async def measure(plane: ControlPlane, data_dir: Path, objects: int) -> dict[str, float]:
    plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    plane.kubectl("wait", "--for=condition=Established", "--all", "crd", "--timeout=60s")
    if plane.kubectl("get", "namespace", NAMESPACE, check=False).returncode:
        plane.kubectl("create", "namespace", NAMESPACE)
    idle = memory_of(server_pids(data_dir))
    connector = aiohttp.TCPConnector(limit=CONNECTIONS + WATCHERS, ssl=plane.tls)
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(
        connector=connector, headers=dict(plane.headers), timeout=timeout, read_bufsize=1 << 20
    ) as session:
        load = Load(plane, session)
        result = {"memory when empty, MB": idle}
        result["creates/s"] = await load.per_second([lambda n=n: load.create(n) for n in range(objects)])
        count = min(objects, 3000)
        result["status writes/s"] = await load.per_second([lambda n=n: load.write_status(n, 1) for n in range(count)])
        await load.per_second([lambda n=n: load.write_status(n, 1) for n in range(count, objects)])
        result["gets/s"] = await load.per_second([lambda n=n: load.get(n) for n in range(count)])
        times = []
        for _ in range(5):
            began = time.perf_counter()
            size = await load.list_all()
            times.append(time.perf_counter() - began)
        result[f"list of {objects}, s"] = statistics.median(times)
        result[f"list of {objects}, MB"] = size / 1e6
        result["memory with objects, MB"] = memory_of(server_pids(data_dir))
        events, late = await load.fan_out()
        result[f"fan-out to {WATCHERS}, events/s"] = events
        result[f"fan-out to {WATCHERS}, p99 ms"] = late
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=["embedded", "kubernetes"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = [options.only] if options.only else ["embedded", "kubernetes"]
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for turn in range(options.rounds):
        for name in names:
            print(f"round {turn + 1} of {options.rounds}: {name} ...", flush=True)
            with tempfile.TemporaryDirectory(prefix=f"butler-bench-{name}-") as scratch:
                data_dir = Path(scratch)
                start = embedded(data_dir) if name == "embedded" else kubernetes(data_dir, fsync=True)
                with start as plane:
                    rounds[name].append(asyncio.run(measure(plane, data_dir, options.objects)))
    figures = {
        name: {key: statistics.median(obj[key] for obj in found) for key in found[0]} for name, found in rounds.items()
    }
    print_table(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def print_table(figures: dict[str, dict[str, float]]) -> None:
    names = list(figures)
    ratio = len(names) == 2
    print(f"\n{'':32}" + "".join(f"{name:>14}" for name in names) + (f"{'ratio':>10}" if ratio else ""))
    for key in figures[names[0]]:
        values = [figures[name][key] for name in names]
        line = f"{key:32}" + "".join(f"{value:14.2f}" for value in values)
        print(line + (f"{values[0] / values[1]:10.2f}" if ratio and values[1] else ""))


if __name__ == "__main__":
    main()
