"""`butlerctl cluster` and `butleradm tenant`: the life of a cluster from a terminal, on the embedded control plane."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cli.terminal import Cli, eventually
from control_planes import BIN

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane

GROUP = "butler.butlerlabs.dev"
TEAM = "team-shop"
VERSION = ("--kubernetes-version", "v1.33.2")


def put(plane: ControlPlane, kind: str, name: str, spec: Any, namespace: str = "butler-system") -> None:
    meta = {"name": name, "namespace": namespace}
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(body))


@pytest.fixture(scope="module", autouse=True)
def lab(plane: ControlPlane, adm: Cli) -> None:
    """A provider with room for a few tenants, and a team whose people may do what teams may."""
    put(plane, "NetworkPool", "nodes", {"cidr": "10.60.0.0/24", "reserved": [{"cidr": "10.60.0.0/28"}]})
    window = {"start": "10.61.0.10", "end": "10.61.0.15"}
    put(plane, "NetworkPool", "services", {"cidr": "10.61.0.0/24", "tenantAllocation": window})
    secret = {"username": "butler@pve!token", "password": "11111111-2222-3333-4444-555555555555"}
    literals = [f"--from-literal={name}={value}" for name, value in secret.items()]
    plane.kubectl("create", "secret", "generic", "lab", "-n", "butler-system", *literals)
    network = {
        "mode": "ipam",
        "subnet": "vmbr0",
        "gateway": "10.60.0.1",
        "dnsServers": ["10.60.0.2"],
        "poolRefs": [{"name": "nodes", "types": ["nodes"]}, {"name": "services", "types": ["loadbalancer"]}],
        "loadBalancer": {"allocationMode": "elastic", "initialPoolSize": 2, "growthIncrement": 1},
    }
    proxmox = {"endpoint": "https://127.0.0.1:9", "nodes": ["pve1"], "storage": "ceph", "templateID": 9000}
    provider = {"provider": "proxmox", "credentialsRef": {"name": "lab"}, "proxmox": proxmox, "network": network}
    put(plane, "ProviderConfig", "lab", provider)
    plane.kubectl("create", "namespace", TEAM)
    plane.kubectl(
        "create", "clusterrole", "teams", "--verb=get,list,watch,create,patch,delete",
        f"--resource=tenantclusters.{GROUP},events",
    )  # fmt: skip
    plane.kubectl("create", "rolebinding", "tia", "-n", TEAM, "--clusterrole=teams", "--user=tia")
    eventually(lambda: "yes" in adm("provider", "list", "--no-headers"), "the provider is ready")


@pytest.fixture(scope="module", autouse=True)
def web(ctl: Cli, lab: None) -> str:
    """One cluster that several tests look at, made by the command itself, and before any other."""
    said = ctl.run("cluster", "create", "web", *VERSION, "--workers", "2", "-n", TEAM, "--wait", "--timeout", "50")
    assert said.code == 0, str(said)
    assert said.out == "tenantcluster.butler.butlerlabs.dev/web created\n"
    assert "nodes:           10.60.0.16-10.60.0.20 (5 from pool nodes)" in said.err
    assert "load balancers:  10.61.0.10-10.61.0.11 (2 from pool services)" in said.err
    assert "Provisioning:" in said.err
    assert "Ready: 2 of 2 workers, v1.33.2" in said.err
    return "web"


def test_an_empty_namespace_says_what_to_do(ctl: Cli) -> None:
    said = ctl.run("cluster", "list", "-n", "nowhere")
    assert (said.code, said.out) == (0, "")
    assert "There are no clusters in namespace nowhere: `butlerctl cluster create` makes one" in said.err


def test_it_got_what_was_shown_and_is_told_on_one_screen(ctl: Cli, web: str) -> None:
    eventually(lambda: "1/2" in ctl("cluster", "list", "-n", TEAM), "Traefik has its address")
    row = ctl("cluster", "list", "-n", TEAM, "--no-headers").split()
    assert row[:6] == ["web", "Ready", "v1.33.2", "2/2", "1/2", "0"]
    shown = ctl("cluster", "get", web, "-n", TEAM)
    for part in (
        "Phase:       Ready, since",
        "Workers:     2 of 2 ready; 4 CPU, 16Gi memory",
        "NetworkReady            yes",
        "nodes            10.60.0.16-10.60.0.20   5       nodes      held (web-nodes)",
        "load balancers   10.61.0.10-10.61.0.11   2       services   held (web-lb)",
        "In use:   1, by 1 Service (1 of the platform)",
        "metallb",
        "ClusterReady",
    ):
        assert part in shown, shown


def test_the_operator_sees_the_same_screen_and_all_tenants_with_their_provider(adm: Cli, ctl: Cli, web: str) -> None:
    theirs, ours = ctl("cluster", "get", web, "-n", TEAM), adm("tenant", "get", web)
    ages = re.compile(r"\d+[smhd]\b\s*")
    assert ages.sub("", ours) == ages.sub("", theirs)
    assert adm("tenant", "get", f"{TEAM}/web", "-o", "name") == f"tenantcluster.{GROUP}/web\n"
    rows = [line.split() for line in adm("tenant", "list", "--no-headers").splitlines()]
    assert next(row for row in rows if row[1] == "web")[:5] == [TEAM, "web", "lab", "Ready", "2/2"]
    assert "did you mean web?" in adm.refused(3, "tenant", "get", "wob")
    assert "is in namespace a, and -n says b" in adm.refused(2, "tenant", "get", "a/web", "-n", "b")
    assert "There are no tenants in namespace nowhere" in adm.run("tenant", "list", "-n", "nowhere").err
    assert "cannot list resource" in adm.refused(4, "tenant", "list", "--as", "stranger")


def test_two_clusters_of_one_name_are_told_apart_and_one_that_cannot_be_built_says_why(
    adm: Cli, plane: ControlPlane, web: str
) -> None:
    plane.kubectl("create", "namespace", "team-other")
    lost = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}, "providerConfigRef": {"name": "gone"}}
    put(plane, "TenantCluster", web, lost, "team-other")
    complaint = adm.refused(2, "tenant", "get", web)
    assert complaint == "there are 2 clusters called web: say team-other/web or team-shop/web"
    why = "ProviderConfig butler-system/gone is not found or not usable"
    eventually(lambda: why in adm("tenant", "list", "-n", "team-other"), "the list says what is wrong")
    plane.kubectl("delete", "tenantcluster", web, "-n", "team-other")


def test_addresses_are_told_from_both_sides(ctl: Cli, web: str) -> None:
    answer = ctl.json("cluster", "addresses", web, "-n", TEAM)
    assert [(node["state"], node["count"]) for node in answer["nodes"]] == [("in use", 1), ("in use", 1), ("idle", 3)]
    assert all("web-workers" in node["users"][0] for node in answer["nodes"][:2])
    assert answer["loadBalancers"][0]["users"] == ["traefik/traefik"]
    assert answer["metalLB"]["inStep"] is True
    assert (answer["waitingServices"], answer["unseen"]) == ([], [])
    assert "in step: MetalLB has exactly the cluster's addresses" in ctl("cluster", "addresses", web, "-n", TEAM)


def test_events_are_those_of_this_cluster(ctl: Cli, web: str) -> None:
    assert "ClusterReady" in ctl("cluster", "events", web, "-n", TEAM)
    found = ctl.json("cluster", "events", web, "-n", TEAM)["items"]
    assert {item["involvedObject"]["name"] for item in found} == {"web"}
    said = ctl.in_terminal("cluster", "events", web, "-n", TEAM, "--watch", until=lambda text: "ClusterReady" in text)
    assert said.code == 130, str(said)


def test_a_watch_of_clusters_ends_with_ctrl_c(ctl: Cli, adm: Cli, web: str) -> None:
    for command in ((ctl, "cluster"), (adm, "tenant")):
        program, group = command
        said = program.in_terminal(group, "list", "-n", TEAM, "--watch", until=lambda text: web in text)
        assert said.code == 130, str(said)
        assert "Traceback" not in said.out


def test_the_kubeconfig_gets_one_in_and_is_for_its_owner_alone(ctl: Cli, web: str, tmp_path: Path) -> None:
    printed = ctl("cluster", "kubeconfig", web, "-n", TEAM)
    assert yaml.safe_load(printed)["kind"] == "Config"
    path = tmp_path / "web.kubeconfig"
    ctl("cluster", "kubeconfig", web, "-n", TEAM, "-f", str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "say --yes" in ctl.refused(2, "cluster", "kubeconfig", web, "-n", TEAM, "-f", str(path))
    assert ctl.run("cluster", "kubeconfig", web, "-n", TEAM, "-f", str(path), "--yes").code == 0
    inside = Cli(path, "butlerctl").refused(3, "cluster", "list")
    assert "does not know Butler" in inside, "it leads into the tenant, which has no such kind"
    assert "--merge" in ctl.refused(2, "cluster", "kubeconfig", web, "--set-context")


def test_the_kubeconfig_can_be_merged_and_never_takes_the_place_of_another(
    plane: ControlPlane, web: str, tmp_path: Path
) -> None:
    mine = tmp_path / "config"
    mine.write_text(plane.kubeconfig.read_text())
    mine.chmod(0o600)
    person = Cli(mine, "butlerctl")
    before = person("context", "list", "-o", "name").split()
    taken = person.refused(6, "cluster", "kubeconfig", web, "-n", TEAM, "--merge", "--context-name", before[0])
    assert "choose another name" in taken
    user = yaml.safe_load(mine.read_text())["users"][0]["name"]
    text = mine.read_text()
    taken = person.refused(6, "cluster", "kubeconfig", web, "-n", TEAM, "--merge", "--context-name", user)
    assert (mine.read_text() == text, "choose another name" in taken) == (True, True), "no credentials are lost"
    person("cluster", "kubeconfig", web, "-n", TEAM, "--merge")
    person("cluster", "kubeconfig", web, "-n", TEAM, "--merge", "--set-context")
    assert sorted(person("context", "list", "-o", "name").split()) == sorted([*before, web])
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600
    nodes = subprocess.run(
        [str(BIN / "kubectl"), "--kubeconfig", str(mine), "get", "nodes"], capture_output=True, text=True, check=True
    )
    assert nodes.stdout.count("web-workers") == 2, "the merged context is the current one"


def test_a_team_sees_its_clusters_and_is_told_what_it_may_not_see(ctl: Cli, plane: ControlPlane, web: str) -> None:
    as_tia = ("-n", TEAM, "--as", "tia")
    assert ctl("cluster", "list", *as_tia).count("web") == 1
    shown = ctl.run("cluster", "get", web, *as_tia)
    assert shown.code == 0
    assert "nodes have those of IPAllocation web-nodes" in shown.out
    assert "You may not read IPAllocations and ProviderConfigs in butler-system" in shown.err
    found = ctl.run("cluster", "addresses", web, *as_tia)
    assert found.code == 0
    assert "2 held, 1 in use" in found.out
    assert "you may not read Secret" in found.err
    assert 'cannot get resource "secrets"' in ctl.refused(4, "cluster", "kubeconfig", web, *as_tia)
    assert "at the cluster scope" in ctl.refused(4, "cluster", "list", "-A", "--as", "tia")
    said = ctl.run("cluster", "scale", web, "--workers", "3", "--dry-run=server", *as_tia)
    assert said.code == 0, str(said)
    assert "cannot be told in advance: you may not read NetworkPools" in said.err
    tenant = json.loads(plane.kubectl("get", "tenantcluster", web, "-n", TEAM, "-o", "json").stdout)
    inside = tenant["status"]["tenantNamespace"]
    plane.kubectl("create", "role", "keys", "-n", inside, "--verb=get", "--resource=secrets")
    plane.kubectl("create", "rolebinding", "keys", "-n", inside, "--role=keys", "--user=tia")
    with_key = json.loads(ctl.run("cluster", "addresses", web, *as_tia, "-o", "json").out)
    assert [load_balancer["state"] for load_balancer in with_key["loadBalancers"]] == ["in use", "idle"], (
        "MetalLB knows its ranges"
    )
    assert with_key["metalLB"]["inStep"] is None


def test_a_stranger_may_do_nothing(ctl: Cli, web: str) -> None:
    for command in (("list",), ("create", "x", *VERSION), ("scale", web, "--workers", "3"), ("delete", web, "--yes")):
        assert "ask an administrator" in ctl.refused(4, "cluster", *command, "-n", TEAM, "--as", "stranger")


def test_a_server_that_is_away_is_named(ctl: Cli, tmp_path: Path) -> None:
    away = tmp_path / "away"
    one = {"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}]}
    contexts = [{"name": "a", "context": {"cluster": "a"}}]
    away.write_text(yaml.safe_dump({**one, "contexts": contexts, "current-context": "a"}))
    for program, command in (("butlerctl", ("cluster", "list")), ("butleradm", ("tenant", "list"))):
        assert "http://127.0.0.1:9 cannot be reached" in Cli(away, program).refused(5, *command)
    assert "no Kubernetes API server is configured" in Cli(None, "butlerctl").refused(5, "cluster", "list")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "the cluster needs a name"),
        (("x",), "which Kubernetes? Say it with --kubernetes-version"),
        (("x", "--kubernetes-version", "1.33"), "'1.33' is no version: write it as in v1.33.2"),
        (("x", *VERSION, "--lb-size", "2", "--lb-range", "10.0.0.1-10.0.0.2"), "give one of the two"),
        (("x", *VERSION, "--lb-range", "banana"), "--lb-range: 'banana' is not an IP address"),
        (("x", "-f", "/nonexistent"), "/nonexistent cannot be read"),
    ],
)
def test_a_command_line_that_makes_no_sense_asks_no_server(ctl: Cli, arguments: Any, complaint: str) -> None:
    assert complaint in ctl.refused(2, "cluster", "create", *arguments)


@pytest.mark.parametrize("spec", ["{workers: 3}", "[1]", "{networking: [a]}"])
def test_a_file_of_another_shape_is_refused_in_one_sentence(ctl: Cli, tmp_path: Path, spec: str) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(f"apiVersion: {GROUP}/v1alpha1\nkind: TenantCluster\nmetadata: {{name: x}}\nspec: {spec}\n")
    complaint = ctl.refused(2, "cluster", "create", "-f", str(path), "--lb-size", "2", *VERSION)
    assert "must hold fields with names" in complaint


def test_what_could_never_work_is_refused_before_it_is_written(ctl: Cli, web: str) -> None:
    def refused(*more: str, code: int = 1) -> str:
        return ctl.refused(code, "cluster", "create", "bad", *VERSION, "-n", TEAM, *more)

    assert "10.9.9.1-10.9.9.2 lies in no pool" in refused("--lb-range", "10.9.9.1-10.9.9.2")
    assert "must start with a lower-case letter" in ctl.refused(1, "cluster", "create", "9x", *VERSION, "-n", TEAM)
    assert "choose another name" in ctl.refused(6, "cluster", "create", web, *VERSION, "-n", TEAM)
    assert "there is no TenantCluster bad" in ctl.refused(3, "cluster", "get", "bad", "-n", TEAM)


def test_a_dry_run_shows_and_changes_nothing(ctl: Cli, web: str, tmp_path: Path) -> None:
    options = (
        "--workers",
        "2",
        "--cpu",
        "8",
        "--memory",
        "32Gi",
        "--os",
        "flatcar",
        "--lb-size",
        "3",
        "--team",
        "shop",
    )
    shown = ctl("cluster", "create", "dry", *VERSION, "-n", TEAM, *options, "--dry-run=client")
    body = yaml.safe_load(shown)
    assert body["metadata"] == {"name": "dry", "namespace": TEAM}
    assert body["spec"]["workers"] == {
        "replicas": 2,
        "machineTemplate": {"cpu": 8, "memory": "32Gi", "os": {"type": "flatcar"}},
    }
    assert (body["spec"]["networking"], body["spec"]["teamRef"]) == ({"lbPoolSize": 3}, {"name": "shop"})
    named = ctl("cluster", "create", "dry", *VERSION, "-n", TEAM, "--dry-run=client", "-o", "name")
    assert named == "tenantcluster.butler.butlerlabs.dev/dry\n"
    path = tmp_path / "dry.yaml"
    path.write_text(shown)
    over = ctl("cluster", "create", "-f", str(path), "--workers", "1", "--dry-run=server", "-o", "yaml")
    assert yaml.safe_load(over)["spec"]["workers"]["replicas"] == 1, "options go before the file"
    assert "is about dry" in ctl.refused(2, "cluster", "create", "wet", "-f", str(path))
    assert ctl("cluster", "scale", web, "--workers", "4", "-n", TEAM, "--dry-run=client").endswith("(client dry run)\n")
    assert "deleted (server dry run)" in ctl("cluster", "delete", web, "-n", TEAM, "--dry-run=server")
    assert ctl("cluster", "list", "-n", TEAM, "--no-headers").split()[3] == "2/2"


def test_a_version_goes_up_one_minor_at_a_time_and_never_back(ctl: Cli, web: str) -> None:
    def refused(version: str, code: int = 1) -> str:
        return ctl.refused(code, "cluster", "upgrade", web, "--version", version, "-n", TEAM)

    assert "cannot go back to v1.32.9" in refused("v1.32.9")
    assert "one minor version at a time, to v1.34.x first" in refused("v1.35.0")
    assert "is no version" in refused("1.34", 2)
    assert "already; nothing was changed" in ctl("cluster", "upgrade", web, "--version", "v1.33.2", "-n", TEAM)


def test_machines_go_only_when_the_user_said_so_and_of_the_cluster_that_was_shown(
    ctl: Cli, plane: ControlPlane, web: str
) -> None:
    here = ("-n", TEAM)
    down = ("cluster", "scale", web, "--workers", "1", *here)
    asked = ctl.run(*down)
    assert (asked.code, asked.out) == (2, ""), str(asked)
    assert asked.err.splitlines() == [
        "1 machine goes, with all that is stored there.",
        "Error: Scale cluster web from 2 to 1 workers? There is no terminal to ask in: say --yes",
    ]
    assert ctl(*down, "--dry-run=server").endswith("scaled from 2 to 1 workers (server dry run)\n")
    no = ctl.in_terminal(*down, answer={"[y/N]": "n\n"})
    assert (no.code, "nothing was changed" in no.out) == (1, True), str(no)

    def meanwhile(*change: str) -> str:
        plane.kubectl(change[0], "tenantcluster", web, *here, *change[1:])
        return "y\n"

    crossed = ctl.in_terminal(*down, answer={"[y/N]": lambda: meanwhile("scale", "--replicas", "3")})
    assert (crossed.code, "look at it again and repeat the command" in crossed.out) == (6, True), str(crossed)
    assert ctl("cluster", "get", web, *here, "-o", "jsonpath={.spec.workers.replicas}") == "3"
    label = ("label", "seen=yes")  # as with the status, the generation stays
    harmless = ctl.in_terminal(
        "cluster", "scale", web, "--workers", "2", *here, "--wait", answer={"[y/N]": lambda: meanwhile(*label)}
    )
    assert (harmless.code, "scaled from 3 to 2 workers" in harmless.out) == (0, True), str(harmless)


def test_a_cluster_is_scaled_upgraded_and_deleted_with_its_progress_shown(ctl: Cli) -> None:
    here = ("-n", TEAM)
    ctl("cluster", "create", "brief", *VERSION, "--workers", "1", *here, "--wait", "--timeout", "50")
    assert "already" in ctl("cluster", "scale", "brief", "--workers", "1", *here)
    said = ctl.run("cluster", "scale", "brief", "--workers", "7", *here, "--wait", "--timeout", "50")
    assert said.code == 0, str(said)
    assert said.out == "tenantcluster.butler.butlerlabs.dev/brief scaled from 1 to 7 workers\n"
    assert "(2 from pool nodes)" in said.err, "beyond the five that it began with"
    assert "Ready: 7 of 7 workers" in said.err
    less = ctl.run("cluster", "scale", "brief", "--workers", "1", *here, "--yes", "--wait", "--timeout", "50")
    assert (less.code, less.err.splitlines()[0]) == (0, "6 machines go, with all that is stored there."), str(less)
    up = ctl.run("cluster", "upgrade", "brief", "--version", "v1.34.1", *here, "--wait", "--timeout", "50")
    assert up.code == 0, str(up)
    assert "Ready: 1 of 1 workers, v1.34.1" in up.err
    assert "say --yes" in ctl.refused(2, "cluster", "delete", "brief", *here)
    wrong = ctl.in_terminal("cluster", "delete", "brief", *here, answer={"Type brief": "web\n"})
    assert (wrong.code, "nothing was changed" in wrong.out) == (1, True), str(wrong)
    stopped = ctl.in_terminal("cluster", "delete", "brief", *here, until=lambda text: "Type brief" in text)
    assert stopped.code == 130, str(stopped)
    gone = ctl.in_terminal("cluster", "delete", "brief", *here, "--wait", answer={"Type brief": "brief\n"})
    assert gone.code == 0, str(gone)
    assert "Deleting: " in gone.out
    assert "gone" in gone.out.splitlines()[-1]
    ctl.refused(3, "cluster", "get", "brief", *here)


def test_waiting_for_what_does_not_come_ends_in_time_or_with_ctrl_c_and_leaves_the_cluster(ctl: Cli) -> None:
    here = ("-n", TEAM)
    create = ("cluster", "create", "hungry", *VERSION, "--workers", "1", "--lb-size", "200", *here, "--wait")
    said = ctl.run(*create, "--timeout", "2")
    assert said.code == 7, str(said)
    assert "It would have to wait: no load-balancer addresses" in said.err
    assert "not done after 2 s: Pending: no load-balancer addresses" in said.error
    again = ctl.in_terminal(
        "cluster", "scale", "hungry", "--workers", "2", *here, "--wait", until=lambda text: "Pending" in text
    )
    assert again.code == 130, str(again)
    assert "hungry" in ctl("cluster", "list", *here)
    assert "no load-balancer addresses" in ctl("cluster", "get", "hungry", *here).split("Kubernetes:")[0]
    ctl("cluster", "delete", "hungry", *here, "--yes", "--wait", "--timeout", "50")


def test_every_screen_fits_a_narrow_terminal(ctl: Cli, adm: Cli, web: str) -> None:
    for program, command in (
        (ctl, ("cluster", "list", "-o", "wide", "-n", TEAM)),
        (ctl, ("cluster", "get", web, "-n", TEAM)),
        (ctl, ("cluster", "addresses", web, "-n", TEAM)),
        (adm, ("tenant", "list", "-n", TEAM)),
    ):
        said = program.in_terminal(*command, columns=60, NO_COLOR="1")
        assert said.code == 0, str(said)
        assert max(map(len, said.out.splitlines())) <= 60, str(said)


def test_services_that_wait_and_growth_are_seen(ctl: Cli, adm: Cli, web: str, tmp_path: Path) -> None:
    inside = tmp_path / "web"
    ctl("cluster", "kubeconfig", web, "-n", TEAM, "-f", str(inside))
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"s{number}", "namespace": "default"},
            "spec": spec,
        }
        for number in range(6)
    ]
    subprocess.run(
        [str(BIN / "kubectl"), "--kubeconfig", str(inside), "create", "-f", "-"],
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": services}),
        text=True, check=True, capture_output=True,
    )  # fmt: skip
    # Traefik has one already, and the pool has six.
    eventually(lambda: "1 Service waits for an address" in adm("tenant", "list", "-n", TEAM), "the list says so")
    answer = ctl.json("cluster", "addresses", web, "-n", TEAM)
    assert len(answer["waitingServices"]) == 1
    assert {load_balancer["state"] for load_balancer in answer["loadBalancers"]} == {"in use"}
    shown = ctl("cluster", "get", web, "-n", TEAM)
    for part in ("Trouble:", "held, added later (web-lb-2)", "Last growth:", "refused, for growth"):
        assert part in shown, shown
