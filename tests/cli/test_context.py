"""`butlerctl context`, through the real executable and beside the real kubectl; no server is needed."""

from __future__ import annotations

import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from cli.terminal import EMPTY_HOME, Cli
from control_planes import BIN

if TYPE_CHECKING:
    from pathlib import Path

MINE = """\
apiVersion: v1
kind: Config
clusters:
- {name: one, cluster: {server: "https://one.example.com"}}
users:
- {name: me, user: {token: abc}}
contexts:
- {name: work, context: {cluster: one, user: me}}
- {name: play, context: {cluster: one, user: me, namespace: garden}}
current-context: work
preferences: {colors: true}
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(MINE)
    path.chmod(0o600)
    return path


def kubectl(path: Path, *arguments: str) -> str:
    command = [str(BIN / "kubectl"), "--kubeconfig", str(path), "config", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_what_is_chosen_here_is_chosen_for_kubectl_too(mine: Path) -> None:
    person = Cli(mine, "butlerctl")
    assert [line.split() for line in person("context", "list").splitlines()] == [
        ["CURRENT", "NAME", "NAMESPACE", "SERVER", "USER"],
        ["play", "garden", "https://one.example.com", "me"],
        ["*", "work", "default", "https://one.example.com", "me"],
    ]
    assert person("context", "use", "play") == f"play is the current context now (in {mine})\n"
    assert kubectl(mine, "current-context") == "play"
    assert person("context", "namespace") == "garden\n"
    person("context", "namespace", "team-a", "--context", "work")
    assert kubectl(mine, "view", "-o", "jsonpath={.contexts[?(@.name=='work')].context.namespace}") == "team-a"
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600
    assert "colors: true" in mine.read_text()


def test_what_is_not_there_is_named_with_the_next_step(mine: Path, tmp_path: Path) -> None:
    person = Cli(mine, "butlerctl")
    assert "did you mean work?" in person.refused(3, "context", "use", "wrok")
    assert "is no name of a namespace" in person.refused(2, "context", "namespace", "Team_A")
    assert f"no kubeconfig at {EMPTY_HOME}/.kube/config" in Cli(None, "butlerctl").refused(5, "context", "list")
    empty = tmp_path / "empty"
    empty.write_text("kind: Config\n")
    said = Cli(empty, "butlerctl").run("context", "list")
    assert (said.code, said.out) == (0, "")
    assert "There are no contexts in" in said.err
    assert "has no current context" in Cli(empty, "butlerctl").refused(3, "context", "namespace")


def test_a_narrow_terminal_is_enough(mine: Path) -> None:
    said = Cli(mine, "butlerctl").in_terminal("context", "list", columns=50, NO_COLOR="1")
    assert max(map(len, said.out.splitlines())) <= 50, str(said)
