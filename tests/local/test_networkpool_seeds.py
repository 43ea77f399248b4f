"""The examples of Butler's pages with the real allocator at work: what is applied, what is typed, what is printed.

Objects are the files under `examples/`, applied as they are, in the namespace that they name. Commands are typed
through a shell as their pages print them. `test_seed_pages` checks the commands against statuses of the pages'
making; here the statuses are Butler's own.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from control_planes import BIN
from ipam_operator import ALLOCATIONS, POOLS, Desk, Json, RunningOperator, allocation, condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

EXAMPLES = Path(__file__).parents[2] / "examples"
HOME = "butler-system"


class Terminal(Desk):
    """Someone with kubectl on the path and a kubeconfig exported, in the home namespace."""

    def types(self, command: str) -> str:
        """What a command prints; it must succeed."""
        environment = os.environ | {
            "KUBECONFIG": str(self.control_plane.kubeconfig),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        result = subprocess.run(
            ["sh", "-c", command], env=environment, text=True, timeout=60, check=False, capture_output=True
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
        return result.stdout

    def sees(self, command: str) -> list[list[str]]:
        """The cells of the table that a command prints."""
        return [line.split() for line in self.types(command).splitlines()]

    def applies(self, example: str) -> Json:
        self.types(f"kubectl apply -f {EXAMPLES}/{example}")
        return dict(yaml.safe_load((EXAMPLES / example).read_text()))

    def clears(self) -> None:
        """Delete everything; with a controller at work that ends, finalizers or not."""
        paths = [self.path(ALLOCATIONS), self.path(POOLS)]
        for path in paths:
            self.send("DELETE", path)
        self.until(lambda: not any(self.send("GET", path)[1]["items"] for path in paths), "all is gone")
        self.send("DELETE", f"/api/v1/namespaces/{HOME}/events")


@pytest.fixture(scope="module")
def home(control_plane: ControlPlane, definitions: None) -> Iterator[Terminal]:
    control_plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}})
    with closing(Terminal(control_plane, HOME)) as terminal, RunningOperator(control_plane, HOME):
        yield terminal
        terminal.clears()


@pytest.fixture
def terminal(home: Terminal) -> Terminal:
    home.clears()
    return home


# The reference page of IPAllocation.


def test_the_vlan40_objects_become_what_the_reference_shows(terminal: Terminal) -> None:
    terminal.applies("vlan40/network-pool.yaml")
    nodes = terminal.applies("vlan40/nodes.yaml")
    terminal.types("kubectl wait --for=condition=Ready ipa/my-cluster-nodes -n butler-system --timeout=60s")
    services = terminal.applies("vlan40/services.yaml")
    terminal.granted("my-cluster-lb")
    legacy = terminal.applies("vlan40/pinned.yaml")
    terminal.granted("legacy-cluster-nodes")

    table = terminal.sees("kubectl get ipa -n butler-system")
    assert table[0] == ["NAME", "POOL", "CLUSTER", "TYPE", "PHASE", "START", "END", "AGE"]
    assert [row[:-1] for row in table[1:]] == [
        ["legacy-cluster-nodes", "vlan40-pool", "legacy-cluster", "nodes", "Allocated", "10.40.0.100", "10.40.0.109"],
        ["my-cluster-lb", "vlan40-pool", "my-cluster", "loadbalancer", "Allocated", "10.40.0.69", "10.40.0.76"],
        ["my-cluster-nodes", "vlan40-pool", "my-cluster", "nodes", "Allocated", "10.40.0.64", "10.40.0.68"],
    ]
    table = terminal.sees("kubectl get np -n butler-system")
    assert table[0] == ["NAME", "CIDR", "AVAILABLE", "ALLOCATED", "TOTAL", "AGE"]
    assert table[1][:-1] == ["vlan40-pool", "10.40.0.0/21", "1960", "23", "1983"]

    found = terminal.get(ALLOCATIONS, "my-cluster-nodes")
    assert found is not None
    ready = condition(found["status"], "Ready")
    assert found["status"]["conditions"][0] == ready, "what people look for comes first"
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "True",
        "Allocated",
        "5 IPs allocated from vlan40-pool",
    )
    status = found["status"]
    assert status["allocatedAt"] == ready["lastTransitionTime"]
    assert {field: value for field, value in status.items() if field not in ("conditions", "allocatedAt")} == {
        "phase": "Allocated",
        "startAddress": "10.40.0.64",
        "endAddress": "10.40.0.68",
        "addresses": ["10.40.0.64", "10.40.0.65", "10.40.0.66", "10.40.0.67", "10.40.0.68"],
        "allocatedCount": 5,
        "observedGeneration": 1,
        "allocatedBy": "networkpool-controller",
    }
    tenant = condition(status, "TenantFound")
    assert (tenant["status"], tenant["reason"]) == ("False", "NotFound"), "its cluster is not there yet"
    for applied in (nodes, services, legacy):
        now = terminal.get(ALLOCATIONS, applied["metadata"]["name"])
        assert now is not None
        assert now["metadata"]["labels"] == applied["metadata"]["labels"]
        assert now["metadata"]["finalizers"] == ["butler.butlerlabs.dev/ipallocation"]
        assert now["spec"] == applied["spec"]
        assert "cidr" not in now["status"], "none of these ranges is a network"
    assert terminal.status(ALLOCATIONS, "legacy-cluster-nodes")["allocatedCount"] == 10


def test_a_range_of_an_existing_cluster_is_kept_clear_of_the_others(terminal: Terminal) -> None:
    """Migration: the pinned range comes last, and the dynamic ones that follow go around it."""
    terminal.applies("vlan40/network-pool.yaml")
    terminal.applies("vlan40/pinned.yaml")
    terminal.granted("legacy-cluster-nodes")
    for index in range(6):
        terminal.ask(f"tenant-{index}", 8, of="vlan40-pool")
        terminal.granted(f"tenant-{index}")
    ranges = [terminal.granted(f"tenant-{index}") for index in range(6)]
    assert ranges[:4] == [f"10.40.0.{64 + 8 * i}-10.40.0.{71 + 8 * i}" for i in range(4)]
    assert ranges[4:] == ["10.40.0.110-10.40.0.117", "10.40.0.118-10.40.0.125"]


def test_the_life_of_an_allocation_from_pending_to_gone(terminal: Terminal) -> None:
    terminal.applies("network-pool.yaml")
    terminal.ready("lab-pool")
    since = terminal.version(ALLOCATIONS)
    asked = allocation("my-cluster-nodes", of="lab-pool")
    terminal.create(ALLOCATIONS, asked)
    assert terminal.granted("my-cluster-nodes") == "10.40.1.0-10.40.1.4", "nodesPerTenant of the pool is 5"
    terminal.counted("lab-pool", allocatedIPs=5, availableIPs=1786, totalIPs=1791, allocationCount=1)

    assert terminal.types("kubectl delete ipa my-cluster-nodes -n butler-system --timeout=30s").startswith(
        'ipallocation.butler.butlerlabs.dev "my-cluster-nodes" deleted'
    )
    assert terminal.get(ALLOCATIONS, "my-cluster-nodes") is None, "kubectl returned, so it is gone"
    phases, history = [], terminal.history(ALLOCATIONS, "my-cluster-nodes", since)
    for event in history:
        phase = event["object"]["status"]["phase"]
        if phase not in phases[-1:]:
            phases.append(phase)
    assert phases == ["Pending", "Allocated", "Released"]
    last = history[-1]["object"]["status"]
    assert last["releasedAt"]
    assert (last["startAddress"], last["endAddress"]) == ("10.40.1.0", "10.40.1.4"), "the record says who had it"
    assert condition(last, "Ready")["reason"] == "Released"
    terminal.counted("lab-pool", allocatedIPs=0, availableIPs=1791, allocationCount=0)
    told = (
        "Normal",
        "IPsReleased",
        "5 IPs (10.40.1.0-10.40.1.4) of IPAllocation my-cluster-nodes released: deleted by request",
    )
    terminal.until(lambda: told in terminal.events("NetworkPool", "lab-pool"), "an event on the pool records it")
    assert ("Normal", "IPsAllocated", "granted my-cluster-nodes 10.40.1.0-10.40.1.4") in terminal.events(
        "NetworkPool", "lab-pool"
    )


# The worked example of the operations page.


FIGURES = r"""kubectl get networkpool -n butler-system -o custom-columns=\
'NAME:.metadata.name,TOTAL:.status.totalIPs,ALLOC:.status.allocatedIPs,AVAIL:.status.availableIPs,COUNT:.status.allocationCount,FRAG:.status.fragmentationPercent'
"""
CONDITIONS = r"""kubectl get networkpool -n butler-system -o custom-columns=\
'NAME:.metadata.name,WARN:.status.conditions[?(@.type=="CapacityWarning")].status,CRIT:.status.conditions[?(@.type=="CapacityCritical")].status,EXHAUSTED:.status.conditions[?(@.type=="CapacityExhausted")].status'
"""
TABLE = [
    (8, 16, "50%", ["False", "False", "False"]),
    (12, 24, "75%", ["True", "False", "False"]),
    (14, 28, "87%", ["True", "True", "False"]),
    (16, 32, "100%", ["True", "True", "True"]),
]


def test_the_worked_example_of_32_addresses(terminal: Terminal) -> None:
    terminal.applies("elastic/network-pool.yaml")
    terminal.ask("tenant-0-lb", 2, of="production-pool", kind="loadbalancer")
    assert terminal.granted("tenant-0-lb") == "10.92.90.49-10.92.90.50"
    tenants = 1
    for wanted, allocated, shown, conditions in TABLE:
        for number in range(tenants, wanted):
            terminal.ask(f"tenant-{number}-lb", 2, of="production-pool", kind="loadbalancer")
        tenants = wanted
        status = terminal.counted("production-pool", allocatedIPs=allocated)
        assert condition(status, "CapacityWarning")["message"].startswith(f"{shown} of 32 addresses are allocated, ")
        assert terminal.sees(FIGURES) == [
            ["NAME", "TOTAL", "ALLOC", "AVAIL", "COUNT", "FRAG"],
            ["production-pool", "32", str(allocated), str(32 - allocated), str(wanted), "0"],
        ]
        assert terminal.sees(CONDITIONS) == [
            ["NAME", "WARN", "CRIT", "EXHAUSTED"],
            ["production-pool", *conditions],
        ]

    def capacity_events() -> list[list[str]]:
        rows = terminal.sees("kubectl get events -n butler-system --field-selector involvedObject.kind=NetworkPool")
        return [row for row in rows if row[2].startswith("PoolCapacity")]

    terminal.until(lambda: len(capacity_events()) == 3, "three events of capacity")
    assert sorted(row[1:4] for row in capacity_events()) == [
        ["Warning", "PoolCapacityCritical", "networkpool/production-pool"],
        ["Warning", "PoolCapacityExhausted", "networkpool/production-pool"],
        ["Warning", "PoolCapacityWarning", "networkpool/production-pool"],
    ]

    # Back to 50 %: conditions and events at once, as ten minutes of silence are for each direction by itself.
    for number in range(8, 16):
        terminal.delete(ALLOCATIONS, f"tenant-{number}-lb")
    terminal.counted("production-pool", allocatedIPs=16)
    assert terminal.sees(CONDITIONS)[1] == ["production-pool", "False", "False", "False"]
    printed = terminal.types(
        "kubectl get networkpool -n butler-system production-pool \\\n"
        "-o jsonpath='Available: {.status.availableIPs}, Largest block: {.status.largestFreeBlock}'"
    )
    assert printed == "Available: 16, Largest block: 16"

    def recovered() -> list[str]:
        found = terminal.events("NetworkPool", "production-pool")
        return [
            message.partition("back below ")[2] for _, reason, message in found if reason == "PoolCapacityRecovered"
        ]

    tiers = {"70% (CapacityWarning)", "85% (CapacityCritical)", "95% (CapacityExhausted)"}
    terminal.until(lambda: set(recovered()) == tiers, "recovery is told")
    assert len(recovered()) == 3


def test_the_other_objects_of_the_worked_example(terminal: Terminal) -> None:
    """All of the folder at once, in the order in which kubectl takes the files."""
    terminal.types(f"kubectl apply -f {EXAMPLES}/elastic")
    assert terminal.granted("old-lb") == "10.92.90.60-10.92.90.61"
    assert terminal.granted("web-lb") == "10.92.90.49-10.92.90.50"
    assert terminal.status(ALLOCATIONS, "old-lb")["cidr"] == "10.92.90.60/31"
    terminal.types(f"kubectl delete --timeout=60s -f {EXAMPLES}/elastic")
