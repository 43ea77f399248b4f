"""The commands that Butler's pages tell an operator to type, typed: through a shell, as printed, on both servers.

The objects of those pages are the files under `examples/`; here they are applied with kubectl, and what controllers
would write into their status is written with kubectl too, in the pages' values. So each command can be held against
the output that its page prints. `<placeholders>` are filled in as a reader would; nothing else is changed.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES = [*sorted(EXAMPLES.glob("*.yaml")), EXAMPLES / "elastic", EXAMPLES / "vlan40"]
"""The examples that hold the objects of the pages; others show whole platforms."""
ALL_PAGES = " ".join(f"-f {path}" for path in PAGES)
HOME = "butler-system"
ROLE = "butler.butlerlabs.dev/allocation-role"
WHEN = "2026-02-15T10:00:30Z"

METALLB = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ipaddresspools.metallb.io"},
    "spec": {
        "group": "metallb.io",
        "scope": "Namespaced",
        "names": {"kind": "IPAddressPool", "plural": "ipaddresspools", "singular": "ipaddresspool"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"addresses": {"type": "array", "items": {"type": "string"}}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
TENANT = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "traefik"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"}},
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "traefik", "namespace": "traefik"},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "web", "port": 80}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "inside", "namespace": "traefik"},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80}]},
    },
    {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {"name": "default-pool", "namespace": "metallb-system"},
        "spec": {"addresses": ["10.92.90.49-10.92.90.50"]},
    },
]


class Operator:
    """Someone at a terminal, with kubectl on the path and a kubeconfig exported."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.kubeconfig = control_plane.kubeconfig
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(control_plane.kubeconfig),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }

    def types(self, command: str, stdin: str = "") -> str:
        """What a command prints, both streams as a terminal shows them; it must succeed."""
        result = subprocess.run(
            ["sh", "-c", command],
            env=self._environment, input=stdin, text=True, timeout=60, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert result.returncode == 0, f"{command}\n{result.stdout}"
        return result.stdout

    def sees(self, command: str) -> list[list[str]]:
        """The cells of the table that a command prints."""
        return [line.split() for line in self.types(command).splitlines()]

    def applies(self, *objects: object) -> None:
        self.types("kubectl apply -f -", "\n---\n".join(json.dumps(value) for value in objects))

    def reports(self, kind: str, name: str, status: object) -> None:
        """Write a status, as a controller would."""
        patch = json.dumps({"status": status})
        self.types(f"kubectl patch {kind} {name} -n {HOME} --subresource=status --type=merge -p '{patch}'")


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane) -> Iterator[Operator]:
    """An operator of a management cluster with the pages' objects, and of a tenant cluster in the same place."""
    operator = Operator(control_plane)
    operator.types(f"kubectl apply --server-side --force-conflicts -f {ROOT}/charts/butler/crds")
    operator.applies({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}, METALLB)
    operator.types("kubectl wait --for=condition=Established crd --all --timeout=30s")
    operator.types(f"kubectl apply {ALL_PAGES}")
    operator.applies(growth_allocation(), *TENANT, *capacity_events())
    report(operator)
    yield operator
    operator.types(f"kubectl delete --ignore-not-found {ALL_PAGES}")
    operator.types(f"kubectl delete ipallocations,events --all -n {HOME}")
    operator.types("kubectl delete namespace traefik metallb-system")
    operator.types("kubectl delete crd ipaddresspools.metallb.io")


def growth_allocation() -> dict[str, Any]:
    """What the tenant cluster of the examples asked for when it ran out of addresses."""
    allocation: dict[str, Any] = yaml.safe_load((EXAMPLES / "vlan40" / "services.yaml").read_text())
    allocation["metadata"]["name"] = "my-cluster-lb-growth-1"
    allocation["metadata"]["labels"][ROLE] = "growth"
    allocation["spec"]["count"] = 1
    return allocation


def capacity_events() -> Iterator[dict[str, Any]]:
    for kind, name, reason in (
        ("NetworkPool", "production-pool", "CapacityWarning"),
        ("IPAllocation", "my-cluster-nodes", "Allocated"),
    ):
        yield {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.1", "namespace": HOME},
            "involvedObject": {
                "apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": kind, "name": name, "namespace": HOME,
            },
            "type": "Warning",
            "reason": reason,
            "message": f"{name} has something to say",
            "source": {"component": "networkpool-controller"},
            "firstTimestamp": WHEN,
            "lastTimestamp": WHEN,
            "count": 1,
        }  # fmt: skip


def condition(name: str, status: str = "False", reason: str = "UtilizationBelowThreshold") -> dict[str, str]:
    return {"type": name, "status": status, "reason": reason, "message": reason, "lastTransitionTime": WHEN}


def granted(first: int, last: int, **more: object) -> dict[str, object]:
    addresses = [f"10.40.0.{number}" for number in range(first, last + 1)]
    return {
        "phase": "Allocated",
        "conditions": [condition("Ready", "True", "Allocated")],
        "startAddress": addresses[0],
        "endAddress": addresses[-1],
        "addresses": addresses,
        "allocatedCount": len(addresses),
        "allocatedAt": WHEN,
        "allocatedBy": "networkpool-controller",
        **more,
    }


def report(operator: Operator) -> None:
    """Write the numbers of the pages into the objects' status."""
    tiers = ("CapacityWarning", "CapacityCritical", "CapacityExhausted")
    operator.reports(
        "networkpool",
        "production-pool",
        {
            "totalIPs": 32,
            "allocatedIPs": 16,
            "availableIPs": 16,
            "allocationCount": 8,
            "fragmentationPercent": 0,
            "largestFreeBlock": 16,
            "conditions": [condition(tier) for tier in tiers],
        },
    )
    operator.reports("ipallocation", "my-cluster-nodes", granted(64, 68, cidr="10.40.0.64/29"))
    operator.reports("ipallocation", "my-cluster-lb", granted(80, 87, cidr="10.40.0.80/29"))
    operator.reports("ipallocation", "my-cluster-lb-growth-1", granted(88, 88, cidr="10.40.0.88/32"))
    patch = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": "10.92.90.49"}]}}})
    operator.types(f"kubectl patch service traefik -n traefik --subresource=status -p '{patch}'")


# Pool capacity


def test_the_overview_of_all_pools(operator: Operator) -> None:
    table = operator.sees("kubectl get networkpool -n butler-system")
    assert table[0] == ["NAME", "CIDR", "AVAILABLE", "ALLOCATED", "TOTAL", "AGE"]
    assert [row[0] for row in table[1:]] == ["lab-pool", "production-pool", "vlan40-pool"]
    assert table[2][:5] == ["production-pool", "10.92.90.0/23", "16", "16", "32"]


def test_the_numbers_of_each_pool(operator: Operator) -> None:
    table = operator.sees(
        r"""kubectl get networkpool -n butler-system -o custom-columns=\
'NAME:.metadata.name,TOTAL:.status.totalIPs,ALLOC:.status.allocatedIPs,AVAIL:.status.availableIPs,COUNT:.status.allocationCount,FRAG:.status.fragmentationPercent'
"""
    )
    assert table[0] == ["NAME", "TOTAL", "ALLOC", "AVAIL", "COUNT", "FRAG"]
    assert ["production-pool", "32", "16", "16", "8", "0"] in table
    assert ["lab-pool", "<none>", "<none>", "<none>", "<none>", "<none>"] in table


def test_the_capacity_conditions_of_each_pool(operator: Operator) -> None:
    table = operator.sees(
        r"""kubectl get networkpool -n butler-system -o custom-columns=\
'NAME:.metadata.name,WARN:.status.conditions[?(@.type=="CapacityWarning")].status,CRIT:.status.conditions[?(@.type=="CapacityCritical")].status,EXHAUSTED:.status.conditions[?(@.type=="CapacityExhausted")].status'
"""
    )
    assert table[0] == ["NAME", "WARN", "CRIT", "EXHAUSTED"]
    assert ["production-pool", "False", "False", "False"] in table


def test_the_events_of_pools(operator: Operator) -> None:
    table = operator.sees("kubectl get events -n butler-system --field-selector involvedObject.kind=NetworkPool")
    assert table[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    [event] = table[1:]
    assert event[1:4] == ["Warning", "CapacityWarning", "networkpool/production-pool"]
    assert event[4:] == ["production-pool", "has", "something", "to", "say"]


# A fresh tenant


def test_the_load_balancers_of_a_fresh_tenant(operator: Operator) -> None:
    table = operator.sees(
        f"kubectl --kubeconfig {operator.kubeconfig} get services -A --field-selector spec.type=LoadBalancer"
    )
    assert table[0] == ["NAMESPACE", "NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert {row[2] for row in table[1:]} == {"LoadBalancer"}
    [traefik] = [row for row in table if row[0] == "traefik"]
    assert traefik[:3] == ["traefik", "traefik", "LoadBalancer"]
    assert traefik[4] == "10.92.90.49"


def test_the_addresses_that_metallb_has(operator: Operator) -> None:
    printed = operator.types(
        f"kubectl --kubeconfig {operator.kubeconfig} get ipaddresspool -n metallb-system default-pool"
        " -o jsonpath='{.spec.addresses}'"
    )
    assert printed == '["10.92.90.49-10.92.90.50"]'


def test_the_addresses_that_metallb_has_on_two_lines(operator: Operator) -> None:
    printed = operator.types(
        f"""kubectl --kubeconfig {operator.kubeconfig} \\
get ipaddresspool -n metallb-system default-pool -o jsonpath='{{.spec.addresses}}'
"""
    )
    assert printed == '["10.92.90.49-10.92.90.50"]'


# Allocations


def test_the_columns_of_allocations_are_those_of_the_reference(operator: Operator) -> None:
    table = operator.sees("kubectl get ipa -n butler-system")
    assert table[0] == ["NAME", "POOL", "CLUSTER", "TYPE", "PHASE", "START", "END", "AGE"]
    rows = {row[0]: row[1:-1] for row in table[1:]}
    assert rows["my-cluster-nodes"] == ["vlan40-pool", "my-cluster", "nodes", "Allocated", "10.40.0.64", "10.40.0.68"]
    assert rows["my-cluster-lb"] == [
        "vlan40-pool", "my-cluster", "loadbalancer", "Allocated", "10.40.0.80", "10.40.0.87",
    ]  # fmt: skip


def test_all_allocations_with_role_labels(operator: Operator) -> None:
    table = operator.sees(
        r"""kubectl get ipallocation -n butler-system \
-o custom-columns='NAME:.metadata.name,TENANT:.metadata.labels.butler\.butlerlabs\.dev/tenant,ROLE:.metadata.labels.butler\.butlerlabs\.dev/allocation-role,PHASE:.status.phase,COUNT:.spec.count,RANGE:.status.cidr'
"""  # noqa: E501 (as printed)
    )
    assert table == [
        ["NAME", "TENANT", "ROLE", "PHASE", "COUNT", "RANGE"],
        ["legacy-cluster-nodes", "legacy-cluster", "<none>", "Pending", "<none>", "<none>"],
        ["my-cluster-lb", "my-cluster", "<none>", "Allocated", "8", "10.40.0.80/29"],
        ["my-cluster-lb-growth-1", "my-cluster", "growth", "Allocated", "1", "10.40.0.88/32"],
        ["my-cluster-nodes", "my-cluster", "<none>", "Allocated", "5", "10.40.0.64/29"],
        ["old-lb", "<none>", "<none>", "Pending", "<none>", "<none>"],
        ["web-lb", "<none>", "<none>", "Pending", "2", "<none>"],
    ]


def test_all_growth_allocations(operator: Operator) -> None:
    table = operator.sees(
        r"""kubectl get ipallocation -n butler-system \
-l butler.butlerlabs.dev/allocation-role=growth
"""
    )
    assert [row[0] for row in table] == ["NAME", "my-cluster-lb-growth-1"]


@pytest.mark.parametrize(("cluster", "found"), [("my-cluster", True), ("legacy-cluster", False)])
def test_the_growth_allocations_of_one_tenant(operator: Operator, cluster: str, found: bool) -> None:
    printed = operator.types(
        rf"""kubectl get ipallocation -n butler-system \
-l butler.butlerlabs.dev/tenant={cluster},butler.butlerlabs.dev/allocation-role=growth
"""
    )
    assert ("my-cluster-lb-growth-1" in printed) is found
    assert (printed == "No resources found in butler-system namespace.\n") is not found


def test_the_ranges_of_one_tenant(operator: Operator) -> None:
    table = operator.sees(
        r"""kubectl get ipallocation -n butler-system \
-l butler.butlerlabs.dev/tenant=my-cluster \
-o custom-columns='NAME:.metadata.name,START:.status.startAddress,END:.status.endAddress'
"""
    )
    assert table == [
        ["NAME", "START", "END"],
        ["my-cluster-lb", "10.40.0.80", "10.40.0.87"],
        ["my-cluster-lb-growth-1", "10.40.0.88", "10.40.0.88"],
        ["my-cluster-nodes", "10.40.0.64", "10.40.0.68"],
    ]


# Procedures


def test_what_a_pool_can_still_give(operator: Operator) -> None:
    printed = operator.types(
        r"""kubectl get networkpool -n butler-system production-pool \
-o jsonpath='Available: {.status.availableIPs}, Largest block: {.status.largestFreeBlock}'
"""
    )
    assert printed == "Available: 16, Largest block: 16"


def test_orphaned_allocations_are_found_and_deleted_by_label(operator: Operator) -> None:
    orphan = growth_allocation()
    orphan["metadata"] |= {"name": "gone-nodes", "labels": {"butler.butlerlabs.dev/tenant": "gone"}}
    operator.applies(orphan)
    table = operator.sees(
        r"""kubectl get ipallocation -n butler-system \
-l butler.butlerlabs.dev/tenant=gone
"""
    )
    assert [row[0] for row in table] == ["NAME", "gone-nodes"]
    printed = operator.types(
        r"""kubectl delete ipallocation -n butler-system \
-l butler.butlerlabs.dev/tenant=gone
"""
    )
    assert printed == 'ipallocation.butler.butlerlabs.dev "gone-nodes" deleted from butler-system namespace\n'
    assert "gone-nodes" not in operator.types("kubectl get ipallocation -n butler-system")
    assert "my-cluster-nodes" in operator.types("kubectl get ipallocation -n butler-system")


NO_CONTROLLER = "No resources found in butler-system namespace.\n"
LOGS = "kubectl logs -n butler-system -l app.kubernetes.io/name=butler-controller --tail=100"


def test_controller_pods_that_are_not_there(operator: Operator) -> None:
    command = "kubectl get pods -n butler-system -l app.kubernetes.io/name=butler-controller"
    assert operator.types(command) == NO_CONTROLLER


def test_log_entries_of_controllers_that_are_not_there(operator: Operator) -> None:
    assert operator.types(LOGS) == NO_CONTROLLER
    printed = operator.types(
        rf"""{LOGS} \
| grep -i -E "ipam|alloc|growth|shrink|metallb" || true
"""
    )
    assert printed == NO_CONTROLLER


def test_controller_pods_and_their_logs(operator: Operator) -> None:
    operator.types(
        "kubectl run butler-controller -n butler-system --image=butler -l app.kubernetes.io/name=butler-controller"
    )
    table = operator.sees("kubectl get pods -n butler-system -l app.kubernetes.io/name=butler-controller")
    assert table[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert table[1][:4] == ["butler-controller", "0/1", "Pending", "0"]
    assert operator.types(LOGS) == "", "a pod that was never started has an empty log"
    operator.types("kubectl delete pod butler-controller -n butler-system --now")


# The objects of the pages


def test_the_objects_are_kept_as_written(operator: Operator) -> None:
    for file in (file for path in PAGES for file in ([path] if path.is_file() else sorted(path.glob("*.yaml")))):
        for written in yaml.safe_load_all(file.read_text()):
            kind, meta = written["kind"], written["metadata"]
            home = f"-n {meta['namespace']}" if "namespace" in meta else ""
            kept = json.loads(operator.types(f"kubectl get {kind} {meta['name']} {home} -o json"))
            labels = kept["metadata"].get("labels", {})
            labels.pop("kubernetes.io/metadata.name", None)  # every namespace gets this one
            assert labels == meta.get("labels", {}), file
            assert contains(kept["spec"], written.get("spec", {})), file


def contains(whole: Any, part: Any) -> bool:
    """Whether everything that was written is there; defaults may have been added."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(contains(whole.get(key), value) for key, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


def test_a_node_allocation_needs_no_count(operator: Operator) -> None:
    allocation = yaml.safe_load((EXAMPLES / "vlan40" / "nodes.yaml").read_text())
    allocation["metadata"]["name"] = "my-cluster-default-count"
    del allocation["spec"]["count"]
    printed = operator.types("kubectl apply --dry-run=server -o jsonpath='{.spec}' -f -", json.dumps(allocation))
    assert "count" not in json.loads(printed)


def test_a_pinned_address_has_four_numbers(operator: Operator) -> None:
    allocation = yaml.safe_load((EXAMPLES / "vlan40" / "pinned.yaml").read_text())
    allocation["metadata"]["name"] = "badly-pinned"
    allocation["spec"]["pinnedRange"]["startAddress"] = "10.40.0"
    printed = operator.types("kubectl create -f - 2>&1 || true", json.dumps(allocation))
    assert 'The IPAllocation "badly-pinned" is invalid' in printed
    assert r"""should match '^(\d{1,3}\.){3}\d{1,3}$'""" in printed


def test_the_finalizer_holds_a_deleted_allocation_until_it_is_taken_away(operator: Operator) -> None:
    allocation = growth_allocation()
    allocation["metadata"] |= {"name": "held", "finalizers": ["butler.butlerlabs.dev/ipallocation"]}
    operator.applies(allocation)
    operator.types(f"kubectl delete ipa held -n {HOME} --wait=false")
    held = json.loads(operator.types(f"kubectl get ipa held -n {HOME} -o json"))
    assert held["metadata"]["deletionTimestamp"]
    patch = '{"metadata":{"finalizers":null}}'
    operator.types(f"kubectl patch ipa held -n {HOME} --type=merge -p '{patch}'")
    assert operator.types(f"kubectl get ipa held -n {HOME} --ignore-not-found") == ""
