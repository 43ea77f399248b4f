"""A control plane of one's own that can be put back to an earlier state while others keep running.

The real one is restored as people restore etcd by hand: stopped, its data replaced by that of a snapshot, started
again on the same port. Its revisions then go back. The embedded one is killed and started from a copy of its store
that was made while it ran: it knows that it was not closed, and leaves out some revisions.
"""

from __future__ import annotations

import http.client
import json
import shutil
import sqlite3
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from run_kubernetes import Kubernetes, find_binaries

from control_planes import ControlPlane
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CRDS = Path(__file__).parents[2] / "charts" / "butler" / "crds"
KINDS = "/apis/butler.butlerlabs.dev/v1alpha1"


class Restorable:
    """A running control plane with Butler's kinds. `plane` is the way in, before and after a restore."""

    def __init__(
        self, plane: ControlPlane, folder: Path, save: Callable[[Path], None], put_back: Callable[[Path], None]
    ) -> None:
        self.plane = plane
        self._snapshot = folder / "snapshot"
        self._save = save
        self._put_back = put_back

    def snapshot(self) -> None:
        """Remember everything as it is now."""
        shutil.rmtree(self._snapshot, ignore_errors=True)
        self._save(self._snapshot)
        self.wait()

    def restore(self) -> None:
        """Put everything back as it was at the snapshot."""
        self._put_back(self._snapshot)
        self.wait()

    def wait(self) -> None:
        """Until Butler's kinds are served."""
        names = [path.stem.replace("butler.butlerlabs.dev_", "") for path in CRDS.glob("*.yaml")]
        deadline = time.monotonic() + 90
        for name in names:
            while self.plane.request("GET", f"{KINDS}/{name}")[0] != 200:
                assert time.monotonic() < deadline, f"{name} are not served"
                time.sleep(0.1)

    def advance(self, writes: int) -> None:
        """Let the server's versions go on, as hours of work would."""
        body = json.dumps({"metadata": {"generateName": "time-passes-"}})
        headers = {**self.plane.headers, "Content-Type": "application/json"}
        host = urlsplit(self.plane.url).netloc
        with closing(http.client.HTTPSConnection(host, context=self.plane.tls, timeout=30)) as line:
            for _ in range(writes):
                line.request("POST", "/api/v1/namespaces/default/configmaps", body, headers)
                answer = line.getresponse()
                assert answer.status == 201, answer.read()
                answer.read()


@contextmanager
def kubernetes(folder: Path) -> Iterator[Restorable]:
    """etcd and kube-apiserver, restored from etcd's data."""
    with Kubernetes(folder / "server", find_binaries()) as server:
        plane = ControlPlane.from_kubeconfig("kubernetes", server.kubeconfig, folder / "client")
        yield _with_kinds(Restorable(plane, folder, server.snapshot, server.restore))


@contextmanager
def embedded(folder: Path) -> Iterator[Restorable]:
    """`butleradm local up`, restored from a copy of its store."""
    with LocalServer(folder) as server:

        def stores() -> list[Path]:
            found = list(server.data_dir.rglob("store.db*"))
            assert found, "the store is not where it was"
            return found

        def save(into: Path) -> None:
            into.mkdir()
            (file,) = (file for file in stores() if file.name == "store.db")
            with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(into / file.name)) as copy:
                live.backup(copy)

        def put_back(saved: Path) -> None:
            server.kill()
            folder_of_store = stores()[0].parent
            for file in stores():
                file.unlink()
            for file in saved.iterdir():
                shutil.copy2(file, folder_of_store / file.name)
            server.start()

        yield _with_kinds(Restorable(server.plane, folder, save, put_back))


def _with_kinds(server: Restorable) -> Restorable:
    server.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    server.wait()
    return server
