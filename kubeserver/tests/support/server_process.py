"""A kubeserver process that a test may starve, kill, stop and start again on the same port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

import aiohttp
from api_servers import BIN, ControlPlane
from run_kubernetes import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

START_SECONDS = 60.0


class ServerProcess:
    """One data directory and, most of the time, one process that serves it."""

    def __init__(self, directory: Path, command: Sequence[str] = ("kubeserver",)) -> None:
        self._command = command
        self.data_dir = directory / "data"
        self.log_file = directory / "server.log"
        self._scratch = directory / "client"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.starting_seconds = 0.0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start, on the port of last time; returns when the kubeconfig is there."""
        began = time.monotonic()
        program, *options = self._command
        options += ["--quiet", "--data-dir", f"{self.data_dir}", "--port", f"{self.port}"]
        kubeconfig = self.data_dir / "kubeconfig"
        known = _written(kubeconfig)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [f"{BIN}/{program}", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
            )
        while _written(kubeconfig) in (0, known):
            assert self._process.poll() is None, f"the server ended: {self.log()[-2000:]}"
            assert time.monotonic() - began < START_SECONDS, f"the server did not start: {self.log()[-2000:]}"
            time.sleep(0.01)
        self.starting_seconds = time.monotonic() - began
        self.plane = ControlPlane.from_kubeconfig("embedded", kubeconfig, self._scratch)
        self.url = self.plane.url
        self.port = int(self.url.rsplit(":", 1)[1])

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

    def terminate(self, seconds: float = 20.0) -> tuple[int, float]:
        """SIGTERM; the exit code and how long it took."""
        assert self._process is not None
        began = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        code = self._process.wait(seconds)
        self._process = None
        return code, time.monotonic() - began

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def rss_megabytes(self) -> float:
        """Memory of the process that is in use right now."""
        with open(f"/proc/{self.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def session(self, **options: Any) -> aiohttp.ClientSession:
        """A client with the administrator's certificate."""
        connector = aiohttp.TCPConnector(ssl=self.plane.tls, limit=0)
        options.setdefault("timeout", aiohttp.ClientTimeout(total=30))
        return aiohttp.ClientSession(self.url, connector=connector, **options)


def _written(path: Path) -> int:
    """When a file was written; 0 where there is none, as while a server starts anew."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
