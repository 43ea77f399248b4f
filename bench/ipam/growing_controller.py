"""`butleradm controller run` with admission and metrics, as the benchmark of growth looks at it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from run_kubernetes import end_with_parent

from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60.0
DEAD_PROXY = "http://127.0.0.1:9"
"""Where requests to clouds would go."""


class Controller:
    def __init__(self, kubeconfig: Path, log_file: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._log_file = log_file
        command = [f"{BIN}/butleradm", "controller", "run", "--kubeconfig", str(kubeconfig), "--no-lease"]
        command += ["--metrics-port", str(self._port), "--webhook-port", "0"]
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "HTTPS_PROXY": DEAD_PROXY,
                    "HTTP_PROXY": DEAD_PROXY,
                    "NO_PROXY": "127.0.0.1,localhost",
                },
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 (one call)
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> None:
        """Raise when it has ended."""
        if self._process.poll() is not None:
            text = "\n".join(self._log_file.read_text(errors="replace").splitlines()[-15:])
            raise RuntimeError(f"`butleradm controller run` ended with code {self._process.returncode}:\n{text}")

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            self.alive()
            try:
                if self._get("readyz"):
                    return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def metrics(self) -> str:
        return self._get("metrics").decode()

    def memory(self) -> float:
        """Resident, in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _get(self, page: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{page}", timeout=30) as answer:
            body: bytes = answer.read()
            return body


@contextmanager
def running(kubeconfig: Path, log_file: Path) -> Iterator[Controller]:
    controller = Controller(kubeconfig, log_file)
    try:
        controller.wait_ready()
        yield controller
    finally:
        controller.stop()
