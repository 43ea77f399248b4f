"""Elastic load-balancer addresses, measured: `make bench-elastic`.

    python bench/bench_elastic.py [--only latency|rest|feeds] [--tenants 1000] [--rest 60]

    latency  100 elastic tenants whose Services need more addresses than they hold: steadily, all at once, many in one
             tenant; how long each waits and for what, and how long it takes until addresses go back
    rest     1,000 elastic tenants that do nothing: memory, processor time and requests of the whole controller
    feeds    the same for the watches of tenants alone, without controllers (bench_elastic_rest.py)

Every part starts its own processes and stops them. One machine runs all of them, so read the processor time
beside the clock. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

import elastic_at_rest  # noqa: E402 - after the path is set
import elastic_latency  # noqa: E402
from bench_elastic_rest import more_files  # noqa: E402
from ipam.report import Goal, note, summary  # noqa: E402

PARTS = ("latency", "rest", "feeds")
FEEDS = Path(__file__).with_name("bench_elastic_rest.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--tenants", type=int, help="at rest 1,000 when not given; for latency alone, 100")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="of the controller at rest, in a process apart")
    parser.add_argument("--rest", type=float, default=60.0, help="seconds at rest")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through every `with`: what was started is stopped
    parts = (options.only,) if options.only else PARTS
    note(f"{os.cpu_count()} processors, {os.getloadavg()[0]:.1f} busy before we began")
    more_files()  # started processes inherit it: a controller of a thousand tenants opens thousands
    note(f"open files: {resource.getrlimit(resource.RLIMIT_NOFILE)[0]:,} allowed to each process, raised for this run")
    goals: list[Goal] = []
    with tempfile.TemporaryDirectory(prefix="butler-bench-elastic-") as scratch:
        if "latency" in parts:
            goals += elastic_latency.measure(Path(scratch) / "latency", (options.only and options.tenants) or 100)
        if "rest" in parts:
            goals += elastic_at_rest.measure(
                Path(scratch) / "rest", options.tenants or 1000, options.rest, options.profile
            )
    if goals:
        summary(goals)
    if "feeds" in parts:
        arguments = ["--tenants", str(options.tenants or 1000), "--rest", str(options.rest)]
        subprocess.run([sys.executable, str(FEEDS), *arguments], check=False)


if __name__ == "__main__":
    main()
