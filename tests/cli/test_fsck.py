"""`butleradm ipam fsck` on two live tenants: clean while all is well, and every planted inconsistency found."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml

from cli.terminal import Cli, eventually
from ipam_operator import Desk
from local.older_definition import older_definition, write
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

HOME = "butler-system"
EXAMPLES = Path(__file__).parents[2] / "examples" / "eight-tenants"
API = {"apiVersion": "butler.butlerlabs.dev/v1alpha1"}
Findings = dict[str, dict[str, Any]]


def allocation(name: str, tenant: str, count: int, **labels: str) -> str:
    spec = {"poolRef": {"name": "production-pool"}, "tenantClusterRef": {"name": tenant, "namespace": "team-platform"}}
    meta = {"name": name, "namespace": HOME, "labels": {f"butler.butlerlabs.dev/{k}": v for k, v in labels.items()}}
    body = {**API, "kind": "IPAllocation", "metadata": meta, "spec": {**spec, "type": "loadbalancer", "count": count}}
    return json.dumps(body)


@pytest.fixture(scope="module")
def tenants(server: LocalServer, adm: Cli) -> dict[str, Path]:
    """Kubeconfigs of two clusters that are up and have what they should have."""
    plane = server.plane
    plane.kubectl("apply", "-f", str(EXAMPLES / "pools.yaml"), "-f", str(EXAMPLES / "provider.yaml"))
    wanted = [item for item in yaml.safe_load_all((EXAMPLES / "tenants.yaml").read_text()) if item]
    two = [item for item in wanted if item["kind"] != "TenantCluster" or item["metadata"]["name"] in ("web", "search")]
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": two}))

    def ready() -> dict[str, Path] | None:
        listed = json.loads(plane.kubectl("get", "tenantclusters", "-A", "-o", "json").stdout)["items"]
        if [item.get("status", {}).get("phase") for item in listed] != ["Ready", "Ready"]:
            return None
        homes = {item["metadata"]["name"]: item["status"]["tenantNamespace"] for item in listed}
        return {name: server.data_dir / "clusters" / home / name / "kubeconfig" for name, home in homes.items()}

    found: dict[str, Path] = eventually(ready, "both clusters are ready")
    return found


def on(kubeconfig: Path, plane: ControlPlane, *arguments: str, stdin: str | None = None) -> str:
    return plane.kubectl("--kubeconfig", str(kubeconfig), *arguments, stdin=stdin).stdout


def by_code(report: dict[str, Any]) -> Findings:
    return {finding["code"]: finding for finding in report["findings"]}


def test_an_estate_of_several_tenants_is_clean(adm: Cli, tenants: dict[str, Path]) -> None:
    said = adm.run("ipam", "fsck")
    assert (said.code, said.out) == (0, "Clean: 2 pools, 4 allocations, 2 tenants.\n"), str(said)
    assert "asking 2 tenants" in said.err
    alone = adm("ipam", "fsck", "--no-tenants")
    assert alone == "Clean: 2 pools, 4 allocations, 0 tenants. Tenants were left out (--no-tenants).\n"
    picked = adm.json("ipam", "fsck", "--tenant", "team-platform/web", "--pool", "production-pool")
    assert picked == {
        "clean": True,
        "checked": {"pools": 2, "allocations": 4, "tenants": 1},
        "notAsked": [],
        "findings": [],
    }


@pytest.fixture(scope="module")
def planted(adm: Cli, plane: ControlPlane, tenants: dict[str, Path]) -> Findings:
    """What fsck finds after an operator did everything that one should not do."""
    # Another tenant's addresses, into MetalLB's pool.
    listed = json.loads(plane.kubectl("get", "ipallocation", "web-lb", "search-lb", "-n", HOME, "-o", "json").stdout)
    web, search = [f"{item['status']['startAddress']}-{item['status']['endAddress']}" for item in listed["items"]]
    edit = json.dumps({"spec": {"addresses": [web, search]}})
    where = ("-n", "metallb-system", "ipaddresspool", "default-pool")
    on(tenants["web"], plane, "patch", *where, "--type", "merge", "-p", edit)
    # A Service with an address that the pool may give to another tenant.
    service = {"type": "LoadBalancer", "loadBalancerClass": "example.com/other", "ports": [{"port": 80}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "stray"}, "spec": service}
    on(tenants["search"], plane, "create", "-f", "-", stdin=json.dumps(body))
    status = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": "10.92.90.80"}]}}})
    on(tenants["search"], plane, "patch", "service", "stray", "--subresource=status", "--type", "merge", "-p", status)
    # Orphans: one that holds an address, one that never got any.
    gone = {"tenant-uid": "11111111-2222-3333-4444-555555555555"}
    for name, count in (("gone-lb", 1), ("gone-too-lb", 500)):
        plane.kubectl("create", "-f", "-", stdin=allocation(name, "gone", count, **gone))
    # Two allocations with one address.
    for name in ("one-lb", "other-lb"):
        plane.kubectl("create", "-f", "-", stdin=allocation(name, "early", 1))
    phases = ("get", "ipallocations", "-n", HOME, "-o", "jsonpath={.items[*].status.phase}")
    eventually(lambda: "Pending" not in plane.kubectl(*phases).stdout, "all are answered")
    taken = plane.kubectl("get", "ipa", "one-lb", "-n", HOME, "-o", "jsonpath={.status.startAddress}").stdout
    twin = {"startAddress": taken, "endAddress": taken, "addresses": [taken], "cidr": f"{taken}/32"}
    with closing(Desk(plane, HOME)) as desk, older_definition(desk):
        write(desk, "other-lb", twin)
    # A label.
    plane.kubectl("label", "ipa", "web-lb", "-n", HOME, "butler.butlerlabs.dev/tenant=wob", "--overwrite")

    everything = {
        "IPAM-S5-ANNOUNCED",
        "IPAM-SERVICE-OUTSIDE",
        "IPAM-S1-DUPLICATE",
        "IPAM-ORPHAN",
        "IPAM-LABELS",
        "IPAM-TENANT-NEVER-SEEN",
    }

    def look() -> Findings | None:
        said = adm.run("ipam", "fsck", "-o", "json")
        assert said.code == 8, str(said)
        found = by_code(json.loads(said.out))
        assert set(found) >= everything, str(said)
        return found if set(found) == everything else None

    found: Findings = eventually(look, "only what was planted stands, though controllers may be slow to recount")
    return found


def test_a_hand_edited_metallb_pool_is_found(planted: Findings) -> None:
    found = planted["IPAM-S5-ANNOUNCED"]
    assert found["severity"] == "error"
    assert found["objects"] == [
        {
            "kind": "IPAddressPool",
            "namespace": "metallb-system",
            "name": "default-pool",
            "tenantCluster": "team-platform/web",
        }
    ]
    assert found["what"].startswith("it may announce 2 addresses that the tenant does not hold: ")
    assert "(team-platform/search holds " in found["what"]
    assert found["repair"] == "have the controllers look at TenantCluster team-platform/web again"


def test_a_service_with_an_address_of_others_is_found(planted: Findings) -> None:
    found = planted["IPAM-SERVICE-OUTSIDE"]
    assert found["what"] == (
        "it has 10.92.90.80, which is not a load-balancer address of team-platform/search:"
        " pool production-pool may give it to another tenant"
    )
    assert found["repair"] is None


def test_an_address_that_is_held_twice_is_found(planted: Findings) -> None:
    found = planted["IPAM-S1-DUPLICATE"]
    assert [obj["name"] for obj in found["objects"]] == ["one-lb", "other-lb"]
    assert found["what"].startswith("1 address held twice (10.92.90.")


def test_orphans_and_labels_are_found(planted: Findings) -> None:
    assert planted["IPAM-ORPHAN"]["severity"] == "warning"
    assert planted["IPAM-LABELS"]["what"] == "label tenant says wob, the spec web"


def test_every_finding_is_told_in_full_at_any_width(adm: Cli, planted: Findings) -> None:
    with ThreadPoolExecutor() as beside:
        wide_ = beside.submit(adm.run, "ipam", "fsck", "--no-tenants", "-o", "wide")
        rows_ = beside.submit(adm.run, "ipam", "fsck", "--no-tenants", "-o", "csv", "--pool", "production-pool")
        narrow = adm.in_terminal("ipam", "fsck", "--no-tenants", columns=60)
    assert narrow.code == 8
    told = narrow.out[narrow.out.index("ERROR") :] if "ERROR" in narrow.out else ""
    lines = click.unstyle(told).splitlines()
    assert lines[0] == "ERROR IPAM-S1-DUPLICATE", str(narrow)
    assert all(len(line) <= 60 for line in lines), str(narrow)
    assert "…" not in told
    wide, rows = wide_.result().out.splitlines(), rows_.result().out.splitlines()
    assert wide[0].split() == ["SEVERITY", "CODE", "OBJECTS", "WHAT", "TO", "DO", "REPAIR"]
    assert rows[0] == "severity,code,objects,what,to_do,repair"
    assert len(rows) == len(wide) == 7


def test_a_repair_is_listed_first_and_asked_about(adm: Cli, planted: Findings) -> None:
    repair = ("ipam", "fsck", "--repair", "--no-tenants")
    with ThreadPoolExecutor() as beside:
        in_a_pipe, client, server = (
            beside.submit(adm.run, *repair, *more) for more in ((), ("--dry-run=client",), ("--dry-run=server",))
        )
        no = adm.in_terminal(*repair, answer={"Do this? [y/N]": "n\n"})
    assert no.code == 1
    assert "nothing was changed" in no.out
    assert in_a_pipe.result().code == 2
    assert in_a_pipe.result().error == "Do this? There is no terminal to ask in: say --yes"
    assert (client.result().code, server.result().code) == (8, 8)
    assert "Nothing was done" in client.result().err
    assert "label IPAllocation butler-system/web-lb with tenant=web: the server would take it" in server.result().err
    assert "IPAM-LABELS" in adm.run("ipam", "fsck", "--no-tenants").out


def test_a_repair_does_what_is_safe_and_tells_the_rest(adm: Cli, planted: Findings, tenants: dict[str, Path]) -> None:
    said = adm.run("ipam", "fsck", "--repair", "--yes", "-o", "json")
    assert said.code == 8
    left = json.loads(said.out)
    assert set(by_code(left)) == {"IPAM-SERVICE-OUTSIDE", "IPAM-S1-DUPLICATE", "IPAM-ORPHAN", "IPAM-TENANT-NEVER-SEEN"}
    assert by_code(left)["IPAM-ORPHAN"]["objects"][0]["name"] == "gone-lb", "what holds addresses is never released"
    assert sorted((repair["what"], repair["problem"]) for repair in left["repairs"]) == [
        ("delete IPAllocation butler-system/gone-too-lb, which holds nothing", None),
        ("have the controllers look at TenantCluster team-platform/web again", None),
        ("label IPAllocation butler-system/web-lb with tenant=web", None),
    ]


def test_ctrl_c_ends_it(adm: Cli, planted: Findings) -> None:
    said = adm.in_terminal("ipam", "fsck", until=lambda text: "looking again" in text)
    assert said.code == 130
    assert "Traceback" not in said.out


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--pool", "production-poll"), 3, "there is no NetworkPool production-poll in namespace butler-system;"),
        (("--tenant", "team-platform/unknown"), 3, "there is no TenantCluster unknown in namespace team-platform"),
        (("--tenant", "web"), 2, "Invalid value for '--tenant': give it as NAMESPACE/NAME"),
        (("--dry-run", "client"), 2, "--dry-run says what --repair would do: give both"),
        (("--as", "stranger"), 4, "ask an administrator of the cluster for this permission"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    adm: Cli, tenants: dict[str, Path], arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    assert complaint in adm.refused(code, "ipam", "fsck", *arguments)


def test_without_a_server_it_says_so() -> None:
    assert "no Kubernetes API server is configured" in Cli(None).refused(5, "ipam", "fsck")


# Without controllers, which would mend at once what stands wrong here. Last, because it ends the module's server.


@pytest.fixture(scope="module")
def at_rest(server: LocalServer, tenants: dict[str, Path]) -> Iterator[ControlPlane]:
    server.terminate()
    with LocalServer(server.data_dir.parent, controllers=False) as alone:
        yield alone.plane


def test_a_counter_that_stays_wrong_and_a_tenant_that_does_not_answer_are_found_and_still_stand(
    at_rest: ControlPlane, tenants: dict[str, Path]
) -> None:
    plane, adm = at_rest, Cli(at_rest.kubeconfig)
    wrong = json.dumps({"status": {"allocatedIPs": 31}})
    where = ("patch", "networkpool", "production-nodes", "-n", HOME, "--subresource=status", "--type", "merge", "-p")
    plane.kubectl(*where, wrong)
    secret = ("secret", "web-admin-kubeconfig", "-n", tenants["web"].parts[-3])
    plane.kubectl("patch", *secret, "--type", "merge", "-p", '{"data": {"admin.conf": "bm8="}}')

    said = adm.run("ipam", "fsck", "--pool", "production-nodes", "--repair", "--yes")
    assert said.code == 8, str(said)
    assert said.out.count("allocatedIPs says 31, a recount gives 6") == 2, "before the repair and after it"
    assert "have the controllers look at NetworkPool butler-system/production-nodes again: done" in said.err
    assert "TenantCluster team-platform/web\n  it could not be asked: Secret web-" in said.out
    assert "bm8=" not in said.out
    assert "IPAM-NODE" not in said.out


def test_nothing_to_check_says_what_to_do_next(tmp_path: Path) -> None:
    with LocalServer(tmp_path, controllers=False) as empty:
        said = Cli(empty.plane.kubeconfig).run("ipam", "fsck")
        assert (said.code, said.out) == (0, "Clean: 0 pools, 0 allocations, 0 tenants.\n")
        assert said.err.endswith("There is nothing to check yet: `butleradm pool create` makes a pool.\n")
        assert empty.terminate()[0] in (0, -signal.SIGTERM)
