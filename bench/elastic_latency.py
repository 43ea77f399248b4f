"""How long Services of elastic tenants wait for an address: a part of `make bench-elastic`.

The embedded server, the world with all tenants and the controller are a process each, and the users are one too
(elastic_load.py): what they see, they see by watches. A wait begins when the tenant's API server has acknowledged the
Service and ends when a watch on the tenant shows its address. Nothing here fails on a number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_tenants import (
    HOME,
    SETTLE,
    TEAM,
    Processes,
    furnish,
    metric_lines,
    percentile,
    requests,
    setting,
    show_requests,
)
from elastic_estate import TERMS, bring_up
from ipam.report import Goal, duration, heading, note, table

if TYPE_CHECKING:
    from collections import Counter

Json = dict[str, Any]
LOAD = Path(__file__).with_name("elastic_load.py")
GRACE = 5
OPTIONS = ("--shrink-after", str(GRACE))
RATE, SECONDS, BATCH = 10, 30, 20
SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "most": 1.0}
STEPS = {
    "waited": "from acknowledged to its address",
    "asked": "  until Butler asked for addresses",
    "granted": "  until they were granted",
    "published": "  until MetalLB's pool had them",
    "shown": "  until the Service had its own",
    "answered": "(creating the Service took)",
}
BACK = {
    "idle": "Butler noted it as idle",
    "draining": "Butler began to drain it",
    "withdrawn": "MetalLB's pool was without it",
    "released": "it was Released",
}


@dataclass
class Wave:
    """What the users told of one wave, and what it cost the others."""

    facts: Json
    cpu: dict[str, float]
    requests: Counter[tuple[str, str]]


@dataclass
class Measured:
    waves: dict[str, Wave] = field(default_factory=dict)
    tenants: int = 0
    counted_moved: int = 0
    """By Butler itself."""


def measure(folder: Path, tenants: int) -> list[Goal]:
    """Bring tenants up, send the waves, and tell."""
    heading(f"Services of {tenants} elastic tenants, from waiting to their address")
    note("embedded server, world with all tenants, controller and users: a process each on one machine")
    with setting("apart", folder, OPTIONS) as (plane, port):
        assert port is not None
        furnish(plane, TERMS)
        ready = bring_up(plane, tenants)
        found = Measured(tenants=len(ready))
        with tempfile.TemporaryDirectory(prefix="butler-bench-client-") as client:
            # The path of the kubeconfig would count the users among those that they put load on.
            moved = Path(client) / "kubeconfig"
            moved.touch(mode=0o600)
            moved.write_bytes(plane.kubeconfig.read_bytes())
            _send_waves(found, moved, Processes(folder), port)
        found.counted_moved = int(sum(metric_lines(port, "butler_load_balancer_services_moved_total").values()))
    return show(found, tenants)


def _send_waves(found: Measured, kubeconfig: Path, processes: Processes, port: int) -> None:
    command = [sys.executable, str(LOAD), str(kubeconfig), HOME, TEAM, str(RATE), str(SECONDS), str(BATCH)]
    cpu, asked = processes.seconds(), requests(port)
    # Whatever it leaves behind, keys of tenants among it, goes with our own folder.
    places = {**os.environ, "TMPDIR": str(kubeconfig.parent)}
    load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=places)
    try:
        assert load.stdin is not None
        assert load.stdout is not None
        for line in load.stdout:
            facts = json.loads(line)
            now, sent = processes.seconds(), requests(port)
            spent = {item: now[item] - cpu.get(item, 0.0) for item in now}
            found.waves[facts["event"]] = Wave(facts, spent, sent - asked)
            note(f"{facts['event']}: {_arrived(facts)} of {facts['wanted']}")
            time.sleep(SETTLE)
            cpu, asked = processes.seconds(), requests(port)
            load.stdin.write("go on\n")
            load.stdin.flush()
        load.wait(60)
    finally:
        load.kill()
        load.wait()


def _arrived(facts: Json) -> int:
    return len(facts["services"] if "services" in facts else facts["allocations"])


# Telling.


def show(found: Measured, tenants: int) -> list[Goal]:
    goals: list[Goal] = []
    titles = {
        "steady": f"{RATE} Services a second over all tenants, for {SECONDS} s",
        "burst": "one Service in each tenant, all at once",
        "batch": f"{BATCH} Services in one tenant, all at once",
    }
    for event, title in titles.items():
        if event in found.waves:
            goals += _show_wave(event, title, found.waves[event])
    if "shrunk" in found.waves:
        goals += _show_shrink(found, tenants)
    else:
        goals.append(Goal("the users came to the end of their list", "no", False))
    return goals


def _show_wave(event: str, title: str, wave: Wave) -> list[Goal]:
    print()
    rows, wanted = wave.facts["services"], wave.facts["wanted"]
    table(
        [f"{event}: {title}", *SHARES],
        [
            [text, *(duration(percentile([row[step] for row in rows], share)) for share in SHARES.values())]
            for step, text in STEPS.items()
            if rows
        ],
    )
    grew = sum(row["grew"] for row in rows)
    note(f"{len(rows)} of {wanted} got an address, {grew} of them one that was not held before")
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in sorted(wave.cpu.items()))
    note(f"processor time: {spent}")
    show_requests(wave.requests, max(1, wanted), f"{event}, for each Service", each="")
    waits = [row["waited"] for row in rows]
    if not waits:
        return [Goal(f"{event}: all Services got an address", f"0 of {wanted}", False)]
    p50, p99 = percentile(waits, 0.50), percentile(waits, 0.99)
    return [
        Goal(f"{event}: all Services got an address", f"{len(rows)} of {wanted}", len(rows) == wanted),
        Goal(f"{event}: p50 under 1 s", duration(p50), p50 < 1.0),
        Goal(f"{event}: p99 under 3 s", duration(p99), p99 < 3.0),
    ]


def _show_shrink(found: Measured, tenants: int) -> list[Goal]:
    facts = found.waves["shrunk"].facts
    rows, wanted, moved = facts["allocations"], facts["wanted"], facts["moved"]
    print()
    table(
        [f"shrunk: from the last Service gone (--shrink-after {GRACE}, --drain-settle 2) until", *SHARES],
        [
            [text, *(duration(percentile([row[step] for row in rows], share)) for share in SHARES.values())]
            for step, text in BACK.items()
            if rows
        ],
    )
    note(f"{len(rows)} of {wanted} allocations went back")
    for item in moved[:5]:
        note(f"moved: {item}")
    if facts["gaps"]:
        note(f"{facts['gaps']} watches of the users ended and were begun anew: some moments were seen late")
    return [
        Goal("all idle growth is Released", f"{len(rows)} of {wanted}", len(rows) == wanted > 0),
        Goal("Services that changed their address, as users saw it", f"{len(moved)}", not moved),
        Goal("the same, as Butler counted", f"{found.counted_moved}", not found.counted_moved),
        Goal("all tenants took part", f"{facts['tenants']} of {tenants}", facts["tenants"] == tenants),
    ]
