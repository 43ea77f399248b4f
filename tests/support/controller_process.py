"""`butleradm controller run` as a process, working on the management cluster of a kubeconfig until the block ends.

Whatever it might ask of the outside world goes to a proxy that is not there: no test may send a request to a cloud,
and none may depend on what a cloud would say.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING

from run_kubernetes import end_with_parent

from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

START_SECONDS = 60.0
DEAD_PROXY = "http://127.0.0.1:9"
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class ControllerProcess:
    """Butler's controllers; `options` are those of the command."""

    def __init__(self, kubeconfig: Path, directory: Path, options: Sequence[str] = ()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log_file = directory / "controller.log"
        self._command = [f"{BIN}/butleradm", "controller", "run", "--kubeconfig", str(kubeconfig)]
        self._port = _free_port()
        self._command += ["--no-lease", "--metrics-port", str(self._port), *options]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ControllerProcess:
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
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
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            assert self._process.poll() is None, f"the controller ended: {self.log()[-2000:]}"
            assert time.monotonic() < deadline, f"the controller did not start: {self.log()[-2000:]}"
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def complaints(self) -> list[str]:
        """Lines of the log that report an unexpected error."""
        return [line for line in self.log().splitlines() if "Traceback" in line or " ERROR " in line]

    def requests(self) -> Counter[str]:
        """How often it has asked the API server so far, by verb and resource, such as "get secrets"."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        found: Counter[str] = Counter()
        for line in lines:
            if line.startswith("rest_client_requests_total{"):
                labels = dict(_LABEL.findall(line))
                found[f"{labels['verb']} {labels['resource'].partition('.')[0]}"] += int(float(line.rpartition(" ")[2]))
        return found

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
