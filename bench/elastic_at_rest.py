"""What a whole controller takes while many elastic tenants do nothing: a part of `make bench-elastic`.

Memory and processor time are those of the one process `butleradm controller run`, which leads, watches Butler's own
kinds, Cluster API's, and two kinds on each tenant. It is looked at twice: in the process that brought all the tenants
up, whose memory has seen worse, and in one that was started when everything was there, as after an update. Only when
nothing was written for a while, and idle connections have been let go, does the rest begin.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench_tenants import Processes, controllers, furnish, metric_lines, requests, setting
from elastic_estate import TERMS, bring_up
from ipam.report import Goal, duration, heading, note, table
from profiled_controller import END

if TYPE_CHECKING:
    from control_planes import ControlPlane

BUTLER = "controller run"
READS = frozenset({"get", "list", "watch"})
QUIET, LET_GO = 10.0, 75.0
"""Seconds without a write after which all is taken to be settled; and until idle connections are let go."""
FEW = 20
"""Looks at tenants are few when less than one in so many has one in a second."""
PATIENCE = 600.0
PROFILED = Path(__file__).with_name("profiled_controller.py")
SLOW = ("--lease-seconds", "120")
"""Traced, it takes so long for everything that it would lose a shorter lease."""


@dataclass
class Rest:
    """One process at rest."""

    name: str
    settled: float = 0.0
    memory: float = 0.0
    highest: float = 0.0
    share: float = 0.0
    seconds: float = 0.0
    sockets: int = 0
    watched: int = 0
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Memory and share of a core of the other processes."""


def measure(folder: Path, tenants: int, rest: float, profile: Path | None = None) -> list[Goal]:
    """Bring tenants up, let them rest, and tell what that takes; into `profile` goes where it went."""
    heading(f"{tenants:,} elastic tenants at rest, the whole controller")
    note("each: a TenantCluster brought up by Butler through the whole world, with 1 machine, its 5 usual addons and")
    note("2 load-balancer addresses of which Traefik has one; embedded server, world, controller: a process each")
    # The first controller is left before the second begins, so it is not `setting` that starts either of them.
    with setting("apart", folder, controlled=False) as (plane, _):
        processes = Processes(folder)
        with controllers(plane, folder) as port:
            furnish(plane, TERMS)
            empty = processes.megabytes()[BUTLER]
            came = time.monotonic()
            ready = bring_up(plane, tenants)
            note(f"{len(ready):,} of {tenants:,} are Ready, after {duration(time.monotonic() - came)}")
            first = _rest("that brought them up", processes, port, rest)
        with controllers(plane, folder) as port:
            second = _rest("started afterwards", processes, port, rest)
        goals = show([first, second], empty, len(ready), tenants)
        if profile is not None:
            _explain(profile, plane, folder, processes, rest)
    return goals


def _explain(report: Path, plane: ControlPlane, folder: Path, processes: Processes, rest: float) -> None:
    """Two more processes: one that knows where its time goes, one that knows where its memory goes."""
    report.unlink(missing_ok=True)
    for told, about in enumerate(("time", "memory"), start=1):
        program = [sys.executable, str(PROFILED), about, str(report)]
        with controllers(plane, folder, SLOW, program) as port:
            _settle(port)
            time.sleep(LET_GO)
            (pid,) = processes.find()[BUTLER]
            os.kill(pid, signal.SIGUSR1)
            time.sleep(rest)
            os.kill(pid, signal.SIGUSR2)
            deadline = time.monotonic() + PATIENCE
            while not (report.exists() and report.read_text().count(END) == told) and time.monotonic() < deadline:
                time.sleep(0.5)
    note(f"where processor time and memory go is told in {report}")


def _rest(name: str, processes: Processes, port: int, seconds: float) -> Rest:
    found = Rest(name)
    found.settled = _settle(port)
    note(f"the process {name}: settled after {duration(found.settled)}; now {LET_GO + seconds:.0f} s of rest")
    time.sleep(LET_GO)
    cpu, asked, clock = processes.seconds(), requests(port), time.monotonic()
    time.sleep(seconds)
    found.seconds = time.monotonic() - clock
    now, memory = processes.seconds(), processes.megabytes()
    found.requests = requests(port) - asked
    shares = {item: (now[item] - cpu.get(item, 0.0)) / found.seconds for item in now}
    found.share, found.memory = shares.pop(BUTLER), memory.pop(BUTLER)
    found.highest = processes.megabytes("VmHWM")[BUTLER]
    found.others = {each: (memory[each], share) for each, share in shares.items()}
    found.sockets = sum(_sockets(pid) for pid in processes.find()[BUTLER])
    found.watched = int(sum(metric_lines(port, "butler_tenants_watched").values()))
    return found


def _settle(port: int) -> float:
    """Wait until only the lease is written for a while, and hardly any object is looked at; how long that took."""
    began = time.monotonic()
    while not _leads(port):
        assert time.monotonic() - began < PATIENCE, "the controller does not begin to lead"
        time.sleep(0.2)
    before, busy = _done(port), time.monotonic()
    while time.monotonic() - began < PATIENCE:
        time.sleep(QUIET)
        now = _done(port)
        # Looks go on at rest, each tenant has its turn; a thousand at once are a beginning.
        if now.writes == before.writes and now.looks - before.looks <= QUIET * max(1.0, now.watched / FEW):
            return busy - began
        before, busy = now, time.monotonic()
    note(f"it still writes after {PATIENCE:.0f} s; what follows is not rest")
    return busy - began


def _leads(port: int) -> bool:
    try:
        return bool(sum(metric_lines(port, "leader_election_master_status").values()))
    except OSError:
        return False  # it does not listen yet


class _Done(NamedTuple):
    writes: int
    looks: int
    watched: int


def _done(port: int) -> _Done:
    """What was written so far, how often a controller looked at something, and how many tenants are watched."""
    writes = sum(n for (verb, resource), n in requests(port).items() if verb not in READS and resource != "leases")
    looks = sum(metric_lines(port, "controller_runtime_reconcile_total").values())
    return _Done(writes, int(looks), int(sum(metric_lines(port, "butler_tenants_watched").values())))


def _sockets(pid: int) -> int:
    found = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += str(path.readlink()).startswith("socket:")
        except OSError:
            continue
    return found


# Telling.


def show(rests: list[Rest], empty: float, ready: int, tenants: int) -> list[Goal]:
    print()
    table(
        ["butleradm controller run, the process", *(rest.name for rest in rests)],
        [
            ["memory at rest, MB", *(f"{rest.memory:.0f}" for rest in rests)],
            ["  of one without tenants, MB", *(f"{empty:.0f}" for _ in rests)],
            ["  for each tenant, bytes", *(f"{(rest.memory - empty) * 1024 * 1024 / tenants:,.0f}" for rest in rests)],
            ["  highest so far, MB", *(f"{rest.highest:.0f}" for rest in rests)],
            [f"share of one core over {rests[0].seconds:.0f} s", *(f"{rest.share:.2%}" for rest in rests)],
            ["requests a second, management", *(f"{rest.requests.total() / rest.seconds:.2f}" for rest in rests)],
            ["connections", *(f"{rest.sockets:,}" for rest in rests)],
            ["tenants watched", *(f"{rest.watched:,}" for rest in rests)],
            ["settled after, s", *(f"{rest.settled:.0f}" for rest in rests)],
        ],
    )
    note("requests to tenants are not in its metrics")
    print()
    last = rests[-1]
    table(
        [f"its requests in {last.seconds:.0f} s of rest", ""],
        [[f"{verb} {resource}", f"{count}"] for (verb, resource), count in last.requests.most_common(8)]
        or [["none", "0"]],
    )
    print()
    table(
        ["the other processes", "memory", "of one core"],
        [[name, f"{memory:,.0f} MB", f"{share:.2%}"] for name, (memory, share) in sorted(last.others.items())],
    )
    goals = []
    for rest in rests:
        goals += [
            Goal(f"{rest.name}: {tenants:,} tenants in under 300 MB", f"{rest.memory:.0f} MB", rest.memory < 300),
            Goal(f"{rest.name}: under 5 % of one core", f"{rest.share:.2%}", rest.share < 0.05),
            Goal(f"{rest.name}: all are watched", f"{rest.watched:,}", rest.watched == ready == tenants),
        ]
    return goals
