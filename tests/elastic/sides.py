"""The two arrangements of both sides that elastic tests run on: one store, and two.

On the embedded control plane the tenants are logical clusters of the very server that is the management cluster: one
counter, and an exact order between both sides. On a real Kubernetes the tenants are in the world's own server: two
counters, and an order as far as `moments.py` can prove it. A test that runs on both shows the same behaviour with an
exact judge and beside a real API server.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from run_kubernetes import end_with_parent

from control_planes import ControlPlane
from elastic.one_store import READY
from tenants.estate import HOME
from tenants.management import install_cluster_api, management_cluster
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60.0
QUICK = {"machine_seconds": 0.0, "machine_deletion_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}


@contextmanager
def both_sides(kind: str, directory: Path, root: Path) -> Iterator[ControlPlane]:
    """A management cluster of kind `embedded` or `kubernetes`, with the world at work and no controllers."""
    if kind == "embedded":
        with _one_store(directory) as plane:
            yield plane
        return
    with management_cluster(kind, directory, root) as plane:
        install_cluster_api(plane)
        with WorldProcess(plane.kubeconfig, directory, **QUICK) as world:
            yield plane
            assert "Traceback" not in world.log(), world.log()[-6000:]


@contextmanager
def _one_store(directory: Path) -> Iterator[ControlPlane]:
    log_file = directory / "one-store.log"
    data = directory / "server"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("one_store.py")), str(data)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while READY not in log_file.read_text():
            assert process.poll() is None, f"the server ended: {log_file.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"the server did not start: {log_file.read_text()[-2000:]}"
            time.sleep(0.05)
        plane = ControlPlane.from_kubeconfig("embedded", data / "kubeconfig", directory / "client")
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}})
        yield plane
        assert "Traceback" not in log_file.read_text(), log_file.read_text()[-6000:]
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
