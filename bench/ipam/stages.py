"""The stages of the end-to-end benchmark: each does one thing to a server and says how long it took.

Which stages there are, in which order, and what they are compared with stands in bench_ipam_end_to_end.py.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipam import controller, objects, peer, processor

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ipam.server import Server, Written

LATENCY_REQUESTS = 200
WARM_UP = 5
PAUSE = 0.05
COLD_STARTS = 3
SETTLE = 4.0
"""Seconds in which a controller finishes what may wait, such as forgetting intents that are carried out."""


@dataclass(frozen=True)
class Options:
    requests: int = 2_000
    allocations: int = 10_000
    rounds: int = 2
    rest: float = 60.0
    peer: bool = True


@dataclass(frozen=True)
class Rate:
    """Objects done, and in which time."""

    count: int
    seconds: float
    since_start: float = 0.0
    server_seconds: float = 0.0  # of processor time, in API server and etcd
    client_seconds: float = 0.0  # and in the client that wrote

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


class Stages:
    """One server and what was learned on it."""

    def __init__(self, server: Server, scratch: Path, options: Options, server_pids: list[int] | None = None) -> None:
        self.server = server
        self._server_pids = server_pids or []
        self.options = options
        self._scratch = scratch
        self._tenants: list[str] = []  # their UIDs, by number
        self._made = 0

    def controller(self) -> AbstractContextManager[controller.ControllerProcess]:
        return controller.running(self.server.plane.kubeconfig, self._scratch / "controller.log")

    async def set_up(self) -> None:
        tenants = [objects.tenant(n) for n in range(self.options.allocations // objects.PER_TENANT)]
        made = await self.server.create_all(objects.TENANTS, tenants)
        self._tenants = [tenant["metadata"]["uid"] for tenant in made]
        await self.server.create(objects.POOLS, objects.pool())

    def requests(self, count: int) -> list[dict[str, Any]]:
        """Allocations with names of their own, spread over the tenants."""
        bodies = []
        for _ in range(count):
            tenant = self._made % len(self._tenants)
            bodies.append(objects.allocation(f"request-{self._made:06}", tenant, self._tenants[tenant]))
            self._made += 1
        return bodies

    # One request at a time.

    async def latency(self) -> list[float]:
        """Seconds from sending a request to seeing it Allocated, one after another.

        The first few are not counted: they wait for the controller to start.
        """
        spent: list[float] = []
        async with self.server.watching(objects.ALLOCATIONS) as seen:
            for body in self.requests(WARM_UP + LATENCY_REQUESTS):
                began = time.perf_counter()
                await self.server.create(objects.ALLOCATIONS, body)
                spent.append(await seen.all_of([body["metadata"]["name"]]) - began)
                await asyncio.sleep(PAUSE)
        return spent[WARM_UP:]

    # Many requests.

    async def raw_limit(self, turn: int) -> Rate:
        """Status writes a second, nothing else going on."""
        waiting = [objects.allocation(f"raw-{turn}-{n:06}") for n in range(self.options.requests)]
        path = objects.path("ipallocations", objects.RAW)
        await self.server.create_all(path, waiting)
        granted = await self.server.get(f"{objects.ALLOCATIONS}/request-000000")
        template = self._scratch / "granted.json"
        template.write_text(json.dumps(granted["status"]))
        script = Path(__file__).parent / "raw_writes.py"
        cpu: list[float] = []
        async with self.server.watching(path, at_first_change=lambda: cpu.append(self._server_cpu())) as seen:
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(script), str(self.server.plane.kubeconfig), objects.RAW, str(template),
                stdout=subprocess.PIPE,
            )  # fmt: skip
            output, _ = await process.communicate()
            assert process.returncode == 0, "the raw writes failed"
            cpu.append(self._server_cpu())
            await seen.all_of(body["metadata"]["name"] for body in waiting)
        result = json.loads(output)
        assert result["written"] == self.options.requests, result
        return Rate(
            result["written"], result["seconds"], server_seconds=cpu[1] - cpu[0], client_seconds=result["processor"]
        )

    def _server_cpu(self) -> float:
        return processor.seconds(self._server_pids)

    async def grant_waiting(self) -> tuple[Rate, Counter[Written]]:
        """Waiting requests to Allocated, and what was written for it."""
        bodies = self.requests(self.options.requests)
        await self.server.create_all(objects.ALLOCATIONS, bodies)
        before = await self.server.writes()
        cpu: list[tuple[float, float]] = []
        started: list[controller.ControllerProcess] = []

        def look() -> None:
            cpu.append((self._server_cpu(), processor.seconds([started[0].pid])))

        async with self.server.watching(objects.ALLOCATIONS, objects.POOLS, at_first_change=look) as seen:
            with self.controller() as process:
                started.append(process)
                last = await seen.all_of((body["metadata"]["name"] for body in bodies), process.alive)
                look()
                await asyncio.sleep(SETTLE)
                written = await self.server.writes()
        assert seen.first_change is not None
        written.subtract(before)
        (server_before, client_before), (server_after, client_after) = cpu
        rate = Rate(
            len(bodies),
            last - seen.first_change,
            last - process.started,
            server_after - server_before,
            client_after - client_before,
        )
        return rate, +written

    async def peer_claims(self) -> tuple[Rate, Counter[Written]]:
        """The same number of waiting claims through the peer."""
        peer.prepare(self.server.plane)
        namespace = self.server.plane.fresh_namespace("peer")
        claims, pools = peer.CLAIMS.format(namespace=namespace), peer.POOLS.format(namespace=namespace)
        await self.server.create(pools, peer.pool())
        bodies = [peer.claim(n) for n in range(self.options.requests)]
        await self.server.create_all(claims, bodies)
        before = await self.server.writes()
        log_file = self._scratch / "peer.log"
        async with self.server.watching(claims, pools) as seen:
            started = time.perf_counter()
            with peer.running(self.server.plane.kubeconfig, namespace, log_file) as process:

                def alive() -> None:
                    assert process.poll() is None, f"the peer ended:\n{peer.tail(log_file)}"

                last = await seen.all_of((body["metadata"]["name"] for body in bodies), alive)
                await asyncio.sleep(SETTLE)
                written = await self.server.writes()
        assert seen.first_change is not None
        written.subtract(before)
        await self._check_peer(namespace)
        return Rate(len(bodies), last - seen.first_change, last - started), +written

    async def _check_peer(self, namespace: str) -> None:
        listed = await self.server.get(f"/apis/{peer.GROUP}/v1beta2/namespaces/{namespace}/ipaddresses")
        addresses = {item["spec"]["address"] for item in listed["items"]}
        assert len(addresses) == self.options.requests, f"the peer handed out {len(addresses)} different addresses"

    async def fill(self) -> Rate:
        """Up to the full number of allocations, created while the controller works; it stays for the next stages."""
        to_come = COLD_STARTS + WARM_UP + LATENCY_REQUESTS
        bodies = self.requests(self.options.allocations - self._made - to_come)
        began = time.perf_counter()
        async with self.server.watching(objects.ALLOCATIONS) as seen:
            with self.controller() as process:
                await self.server.create_all(objects.ALLOCATIONS, bodies)
                last = await seen.all_of((body["metadata"]["name"] for body in bodies), process.alive)
                await asyncio.sleep(SETTLE)
        return Rate(len(bodies), last - began)

    # Many allocations.

    async def cold_start(self) -> float:
        """Seconds from starting the process to the first new grant."""
        (body,) = self.requests(1)
        await self.server.create(objects.ALLOCATIONS, body)
        async with self.server.watching(objects.ALLOCATIONS) as seen:
            with self.controller() as process:
                return await seen.all_of([body["metadata"]["name"]], process.alive) - process.started

    async def at_rest(self) -> tuple[Counter[Written], list[float], float, float]:
        """With all allocations: writes while nothing happens, latencies before, memory at the end and its peak."""
        with self.controller() as process:
            latency = await self.latency()
            await asyncio.sleep(2 * SETTLE)
            before = await self.server.writes()
            await asyncio.sleep(self.options.rest)
            process.alive()
            written = await self.server.writes()
            written.subtract(before)
            return +written, latency, process.memory(), process.memory("VmHWM")

    async def check(self) -> int:
        """Every allocation has its addresses, and no other allocation has them."""
        listed = await self.server.get(objects.ALLOCATIONS)
        held: Counter[str] = Counter()
        for item in listed["items"]:
            assert item["status"]["phase"] == "Allocated", item
            assert len(item["status"]["addresses"]) == item["spec"]["count"], item
            held.update(item["status"]["addresses"])
        twice = [address for address, count in held.items() if count > 1]
        assert not twice, f"handed out twice: {twice[:5]}"
        return len(listed["items"])
