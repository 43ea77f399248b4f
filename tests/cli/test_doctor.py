"""`doctor`, `version` and `crds`: what keeps Butler from working, and what this program is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml

from cli.terminal import Cli, eventually
from local_server import LocalServer

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane

HOME = "butler-system"
HEALTHY = {"Kubeconfig", "API server", "Clock", "Definitions", "Permissions", "Controllers", "Admission", "Tenants"}


def results(said: str) -> dict[str, str]:
    return {line.split("   ")[1].strip(): line.split()[0] for line in said.splitlines()[1:] if "   " in line}


def make_pool(plane: ControlPlane, name: str, cidr: str, **spec: Any) -> None:
    meta = {"name": name, "namespace": HOME}
    body: dict[str, Any] = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "NetworkPool", "metadata": meta}
    plane.kubectl("create", "-f", "-", stdin=json.dumps({**body, "spec": {"cidr": cidr, **spec}}))


def test_a_new_server_is_healthy_and_the_next_steps_are_named(adm: Cli, plane: ControlPlane) -> None:
    eventually(lambda: adm.run("doctor").code == 0, "the controllers are ready")
    said = adm("doctor")
    found = results(said)
    assert {name for name, result in found.items() if result == "PASS"} >= {*HEALTHY, "Cluster API", "MetalLB"}
    assert "there are none: `butleradm pool create` makes one" in said
    make_pool(plane, "small", "10.77.0.0/29")
    eventually(lambda: results(adm("doctor"))["Pools"] == "PASS", "the pool is ready")
    said = adm.json("doctor")
    assert said["healthy"] is True
    assert {"check": "Pools", "result": "PASS", "what": "1 ready, none near its end", "todo": None} in said["checks"]


def test_what_is_wrong_is_told_with_the_next_step_at_any_width(adm: Cli, plane: ControlPlane) -> None:
    make_pool(plane, "full", "10.78.0.0/29")
    spec = {"poolRef": {"name": "full"}, "tenantClusterRef": {"name": "a", "namespace": "b"}}
    body: dict[str, Any] = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "IPAllocation"}
    body |= {"metadata": {"name": "x", "namespace": HOME}, "spec": {**spec, "type": "nodes", "count": 6}}
    plane.kubectl("create", "-f", "-", stdin=json.dumps(body))
    eventually(lambda: "full: 100% of 6 addresses" in adm("doctor"), "the pool is full")
    narrow = adm.in_terminal("doctor", columns=60)
    assert narrow.code == 0, str(narrow)
    lines = click.unstyle(narrow.out).splitlines()
    assert all(len(line) <= 60 or len(line.split()) == 1 for line in lines), str(narrow)  # a path is not broken
    assert "`butleradm pool grow full`" in " ".join(click.unstyle(narrow.out).split())


def test_who_may_not_look_is_told_what_is_missing(adm: Cli) -> None:
    said = adm.run("doctor", "--as", "stranger")
    assert said.code == 8
    found = results(said.out)
    assert (found["Permissions"], found["Controllers"], found["Estate"]) == ("FAIL", "WARN", "FAIL")
    assert "you may not list, create, patch, delete networkpools in butler-system" in said.out


def test_without_a_server_there_is_one_finding(tmp_path: Path) -> None:
    said = Cli(None).run("doctor")
    assert (said.code, results(said.out)) == (8, {"Kubeconfig": "FAIL"}), str(said)
    silent = {"cluster": {"server": "https://127.0.0.1:1"}, "name": "a"}
    context = {"context": {"cluster": "a", "user": "a"}, "name": "a"}
    users = [{"name": "a", "user": {"token": "x"}}]
    file = tmp_path / "kubeconfig"
    config = {"kind": "Config", "clusters": [silent], "contexts": [context], "users": users, "current-context": "a"}
    file.write_text(yaml.safe_dump(config))
    said = Cli(file).run("doctor")
    assert (said.code, results(said.out)) == (8, {"Kubeconfig": "PASS", "API server": "FAIL"}), str(said)
    assert "cannot be reached" in said.out


def test_without_controllers_and_with_old_definitions_it_fails(tmp_path: Path) -> None:
    with LocalServer(tmp_path) as server:
        plane, adm = server.plane, Cli(server.plane.kubeconfig)
        assert results(adm.run("doctor").out)["Controllers"] == "FAIL"
        name = "networkpools.butler.butlerlabs.dev"
        spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
        less = [
            {"op": "remove", "path": f"{spec}/{part}"} for part in ("properties/reserved", "x-kubernetes-validations")
        ]
        plane.kubectl("patch", "crd", name, "--type", "json", "-p", json.dumps(less))
        said = adm.run("doctor")
        assert said.code == 8
        assert f"older than this program: {name} lacks .spec.reserved, .spec.reserved[].cidr" in said.out
        plane.kubectl("delete", "crd", name)
        said = adm.run("doctor")
        assert (
            f"not on the server: {name}: `butleradm crds | kubectl apply --server-side -f -` installs them" in said.out
        )
        assert results(said.out)["Estate"] == "FAIL"
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=adm("crds"))
        found = results(adm.run("doctor").out)
        assert (found["Definitions"], found["Admission"]) == ("PASS", "WARN")


def test_the_definitions_are_those_of_the_server(adm: Cli, plane: ControlPlane) -> None:
    whole = list(yaml.safe_load_all(adm("crds")))
    assert [item["spec"]["names"]["kind"] for item in whole] == [
        "NetworkPool", "IPAllocation", "ProviderConfig", "TenantCluster", "TenantAddon",
    ]  # fmt: skip
    names = adm("crds", "-o", "name").split()
    assert names[0] == "customresourcedefinition.apiextensions.k8s.io/networkpools.butler.butlerlabs.dev"
    assert plane.kubectl("get", *names, "-o", "name").stdout.split() == names
    for word in ("NetworkPool", "np", "networkpools", "networkpool.butler.butlerlabs.dev"):
        assert json.loads(adm("crds", "--kind", word, "-o", "json")) == whole[0]
    two = json.loads(adm("crds", "--kind", "np", "--kind", "ipa", "--kind", "np", "-o", "json"))
    assert two["items"] == whole[:2]
    assert "Butler has no kind pod: choose one of NetworkPool, " in adm.refused(2, "crds", "--kind", "pod")
    plane.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=adm("crds"))


@pytest.mark.parametrize("program", ["butleradm", "butlerctl", "kubectl-butler"])
def test_versions_are_told_of_both_sides_and_of_one_where_there_is_no_other(plane: ControlPlane, program: str) -> None:
    said = json.loads(Cli(plane.kubeconfig, program)("version", "-o", "json"))
    assert said["client"]["version"] == "0.1.0"
    assert said["server"]["address"] == plane.url
    assert said["server"]["version"].startswith("v1.")
    assert said["server"]["butler"] == ["butler.butlerlabs.dev/v1alpha1"]
    alone = Cli(None, program).run("version")
    assert alone.code == 0
    assert alone.out.startswith("Client:")
    assert "The server was not asked: no Kubernetes API server is configured" in alone.err
    quiet = Cli(None, program).run("version", "--client")
    assert (quiet.code, quiet.err) == (0, "")
    assert "Server" not in quiet.out
