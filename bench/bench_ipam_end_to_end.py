"""Butler's allocator as a process on a real kube-apiserver, beside that server's own limit and beside a peer.

    python bench/bench_ipam_end_to_end.py [--requests 2000] [--allocations 10000] [--rounds 2] [--rest 60]
    (or: make bench-ipam PART=end-to-end, with REST_SECONDS=600 for the full ten minutes of rest)

etcd syncs to disk. The server's limit is measured with the same client, concurrency and bodies as the controller's,
in a process of its own, and takes turns with the controller so that a busy machine troubles both. Requests wait
before the controller (or the peer) is started; a rate counts from the first object that it touches to the last one
done, so starting costs neither of them anything. One watcher, ours, looks on in all of these. Writes are counted by
the server. Figures move with the machine's neighbours: read the ratios. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

from build_kubernetes import UnavailableError  # noqa: E402 - after the path is set
from ipam.report import Goal, duration, heading, note, summary, table  # noqa: E402
from ipam.server import Server, Written, connected, prepare  # noqa: E402
from ipam.stages import COLD_STARTS, LATENCY_REQUESTS, Options, Rate, Stages  # noqa: E402

from control_planes import embedded, kubernetes  # noqa: E402
from ipam import objects, peer, processor  # noqa: E402

CRDS = str(Path(__file__).parents[1] / "charts/butler/crds")
NAMESPACES = (objects.HOME, objects.TEAM, objects.RAW)


async def on_kubernetes(server: Server, scratch: Path, options: Options) -> list[Goal]:
    bench = Stages(server, scratch, options, processor.pids_of(scratch))
    await bench.set_up()
    note("one request at a time ...")
    with bench.controller():
        idle = await bench.latency()
    raw: list[Rate] = []
    ours: list[Rate] = []
    written: Counter[Written] = Counter()
    for turn in range(options.rounds):
        note(f"round {turn + 1} of {options.rounds}: {options.requests:,} raw status writes ...")
        raw.append(await bench.raw_limit(turn))
        note(f"round {turn + 1} of {options.rounds}: {options.requests:,} waiting requests ...")
        rate, writes = await bench.grant_waiting()
        ours.append(rate)
        written += writes
    goals = show_rates(raw, ours, written)
    if options.peer:
        note(f"{options.requests:,} claims through {peer.MODULE} {peer.version()} ...")
        try:
            goals.append(show_peer(ours, *await bench.peer_claims()))
        except UnavailableError as error:
            note(f"the peer cannot be had here: {error}")
    note(f"filling up to {options.allocations:,} allocations, cold starts, {options.rest:.0f} s of rest ...")
    filled = await bench.fill()
    cold = [await bench.cold_start() for _ in range(COLD_STARTS)]
    quiet, full, memory, peak = await bench.at_rest()
    count = await bench.check()
    show_idle({"few allocations": idle, f"{count:,} allocations": full}, "kube-apiserver")
    goals.append(latency_goal(idle, "kube-apiserver"))
    goals += show_large(count, filled, cold, memory, peak, quiet, options.rest)
    return goals


def show_rates(raw: list[Rate], ours: list[Rate], written: Counter[Written]) -> list[Goal]:
    heading("Waiting requests to Allocated, beside the server's raw status-write limit")
    limit = statistics.mean(rate.per_second for rate in raw)
    mean = statistics.mean(rate.per_second for rate in ours)
    table(
        ["", *(f"round {turn + 1}" for turn in range(len(raw))), "mean", "ratio"],
        [
            ["raw status writes/s", *(f"{rate.per_second:.0f}" for rate in raw), f"{limit:.0f}", "1"],
            ["Butler, grants/s", *(f"{rate.per_second:.0f}" for rate in ours), f"{mean:.0f}", f"{mean / limit:.2f}"],
            ["start of the process to the last, s", *(f"{rate.since_start:.1f}" for rate in ours), "", ""],
        ],
    )
    print()
    table(
        ["processor time per write, ms", "API server and etcd", "client", "both"],
        [processor_row("raw status writes", raw), processor_row("Butler", ours)],
    )
    by_processor = sum(processor_time(raw)) / sum(processor_time(ours))
    count = sum(rate.count for rate in ours)
    per_request = show_writes(written, count, "allocation")
    return [
        Goal(
            "end to end: 80 % of the raw status-write limit",
            f"{mean / limit:.0%} ({by_processor:.0%} by processor time)",
            mean / limit >= 0.80,
        ),
        Goal("end to end: at most 1.1 writes per allocation", f"{per_request:.3f}", per_request <= 1.1),
    ]


def processor_time(rates: list[Rate]) -> tuple[float, float]:
    """Seconds that a write costs the server and the client, which neighbours on the machine change little."""
    count = sum(rate.count for rate in rates)
    return sum(rate.server_seconds for rate in rates) / count, sum(rate.client_seconds for rate in rates) / count


def processor_row(name: str, rates: list[Rate]) -> list[str]:
    server, client = processor_time(rates)
    return [name, *(f"{1000 * seconds:.2f}" for seconds in (server, client, server + client))]


def show_writes(written: Counter[Written], count: int, thing: str) -> float:
    """Writes counted at the server; leases apart. Returns writes per thing."""
    print()
    counted = {key: number for key, number in written.items() if key.resource != "leases"}
    rows = [[str(key), f"{n:,}", f"{n / count:.3f}"] for key, n in sorted(counted.items())]
    total = sum(counted.values())
    table(
        ["writes at the server, leases apart", "", f"per {thing}"],
        [*rows, ["all", f"{total:,}", f"{total / count:.3f}"]],
    )
    return total / count


def show_peer(ours: list[Rate], theirs: Rate, written: Counter[Written]) -> Goal:
    heading(f"The same number of IPAddressClaims through cluster-api-ipam-provider-in-cluster {peer.version()}")
    mean = statistics.mean(rate.per_second for rate in ours)
    ratio = mean / theirs.per_second
    table(
        ["", "per second", "ratio"],
        [
            ["peer, one address each", f"{theirs.per_second:.1f}", "1"],
            ["Butler, 5 contiguous addresses each", f"{mean:.1f}", f"{ratio:.1f}"],
        ],
    )
    show_writes(written, theirs.count, "claim")
    return Goal("end to end: 3 times the rate of the in-cluster provider", f"{ratio:.1f} times", ratio >= 3)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show_idle(latencies: dict[str, list[float]], where: str) -> None:
    heading(f"One request on an idle system, create to Allocated, {where}")
    shares = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "most": 1.0}
    table(
        [f"{LATENCY_REQUESTS} requests", *shares],
        [
            [name, *(duration(percentile(spent, share)) for share in shares.values())]
            for name, spent in latencies.items()
        ],
    )


def latency_goal(spent: list[float], where: str) -> Goal:
    p50, p99 = percentile(spent, 0.50), percentile(spent, 0.99)
    return Goal(
        f"one request, {where}: p50 under 50 ms, p99 under 200 ms",
        f"{duration(p50)}, {duration(p99)}",
        p50 < 0.050 and p99 < 0.200,
    )


def show_large(
    count: int, filled: Rate, cold: list[float], memory: float, peak: float, quiet: Counter[Written], rest: float
) -> list[Goal]:
    heading(f"With {count:,} allocations and their {count // objects.PER_TENANT:,} tenants")
    loud = {key: number for key, number in quiet.items() if key.resource != "leases"}
    leases = sum(quiet.values()) - sum(loud.values())
    what = ", ".join(f"{number} {key}" for key, number in loud.items()) or "none"
    first = statistics.median(cold)
    table(
        ["", "seen"],
        [
            ["create and grant at the same time, per second", f"{filled.per_second:.0f}"],
            ["cold start to the first new grant (each)", ", ".join(duration(seconds) for seconds in cold)],
            ["memory of the controller, at rest (highest)", f"{memory:.0f} MB ({peak:.0f} MB)"],
            [f"writes in {rest:.0f} s of rest, leases apart ({leases})", what],
        ],
    )
    return [
        Goal(f"cold start with {count:,} allocations to first new grant under 5 s", duration(first), first < 5),
        Goal(
            f"memory with {count:,} allocations under 150 MB", f"{memory:.0f} MB, at most {peak:.0f} MB", memory < 150
        ),
        Goal(f"no writes at rest ({rest:.0f} s)", what, not loud),
    ]


async def on_embedded(server: Server, scratch: Path) -> list[Goal]:
    bench = Stages(server, scratch, Options(allocations=200))
    await bench.set_up()
    spent = await bench.latency()
    await bench.check()
    show_idle({"few allocations": spent}, "embedded API server, controllers in its process")
    return [latency_goal(spent, "embedded")]


async def _with_server(plane: Any, work: Any) -> list[Goal]:
    async with connected(plane) as server:
        return await work(server)  # type: ignore[no-any-return]


def run(options: Options) -> list[Goal]:
    heading("End to end")
    goals: list[Goal] = []
    with tempfile.TemporaryDirectory(prefix="butler-bench-ipam-") as folder:
        scratch = Path(folder)
        with kubernetes(scratch / "kubernetes", fsync=True) as plane:
            prepare(plane, CRDS, NAMESPACES)
            goals += asyncio.run(_with_server(plane, lambda server: on_kubernetes(server, scratch, options)))
        (scratch / "embedded").mkdir()
        with embedded(scratch / "embedded", controllers=True) as plane:
            prepare(plane, CRDS, NAMESPACES)
            goals += asyncio.run(_with_server(plane, lambda server: on_embedded(server, scratch)))
    return goals


def options_from(arguments: argparse.Namespace) -> Options:
    return Options(arguments.requests, arguments.allocations, arguments.rounds, arguments.rest, arguments.peer)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=Options.requests)
    parser.add_argument("--allocations", type=int, default=Options.allocations)
    parser.add_argument("--rounds", type=int, default=Options.rounds, help="turns of raw writes and of the controller")
    parser.add_argument("--rest", type=float, default=Options.rest, help="seconds in which nothing may be written")
    parser.add_argument("--no-peer", dest="peer", action="store_false")


if __name__ == "__main__":
    parsing = argparse.ArgumentParser(description=__doc__)
    add_options(parsing)
    summary(run(options_from(parsing.parse_args())))
