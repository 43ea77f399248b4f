"""butleradm and butlerctl as people and scripts use them: the real executables, in a pipe or in a terminal."""

from __future__ import annotations

import atexit
import codecs
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli import warm
from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PATIENCE = 60.0
EMPTY_HOME = tempfile.mkdtemp(prefix="butler-home-")
"""Without a kubeconfig of the person who runs the tests."""
atexit.register(shutil.rmtree, EMPTY_HOME, ignore_errors=True)


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    command: str
    code: int
    out: str
    err: str = ""

    def __str__(self) -> str:
        return f"$ {self.command}\n{self.out}{self.err}(exit code {self.code})"

    @property
    def error(self) -> str:
        """The one sentence of a command that failed, without `Error: `."""
        lines = self.err.strip().splitlines()
        assert lines, str(self)
        assert lines[-1].startswith("Error: "), str(self)
        return lines[-1].removeprefix("Error: ")


class Cli:
    """A person at a prompt, with a kubeconfig."""

    def __init__(self, kubeconfig: Path | None, program: str = "butleradm", **environment: str) -> None:
        self.program = program
        clean = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "NO_COLOR", "COLUMNS")}
        here = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**clean, "PATH": here, "HOME": EMPTY_HOME, "TERM": "xterm-256color", **environment}
        if kubeconfig is not None:
            self.environment["KUBECONFIG"] = str(kubeconfig)

    def run(self, *arguments: str, stdin: str = "", cwd: Path | None = None, **environment: str) -> Said:
        """Not in a terminal: as a script does."""
        if warm.can_run(self.program, environment):
            code, out, err = warm.run(
                self.program, arguments, self.environment | environment, stdin, cwd, PATIENCE
            )  # fmt: skip
            return Said(" ".join((self.program, *arguments)), code, out, err)
        result = subprocess.run(
            [str(BIN / self.program), *arguments], env=self.environment | environment, input=stdin,
            cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return Said(" ".join((self.program, *arguments)), result.returncode, result.stdout, result.stderr)

    def __call__(self, *arguments: str, stdin: str = "", **options: Any) -> str:
        """What a command prints; it must succeed."""
        said = self.run(*arguments, stdin=stdin, **options)
        assert said.code == 0, str(said)
        return said.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def refused(self, code: int, *arguments: str, stdin: str = "") -> str:
        """What a command complains about; it must leave with this code, and print nothing on stdout."""
        said = self.run(*arguments, stdin=stdin)
        assert said.code == code, str(said)
        assert not said.out, str(said)
        assert "Traceback" not in said.err, str(said)
        return said.error

    def in_terminal(
        self,
        *arguments: str,
        columns: int = 100,
        answer: Mapping[str, str | Callable[[], str]] | None = None,
        until: Callable[[str], bool] | None = None,
        talk_apart: bool = False,
        **environment: str,
    ) -> Said:
        """In a terminal of a width.

        `answer`: what is typed when a text appears; a function does something first. `until`: Ctrl-C when it holds.
        `talk_apart`: stderr goes to a file, so that what is left is the result.
        """
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        talk = tempfile.TemporaryFile() if talk_apart else None  # noqa: SIM115 (closed below)
        process = subprocess.Popen(
            [str(BIN / self.program), *arguments], env=self.environment | environment,
            stdin=slave, stdout=slave, stderr=talk or slave, start_new_session=True,
            preexec_fn=_sit_down,  # noqa: PLW1509 (one call)
        )  # fmt: skip
        os.close(slave)
        waiting, seen, deadline, interrupted = dict(answer or {}), "", time.monotonic() + PATIENCE, False
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while time.monotonic() < deadline:
                ready, _, _ = select.select([master], [], [], 0.1)
                if ready:
                    try:
                        read = os.read(master, 65536)
                    except OSError:  # the other side hung up
                        break
                    if not read:
                        break
                    seen += decoder.decode(read)
                for text in [item for item in waiting if item in seen]:
                    typed = waiting.pop(text)
                    os.write(master, (typed if isinstance(typed, str) else typed()).encode())
                if until is not None and not interrupted and until(seen):
                    interrupted = True
                    os.killpg(process.pid, signal.SIGINT)
                if not ready and process.poll() is not None:
                    break
            code = process.wait(10)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(master)
        said = ""
        if talk is not None:
            with talk:
                talk.seek(0)
                said = talk.read().decode()
        return Said(" ".join((self.program, *arguments)), code, seen.replace("\r\n", "\n"), said)


def _sit_down() -> None:
    """In the new process: the terminal is its own, and Ctrl-C counts, also where the tests run in the background."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def eventually(look: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Look until what is seen counts as true; gives it."""
    deadline = time.monotonic() + patience
    while not (seen := look()):
        assert time.monotonic() < deadline, f"not within {patience:.0f} s: {what}"
        time.sleep(0.05)
    return seen
