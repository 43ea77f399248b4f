"""How the cost of tenants grows with their number: a curve of `make bench-ipam PART=growth`.

Clusters are created at once, 125 to 1,000 of them, with the API server (the embedded one, unless another is asked for),
the controllers and the world in a process each. For each size: how long until both allocations are there and until all
are Ready, the requests of the controllers, and of every process the processor time for each cluster and its memory. The
line says what one cluster costs at this size, as a part of what it did at the smallest. Cluster API's own scale tests
publish 1,000 clusters in about 15 minutes with its in-memory provider, on larger machines: read it as an order of
magnitude.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench_tenants import lease_requests, measure, percentile
from ipam.report import Goal, duration, heading, note, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench_tenants import Measured

SIZES = (125, 250, 500, 1_000)
WORKERS = 3
MOST_REQUESTS = 30
NAMES = {
    "controller run": "controllers",
    "local up": "API server",
    "local world": "stand-ins",
    "kube-apiserver": "kube-apiserver",
    "etcd": "etcd",
    "kube-controller-manager": "kube-controller-manager",
}


def curve(sizes: Sequence[int], kind: str = "embedded") -> list[tuple[int, Measured]]:
    setting, found = "apart" if kind == "embedded" else kind, []
    with tempfile.TemporaryDirectory(prefix="butler-bench-tenants-") as scratch:
        for size in sizes:
            note(f"{size:,} tenants on {kind}, {os.getloadavg()[0]:.1f} processes busy before ...")
            found.append((size, measure(setting, Path(scratch) / str(size), size, WORKERS, delete=False)))
    return found


def show(measured: Sequence[tuple[int, Measured]], kind: str = "embedded") -> list[Goal]:
    heading(f"Tenants created at once, until all are Ready ({kind})")
    table(
        ["tenants", "created in", "both allocations, p50", "p99", "all Ready", "each", "requests each", "of the lease"],
        [
            [
                f"{size:,}",
                duration(found.created),
                duration(percentile(found.after["allocated"], 0.50)),
                duration(percentile(found.after["allocated"], 0.99)),
                duration(_ready(found)),
                duration(_ready(found) / size),
                f"{_requests(size, found):.1f}",
                f"{lease_requests(found.requests['ready']) / size:.1f}",
            ]
            for size, found in measured
        ],
    )
    note("requests of the controllers, without those for their lease, which they send whether clusters come or not")
    print()
    programs = [program for program in NAMES if any(program in found.cpu["ready"] for _, found in measured)]
    first = measured[0]
    table(
        ["tenants", *(word for program in programs for word in (f"{NAMES[program]}, CPU each", "line", "memory"))],
        [
            [
                f"{size:,}",
                *(
                    word
                    for program in programs
                    for word in (
                        f"{1000 * _cpu(size, found, program):.0f} ms",
                        f"{_cpu(size, found, program) / _cpu(*first, program):.2f}",
                        f"{found.highest.get(program, 0.0):.0f} MB",
                    )
                ),
            ]
            for size, found in measured
        ],
    )
    note("memory: the most that a process has had")
    size, largest = measured[-1]
    p99 = percentile(largest.after["allocated"], 0.99)
    most = max(_requests(count, found) for count, found in measured)
    worst = max(_cpu(count, found, "controller run") for count, found in measured) / _cpu(*first, "controller run")
    ready = len(largest.after["ready"])
    return [
        Goal(f"{size:,} tenants: created to both allocations, p99 under 1 s ({kind})", duration(p99), p99 < 1.0),
        Goal(f"requests for each cluster, under {MOST_REQUESTS} ({kind})", f"{most:.1f}", most < MOST_REQUESTS),
        Goal(f"a straight line: tenants, the controllers ({kind})", f"at most {worst:.2f} times it", worst <= 1.5),
        Goal(f"{size:,} tenants: all Ready ({kind})", f"{ready}", ready == size),
    ]


def _ready(found: Measured) -> float:
    return max(found.after["ready"], default=float("inf"))


def _cpu(size: int, found: Measured, program: str) -> float:
    return max(found.cpu["ready"].get(program, 0.0) / size, 1e-6)


def _requests(size: int, found: Measured) -> float:
    counted = found.requests["ready"]
    return (counted.total() - lease_requests(counted)) / size
