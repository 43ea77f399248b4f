"""Tenant clusters, measured: `make bench-tenants`.

    python bench/bench_tenants.py [--clusters 200] [--workers 3] [--only embedded|apart|kubernetes]

Many clusters are created at once, wait until they are Ready, and are deleted at once, in three settings:

    embedded    `butleradm local up` alone: API server, controllers and world in one process
    apart       the embedded server, the controllers and the world in a process each
    kubernetes  etcd, kube-apiserver, the controllers and the world in a process each

The users are a process too (tenant_load.py) and look at clocks; one machine runs all of it, so read the
processor time beside them. Requests are counted by the controllers themselves. The world takes no time of its own for
machines and addons here. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

from ipam.report import Goal, duration, heading, note, summary, table  # noqa: E402 - after the path is set
from run_kubernetes import end_with_parent  # noqa: E402

from control_planes import BIN, ControlPlane, embedded, kubernetes  # noqa: E402
from ipam import processor  # noqa: E402
from world_process import WorldProcess  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SETTINGS = ("embedded", "apart", "kubernetes")
QUICK = {"machine_seconds": 0.0, "machine_deletion_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}
CRDS = Path(__file__).parents[1] / "charts/butler/crds"
LOAD = Path(__file__).with_name("tenant_load.py")
API = "/apis/butler.butlerlabs.dev/v1alpha1"
HOME, TEAM = "butler-system", "team-bench"
PROGRAMS = ("kube-apiserver", "etcd", "kube-controller-manager", "local up", "controller run", "local world")
SETTLE = 3.0
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Processes:
    """Those of one setting, told apart by their command lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for pid in processor.pids_of(self._folder, but="no such program"):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            name = next((program for program in PROGRAMS if program in words), None)
            if name is not None:
                found.setdefault(name, []).append(pid)
        return found

    def seconds(self) -> dict[str, float]:
        return {name: processor.seconds(pids) for name, pids in self.find().items()}

    def megabytes(self, field: str = "VmRSS") -> dict[str, float]:
        return {name: sum(_memory(pid, field) for pid in pids) for name, pids in self.find().items()}


def _memory(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


# What runs.


@contextmanager
def controllers(
    plane: ControlPlane, folder: Path, options: Sequence[str] = (), program: Sequence[str] = (f"{BIN}/butleradm",)
) -> Iterator[int]:
    """The command that users type, with its lease and some options; gives the port of its metrics."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    command = [
        *program,
        "controller",
        "run",
        "--kubeconfig",
        f"{plane.kubeconfig}",
        "--metrics-port",
        f"{port}",
        *options,
    ]
    with (folder / "controller.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
        )  # fmt: skip
    try:
        yield port
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()


@contextmanager
def setting(
    name: str, folder: Path, options: Sequence[str] = (), *, controlled: bool = True
) -> Iterator[tuple[ControlPlane, int | None]]:
    """All processes run; returns the control plane and the port of the controllers' metrics where they have one.

    `options` are for the controllers, where they are a process; without them when they are not to be `controlled`.
    """
    folder.mkdir()
    with ExitStack() as running:
        if name == "embedded":
            yield running.enter_context(embedded(folder, controllers=True)), None
            return
        start = embedded(folder) if name == "apart" else kubernetes(folder, fsync=True)
        plane = running.enter_context(start)
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
        plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(CRDS))
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}})
        running.enter_context(WorldProcess(plane.kubeconfig, folder, **QUICK))
        yield plane, running.enter_context(controllers(plane, folder, options)) if controlled else None


def furnish(plane: ControlPlane, terms: Mapping[str, Any] | None = None) -> None:
    """A namespace, a pool with room for all clusters, and a provider; returns when clusters can be created.

    `terms` are more of what the provider says about its network.
    """
    login = {"username": b"butler@pve!capi", "password": b"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"}
    settings = {"endpoint": "https://127.0.0.1:9", "nodes": ["pve1"], "storage": "local", "templateID": 100}
    network = {"mode": "ipam", "gateway": "10.40.0.1", "dnsServers": ["10.40.0.2"], "poolRefs": [{"name": "pool"}]}
    network |= terms or {}
    provider = {"provider": "proxmox", "credentialsRef": {"name": "login"}, "proxmox": settings, "network": network}
    own = f"{API}/namespaces/{HOME}"
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": TEAM}}),
        (
            f"/api/v1/namespaces/{HOME}/secrets",
            {
                "metadata": {"name": "login"},
                "data": {key: base64.b64encode(value).decode() for key, value in login.items()},
            },
        ),
        (f"{own}/networkpools", _named("NetworkPool", "pool", {"cidr": "10.40.0.0/16"})),
        (f"{own}/providerconfigs", _named("ProviderConfig", "lab", provider)),
    ):
        status, answer = plane.request("POST", path, body)
        assert status == 201, answer
    deadline = time.monotonic() + 60
    while not (plane.request("GET", f"{own}/providerconfigs/lab")[1].get("status") or {}).get("ready"):
        assert time.monotonic() < deadline, "the provider does not become ready"
        time.sleep(0.1)
    time.sleep(SETTLE)


def _named(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name}, "spec": spec}


def requests(port: int | None) -> Counter[tuple[str, str]]:
    """What the controllers have asked of API servers so far, by verb and resource."""
    found: Counter[tuple[str, str]] = Counter()
    if port is None:
        return found
    for labels, value in metric_lines(port, "rest_client_requests_total").items():
        named = dict(_LABEL.findall(labels))
        found[named["verb"], named["resource"].partition(".")[0]] += int(value)
    return found


def metric_lines(port: int, name: str) -> dict[str, float]:
    """The values of one metric, by its labels as they are written."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    told = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {text.removeprefix(name): float(value) for text, _, value in told if text.partition("{")[0] == name}


# One setting.


class Measured:
    def __init__(self, name: str) -> None:
        self.name = name
        self.after: dict[str, list[float]] = {}
        self.created = 0.0
        self.cpu: dict[str, dict[str, float]] = {}
        self.requests: dict[str, Counter[tuple[str, str]]] = {}
        self.memory: dict[str, float] = {}
        self.highest: dict[str, float] = {}


def measure(name: str, folder: Path, clusters: int, workers: int, *, delete: bool = True) -> Measured:
    """One setting, from nothing until all clusters are Ready; and until all are gone, if they are to be deleted."""
    found = Measured(name)
    with setting(name, folder) as (plane, port):
        furnish(plane)
        processes = Processes(folder)
        command = [sys.executable, str(LOAD), str(plane.kubeconfig), TEAM, HOME, "lab", str(clusters), str(workers)]
        # The path of the kubeconfig would count the load among those it is put on.
        moved = Path(tempfile.mkdtemp(prefix="butler-bench-client-")) / "kubeconfig"
        moved.touch(mode=0o600)
        moved.write_bytes(plane.kubeconfig.read_bytes())
        command[2] = str(moved)
        cpu, asked = processes.seconds(), requests(port)
        load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert load.stdin is not None
            assert load.stdout is not None
            for line in load.stdout:
                told = json.loads(line)
                event = told["event"]
                found.after[event] = told["after"]
                found.created = told.get("created", found.created)
                now, sent = processes.seconds(), requests(port)
                found.cpu[event] = {text: now[text] - cpu.get(text, 0.0) for text in now}
                found.requests[event] = sent - asked
                note(f"{event}: {len(told['after'])} of {clusters}")
                if event == "allocated":
                    continue
                found.memory = found.memory or processes.megabytes()
                found.highest = processes.megabytes("VmHWM")
                if event == "gone" or not delete:
                    break
                time.sleep(SETTLE)
                cpu, asked = processes.seconds(), requests(port)
                load.stdin.write("go on\n")
                load.stdin.flush()
            if delete:
                load.wait(60)
        finally:
            load.kill()
            load.wait()
            moved.unlink()
            moved.parent.rmdir()
    return found


# Telling.


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show(found: Measured, clusters: int) -> list[Goal]:
    heading(f"{clusters} clusters at once, {found.name}")
    shares = {"p50": 0.50, "p99": 0.99, "most": 1.0}
    names = {"allocated": "created to both allocations", "ready": "created to Ready", "gone": "deleted to gone"}
    table(
        ["", *shares, "of all"],
        [
            [told, *(duration(percentile(spent, share)) for share in shares.values()), f"{len(spent)}"]
            for event, told in names.items()
            if (spent := found.after.get(event))
        ],
    )
    note(f"all were created within {duration(found.created)}")
    print()
    events = [event for event in names if event in found.cpu]
    programs = sorted({program for event in events for program in found.cpu[event]})
    table(
        ["processor time, s, until", *events, "memory then Ready", "highest"],
        [
            [
                program,
                *(f"{found.cpu[event].get(program, 0.0):.1f}" for event in events),
                f"{found.memory.get(program, 0.0):.0f} MB",
                f"{found.highest.get(program, 0.0):.0f} MB",
            ]
            for program in programs
        ],
    )
    for event in ("ready", "gone"):
        show_requests(found.requests.get(event) or Counter(), clusters, names[event])
    p99 = percentile(found.after["allocated"], 0.99)
    slowest = max(found.after["ready"], default=float("inf"))
    complete = all(len(found.after.get(event, ())) == clusters for event in names)
    return [
        Goal(f"{found.name}: created to both allocations, p99 under 1 s", duration(p99), p99 < 1.0),
        Goal(f"{found.name}: all Ready within a minute", duration(slowest), slowest < 60),
        Goal(f"{found.name}: all Ready, and all gone", "yes" if complete else "no", complete),
    ]


def show_requests(counted: Counter[tuple[str, str]], clusters: int, what: str, each: str = " per cluster") -> None:
    if not counted:
        return
    print()
    rows = [
        [f"{verb} {resource}", f"{count / clusters:.2f}"]
        for (verb, resource), count in counted.most_common()
        if count >= clusters / 10
    ]
    lease = lease_requests(counted)
    all_but = [["all but the lease's", f"{(counted.total() - lease) / clusters:.1f}"]] if lease else []
    rows += [*all_but, ["all", f"{counted.total() / clusters:.1f}"]]
    table([f"the controllers' requests{each}, {what}", ""], rows)


def lease_requests(counted: Counter[tuple[str, str]]) -> int:
    """Those that keep the lease: they are sent every two seconds, whatever there is to do."""
    return sum(count for (_, resource), count in counted.items() if resource == "leases")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--only", choices=SETTINGS)
    options = parser.parse_args()
    goals: list[Goal] = []
    note(f"{os.cpu_count()} processors, {os.getloadavg()[0]:.1f} busy before we began")
    with tempfile.TemporaryDirectory(prefix="butler-bench-tenants-") as scratch:
        for name in (options.only,) if options.only else SETTINGS:
            goals += show(measure(name, Path(scratch) / name, options.clusters, options.workers), options.clusters)
    summary(goals)


if __name__ == "__main__":
    main()
