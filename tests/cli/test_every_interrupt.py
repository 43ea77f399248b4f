"""Ctrl-C at every command while its server takes the question and never answers: it ends at once, and quietly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
import yaml

from cli.every import CALLS, PROVIDER, covers_all, kubeconfig_for, words
from cli.terminal import Cli
from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKING = {**CALLS, "butleradm doctor": "", "butleradm version": "", "butlerctl version": ""}
SERVING = {"butleradm controller run": "", "butleradm local world": "--data-dir {scratch}"}
"""They run until a signal says to stop, so that is no accident: the exit code is 0."""
INSTANT = {
    "butleradm local up": "asks only itself; tests/local stops it in every way",
    "butleradm local status": "gives its own server three seconds",
    "butleradm local down": "asks no API server, and says how long it waits",
    "butleradm local reset": "test_every_terminal.py interrupts its question",
    "butleradm server run": "tests/server stops it",
    "butleradm crds": "prints what it has",
    "butleradm completion": "prints what it has",
    "butlerctl completion": "prints what it has",
    "butlerctl context list": "reads a file",
    "butlerctl context use": "writes a file",
    "butlerctl context namespace": "writes a file",
}
AT_ONCE = 5.0
"""Seconds, on a machine that does other things, too; most take a tenth of one."""


def test_no_command_is_forgotten() -> None:
    covers_all(ASKING, SERVING, INSTANT)


class Silent:
    """A server that takes what it is asked and never answers."""

    def __init__(self, scratch: Path) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(30)
        self.kubeconfig = kubeconfig_for(f"http://127.0.0.1:{self.socket.getsockname()[1]}", scratch / "kubeconfig")
        self.provider = scratch / "provider.yaml"
        self.provider.write_text(yaml.safe_dump(PROVIDER))

    def asked(self) -> socket.socket:
        """Returns when a client has asked something."""
        connection, _ = self.socket.accept()
        connection.settimeout(30)
        assert connection.recv(1)
        return connection


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Silent]:
    server = Silent(tmp_path)
    with server.socket:
        yield server


def _interrupted(silent: Silent, call: str, arguments: str, scratch: Path) -> tuple[int, str, str, float]:
    """How a command ends when Ctrl-C comes while it waits, and after how many seconds."""
    program, typed = words(call, arguments, provider=silent.provider, scratch=scratch / "data")
    process = subprocess.Popen(
        [str(BIN / program), *typed], env=Cli(silent.kubeconfig, program, EDITOR="true").environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=_listen_to_ctrl_c,  # noqa: PLW1509 (one call)
    )  # fmt: skip
    try:
        with silent.asked():
            began = time.monotonic()
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, out, err, time.monotonic() - began


def _listen_to_ctrl_c() -> None:
    """In the new process: also where the tests run in the background, whose processes are born deaf to it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("call", ASKING)
def test_ctrl_c_ends_a_command_that_waits(call: str, silent: Silent, tmp_path: Path) -> None:
    code, out, err, seconds = _interrupted(silent, call, ASKING[call], tmp_path)
    assert (code, out) == (130, ""), err
    assert seconds < AT_ONCE
    assert "Traceback" not in err
    told = [line for line in err.splitlines() if line.strip()]
    assert len(told) <= 1, err


@pytest.mark.parametrize("call", SERVING)
def test_ctrl_c_is_the_way_to_end_what_runs_for_ever(call: str, silent: Silent, tmp_path: Path) -> None:
    code, _, err, seconds = _interrupted(silent, call, SERVING[call], tmp_path)
    assert code == 0, err
    assert seconds < AT_ONCE
    assert "Traceback" not in err
