"""Commands that ask a running tenant: who has an address now, what hangs on a release, adopting what runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli.estates import make_pool, make_tenant, names, read
from cli.terminal import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from cli.terminal import Cli
    from control_planes import ControlPlane
    from local_server import LocalServer

WEB = "team-platform/web"


@pytest.fixture(scope="module")
def web(server: LocalServer) -> Path:
    """The kubeconfig of a running tenant."""
    return make_tenant(server.plane, server.data_dir)


@pytest.fixture
def held(plane: ControlPlane, web: Path) -> dict[str, str]:
    """The first address for load balancers and for nodes."""
    return {type_: read(plane, "ipallocations", f"web-{type_}")["status"]["startAddress"] for type_ in ("lb", "nodes")}


def on_tenant(plane: ControlPlane, web: Path, *arguments: str, stdin: str | None = None) -> str:
    return plane.kubectl("--kubeconfig", str(web), *arguments, stdin=stdin).stdout


def test_who_finds_the_service_and_the_node_that_have_it(adm: Cli, held: dict[str, str]) -> None:
    eventually(lambda: "Service traefik/traefik" in adm("ipam", "who", held["lb"], "--live"), "traefik has an address")
    said = adm("ipam", "who", held["lb"], "--live")
    assert f"Service traefik/traefik ({held['lb']}) on {WEB}" in said
    assert f"{WEB} may announce" in said
    node = adm.json("ipam", "who", held["nodes"], "--live")
    assert [(item["kind"], item["tenant"]) for item in node["live"]] == [("Node", WEB)]
    assert node["notAsked"] == []


def test_a_release_names_what_runs_on_the_addresses(adm: Cli, held: dict[str, str]) -> None:
    told = adm.run("allocation", "release", "web-lb", "web-nodes", "--dry-run=server", "-o", "json")
    assert told.code == 1, str(told)
    balancers, nodes = json.loads(told.out)["allocations"]
    assert [use["name"] for use in balancers["inUse"]] == ["traefik/traefik"]
    assert {use["kind"] for use in nodes["inUse"]} == {"Node"}
    assert balancers["refused"]
    assert nodes["refused"]
    refused = adm.run("allocation", "release", "web-lb")
    assert f"in use: Service traefik/traefik ({held['lb']})" in refused.err
    assert "web-lb of TenantCluster team-platform/web belongs to a cluster that exists" in refused.error
    asked = adm.run("allocation", "release", "web-lb", "--force")
    assert asked.code == 2, str(asked)
    assert "the addresses are free for other tenants at once, and the Services above lose them" in asked.err


def test_a_tenant_of_butler_has_everything_already(adm: Cli, web: Path) -> None:
    said = adm("ipam", "import", "--from-tenant", WEB)
    assert said.splitlines()[-1].startswith("Nothing to do, ")


def test_a_running_estate_is_adopted_and_nothing_moves(adm: Cli, plane: ControlPlane, web: Path, network: str) -> None:
    make_pool(plane, network)
    addresses = [f"{network}.1.0/28", f"{network}.2.5-{network}.2.9", "fd00::/120", "192.0.2.0/30"]
    meta = {"name": "extra", "namespace": "metallb-system"}
    body = {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": meta,
        "spec": {"addresses": addresses},
    }
    on_tenant(plane, web, "apply", "-f", "-", stdin=json.dumps(body))
    path = ("get", "service", "-n", "traefik", "traefik", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
    before = on_tenant(plane, web, *path)

    first = adm.run("ipam", "import", "--from-tenant", WEB, "--yes")
    assert first.code == 8, str(first)
    assert "! IPAddressPool extra: 192.0.2.0-192.0.2.3 lies in no pool" in first.out
    assert "Note: the addresses of IPAddressPool extra will be the tenant's, too" in first.err
    assert "Note: 1 IPv6 entry is left alone" in first.err
    done = adm("ipam", "import", "--from-tenant", WEB, "--yes", "--skip-conflicts")
    assert "2 made, " in done.splitlines()[-1]
    made = read(plane, "ipallocations", "web-lb-2")
    assert (made["status"]["startAddress"], made["status"]["endAddress"]) == (f"{network}.1.0", f"{network}.1.15")
    assert made["metadata"]["labels"]["butler.butlerlabs.dev/tenant-uid"]
    known = names(plane)
    again = adm("ipam", "import", "--from-tenant", WEB, "--yes", "--skip-conflicts")
    assert again.splitlines()[-1].startswith("Nothing to do, "), "also when Butler has published them itself"
    assert names(plane) == known
    assert on_tenant(plane, web, *path) == before


def test_a_cluster_that_butler_does_not_know_is_read_with_its_kubeconfig(adm: Cli, web: Path) -> None:
    said = adm.run("ipam", "import", "--from-kubeconfig", str(web), "--tenant", "old/estate", "--dry-run=client")
    assert said.code == 8, str(said)
    assert "is held by web-nodes for nodes of team-platform/web" in said.out
    assert adm.refused(3, "ipam", "import", "--from-tenant", "team-platform/nope") == (
        "there is no TenantCluster team-platform/nope: for a cluster that Butler does not know,"
        " say --from-kubeconfig FILE --tenant team-platform/nope"
    )
    gone = ("--from-kubeconfig", "/nonexistent/config", "--tenant", "old/estate")
    assert adm.refused(5, "ipam", "import", *gone) == "kubeconfig not found: /nonexistent/config"
