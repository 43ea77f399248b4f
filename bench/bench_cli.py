"""How long a command takes from Enter to prompt: `make bench-cli`.

    python bench/bench_cli.py [--rounds 15] [--allocations 2000]

Each command is run in turn with the others, round after round, on an embedded server with a full pool; kubectl's own
list of the same objects is beside them. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

import yaml  # noqa: E402 - after the path is set
from ipam.report import Goal, duration, heading, note, summary, table  # noqa: E402

from control_planes import BIN, ControlPlane, embedded  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP, LIST = 0.250, 0.500
COMMANDS = {
    "butleradm --help": HELP,
    "butlerctl --help": HELP,
    "butleradm pool --help": HELP,
    "butleradm pool list": LIST,
    "butlerctl cluster list": LIST,
    "butleradm allocation list": None,
    "butleradm pool map full": None,
    "butleradm ipam who 10.1.0.77": None,
    "butleradm ipam fsck": None,
    "kubectl get networkpools -n butler-system": None,
    "kubectl get ipallocations -n butler-system": None,
}


def fill(plane: ControlPlane, allocations: int) -> None:
    """A pool with many allocations of two addresses each, all granted."""
    api, home = "butler.butlerlabs.dev/v1alpha1", "butler-system"
    pool = {"apiVersion": api, "kind": "NetworkPool", "metadata": {"name": "full", "namespace": home}}
    objects = [{**pool, "spec": {"cidr": "10.1.0.0/16"}}]
    for number in range(allocations):
        spec = {"poolRef": {"name": "full"}, "type": "nodes", "count": 2}
        tenant = {"tenantClusterRef": {"name": f"tenant-{number}", "namespace": "default"}}
        meta = {"name": f"tenant-{number}-nodes", "namespace": home}
        objects.append({"apiVersion": api, "kind": "IPAllocation", "metadata": meta, "spec": {**spec, **tenant}})
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))
    wanted = f"--for=jsonpath={{.status.allocationCount}}={allocations}"
    plane.kubectl("wait", "networkpool/full", "-n", home, wanted, "--timeout=110s")


def measure(plane: ControlPlane, rounds: int) -> dict[str, list[float]]:
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    taken: dict[str, list[float]] = {command: [] for command in COMMANDS}
    for number in range(rounds + 1):
        for command, found in taken.items():
            program, *arguments = command.split()
            began = time.perf_counter()
            result = subprocess.run([BIN / program, *arguments], env=environment, capture_output=True, check=False)
            assert result.returncode in (0, 8), f"{command}: {result.stderr.decode()}"
            if number:  # the first round warms up the disk
                found.append(time.perf_counter() - began)
    return taken


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--allocations", type=int, default=2000)
    options = parser.parse_args(arguments)
    heading(f"From Enter to prompt, {options.allocations} allocations, median of {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder), controllers=True) as plane:
        fill(plane, options.allocations)
        taken = measure(plane, options.rounds)
    rows = [
        [command, duration(statistics.median(found)), duration(min(found)), duration(max(found))]
        for command, found in taken.items()
    ]
    table(["command", "median", "fastest", "slowest"], rows)
    note("kubectl is beside them for comparison; it has no such questions as map, who and fsck")
    goals = [
        Goal(f"{command} under {duration(goal)}", duration(seen := statistics.median(taken[command])), seen < goal)
        for command, goal in COMMANDS.items()
        if goal is not None
    ]
    summary(goals)


if __name__ == "__main__":
    main(sys.argv[1:])
