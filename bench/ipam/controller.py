"""`butleradm controller run` as a process: the command that users type, with its lease."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from run_kubernetes import end_with_parent

from control_planes import BIN
from ipam import objects

if TYPE_CHECKING:
    from collections.abc import Iterator


class ControllerProcess:
    """A controller for the home namespace."""

    def __init__(self, kubeconfig: Path, log_file: Path) -> None:
        self._log_file = log_file
        command = [f"{BIN}/butleradm", "controller", "run", "--kubeconfig", f"{kubeconfig}", "-n", objects.HOME]
        self.started = time.perf_counter()
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 (one call)
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> None:
        """Raise when it has ended."""
        if self._process.poll() is not None:
            text = "\n".join(self._log_file.read_text(errors="replace").splitlines()[-15:])
            raise RuntimeError(f"`butleradm controller run` ended with code {self._process.returncode}:\n{text}")

    def memory(self, field: str = "VmRSS") -> float:
        """Resident memory in MB: VmRSS now, VmHWM at its highest."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(kubeconfig: Path, log_file: Path) -> Iterator[ControllerProcess]:
    process = ControllerProcess(kubeconfig, log_file)
    try:
        yield process
    finally:
        process.stop()
