"""`butleradm local up` as a person meets it: what it prints, what it leaves behind, how it stops and refuses."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from control_planes import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Iterator

BUTLERADM = Path(sys.executable).with_name("butleradm")
SECONDS = 30.0


class Running:
    """One `butleradm local up` in the background."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        self.data_dir = data_dir
        self._started = time.time()
        command = [str(BUTLERADM), "local", "up", "--data-dir", str(data_dir), *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"}
        )

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + SECONDS
        kubeconfig = self.data_dir / "kubeconfig"
        while not (kubeconfig.exists() and kubeconfig.stat().st_mtime > self._started):
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline, "no kubeconfig appeared"
            time.sleep(0.02)

    def stop(self, number: int = signal.SIGINT) -> tuple[str, str]:
        self.process.send_signal(number)
        return self.process.communicate(timeout=SECONDS)


@contextlib.contextmanager
def up(data_dir: Path, *arguments: str) -> Iterator[Running]:
    running = Running(data_dir, *arguments)
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def plane(running: Running, scratch: Path) -> ControlPlane:
    return ControlPlane.from_kubeconfig("embedded", running.data_dir / "kubeconfig", scratch)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_it_says_where_everything_is_and_stops_cleanly(tmp_path: Path, number: int) -> None:
    data_dir = tmp_path / "data"
    with up(data_dir) as running:
        assert (data_dir / "kubeconfig").stat().st_mode & 0o777 == 0o600
        assert plane(running, tmp_path / "client").request("GET", "/readyz") == (200, "ok")
        out, err = running.stop(number)
    assert running.process.returncode == 0
    assert err == ""
    assert f"export KUBECONFIG={data_dir}/kubeconfig" in out
    assert "https://127.0.0.1:" in out


def test_a_watch_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    with up(tmp_path / "data") as running:
        kubectl = [str(Path(sys.executable).with_name("kubectl")), "get", "namespaces", "--watch"]
        environment = {**os.environ, "KUBECONFIG": str(running.data_dir / "kubeconfig")}
        watching = subprocess.Popen(kubectl, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        try:
            assert watching.stdout is not None
            assert watching.stdout.readline()
            began = time.monotonic()
            running.stop()
            assert running.process.returncode == 0
            assert time.monotonic() - began < 20
        finally:
            watching.kill()
            watching.communicate()


def test_what_was_written_is_there_after_a_restart_on_the_same_port(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with up(data_dir) as first:
        server = plane(first, tmp_path / "client")
        url = server.url
        made = server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}})
        assert made[0] == 201
        first.stop()
    with up(data_dir) as second:
        again = plane(second, tmp_path / "client-again")
        assert again.url == url
        code, found = again.request("GET", "/api/v1/namespaces/kept")
        assert code == 200
        assert found["metadata"]["uid"] == made[1]["metadata"]["uid"]


def test_two_servers_cannot_share_a_directory(tmp_path: Path) -> None:
    with up(tmp_path / "data"):
        second = Running(tmp_path / "data")
        _, err = second.process.communicate(timeout=SECONDS)
    assert second.process.returncode == 1
    assert err.startswith("Error: ")
    assert str(tmp_path / "data") in err
    assert "Traceback" not in err


def test_a_directory_that_cannot_be_made_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = Running(tmp_path / "file" / "data")
    _, err = refused.process.communicate(timeout=SECONDS)
    assert refused.process.returncode == 1
    assert err == (
        f"Error: data directory {tmp_path}/file/data cannot be used (Not a directory); give another with --data-dir\n"
    )


def test_a_taken_port_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = Running(tmp_path / "data", "--port", str(port))
        _, err = refused.process.communicate(timeout=SECONDS)
    assert refused.process.returncode == 1
    assert f"port {port}" in err
    assert "--port" in err
    assert "Traceback" not in err


def test_a_directory_that_cannot_be_made_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = Running(tmp_path / "file" / "data")
    _, err = refused.process.communicate(timeout=SECONDS)
    assert refused.process.returncode == 1
    assert err.count("\n") == 1
    assert "Traceback" not in err


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_no_other_user_looks_into_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    folders = [data, data / "clusters", data / "clusters/team-a", data / "clusters/team-a/web", data / "pki"]
    with up(data, "--no-controllers", "--no-console"):
        plane = ControlPlane.from_kubeconfig("embedded", data / "kubeconfig", tmp_path / "client")
        assert plane.request("PUT", "/clusters/team-a/web")[0] == 201
        assert {str(path): mode(path) for path in folders if mode(path) != 0o700} == {}
    for folder in folders[:4]:
        folder.chmod(0o755)  # as an earlier version left them
    with up(data, "--no-controllers", "--no-console"):
        assert {str(path): mode(path) for path in folders if mode(path) != 0o700} == {}


def test_a_directory_with_other_things_in_it_keeps_its_mode(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    (data / "notes.txt").write_text("mine")
    data.chmod(0o755)
    with up(data, "--no-controllers", "--no-console"):
        assert mode(data) == 0o755
