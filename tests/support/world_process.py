"""`butleradm local world` as a process that a test may kill and start again on the same data and port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from run_kubernetes import end_with_parent

from control_planes import BIN

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

START_SECONDS = 60.0


class WorldProcess:
    """The stand-ins for the management cluster of a kubeconfig, which needs to have Butler's own definitions.

    Settings are those of WorldSettings, as in `WorldProcess(kubeconfig, directory, machine_seconds=0.2)`.
    """

    def __init__(self, kubeconfig: Path, directory: Path, **settings: float) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = kubeconfig
        self.data_dir = directory / "world"
        self.log_file = directory / "world.log"
        self.settings = settings
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> WorldProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.terminate()

    def start(self) -> None:
        """Start, on the port of last time; returns when it works."""
        command = [f"{BIN}/butleradm", "local", "world", "--kubeconfig", str(self.kubeconfig)]
        command += ["--data-dir", str(self.data_dir), "--port", str(self.port)]
        for name, value in self.settings.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        before = len(self.log())
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
            )
        deadline = time.monotonic() + START_SECONDS
        while "The world is up" not in self.log()[before:]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the world did not start: {self.log()[-2000:]}")
            time.sleep(0.02)
        self.port = int(self.log()[before:].split("tenants      https://127.0.0.1:")[1].split()[0])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """`kill -9`: no goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def terminate(self, seconds: float = 30.0) -> int:
        """SIGTERM; the exit code. A process that does not end in time is killed, and the test fails."""
        assert self._process is not None
        os.kill(self.pid, signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        finally:
            self.kill()

    def restart(self) -> None:
        """Kill it and start it again: what counts must be in the API server."""
        self.kill()
        self.start()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def rss_megabytes(self) -> float:
        """Memory of the process that is in use right now."""
        with open(f"/proc/{self.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
