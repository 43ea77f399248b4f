"""`butleradm allocation` and `butleradm ipam who`, through the real executable."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml

from cli.estates import HOME, allocation_body, make_allocation, make_pool, pool_body, release_by_hand
from cli.terminal import Cli, eventually
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control_planes import ControlPlane

GROUP = "ipallocation.butler.butlerlabs.dev"


@pytest.fixture
def rack(plane: ControlPlane, network: str) -> str:
    return make_pool(plane, network)


def new(plane: ControlPlane, name: str, rack: str, tenant: str = "t/a", **spec: Any) -> None:
    make_allocation(plane, allocation_body(name, rack, tenant, **spec))


# Asking.


def test_a_request_is_granted_the_smallest_hole_that_holds_it(adm: Cli, rack: str, network: str) -> None:
    said = adm.run(
        "allocation", "create", f"{rack}-a", "--pool", rack, "--tenant", "t/a", "--type", "nodes", "--count", "3",
        "--wait",
    )  # fmt: skip
    assert said.code == 0, str(said)
    assert said.out == f"{GROUP}/{rack}-a created\n"
    assert f"{rack}-a has {network}.0.16-{network}.0.18 (3)" in said.err
    assert "TenantCluster t/a is not known" in said.err
    made = adm.json("allocation", "get", f"{rack}-a")
    assert made["metadata"]["labels"]["butler.butlerlabs.dev/network-pool"] == rack
    assert made["spec"]["count"] == 3


def test_a_pin_gets_exactly_what_it_names(adm: Cli, rack: str, network: str) -> None:
    options = ("--pool", rack, "--tenant", "t/a", "--type", "loadbalancer")
    adm("allocation", "pin", f"{rack}-p", *options, "--range", f"{network}.0.64/29", "--wait")
    assert adm.json("allocation", "get", f"{rack}-p")["status"]["endAddress"] == f"{network}.0.71"
    taken = adm.run("allocation", "pin", f"{rack}-q", *options, "--range", f"{network}.0.70-{network}.0.80", "--wait")
    assert taken.code == 1, str(taken)
    assert taken.err.count("is held by") == 1, "the pool's own words, once"
    assert f"{network}.0.70 is held by {rack}-p: pin a free range or release that allocation; it is tried again" in (
        taken.error
    )
    adm("allocation", "release", f"{rack}-p", "--yes", "--wait")
    eventually(
        lambda: adm.json("allocation", "get", f"{rack}-q")["status"]["phase"] == "Allocated", "the request was kept"
    )


def test_who_does_not_wait_is_warned(adm: Cli, rack: str, network: str) -> None:
    said = adm.run(
        "allocation", "pin", f"{rack}-p", "--pool", rack, "--tenant", "t/a", "--type", "nodes",
        "--range", f"{network}.0.3",
    )  # fmt: skip
    assert said.code == 0, str(said)
    assert f"Warning: as things stand the pool refuses it (PinnedRangeConflict): {network}.0.3 is pinned" in said.err


def test_a_dry_run_tells_where_it_would_be_and_makes_nothing(adm: Cli, rack: str, network: str) -> None:
    base = ("allocation", "create", f"{rack}-d", "--pool", rack, "--tenant", "t/a", "--type", "nodes")
    client = adm.run(*base, "--dry-run=client")
    assert f"As things stand it would get {network}.0.16-{network}.0.20 (5)." in client.err
    body = yaml.safe_load(client.out)
    assert (body["kind"], "status" in body) == ("IPAllocation", False)
    server = adm.run(*base, "--dry-run=server", "--wait")
    assert server.out == f"{GROUP}/{rack}-d created (server dry run)\n"
    assert (
        "as things stand the pool refuses it (PoolExhausted)" in adm.run(*base, "--dry-run=client", "--count=5000").err
    )
    assert adm.refused(3, "allocation", "get", f"{rack}-d").startswith(f"there is no IPAllocation {rack}-d")
    assert adm(*base, "--dry-run=server", "-o", "name") == f"{GROUP}/{rack}-d\n"


@pytest.mark.parametrize(
    ("code", "options", "complaint"),
    [
        (2, ["--tenant", "web", "--range", "10.0.0.1"], "'web' is no tenant: write NAMESPACE/NAME"),
        (2, ["--tenant", "t/a", "--range", "10.0.0.9-10.0.0.1"], "--range: 10.0.0.1 comes before 10.0.0.9: swap"),
        (2, ["--tenant", "t/a", "--range", "10.0.0.300"], "--range: '10.0.0.300' is not an IP address"),
        (2, ["--tenant", "t/a", "--range", "fd00::1"], "--range: pools hand out IPv4 only"),
        (3, ["--tenant", "t/a", "--range", "10.0.0.1"], "there is no NetworkPool nope"),
        (2, ["--tenant", "t/a"], "Missing option '--range'"),
    ],
)
def test_a_pin_that_makes_no_sense_is_refused(adm: Cli, code: int, options: list[str], complaint: str) -> None:
    said = adm.run("allocation", "pin", "x", "--pool", "nope", "--type", "nodes", *options)
    assert (said.code, said.out) == (code, ""), str(said)
    assert complaint in said.error


def test_a_name_that_is_taken_is_refused(adm: Cli, plane: ControlPlane, rack: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a")
    options = ("--pool", rack, "--tenant", "t/a", "--type", "nodes")
    assert "already exists: choose another name" in adm.refused(6, "allocation", "create", f"{rack}-a", *options)


# Looking.


def test_a_list_shows_who_holds_what_and_hides_what_was_released(
    adm: Cli, plane: ControlPlane, rack: str, network: str
) -> None:
    new(plane, f"{rack}-a", rack, "t/a", count=4)
    new(plane, f"{rack}-b", rack, "t/b", count=1)
    plane.kubectl("label", "ipa", f"{rack}-b", "-n", HOME, "colour=blue")
    head, first, second = adm("allocation", "list", "--pool", rack).splitlines()
    assert head.split() == ["NAME", "POOL", "TENANT", "TYPE", "ROLE", "PHASE", "RANGE", "COUNT", "AGE"]
    ends = f"{network}.0.16-{network}.0.19"
    assert first.split()[:-1] == [f"{rack}-a", rack, "t/a", "nodes", "-", "Allocated", ends, "4"]
    release_by_hand(plane, f"{rack}-a")

    def names(*options: str) -> list[str]:
        listed = adm("allocation", "list", "--pool", rack, "-o", "name", *options)
        return [line.partition("/")[2].removeprefix(f"{rack}-") for line in listed.split()]

    assert names() == ["b"]
    assert names("--all") == ["a", "b"]
    assert names("--phase", "released") == ["a"]
    assert names("--tenant", "t/b", "--type", "nodes") == names("--tenant", "b", "-l", "colour=blue") == ["b"]
    assert names("--type", "loadbalancer", "--all") == []
    assert second.split()[6] == f"{network}.0.20"


def test_an_empty_list_says_what_to_do(adm: Cli) -> None:
    said = adm.run("allocation", "list", "--pool", "nope")
    assert (said.code, said.out) == (0, "")
    nothing = adm.run("allocation", "list", "-n", "default")
    assert nothing.err.startswith("There are no allocations in namespace default. Tenant clusters ask for them, or")


def test_wide_tells_why_not(adm: Cli, rack: str) -> None:
    base = ("allocation", "create", f"{rack}-a", "--pool", rack, "--tenant", "t/a", "--type", "nodes")
    assert adm.run(*base, "--count", "5000", "--wait").code == 1
    (row,) = adm("allocation", "list", "--pool", rack, "-o", "wide", "--no-headers").splitlines()
    assert "needs 5000 contiguous addresses" in row


def test_a_narrow_terminal_gets_the_columns_that_matter(adm: Cli, plane: ControlPlane, rack: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a")
    said = adm.in_terminal("allocation", "list", "--pool", rack, columns=60)
    assert all(len(click.unstyle(line)) <= 60 for line in said.out.splitlines()), str(said)
    assert "PHASE" in said.out


def test_a_watch_shows_a_release(adm: Cli, plane: ControlPlane, rack: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a")

    def seen(text: str) -> bool:
        if "Allocated" in text and not done:
            done.append("deleted")
            plane.kubectl("delete", "ipa", f"{rack}-a", "-n", HOME)
        return f"{rack}-a is gone" in text

    done: list[str] = []
    said = adm.in_terminal("allocation", "list", "--pool", rack, "--watch", until=seen)
    assert said.code == 130, str(said)


def test_a_watch_is_silent_about_the_end_of_what_it_does_not_show(adm: Cli, plane: ControlPlane, rack: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a")
    new(plane, f"{rack}-b", rack, "t/b", type="loadbalancer")

    def seen(text: str) -> bool:
        if "Allocated" in text and not done:
            done.append("deleted")
            plane.kubectl("delete", "ipa", f"{rack}-a", "-n", HOME)
            plane.kubectl("delete", "ipa", f"{rack}-b", "-n", HOME)
        return f"{rack}-b is gone" in text

    done: list[str] = []
    command = ("allocation", "list", "--pool", rack, "--type", "loadbalancer", "--watch")
    said = adm.in_terminal(*command, until=seen)
    assert said.code == 130, str(said)
    assert f"{rack}-a" not in said.out


def test_phases_are_asked_for_as_they_are_shown(adm: Cli, plane: ControlPlane, rack: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a")
    patch = ("patch", "ipa", f"{rack}-a", "-n", HOME, "--type=json", "-p")
    path = "/metadata/finalizers"
    held = json.loads(plane.kubectl("get", "ipa", f"{rack}-a", "-n", HOME, "-o", "json").stdout)
    finalizers = [*held["metadata"].get("finalizers", []), "example.org/hold"]
    plane.kubectl(*patch, json.dumps([{"op": "add", "path": path, "value": finalizers}]))
    plane.kubectl("delete", "ipa", f"{rack}-a", "-n", HOME, "--wait=false")
    assert f"{rack}-a" in adm("allocation", "list", "--pool", rack, "--phase", "releasing")
    for other in ("Allocated", "Draining"):
        assert adm("allocation", "list", "--pool", rack, "--phase", other) == ""
    plane.kubectl(*patch, json.dumps([{"op": "remove", "path": path}]))


def test_all_about_one_is_on_one_screen(adm: Cli, plane: ControlPlane, rack: str, network: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a", count=2)
    said = adm("allocation", "get", f"{rack}-a")
    lines = dict(line.split(":", 1) for line in said.partition("\n\n")[0].splitlines())
    facts = {name: value.strip() for name, value in lines.items()}
    assert facts["Tenant"] == "t/a"
    assert facts["Tenant found"] == "no: TenantCluster t/a has not been seen yet; the addresses are kept for it"
    assert facts["Asked for"] == "2 addresses"
    assert facts["Granted"] == f"{network}.0.16-{network}.0.17 (2 addresses)"
    assert facts["Network"] == f"{network}.0.16/31"
    assert "Conditions\n" in said
    assert "Conditions\n" in adm("allocation", "get", f"{rack}-a", "-o", "wide")
    assert adm("allocation", "get", f"{rack}-a", "-o", "jsonpath={.status.startAddress}") == f"{network}.0.16"
    assert "did you mean" in adm.refused(3, "allocation", "get", f"{rack}-aa")
    narrow = adm.in_terminal("allocation", "get", f"{rack}-a", columns=60)
    assert all(len(click.unstyle(line)) <= 60 for line in narrow.out.splitlines()), str(narrow)


def test_who_waits_for_room_is_told_for_how_long_and_how_often_it_was_passed(
    adm: Cli, plane: ControlPlane, rack: str
) -> None:
    base = ("allocation", "create", f"{rack}-a", "--pool", rack, "--tenant", "t/a", "--type", "nodes")
    assert adm.run(*base, "--count", "5000", "--wait").code == 1
    said = adm("allocation", "get", f"{rack}-a")
    assert re.search(r"^Waits: +for \d+s; met before it: no younger requests$", said, re.MULTILINE), said
    assert "waits for room since " in said
    new(plane, f"{rack}-b", rack, "t/b")
    assert "Waits" not in adm("allocation", "get", f"{rack}-b")


# Releasing.


def test_a_release_shows_what_hangs_on_it_and_asks(adm: Cli, plane: ControlPlane, rack: str, network: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a", count=2)
    told = f"{rack}-a: {network}.0.16-{network}.0.17 (2 addresses) for nodes of t/a (never seen by Butler), pool {rack}"
    question = f"Type {rack}-a to release it:"
    declined = adm.in_terminal("allocation", "release", f"{rack}-a", columns=200, answer={question: "y\n"})
    assert declined.code == 1, str(declined)
    assert told in declined.out
    assert "Butler cannot see whether this is in use: it was made for a cluster that Butler does not" in declined.out
    assert "nothing was changed" in declined.out
    accepted = adm.in_terminal(
        "allocation", "release", f"{rack}-a", "--wait", columns=200, answer={question: f"{rack}-a\n"}
    )
    assert accepted.code == 0, str(accepted)
    assert f"{rack}-a is gone, its addresses are back in the pool" in accepted.out


def test_what_changed_while_the_user_was_asked_is_not_released(adm: Cli, plane: ControlPlane, rack: str) -> None:
    def touched() -> str:
        plane.kubectl("annotate", "ipa", f"{rack}-a", "-n", HOME, "touched=yes")
        return f"{rack}-a\n"

    new(plane, f"{rack}-a", rack, "t/a")
    said = adm.in_terminal("allocation", "release", f"{rack}-a", columns=400, answer={"to release it": touched})
    assert said.code == 6, str(said)
    assert "look at it again and repeat the command" in said.out
    assert adm.json("allocation", "get", f"{rack}-a")["metadata"].get("deletionTimestamp") is None


def test_the_record_of_a_grant_is_no_change_to_look_at_again(adm: Cli, plane: ControlPlane, rack: str) -> None:
    def recorded() -> str:
        # As it comes a moment after the grant: its version moves on, and what was shown still holds.
        uid = adm.json("allocation", "get", f"{rack}-a")["metadata"]["uid"]
        record = f"butler.butlerlabs.dev/granted=10.0.0.0-10.0.0.0 {uid}"
        plane.kubectl("annotate", "--overwrite", "ipa", f"{rack}-a", "-n", HOME, record)
        return f"{rack}-a\n"

    new(plane, f"{rack}-a", rack, "t/a")
    said = adm.in_terminal("allocation", "release", f"{rack}-a", columns=400, answer={"to release it": recorded})
    assert said.code == 0, str(said)


def test_a_release_without_a_terminal_needs_yes(adm: Cli, plane: ControlPlane, rack: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a")
    assert "There is no terminal to ask in: say --yes" in adm.refused(2, "allocation", "release", f"{rack}-a")
    dry = adm.run("allocation", "release", f"{rack}-a", "--dry-run=client")
    assert dry.out == f"{GROUP}/{rack}-a released (client dry run)\n"
    assert (
        adm("allocation", "release", f"{rack}-a", "--dry-run=server") == f"{GROUP}/{rack}-a released (server dry run)\n"
    )
    assert adm.json("allocation", "get", f"{rack}-a")["status"]["phase"] == "Allocated"
    assert adm("allocation", "release", f"{rack}-a", "--yes", "--wait") == f"{GROUP}/{rack}-a released\n"


def test_several_are_released_together_or_none(adm: Cli, plane: ControlPlane, rack: str) -> None:
    for name in ("a", "b"):
        new(plane, f"{rack}-{name}", rack, f"t/{name}", count=1)
    refused = adm.refused(3, "allocation", "release", f"{rack}-a", "no-such-thing", "--yes")
    assert refused.startswith(f"there is no IPAllocation no-such-thing in namespace {HOME}")
    told = adm.json("allocation", "release", f"{rack}-a", f"{rack}-b", "--yes", "--wait")
    assert [allocation["allocation"] for allocation in told["allocations"]] == [f"{rack}-a", f"{rack}-b"]
    assert adm("allocation", "list", "--pool", rack) == ""


def test_what_a_living_cluster_has_is_refused_unless_the_user_insists(
    adm: Cli, plane: ControlPlane, rack: str, network: str
) -> None:
    cluster = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}, "paused": True}
    body = {"metadata": {"name": rack, "namespace": "default"}, "spec": cluster}
    kind = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "TenantCluster"}
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({**kind, **body}))
    new(plane, f"{rack}-a", rack, f"default/{rack}", count=2)
    # Butler notes the grant on the object a moment later, and a release is for the version that was looked at.
    eventually(
        lambda: adm.json("allocation", "get", f"{rack}-a")["metadata"].get("annotations"), "the grant is on record"
    )
    told = adm.run("allocation", "release", f"{rack}-a", "--yes")
    assert told.code == 1, str(told)
    assert f"{rack}-a: {network}.0.16-{network}.0.17 (2 addresses) for nodes of default/{rack} (exists)" in told.err
    assert "its cluster exists, so Butler refuses" in " ".join(told.err.split())
    assert "nothing was changed" in told.err
    shown = adm.json("allocation", "get", f"{rack}-a")
    assert (shown["status"]["phase"], shown["metadata"].get("deletionTimestamp")) == ("Allocated", None)
    question = f"Type {rack}-a to release it:"
    forced = ("allocation", "release", f"{rack}-a", "--force", "--wait")
    declined = adm.in_terminal(*forced, columns=200, answer={question: "y\n"})
    assert declined.code == 1, str(declined)
    noted = adm.json("allocation", "get", f"{rack}-a")["metadata"].get("annotations", {})
    assert "butler.butlerlabs.dev/force-delete" not in noted
    accepted = adm.in_terminal(*forced, columns=200, answer={question: f"{rack}-a\n"})
    assert accepted.code == 0, str(accepted)
    assert f"{rack}-a is gone, its addresses are back in the pool" in accepted.out
    plane.kubectl("delete", "tenantcluster", rack, "-n", "default", "--wait=false")


# Who.


def test_who_tells_the_owner_the_pool_and_since_when(adm: Cli, plane: ControlPlane, rack: str, network: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a", count=2)
    said = adm("ipam", "who", f"{network}.0.17")
    assert "State:       held\n" in said
    assert "Tenant:      t/a (never seen by Butler)\n" in said
    assert f"Allocation:  {rack}-a, {network}.0.16-{network}.0.17 (2 addresses)\n" in said
    assert f"Pool:        {rack} ({network}.0.0/20)" in said
    assert "State:    reserved: switches" in adm("ipam", "who", f"{network}.0.3")
    assert "State:    free" in adm("ipam", "who", f"{network}.0.99")
    assert "State:    outside the windows" in adm("ipam", "who", f"{network}.15.255")


def test_who_cuts_a_range_where_the_answer_changes(adm: Cli, plane: ControlPlane, rack: str, network: str) -> None:
    new(plane, f"{rack}-a", rack, "t/a", count=2)
    head, *rows = adm("ipam", "who", f"{network}.0.14-{network}.0.20").splitlines()
    assert head.split() == ["ADDRESSES", "COUNT", "POOL", "STATE", "TENANT", "ALLOCATION", "SINCE"]
    assert [row.split()[0] for row in rows] == [
        f"{network}.0.14-{network}.0.15",
        f"{network}.0.16-{network}.0.17",
        f"{network}.0.18-{network}.0.20",
    ]
    narrow = adm.in_terminal("ipam", "who", f"{network}.0.0/24", columns=60)
    assert all(len(click.unstyle(line)) <= 60 for line in narrow.out.splitlines()), str(narrow)


def test_who_remembers_earlier_owners(adm: Cli, plane: ControlPlane, rack: str, network: str) -> None:
    new(plane, f"{rack}-old", rack, "t/old", count=1)
    release_by_hand(plane, f"{rack}-old")
    new(plane, f"{rack}-new", rack, "t/new", count=1)
    found = adm.json("ipam", "who", f"{network}.0.16")
    assert [owner["allocation"] for owner in found["places"][0]["owners"]] == [f"{rack}-new"]
    assert [(item["allocation"], item["phase"]) for item in found["earlier"]] == [(f"{rack}-old", "Released")]
    assert "Earlier\n" in adm("ipam", "who", f"{network}.0.16")


def test_who_has_a_word_for_addresses_that_no_pool_has(adm: Cli, rack: str) -> None:
    assert "192.0.2.1 is unknown: no pool has it, and the nearest one is" in adm.refused(3, "ipam", "who", "192.0.2.1")
    asked = adm.refused(3, "ipam", "who", "192.0.2.1", "--live")
    assert "and no tenant uses it" in asked
    assert asked.endswith("look for it outside of Butler")
    assert adm.refused(3, "ipam", "who", "fd00::1") == "fd00::1 is unknown: pools hand out IPv4 only"
    said = adm.run("ipam", "who", "192.0.2.1", "-o", "json")
    assert (said.code, json.loads(said.out)["known"]) == (3, False)
    assert adm.refused(2, "ipam", "who", "10.0.0.1/8").startswith("10.0.0.1/8 has bits set after its prefix")
    assert "is not an IP address" in adm.refused(2, "ipam", "who", "gateway")


# Not being allowed, and not being there.

EVERY = [
    ("allocation", "list"),
    ("allocation", "get", "x"),
    ("allocation", "release", "x", "--yes"),
    ("allocation", "create", "x", "--pool", "p", "--tenant", "a/b", "--type", "nodes"),
    ("allocation", "pin", "x", "--pool", "p", "--tenant", "a/b", "--type", "nodes", "--range", "10.0.0.1"),
    ("ipam", "who", "10.0.0.1"),
]


@pytest.mark.parametrize("command", EVERY, ids=lambda item: " ".join(item[:2]))
def test_who_may_not_is_told_so(adm: Cli, command: tuple[str, ...]) -> None:
    said = adm.run(*command, "--as", "stranger")
    assert (said.code, said.out) == (4, ""), str(said)
    assert 'User "stranger" cannot' in said.error


@pytest.mark.parametrize("command", [EVERY[0], EVERY[5]], ids=lambda item: " ".join(item[:2]))
def test_a_server_that_is_away_is_named(plane: ControlPlane, tmp_path: Path, command: tuple[str, ...]) -> None:
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "away").write_text(yaml.safe_dump(config))
    complaint = Cli(tmp_path / "away").refused(5, *command)
    assert complaint.startswith("the API server at https://127.0.0.1:1 cannot be reached")


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A server whose pools never answer, because no controllers run."""
    with LocalServer(tmp_path_factory.mktemp("silent")) as running:
        running.plane.kubectl("create", "namespace", HOME, check=False)
        running.plane.kubectl("apply", "-f", "-", stdin=json.dumps(pool_body("rack", "10.40.0.0/24")))
        yield Cli(running.plane.kubeconfig)


def test_waiting_ends_with_the_time_or_with_ctrl_c(silent: Cli) -> None:
    base = ("allocation", "create", "--pool", "rack", "--tenant", "t/a", "--type", "nodes", "--wait")
    late = silent.run(*base, "one", "--timeout", "0.3")
    assert (late.code, late.out) == (7, f"{GROUP}/one created\n"), str(late)
    assert late.error == "not done after 0.3 s: one waits for pool rack"
    stopped = silent.in_terminal(*base, "two", until=lambda text: "waits for pool" in text)
    assert stopped.code == 130, str(stopped)
    assert "Traceback" not in stopped.out


def test_an_import_that_is_not_answered_says_so(silent: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("tenant_namespace,tenant,type,start\nt,web,nodes,10.40.0.30\nt,web,nodes,10.40.0.40\n")
    late = silent.run("ipam", "import", str(file), "--yes", "--timeout", "0.3")
    assert late.code == 7, str(late)
    assert "! web-nodes: its pool has not answered" in late.out
    again = silent.run("ipam", "import", str(file), "--timeout", "0.3")
    assert again.code == 7, "what was asked for is not asked for twice, and still waited for"
    assert again.out.endswith("! web-nodes-2: its pool has not answered\nNothing to do, 2 there already.\n"), str(again)
    file.write_text("tenant_namespace,tenant,type,start\nt,shop,nodes,10.40.0.50\n")
    stopped = silent.in_terminal("ipam", "import", str(file), "--yes", until=lambda text: "answered by their" in text)
    assert stopped.code == 130, str(stopped)
    assert "Interrupted: 1 of 1 were asked for. The same import goes on from there." in stopped.out
