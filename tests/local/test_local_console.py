"""The console of `butleradm local up`: where it is, how it is opened, and what happens when its port is taken."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import stat
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

from run_kubernetes import end_with_parent

from control_planes import BIN

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60.0


class Up:
    """One `butleradm local up`, until it has said all that it has to say at its start."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        command = [f"{BIN}/butleradm", "local", "up", "--data-dir", str(data_dir), *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509
        )
        self.said = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if line.startswith("Ctrl-C stops it"):
                return

    @property
    def console(self) -> str:
        return re.findall(r"^  console +(http://127\.0\.0\.1:\d+)$", self.said, re.MULTILINE)[0]

    def stop(self) -> str:
        """Ctrl-C; what it said on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0
        return errors


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_it_says_where_the_console_is_and_keeps_the_port(tmp_path: Path) -> None:
    first = Up(tmp_path / "data")
    url = first.console
    assert re.search(rf"^  {url}/link\?token=\S+$", first.said, re.MULTILINE)
    assert "good once, for 10 minutes; `butleradm server link`" in first.said
    assert status(f"{url}/link?token=nonsense") == 200, "a button, which uses nothing up"
    assert status(f"{url}/api/v1/pools") == 401
    assert first.stop() == ""
    second = Up(tmp_path / "data")
    assert second.console == url
    assert second.stop() == ""


def test_a_port_that_is_taken_is_refused_if_it_was_asked_for_and_else_another_is_found(tmp_path: Path) -> None:
    first = Up(tmp_path / "data")
    port = int(first.console.rsplit(":", 1)[1])
    first.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        refused = Up(tmp_path / "data", "--console-port", str(port))
        _, errors = refused.process.communicate(timeout=SECONDS)
        assert refused.process.returncode == 1
        assert f"port {port} on 127.0.0.1 cannot be had for the console" in errors
        assert "--console-port" in errors
        elsewhere = Up(tmp_path / "data")
        assert elsewhere.console != first.console
        assert elsewhere.stop() == ""


def test_without_a_console_nothing_is_said_of_it_and_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", "--no-console")
    assert "  console " not in up.said
    assert "/link?" not in up.said
    with open(f"/proc/{up.process.pid}/maps") as maps:
        assert "argon2" not in maps.read(), "passwords are the server's business"
    assert up.stop() == ""


def test_options_that_contradict_each_other_are_refused() -> None:
    for options, word in (
        (("--demo", "--no-world"), "--demo needs"),
        (("--no-console", "--console-port", "1"), "--no-console"),
    ):
        command = [f"{BIN}/butleradm", "local", "up", *options]
        refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert refused.returncode == 2
        assert word in refused.stderr


def test_what_people_do_is_written_down_in_the_data_directory(tmp_path: Path) -> None:
    up = Up(tmp_path / "data")
    try:
        form = urllib.parse.urlencode({"token": "wrong"}).encode()
        request = urllib.request.Request(f"{up.console}/link", form, {"Origin": up.console}, method="POST")
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=SECONDS).close()
        record = tmp_path / "data" / "audit.log"
        lines = [json.loads(line) for line in record.read_text().splitlines()]
    finally:
        up.stop()
    assert [(line["verb"], line["outcome"]) for line in lines] == [("log in", "refused")]
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
