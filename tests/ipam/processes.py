"""`butleradm controller run` as real processes that a test may freeze, wake and kill at the worst moment.

Killing at every single write takes hundreds of short lives, and most of a short life would be Python importing
modules. So processes are forked from a nursery that has done the importing and nothing else: no event loop, no
thread, no connection. Each child then runs the very command that users type. A test that wants the command from
its first instruction asks for `exec_=True`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from run_kubernetes import end_with_parent

from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

NURSERY = Path(__file__).parent / "nursery.py"


def kubeconfig_for(url: str, path: Path) -> Path:
    """A kubeconfig that leads to a proxy, which knows the credentials."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "line", "cluster": {"server": url}}],
        "users": [{"name": "anonymous", "user": {}}],
        "contexts": [{"name": "line", "context": {"cluster": "line", "user": "anonymous"}}],
        "current-context": "line",
    }
    path.write_text(yaml.safe_dump(config))
    return path


class Nursery:
    """Forks children on demand and reaps them; one per test session."""

    def __enter__(self) -> Nursery:
        self._process = subprocess.Popen(
            [sys.executable, str(NURSERY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
        )
        assert self._ask({"ping": True}) == "pong"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def start(self, arguments: Sequence[str], log_file: Path) -> int:
        return int(self._ask({"start": list(arguments), "log": str(log_file)}))

    def reap(self, pid: int) -> int:
        """Wait for the end of a child; its wait status."""
        return int(self._ask({"reap": pid}))

    def ended(self, pid: int) -> bool:
        return bool(self._ask({"ended": pid}))

    def _ask(self, command: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class ButlerProcess:
    """One controller process at a time, started again after each death with the same arguments."""

    def __init__(
        self,
        nursery: Nursery,
        name: str,
        kubeconfig: Path,
        log_file: Path,
        options: Sequence[str],
        *,
        exec_: bool = False,
    ) -> None:
        self.name = name
        self.log_file = log_file
        self.lives = 0
        self.pid = 0
        self._nursery = nursery
        self._kubeconfig = kubeconfig
        self.set_options(options)
        self._exec = exec_
        self._child: subprocess.Popen[bytes] | None = None

    def set_options(self, options: Sequence[str]) -> None:
        """What its next life is started with."""
        self._arguments = ["controller", "run", "--kubeconfig", str(self._kubeconfig), *options]

    def start(self) -> None:
        assert not self.pid, f"{self.name} is running"
        self.lives += 1
        with self.log_file.open("a") as log:
            log.write(f"--- life {self.lives} of {self.name}\n")
            log.flush()
            if not self._exec:
                self.pid = self._nursery.start(self._arguments, self.log_file)
                return
            self._child = subprocess.Popen(
                [str(BIN / "butleradm"), *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
            )
            self.pid = self._child.pid

    def kill(self) -> None:
        """`kill -9`; returns when the process is no more."""
        if self.pid:
            pid, self.pid = self.pid, 0
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self._wait(pid)

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM, as a rollout does; the exit code."""
        pid, self.pid = self.pid, 0
        os.kill(pid, signal.SIGTERM)
        return self._wait(pid)

    def insist_alive(self) -> None:
        """Fails with the log's end when the process went by itself, which it never may."""
        if not self.pid:
            return
        ended = self._child.poll() is not None if self._child is not None else self._nursery.ended(self.pid)
        assert not ended, f"{self.name} ended by itself:\n{self.tail()}"

    def tail(self, lines: int = 25) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def _wait(self, pid: int) -> int:
        if self._child is not None:
            code = self._child.wait(60)
            self._child = None
            return code
        began = time.monotonic()
        while not self._nursery.ended(pid):
            assert time.monotonic() - began < 60, f"{self.name} does not stop:\n{self.tail()}"
            time.sleep(0.005)
        return os.waitstatus_to_exitcode(self._nursery.reap(pid))
