"""`butleradm pool create, edit, grow, reserve, delete`: what people change, through the real executable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from cli.pools import grant, pool_body
from cli.terminal import Cli
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from control_planes import ControlPlane

KEPT = "networkpool.butler.butlerlabs.dev"


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A server without controllers: nothing is ever done there."""
    with LocalServer(tmp_path_factory.mktemp("idle")) as running:
        yield Cli(running.plane.kubeconfig)


@pytest.fixture(scope="module")
def busy(adm: Cli, plane: ControlPlane) -> str:
    """A pool that two tenants hold addresses of; tests leave its addresses as they are."""
    adm("pool", "create", "busy", "--cidr", "10.245.0.0/24", "--window", "10.245.0.16-10.245.0.127", "--wait")
    grant(plane, "busy", ("busy-shop", "team-a/shop", 12), ("busy-bank", "team-b/bank", 9))
    return "busy"


def spec(adm: Cli, name: str) -> dict[str, object]:
    found: dict[str, object] = adm.json("pool", "get", name)["spec"]
    return found


# create


def test_a_pool_is_made_from_options_and_waited_for(adm: Cli, network: str) -> None:
    said = adm.run(
        "pool", "create", "made", "--cidr", f"{network}.0.0/24", "--reserve", f"{network}.0.0/28=Switches = gateways",
        "--reserve", f"{network}.0.128/32", "--window", f"{network}.0.16-{network}.0.95",
        "--window", f"{network}.0.120-{network}.0.200", "--nodes-per-tenant", "3", "--lb-per-tenant", "4", "--wait",
    )  # fmt: skip
    assert said.code == 0, str(said)
    assert said.out == f"{KEPT}/made created\n"
    assert "made is ready: 160 of 160 addresses available" in said.err
    assert spec(adm, "made") == {
        "cidr": f"{network}.0.0/24",
        "reserved": [
            {"cidr": f"{network}.0.0/28", "description": "Switches = gateways"},
            {"cidr": f"{network}.0.128/32"},
        ],
        "tenantAllocation": {
            "defaults": {"nodesPerTenant": 3, "lbPoolPerTenant": 4},
            "ranges": [
                {"start": f"{network}.0.16", "end": f"{network}.0.95"},
                {"start": f"{network}.0.120", "end": f"{network}.0.200"},
            ],
        },
    }


def test_a_pool_is_made_from_a_file_or_from_stdin(adm: Cli, network: str, tmp_path: Path) -> None:
    body = pool_body("from-file", f"{network}.0.0/24")
    (tmp_path / "pool.yaml").write_text(yaml.safe_dump(body))
    assert adm("pool", "create", "-f", str(tmp_path / "pool.yaml"), "-o", "name") == f"{KEPT}/from-file\n"
    del body["metadata"]["name"]
    body["spec"]["cidr"] = f"{network}.1.0/24"
    assert adm("pool", "create", "from-stdin", "-f", "-", stdin=json.dumps(body)) == f"{KEPT}/from-stdin created\n"
    body["spec"]["cidr"] = 5
    assert adm.refused(1, "pool", "create", "odd", "-f", "-", stdin=json.dumps(body)).endswith("in the file")


def test_a_dry_run_shows_what_would_be_sent_and_makes_nothing(adm: Cli, network: str) -> None:
    command = ("pool", "create", "never", "--cidr", f"{network}.0.0/24")
    assert yaml.safe_load(adm(*command, "--dry-run=client")) == pool_body("never", f"{network}.0.0/24")
    assert adm(*command, "--dry-run=server") == f"{KEPT}/never created (server dry run)\n"
    assert "there is no NetworkPool never" in adm.refused(3, "pool", "get", "never")


@pytest.mark.parametrize(
    ("code", "arguments", "complaint"),
    [
        (2, ("x",), "a pool needs a NAME and --cidr, or -f FILE"),
        (2, ("x", "--cidr", "172.16.0.0/24", "-f", "-"), "-f stands in place of the options"),
        (2, ("x", "--cidr", "172.16.0.0/24", "--window", "172.16.0.5"), "'172.16.0.5' is no window: write START-END"),
        (2, ("-f", "/nonexistent/pool"), "/nonexistent/pool cannot be read (No such file or directory)"),
        (2, ("-f", "-"), "stdin does not hold exactly one NetworkPool with a spec"),
        (1, ("x", "--cidr", "172.16.0.1/24"), "spec.cidr: 172.16.0.1/24 has bits set after its prefix"),
        (1, ("x", "--cidr", "10.245.0.0/16"), "10.245.0.0/24 of NetworkPool butler-system/busy: choose a network"),
        (1, ("Not_A_Name", "--cidr", "172.16.0.0/24"), "metadata.name"),
        (6, ("busy", "--cidr", "172.16.0.0/24"), "already exists: choose another name"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(
    adm: Cli, busy: str, code: int, arguments: tuple[str, ...], complaint: str
) -> None:
    assert complaint in adm.refused(code, "pool", "create", *arguments)


def test_waiting_ends_in_time_and_with_ctrl_c(idle: Cli) -> None:
    said = idle.run("pool", "create", "slow", "--cidr", "172.16.0.0/24", "--wait", "--timeout", "0.3")
    assert (said.code, said.out) == (7, f"{KEPT}/slow created\n"), "it was made, and says so"
    assert said.error == "not done after 0.3 s: slow: waiting for Butler to look at it"
    stopped = idle.in_terminal(
        "pool", "create", "slower", "--cidr", "10.2.0.0/24", "--wait", until=lambda text: "waiting for Butler" in text
    )
    assert stopped.code == 130, str(stopped)
    assert "Traceback" not in stopped.out


# grow


def test_growing_shows_before_and_after_and_moves_no_tenant(adm: Cli, network: str) -> None:
    adm("pool", "create", "growing", "--cidr", f"{network}.0.0/25", "--wait")
    said = adm.run("pool", "grow", "growing", "--cidr", f"{network}.0.0/24", "--wait")
    assert said.code == 0, str(said)
    assert said.out == f"{KEPT}/growing grown\n"
    rows = {line.split("  ")[0]: line.split()[-2:] for line in said.err.splitlines()}
    assert rows["addresses"] == ["126", "254"]
    assert rows["network"] == [f"{network}.0.0/25", f"{network}.0.0/24"]
    assert "growing is ready: 254 of 254" in said.err


def test_growing_by_a_number_asks_and_takes_no_for_an_answer(adm: Cli, network: str) -> None:
    adm(
        "pool", "create", "asked", "--cidr", f"{network}.0.0/24", "--window", f"{network}.0.16-{network}.0.31", "--wait"
    )
    assert "say --yes" in adm.refused(2, "pool", "grow", "asked", "--by", "8")
    declined = adm.in_terminal("pool", "grow", "asked", "--by", "8", answer={"[y/N]": "n\n"})
    assert (declined.code, "nothing was changed" in declined.out) == (1, True), str(declined)
    agreed = adm.in_terminal("pool", "grow", "asked", "--by", "8", answer={"[y/N]": "y\n"})
    assert agreed.code == 0, str(agreed)
    assert spec(adm, "asked")["tenantAllocation"]["ranges"] == [  # type: ignore[index]
        {"start": f"{network}.0.16", "end": f"{network}.0.39"}
    ]
    adm("pool", "grow", "asked", "--window", f"{network}.0.40-{network}.0.47", "-o", "json")
    shown = yaml.safe_load(adm("pool", "grow", "asked", "--by", "8", "--dry-run=client"))
    assert shown["spec"]["tenantAllocation"]["ranges"][0]["end"] == f"{network}.0.55"
    assert adm("pool", "grow", "asked", "--by", "8", "--dry-run=server") == f"{KEPT}/asked grown (server dry run)\n"
    assert spec(adm, "asked")["tenantAllocation"]["ranges"][0]["end"] == f"{network}.0.47"  # type: ignore[index]


@pytest.mark.parametrize(
    ("code", "arguments", "complaint"),
    [
        (2, (), "say by how much: --cidr, --window or --by"),
        (2, ("--by", "3", "--cidr", "10.245.0.0/23"), "--by chooses the addresses itself"),
        (2, ("--window", "10.245.0.9-10.245.0.1"), "10.245.0.1 comes before 10.245.0.9: swap the two"),
        (2, ("--window", "fd00::1-fd00::9"), "fd00::1-fd00::9 is no IPv4 window: pools hand out IPv4"),
        (1, ("--cidr", "10.245.0.0/23"), "a larger network alone adds nothing: add --window START-END"),
        (1, ("--window", "10.245.0.20-10.245.0.30"), ""),
        (1, ("--cidr", "10.246.0.0/24"), "spec.tenantAllocation"),
    ],
)
def test_what_is_no_growth_is_refused(
    adm: Cli, busy: str, code: int, arguments: tuple[str, ...], complaint: str
) -> None:
    said = adm.run("pool", "grow", busy, *arguments)
    if not complaint:  # inside a window that is there already
        assert (said.code, said.out) == (0, ""), str(said)
        assert "busy is like that already: nothing was changed" in said.err
        return
    assert said.code == code, str(said)
    assert complaint in said.error


# reserve


def test_a_block_is_reserved_described_and_given_back(adm: Cli, network: str) -> None:
    adm("pool", "create", "blocks", "--cidr", f"{network}.0.0/24", "--wait")
    said = adm.run("pool", "reserve", "blocks", f"{network}.0.64/28", "--description", "Printers", "--wait")
    assert said.out == f"{KEPT}/blocks reserves {network}.0.64/28\n", str(said)
    adm("pool", "reserve", "blocks", f"{network}.0.99")
    assert spec(adm, "blocks")["reserved"] == [
        {"cidr": f"{network}.0.64/28", "description": "Printers"},
        {"cidr": f"{network}.0.99/32"},
    ]
    adm("pool", "reserve", "blocks", f"{network}.0.64/28", "--remove")
    assert spec(adm, "blocks")["reserved"] == [{"cidr": f"{network}.0.99/32"}]
    complaint = adm.refused(1, "pool", "reserve", "blocks", f"{network}.0.64/28", "--remove")
    assert complaint.startswith(f"{network}.0.64/28 is no reserved block of this pool (these are: {network}.0.99/32)")


def test_a_block_in_use_is_refused_with_the_names_of_its_holders(adm: Cli, busy: str) -> None:
    said = adm.run("pool", "reserve", busy, "10.245.0.16/29")
    assert (said.code, said.out) == (1, ""), str(said)
    assert "10.245.0.16/29 would take addresses in use: busy-shop (10.245.0.16-10.245.0.27)" in said.error
    assert "'banana/32' is not a network" in adm.refused(2, "pool", "reserve", busy, "banana")


# delete


def test_a_pool_in_use_is_not_deleted_and_who_uses_it_is_named(adm: Cli, busy: str) -> None:
    complaint = adm.refused(1, "pool", "delete", busy, "--yes")
    assert "has addresses in use: busy-shop (10.245.0.16-10.245.0.27), busy-bank (10.245.0.28-10.245.0.36)" in complaint


def test_a_pool_is_deleted_once_the_user_says_so(adm: Cli, network: str) -> None:
    adm("pool", "create", "doomed", "--cidr", f"{network}.0.0/24", "--wait")
    assert f"Delete pool doomed ({network}.0.0/24)? There is no terminal to ask in" in adm.refused(
        2, "pool", "delete", "doomed"
    )
    assert adm("pool", "delete", "doomed", "--dry-run=client") == f"{KEPT}/doomed deleted (client dry run)\n"
    assert adm("pool", "delete", "doomed", "--dry-run=server") == f"{KEPT}/doomed deleted (server dry run)\n"
    declined = adm.in_terminal("pool", "delete", "doomed", answer={"[y/N]": "\n"})
    assert declined.code == 1, str(declined)
    said = adm.in_terminal("pool", "delete", "doomed", "--wait", answer={"[y/N]": "y\n"})
    assert said.code == 0, str(said)
    assert "doomed is gone" in said.out
    adm.refused(3, "pool", "get", "doomed")


# edit


@pytest.fixture
def editor(tmp_path: Path) -> Callable[..., str]:
    """An editor that does one thing after the other, and keeps what it was shown."""

    def made(*steps: str) -> str:
        for number, step in enumerate(steps, 1):
            (tmp_path / f"step-{number}").write_text(step)
        script = tmp_path / "editor.sh"
        script.write_text(
            f"cd {tmp_path}\nn=$(($(cat count 2>/dev/null || echo 0) + 1))\necho $n > count\n"
            'cp "$1" shown-$n\n[ -f step-$n ] || exit 0\nf="$1"; . ./step-$n\n'
        )
        return f"sh {script}"

    return made


def test_an_edit_is_written_and_one_that_changes_nothing_is_not(
    adm: Cli, network: str, editor: Callable[..., str], tmp_path: Path
) -> None:
    adm("pool", "create", "edited", "--cidr", f"{network}.0.0/24", "--wait")
    untouched = adm.run("pool", "edit", "edited", EDITOR="true")
    assert (untouched.code, untouched.out, untouched.err) == (0, "", "nothing was changed\n")
    step = f"sed -i 's|^  cidr: .*|  cidr: {network}.0.0/23|' $f"
    assert adm("pool", "edit", "edited", EDITOR=editor(step)) == f"{KEPT}/edited edited\n"
    assert spec(adm, "edited") == {"cidr": f"{network}.0.0/23"}
    opened = (tmp_path / "shown-1").read_text()
    assert opened.startswith("# Pool edited. Save and leave the editor to write it")
    assert yaml.safe_load(opened) == pool_body("edited", f"{network}.0.0/24"), "no status, no managed fields"


def test_an_edit_that_is_refused_opens_again_with_the_reason_and_loses_nothing(
    adm: Cli, busy: str, editor: Callable[..., str], tmp_path: Path
) -> None:
    wrong = "sed -i 's/end: 10.245.0.127/end: 10.245.0.20/' $f"
    broken = "sed -i 's/end: 10.245.0.20/end: [10.245.0.20/' $f"
    renamed = "sed -i 's/end: .10.245.0.20/end: 10.245.0.20/; s/name: busy/name: lazy/' $f"
    said = adm.run("pool", "edit", busy, EDITOR=editor(wrong, broken, renamed), TMPDIR=str(tmp_path))
    assert (said.code, said.out) == (1, ""), str(said)
    assert "nothing was changed: metadata.name cannot be changed: put busy back (what you wrote is kept in" in said.err
    second, third, fourth = ((tmp_path / f"shown-{number}").read_text() for number in (2, 3, 4))
    assert "would leave out addresses in use: busy-shop (10.245.0.16-10.245.0.27)" in " ".join(second.split("\n# "))
    assert "this is no YAML" in third
    assert "metadata.name cannot be changed" in fourth
    (kept,) = tmp_path.glob("butler-busy-*.yaml")
    assert "name: lazy" in kept.read_text()
    assert not kept.read_text().startswith("#")


def test_an_edit_goes_on_top_of_what_another_user_changed_meanwhile(
    adm: Cli, plane: ControlPlane, network: str, editor: Callable[..., str], tmp_path: Path
) -> None:
    adm("pool", "create", "shared", "--cidr", f"{network}.0.0/24", "--reserve", f"{network}.0.0/28", "--wait")
    label = (
        f"HOME={tmp_path} KUBECONFIG={plane.kubeconfig} kubectl label networkpool shared -n butler-system by=another"
    )
    mine = f"sed -i 's|^  cidr: .*|  cidr: {network}.0.0/23|' $f; {label}"
    agree = "sed -i '/^#/d' $f"
    said = adm.run("pool", "edit", "shared", EDITOR=editor(mine, agree))
    assert said.code == 0, str(said)
    assert "#+    by: another" in (tmp_path / "shown-2").read_text().replace("# +", "#+")
    found = adm.json("pool", "get", "shared")
    assert (found["spec"]["cidr"], found["metadata"]["labels"]) == (f"{network}.0.0/23", {"by": "another"})


def test_an_edit_that_is_given_up_for_another_users_is_a_conflict(
    adm: Cli, plane: ControlPlane, network: str, editor: Callable[..., str], tmp_path: Path
) -> None:
    adm("pool", "create", "contended", "--cidr", f"{network}.0.0/24", "--wait")
    kubectl = f"HOME={tmp_path} KUBECONFIG={plane.kubeconfig} kubectl -n butler-system"
    mine = f"sed -i 's|^  cidr: .*|  cidr: {network}.0.0/23|' $f"
    other = f"{kubectl} label networkpool contended by=another"
    said = adm.run("pool", "edit", "contended", EDITOR=editor(f"{mine}; {other}"))
    assert said.code == 6, str(said)
    assert "nothing was changed: another user changed contended meanwhile" in said.err
    (tmp_path / "count").unlink()
    deleted = f"{mine}; {kubectl} delete networkpool contended"
    said = adm.run("pool", "edit", "contended", EDITOR=editor(deleted))
    assert said.code == 6, str(said)
    assert "contended was deleted meanwhile, so nothing was changed" in said.err


def test_an_edit_takes_away_its_own_annotation_and_not_kubectls(
    adm: Cli, plane: ControlPlane, network: str, editor: Callable[..., str]
) -> None:
    body = pool_body("noted", f"{network}.0.0/24")
    body["metadata"]["annotations"] = {"note": "mine"}
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    adm("pool", "edit", "noted", EDITOR=editor("sed -i '/annotations:/d; /note: mine/d' $f"))
    kept = adm.json("pool", "get", "noted")["metadata"]["annotations"]
    assert list(kept) == ["kubectl.kubernetes.io/last-applied-configuration"]


def test_a_pool_that_changes_while_the_user_is_asked_is_judged_anew(
    adm: Cli, plane: ControlPlane, network: str
) -> None:
    def touched() -> str:
        plane.kubectl("annotate", "networkpool", "asking", "-n", "butler-system", "touched=yes")
        return "y\n"

    def edited() -> str:
        adm("pool", "reserve", "asking", f"{network}.0.192/26")
        return "y\n"

    def taken() -> str:
        grant(plane, "asking", ("just-now", "team-a/shop", 4))
        return "y\n"

    adm("pool", "create", "asking", "--cidr", f"{network}.0.0/24", "--wait")
    grown = adm.in_terminal("pool", "grow", "asking", "--by", "8", "--wait", answer={"[y/N]": touched})
    assert grown.code == 0, "nothing that matters came between: " + str(grown)
    overtaken = adm.in_terminal("pool", "grow", "asking", "--by", "8", answer={"[y/N]": edited})
    assert overtaken.code == 6, str(overtaken)
    assert "another user changed asking meanwhile: look at it and repeat the command" in overtaken.out
    kept = adm.in_terminal("pool", "delete", "asking", answer={"[y/N]": taken})
    assert kept.code == 1, str(kept)
    assert "has addresses in use: just-now" in kept.out


def test_an_editor_that_fails_changes_nothing(adm: Cli, busy: str) -> None:
    said = adm.run("pool", "edit", busy, EDITOR="false")
    assert said.code == 1
    assert said.error == "the editor `false` ended with code 1, so nothing was changed: set EDITOR to another"


def test_a_pool_does_not_grow_into_another_network(adm: Cli, network: str) -> None:
    adm("pool", "create", "stays", "--cidr", f"{network}.0.0/24", "--wait")
    said = adm.run("pool", "grow", "stays", "--cidr", "172.31.0.0/16", "--yes")
    assert said.code == 1, str(said)
    assert f"172.31.0.0/16 does not hold {network}.0.0/24, so stays would not grow but move" in said.error


def test_an_editor_that_is_a_script_is_asked_no_second_time_in_vain(adm: Cli, network: str) -> None:
    adm("pool", "create", "scripted", "--cidr", f"{network}.0.0/24", "--wait")
    script = f"sed -i s/{network}.0.0/{network}.0.1/"
    assert "has bits set after its prefix" in adm.run("pool", "edit", "scripted", EDITOR=script).error
