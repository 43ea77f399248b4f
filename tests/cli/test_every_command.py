"""Every command, with the server away and by a user who may do nothing: one sentence, the right exit code, no more.

The table in every.py has one call of each command; a command without one fails the first test.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
import yaml

from cli.every import ALONE, CALLS, PROVIDER, covers_all, kubeconfig_for, words
from cli.terminal import Cli

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane


def test_no_command_is_forgotten() -> None:
    covers_all(ALONE, CALLS)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "provider.yaml"
    path.write_text(yaml.safe_dump(PROVIDER))
    return path


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig that leads to a port where no server listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return kubeconfig_for(f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("away") / "kubeconfig")


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_away_is_one_sentence(call: str, away: Path, provider: Path) -> None:
    program, typed = words(call, CALLS[call], provider=provider)
    said = Cli(away, program, EDITOR="true", PYTHONWARNINGS="default").run(*typed)
    assert (said.code, said.out) == (5, ""), str(said)
    talk, sentence = said.err.splitlines()[:-1], said.error
    assert sentence.count("127.0.0.1:") == 1, f"the server is named, and once is enough: {sentence}"
    assert sentence.count("cannot be reached") == 1, sentence
    assert not [line for line in talk if "reading pools" not in line], f"no warnings, no traceback: {said}"


@pytest.mark.parametrize("call", CALLS)
def test_who_may_do_nothing_is_told_so(call: str, plane: ControlPlane, provider: Path) -> None:
    program, typed = words(call, CALLS[call], provider=provider)
    said = Cli(plane.kubeconfig, program, EDITOR="true").refused(4, *typed, "--as", "stranger")
    assert "stranger" in said or "may not" in said, said
