"""Completion in real shells: commands, options and names from the cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from cli.terminal import Cli
from control_planes import BIN
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTIONS = [
    (("butleradm", "po"), ["pool"]),
    (("butleradm", "pool", "l"), ["list"]),
    (("butleradm", "local", "do"), ["down"]),
    (("butleradm", "ipam", "fs"), ["fsck"]),
    (("butleradm", "ipam", "fsck", "--no-t"), ["--no-tenants"]),
    (("butleradm", "ipam", "fsck", "--pool", ""), ["east", "eastern"]),
    (("butleradm", "ipam", "fsck", "--tenant", "team/"), ["team/shop"]),
    (("butleradm", "pool", "get", "eastern"), ["eastern"]),
    (("butleradm", "-n", "butler-system", "pool", "get", "eastern"), ["eastern"]),
    (("butleradm", "-n", "butler-system", "po"), ["pool"]),
    (("butleradm", "pool", "list", "-o", "cs"), ["csv"]),
    (("butleradm", "completion", "f"), ["fish"]),
    (("butleradm", "crds", "--kind", "net"), ["NetworkPool"]),
    (("butlerctl", "clu"), ["cluster"]),
    (("butleradm", "pool", "get", "nothing"), []),
]
API = {"apiVersion": "butler.butlerlabs.dev/v1alpha1"}


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A shell where a server has two pools and a cluster."""
    with LocalServer(tmp_path_factory.mktemp("server")) as server:
        plane = server.plane
        for name, third in (("east", 1), ("eastern", 2)):
            meta = {"name": name, "namespace": "butler-system"}
            body = {**API, "kind": "NetworkPool", "metadata": meta, "spec": {"cidr": f"10.0.{third}.0/24"}}
            plane.kubectl("create", "-f", "-", stdin=json.dumps(body))
        plane.kubectl("create", "namespace", "team")
        spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}}
        body = {**API, "kind": "TenantCluster", "metadata": {"name": "shop", "namespace": "team"}, "spec": spec}
        plane.kubectl("create", "-f", "-", stdin=json.dumps(body))
        yield Cli(plane.kubeconfig)


def shell(prompt: Cli, *command: str) -> list[str]:
    """What a shell prints."""
    result = subprocess.run(
        command, env=prompt.environment, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert not result.stderr, result.stderr
    return result.stdout.splitlines()


def quoted(words: tuple[str, ...]) -> str:
    return " ".join(f"'{word}'" for word in words)


Answers = dict[tuple[str, ...], list[str]]


def asked_in_bash(prompt: Cli, questions: list[tuple[str, ...]]) -> Answers:
    """What one bash completes, to all questions."""
    lines = ["source <(butleradm completion bash)", "source <(butlerctl completion bash)", "complete -p butleradm >&3"]
    for words in questions:
        lines.append(f"COMP_WORDS=({quoted(words)}) COMP_CWORD={len(words) - 1} COMPREPLY=()")
        lines.append(f"_{words[0]}_completion {words[0]} >&2; printf '%s ' \"${{COMPREPLY[@]}}\"; echo")
    found = shell(prompt, "bash", "--noprofile", "--norc", "-e", "-c", "exec 3>/dev/null\n" + "\n".join(lines))
    return {words: line.split() for words, line in zip(questions, found, strict=True)}


@pytest.fixture(scope="module")
def in_bash(somewhere: Cli) -> Answers:
    answers = asked_in_bash(somewhere, [words for words, _ in QUESTIONS])
    # Names come within two seconds or not at all, and a busy machine may take longer: then they are asked for again.
    late = [words for words, choices in QUESTIONS if choices and not answers[words]]
    return answers | (asked_in_bash(somewhere, late) if late else {})


@pytest.mark.parametrize(("words", "choices"), QUESTIONS)
def test_bash_completes(in_bash: Answers, words: tuple[str, ...], choices: list[str]) -> None:
    assert in_bash[words] == choices


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_zsh_and_fish_can_read_what_is_printed_for_them(somewhere: Cli, name: str) -> None:
    script = somewhere("completion", name)
    asked = {"zsh": {"COMP_WORDS": "butleradm pool get east", "COMP_CWORD": "3"}, "fish": {"COMP_CWORD": "east"}}[name]
    words = {"COMP_WORDS": "butleradm pool get east"} | asked | {"_BUTLERADM_COMPLETE": f"{name}_complete"}
    said = somewhere(**words)  # as the script does
    assert [line for line in said.replace(",", "\n").splitlines() if line.startswith("east")] == ["east", "eastern"]
    if shutil.which(name) is None:
        return
    check = {"zsh": ("zsh", "-f", "-n", "-c", script), "fish": ("fish", "--no-config", "--no-execute", "-c", script)}
    assert shell(somewhere, *check[name]) == []
    if name == "fish":
        asks = f"{script}\ncomplete -C 'butleradm pool get east'"
        assert shell(somewhere, "fish", "--no-config", "-c", asks) == ["east", "eastern"]


def test_kubectl_completes_its_plugin(somewhere: Cli) -> None:
    def asked(*words: str) -> list[str]:
        command = [str(BIN / "kubectl"), "__complete", "butler", *words]
        result = subprocess.run(command, env=somewhere.environment, capture_output=True, text=True, check=True)
        return result.stdout.splitlines()

    assert asked("pool", "get", "") == ["east", "eastern", ":4"]
    assert asked("clu") == ["cluster\tYour clusters: make, change, use and delete them.", ":4"]
    assert asked("pool", "list", "-o", "jsonp") == ["jsonpath=", ":6"]
    assert asked("loc") == [":4"], "what has nothing to do with the cluster is not there"
    assert asked("pool", "list", "--kubeconfig", "/")[-1] == ":0", "files are the shell's business"


def test_names_that_cannot_be_had_are_no_error() -> None:
    no_cluster = Cli(None)
    assert shell(no_cluster, str(BIN / "kubectl_complete-butler"), "pool", "get", "") == [":4"]


def test_a_shell_that_is_not_known_is_refused(somewhere: Cli) -> None:
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in somewhere.refused(2, "completion", "tcsh")
    plugin = Cli(None, "kubectl-butler")
    assert plugin.refused(2, "completion", "zsh").endswith("source <(kubectl completion zsh)")
