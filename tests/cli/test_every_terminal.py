"""Every command that prints tables or screens, in terminals of 40, 80 and 200 columns, and every question it asks.

Nothing is wider than the terminal but a single name, and the facts that matter stay; with NO_COLOR and in a pipe there
are no escape sequences. Ctrl-C at a question changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from cli.estates import API, HOME, RACK, create, make_small_estate, pool_body, read
from cli.every import covers_all, every, words
from cli.screens import LINES, SCREENS, WEB
from cli.terminal import Cli, eventually
from local_server import LocalServer

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane

COLUMNS = (40, 80, 200)


@pytest.fixture(scope="module")
def plane(server: LocalServer) -> ControlPlane:
    make_small_estate(server.plane, server.data_dir)
    return server.plane


@pytest.fixture(scope="module")
def places(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    rows = folder / "rows.csv"
    rows.write_text(f"pool,tenant_namespace,tenant,type,start,end\n{RACK},team-old,legacy,nodes,10.77.3.1,10.77.3.4\n")
    (folder / "kubeconfig").write_text("mine")
    return {"rows": rows, "data": server.data_dir, "kubeconfig": folder / "kubeconfig", "folder": folder}


def test_no_command_is_forgotten() -> None:
    covers_all(SCREENS, LINES)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("call", SCREENS)
def test_a_screen_fits_its_terminal_and_tells_what_matters(
    call: str, columns: int, plane: ControlPlane, places: dict[str, Path]
) -> None:
    screen, (program, typed) = SCREENS[call], words(call, SCREENS[call].arguments, **places)
    colourless: dict[str, Any] = {"NO_COLOR": "1"} if columns == 80 else {}
    said = Cli(plane.kubeconfig, program).in_terminal(*typed, columns=columns, talk_apart=True, **colourless)
    assert said.code == screen.code, str(said)
    assert "Traceback" not in said.err, str(said)
    assert not colourless or "\x1b" not in said.out, str(said)
    lines = click.unstyle(said.out).splitlines()
    if not call.endswith(("reserve", "delete")):  # their last line is for scripts
        wide = [line for line in lines if len(line) > columns and " " in line.strip()]
        assert not wide, str(said)
    told = " ".join(" ".join(lines + said.err.splitlines()).split())
    for fact in screen.facts:
        assert fact in told, f"{fact}: {said}"


@pytest.mark.parametrize("call", SCREENS)
def test_in_a_pipe_there_is_nothing_but_text(call: str, plane: ControlPlane, places: dict[str, Path]) -> None:
    program, typed = words(call, SCREENS[call].arguments, **places)
    said = Cli(plane.kubeconfig, program).run(*typed)
    assert said.code == SCREENS[call].code, str(said)
    assert "\x1b" not in said.out + said.err
    assert "\r" not in said.out + said.err
    for fact in SCREENS[call].facts:
        assert fact in " ".join((said.out + said.err).split()), f"{fact}: {said}"


def test_progress_on_a_terminal_without_colour_needs_no_escape_sequences(plane: ControlPlane) -> None:
    said = Cli(plane.kubeconfig).in_terminal("ipam", "fsck", "--pool", "production-pool", NO_COLOR="1")
    assert "asking 1 tenant" in said.out
    assert "\x1b" not in said.out
    dumb = Cli(plane.kubeconfig).in_terminal("ipam", "fsck", "--pool", "production-pool", TERM="dumb")
    assert "\r" not in dumb.out, str(dumb)


# Questions.

ASKS = {
    "butleradm pool grow": "spare --by 16",
    "butleradm pool delete": "spare",
    "butleradm allocation release": "shop-lb",
    "butleradm ipam fsck": "--repair --no-tenants --pool production-nodes",
    "butleradm ipam import": "{rows}",
    "butleradm local reset": "--data-dir {stopped}",
    "butlerctl cluster scale": f"{WEB} --workers 1",
    "butlerctl cluster delete": WEB,
    "butlerctl cluster kubeconfig": f"{WEB} -f {{kubeconfig}}",
}
"""Each command that has --yes, with a call that asks."""
QUESTION = ("[y/N]", "to delete it:", "to release it:")


def test_no_question_is_forgotten() -> None:
    asking = {call for call, command in every().items() if any(param.name == "yes" for param in command.params)}
    assert asking == set(ASKS)


@pytest.fixture(scope="module")
def asked_about(plane: ControlPlane, places: dict[str, Path]) -> dict[str, Path]:
    """A pool that no tenant uses, an allocation with a wrong label, and a data directory that nothing runs on."""
    plane.kubectl("label", "ipa", "web-nodes", "-n", HOME, "butler.butlerlabs.dev/tenant=wob", "--overwrite")
    window = {"start": "10.78.0.10", "end": "10.78.0.19"}
    create(plane, "networkpools", pool_body("spare", "10.78.0.0/24", tenantAllocation=window))
    eventually(lambda: "Ready" in str(read(plane, "networkpools", "spare").get("status")), "spare is ready")
    with LocalServer(places["folder"]) as stopped:
        pass
    return {**places, "stopped": stopped.data_dir}


def _everything(plane: ControlPlane, asked_about: dict[str, Path]) -> list[object]:
    """All that the questions are about, as it is."""
    kinds = ("networkpools", "ipallocations", "tenantclusters")
    lists = [plane.request("GET", f"/apis/{API}/{kind}")[1]["items"] for kind in kinds]
    metas = [item["metadata"] for found in lists for item in found]
    objects = [(meta["name"], meta.get("generation"), meta.get("labels")) for meta in metas]
    return [*objects, asked_about["kubeconfig"].read_text(), (asked_about["stopped"] / "store.db").exists()]


@pytest.mark.parametrize("call", ASKS)
def test_ctrl_c_at_a_question_changes_nothing(call: str, plane: ControlPlane, asked_about: dict[str, Path]) -> None:
    before = _everything(plane, asked_about)
    program, typed = words(call, ASKS[call], **asked_about)
    said = Cli(plane.kubeconfig, program).in_terminal(*typed, until=lambda seen: any(text in seen for text in QUESTION))
    assert said.code == 130, str(said)
    assert any(text in said.out for text in QUESTION), str(said)
    assert "Traceback" not in said.out
    assert _everything(plane, asked_about) == before


@pytest.mark.parametrize("call", ASKS)
def test_where_no_user_can_be_asked_nothing_is_done(
    call: str, plane: ControlPlane, asked_about: dict[str, Path]
) -> None:
    before = _everything(plane, asked_about)
    program, typed = words(call, ASKS[call], **asked_about)
    said = Cli(plane.kubeconfig, program).run(*typed)
    assert said.code == 2, str(said)
    assert said.error.endswith("say --yes"), str(said)
    assert _everything(plane, asked_about) == before
