"""How the cost of tenants grows with their number: a curve of `make bench-ipam PART=growth`.

Clusters are created at once, 125 to 1,000 of them, on the embedded server with the controllers and the world in a
process each. For each size: how long until both allocations are there and until all are Ready, processor time, memory,
and the requests of the controllers for each cluster. Cluster API's own scale tests publish 1,000 clusters in about 15
minutes with its in-memory provider, on larger machines: read it as an order of magnitude.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench_tenants import measure, percentile
from ipam.report import Goal, duration, heading, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench_tenants import Measured

SIZES = (125, 250, 500, 1_000)
WORKERS = 3
MOST_REQUESTS = 30


def curve(sizes: Sequence[int]) -> list[tuple[int, Measured]]:
    with tempfile.TemporaryDirectory(prefix="butler-bench-tenants-") as scratch:
        return [(size, measure("apart", Path(scratch) / str(size), size, WORKERS)) for size in sizes]


def show(measured: Sequence[tuple[int, Measured]]) -> list[Goal]:
    heading("Tenants created at once, until all are Ready")
    columns = ["tenants", "both allocations, p99", "all Ready", "each", "requests each", "CPU each: controllers"]
    rows = []
    for size, found in measured:
        ready, cpu = max(found.after["ready"], default=float("inf")), found.cpu["ready"]
        rows.append(
            [
                f"{size:,}",
                duration(percentile(found.after["allocated"], 0.99)),
                duration(ready),
                duration(ready / size),
                f"{_requests(size, found):.1f}",
                f"{1000 * cpu.get('controller run', 0.0) / size:.0f} ms",
                f"{1000 * cpu.get('local up', 0.0) / size:.0f} ms",
                f"{1000 * cpu.get('local world', 0.0) / size:.0f} ms",
                f"{found.memory.get('controller run', 0.0):.0f} MB",
            ]
        )
    table([*columns, "server", "stand-ins", "memory of the controllers"], rows)
    size, largest = measured[-1]
    p99 = percentile(largest.after["allocated"], 0.99)
    most = max(_requests(count, found) for count, found in measured)
    return [
        Goal(f"{size:,} tenants: created to both allocations, p99 under 1 s", duration(p99), p99 < 1.0),
        Goal(f"requests for each cluster, under {MOST_REQUESTS}", f"{most:.1f}", most < MOST_REQUESTS),
        Goal(f"{size:,} tenants: all Ready", f"{len(largest.after['ready'])}", len(largest.after["ready"]) == size),
    ]


def _requests(size: int, found: Measured) -> float:
    return found.requests["ready"].total() / size
