"""What grows with the size of an estate, and whether it grows in a straight line: `make bench-ipam PART=growth`.

    python bench/bench_ipam_growth.py [--curves pools events pins tenants] [--on embedded] [--largest 1000]

Each curve has at least four sizes from one run, and beside each figure its ratio to the straight line: the cost of one
thing at this size, as a part of what one cost at the smallest. 1.0 is linear; twice the size at 2.0 is quadratic.

    pools     so many pools are created at once: processor time until all are Ready, of the controller and of the API
              server apart, reconciles and refused writes per pool, and what one more pool costs beside them
    events    one request, one release and one question about a pinned request, in a controller with so many pools and
              allocations, over an API server in memory (`ipam/one_event.py`)
    pins      so many requests are created, each for addresses of its own choice, and as many without: processor time
              and time until all are Allocated
    tenants   so many tenants are created at once (`bench_tenants_growth.py`). This one takes long, and has the embedded
              server only, unless the other one is asked for; `--curves` leaves it out

The controller is the process that users run, with admission. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

import bench_tenants_growth  # noqa: E402
from ipam.growing_controller import Controller, running  # noqa: E402
from ipam.report import Goal, duration, heading, note, summary, table  # noqa: E402 - after the path is set
from ipam.server import Server, connected, prepare  # noqa: E402

from control_planes import embedded, kubernetes  # noqa: E402
from ipam import objects, processor  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

CRDS = str(Path(__file__).parents[1] / "charts/butler/crds")
POOLS = (100, 200, 400, 1_000)
EVENTS = ((100, 5_000), (200, 10_000), (500, 25_000), (1_000, 50_000))
PINS = (500, 1_000, 2_000, 5_000)
TODAY_POOLS = 59.0
"""Seconds of processor time for 400 pools, server and controller together, before claims were shared."""
SETTLE = 3.0
PATIENCE = 600.0


@dataclass(frozen=True)
class Grown:
    """What one size cost."""

    size: int
    seconds: float
    controller: float
    server: float
    memory: float
    more: dict[str, float] = field(default_factory=dict)

    @property
    def processor(self) -> float:
        return self.controller + self.server


class Bench:
    """One control plane with a controller at work."""

    def __init__(self, server: Server, controller: Controller, folder: Path) -> None:
        self.server = server
        self.controller = controller
        self._server_pids = [pid for pid in processor.pids_of(folder) if pid != controller.pid]

    def spent(self) -> tuple[float, float, float]:
        return time.perf_counter(), processor.seconds([self.controller.pid]), processor.seconds(self._server_pids)

    async def measured(self, size: int, work: Callable[[], Any]) -> Grown:
        before = self.spent()
        took = await work()
        await asyncio.sleep(SETTLE)
        after = self.spent()
        memory = self.controller.memory()
        return Grown(size, took - before[0], after[1] - before[1], after[2] - before[2], memory)

    # Pools.

    async def pools(self, count: int, first: int = 0) -> Grown:
        bodies = [pool_body(number) for number in range(first, first + count)]

        async def work() -> float:
            await self.server.create_all(objects.POOLS, bodies)
            return await self.until(lambda: self._ready(first + count))

        return await self.measured(count, work)

    async def _ready(self, count: int) -> bool:
        items = (await self.server.get(objects.POOLS))["items"]
        conditions = [item.get("status", {}).get("conditions", ()) for item in items]
        return (
            sum(any(entry["type"] == "Ready" and entry["status"] == "True" for entry in of) for of in conditions)
            == count
        )

    async def until(self, holds: Callable[[], Any]) -> float:
        """When it came true, as far as a look twice a second tells: looking costs the server, too."""
        deadline = time.monotonic() + PATIENCE
        while not await holds():
            self.controller.alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"not done after {PATIENCE:.0f} s")
            await asyncio.sleep(0.5)
        return time.perf_counter()

    # Requests.

    async def requests(self, count: int, *, pinned: bool) -> Grown:
        kind = "pin" if pinned else "any"
        bodies = [request_body(f"{kind}-{count}-{number:05}", kind, number, pinned=pinned) for number in range(count)]
        names = [body["metadata"]["name"] for body in bodies]

        async def work() -> float:
            async with self.server.watching(objects.ALLOCATIONS) as seen:
                await self.server.create_all(objects.ALLOCATIONS, bodies)
                return await seen.all_of(names, self.controller.alive)

        return await self.measured(count, work)


def pool_body(number: int) -> dict[str, Any]:
    return {
        "apiVersion": objects.API,
        "kind": "NetworkPool",
        "metadata": {"name": f"pool-{number:05}"},
        "spec": {"cidr": f"10.{number // 256}.{number % 256}.0/24"},
    }


def request_body(name: str, pool: str, number: int, *, pinned: bool) -> dict[str, Any]:
    """As a person writes it: without the finalizer, so that admission and the first write are part of the cost."""
    body = objects.allocation(name)
    del body["metadata"]["finalizers"]
    body["spec"]["poolRef"] = {"name": f"{pool}-pool"}
    if pinned:
        del body["spec"]["count"]
        block = number + 1  # the first one has the network's own address
        start, end = (f"172.16.{block // 32}.{block % 32 * 8 + place}" for place in (0, 4))
        body["spec"]["pinnedRange"] = {"startAddress": start, "endAddress": end}
    return body


async def on_plane(kind: str, work: Callable[[Bench], Any]) -> Any:
    """Do something on a fresh control plane with a fresh controller."""
    with tempfile.TemporaryDirectory(prefix="butler-growth-") as scratch:
        folder = Path(scratch)
        with (embedded if kind == "embedded" else kubernetes)(folder) as plane:
            prepare(plane, CRDS, [objects.HOME, objects.TEAM])
            async with connected(plane) as server:
                with running(plane.kubeconfig, folder / "controller.log") as controller:
                    return await work(Bench(server, controller, folder))


# Curves.


async def curve_of_pools(sizes: Sequence[int], kind: str) -> list[Grown]:
    async def one(bench: Bench, size: int) -> Grown:
        grown = await bench.pools(size)
        metrics = bench.controller.metrics()
        grown.more["reconciles"] = (
            _total(metrics, r'controller_runtime_reconcile_total\{controller="networkpool"') / size
        )
        grown.more["refused"] = _total(metrics, r"rest_client_requests_total\{code=\"409\"") / size
        another = await bench.pools(1, first=size)
        grown.more["another"] = another.controller
        return grown

    found = []
    for size in sizes:
        note(f"{size:,} pools on {kind} ...")
        found.append(await on_plane(kind, lambda bench, size=size: one(bench, size)))
    return found


def show_pools(curve: Sequence[Grown], kind: str) -> list[Goal]:
    heading(f"So many pools created at once, until all are Ready ({kind})")
    table(
        [
            "pools",
            "controller",
            "line",
            "API server",
            "line",
            "until Ready",
            "reconciles",
            "409s",
            "one more",
            "memory",
        ],
        [
            [
                f"{grown.size:,}",
                f"{grown.controller:.2f} s",
                _line(curve, grown, "controller"),
                f"{grown.server:.2f} s",
                _line(curve, grown, "server"),
                f"{grown.seconds:.1f} s",
                f"{grown.more['reconciles']:.1f}",
                f"{grown.more['refused']:.2f}",
                duration(grown.more["another"]) if grown.more["another"] else "under 10 ms",
                f"{grown.memory:.0f} MB",
            ]
            for grown in curve
        ],
    )
    note("processor time; reconciles and refused writes (409) per pool; `one more` is the controller's for one pool")
    goals = []
    at_400 = next((grown for grown in curve if grown.size == 400), None)
    if at_400 is not None:
        # What it was before was measured with the embedded server in the same process.
        spent, of = (
            (at_400.processor, "server and all") if kind == "embedded" else (at_400.controller, "the controller")
        )
        goals.append(
            Goal(
                f"400 pools in a tenth of {TODAY_POOLS:.0f} s of processor time, {of} ({kind})",
                f"{spent:.1f} s ({TODAY_POOLS / spent:.0f} times less)",
                spent <= TODAY_POOLS / 10,
            )
        )
    goals.append(_straight(f"pools, the controller ({kind})", curve, "controller"))
    return goals


def curve_of_events(sizes: Iterable[tuple[int, int]]) -> list[dict[str, float]]:
    found = []
    for pools, allocations in sizes:
        note(f"{pools:,} pools and {allocations:,} allocations in memory ...")
        program = Path(__file__).parent / "ipam" / "one_event.py"
        done = subprocess.run(
            [sys.executable, program, str(pools), str(allocations)],
            stdout=subprocess.PIPE,
            timeout=PATIENCE,
            check=True,
        )
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def show_events(curve: Sequence[dict[str, float]]) -> list[Goal]:
    heading("One event in a controller that looks after so much (processor time of the controller)")
    first = curve[0]
    table(
        [
            "pools x allocations",
            "start",
            "line",
            "request to granted",
            "x",
            "release",
            "x",
            "pinned asks",
            "x",
            "memory",
        ],
        [
            [
                f"{obj['pools']:,} x {obj['allocations']:,}",
                f"{obj['start']:.2f} s",
                f"{obj['start'] / first['start'] * first['allocations'] / obj['allocations']:.2f}",
                duration(obj["grant"]),
                f"{obj['grant'] / first['grant']:.2f}",
                duration(obj["release"]),
                f"{obj['release'] / first['release']:.2f}",
                duration(obj["pinned question"]),
                f"{obj['pinned question'] / first['pinned question']:.2f}",
                f"{obj['memory']:.0f} MB",
            ]
            for obj in curve
        ],
    )
    note("x: beside the smallest, 1.0 where the size does not matter; memory is of the controller and its API server")
    last = curve[-1]
    ratio = last["grant"] / first["grant"]
    return [Goal("one request costs the same beside ten times as much", f"{ratio:.2f} times", ratio < 2)]


async def curve_of_pins(sizes: Sequence[int], kind: str) -> list[tuple[Grown, Grown]]:
    async def one(bench: Bench, size: int) -> tuple[Grown, Grown]:
        for name, cidr in (("pin", "172.16.0.0/15"), ("any", "172.20.0.0/15")):
            body = pool_body(0) | {"metadata": {"name": f"{name}-pool"}, "spec": {"cidr": cidr}}
            await bench.server.create(objects.POOLS, body)
        await bench.until(lambda: bench._ready(2))
        free = await bench.requests(size, pinned=False)
        return free, await bench.requests(size, pinned=True)

    found = []
    for size in sizes:
        note(f"{size:,} requests without and with pins on {kind} ...")
        found.append(await on_plane(kind, lambda bench, size=size: one(bench, size)))
    return found


def show_pins(curve: Sequence[tuple[Grown, Grown]], kind: str) -> list[Goal]:
    heading(f"So many requests, until all are Allocated ({kind})")
    frees, pins = [free for free, _ in curve], [pin for _, pin in curve]
    table(
        ["requests", "any, controller", "line", "pinned", "line", "pinned/any", "any, time", "pinned, time", "memory"],
        [
            [
                f"{free.size:,}",
                f"{free.controller:.2f} s",
                _line(frees, free, "controller"),
                f"{pin.controller:.2f} s",
                _line(pins, pin, "controller"),
                f"{pin.controller / free.controller:.2f}",
                f"{free.seconds:.1f} s",
                f"{pin.seconds:.1f} s",
                f"{pin.memory:.0f} MB",
            ]
            for free, pin in curve
        ],
    )
    worst = max(pin.controller / free.controller for free, pin in curve)
    return [Goal(f"pinned requests at most twice the others ({kind})", f"at most {worst:.2f} times", worst <= 2)]


def _line(curve: Sequence[Grown], each: Grown, what: str) -> str:
    """The cost of one thing at this size, as a part of what it was at the smallest."""
    first = curve[0]
    base = getattr(first, what) / first.size
    return f"{getattr(each, what) / each.size / base:.2f}" if base else "-"


def _straight(what: str, curve: Sequence[Grown], of: str) -> Goal:
    worst = max(float(_line(curve, grown, of)) for grown in curve)
    return Goal(f"a straight line: {what}", f"at most {worst:.2f} times the line", worst <= 1.5)


def _total(metrics: str, start: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{start}.*\}} (\S+)$", metrics, re.MULTILINE))


CURVES = ("pools", "events", "pins", "tenants")
PLANES = ("embedded", "kubernetes")


def run(curves: Sequence[str] = CURVES, on: str | None = None, largest: int = POOLS[-1]) -> list[Goal]:
    heading("Growth")
    goals: list[Goal] = []
    kinds = (on,) if on else PLANES
    if "pools" in curves:
        sizes = [size for size in POOLS if size <= largest]
        for kind in kinds:
            goals += show_pools(asyncio.run(curve_of_pools(sizes, kind)), kind)
    if "events" in curves:
        goals += show_events(curve_of_events(size for size in EVENTS if size[0] <= largest))
    if "pins" in curves:
        sizes = [size for size in PINS if size <= 5 * largest]
        for kind in kinds:
            goals += show_pins(asyncio.run(curve_of_pins(sizes, kind)), kind)
    if "tenants" in curves:
        sizes, kind = [size for size in bench_tenants_growth.SIZES if size <= largest], on or PLANES[0]
        goals += bench_tenants_growth.show(bench_tenants_growth.curve(sizes, kind), kind)
    return goals


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=CURVES)
    parser.add_argument("--on", choices=PLANES, help="only on this control plane")
    parser.add_argument("--largest", type=int, default=POOLS[-1], help="leave out what has more pools than this")


if __name__ == "__main__":
    parsing = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parsing)
    options = parsing.parse_args()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    summary(run(options.curves, options.on, options.largest))
