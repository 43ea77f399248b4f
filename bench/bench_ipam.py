"""Address management, measured: `make bench-ipam`.

    python bench/bench_ipam.py [--part decisions|packing|end-to-end|growth] [--rest 600] [--json FILE]

Four parts, each of which also runs alone: what a decision costs beside the recipes of others, how well ranges are
packed beside other policies, Butler as a process on a real kube-apiserver beside that server's own limit and beside a
peer, and how costs grow with pools, allocations and pinned requests. All figures of a part come from one run on this
machine; ratios are what to read. At the end the goals stand beside what was seen. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

import bench_ipam_decisions  # noqa: E402 - after the path is set
import bench_ipam_end_to_end  # noqa: E402
import bench_ipam_growth  # noqa: E402
import bench_ipam_packing  # noqa: E402
from ipam.report import Goal, note, summary  # noqa: E402

PARTS = ("decisions", "packing", "end-to-end", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, help="only this one")
    parser.add_argument("--real-neutron", action="store_true", help="also Neutron's own code, installed in the cache")
    parser.add_argument("--events", type=int, default=1_000_000, help="requests and releases to replay for packing")
    parser.add_argument("--json", type=Path, help="write the goals and what was seen to this file, too")
    bench_ipam_end_to_end.add_options(parser)
    bench_ipam_growth.add_options(parser)
    options = parser.parse_args()
    began = time.monotonic()
    goals: list[Goal] = []
    for part in (options.part,) if options.part else PARTS:
        if part == "decisions":
            goals += bench_ipam_decisions.run(options.real_neutron)
        elif part == "packing":
            goals += bench_ipam_packing.run(options.events)
        elif part == "growth":
            goals += bench_ipam_growth.run(options.curves, options.on, options.largest)
        else:
            goals += bench_ipam_end_to_end.run(bench_ipam_end_to_end.options_from(options))
    summary(goals)
    note(f"in {time.monotonic() - began:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(goal) for goal in goals], indent=2) + "\n")


if __name__ == "__main__":
    main()
