"""The embedded control plane: store, API server and TLS listener of one data directory, started and stopped as one.

    DIRECTORY/
      kubeconfig                              admin of the root cluster: there (mode 0600) once the server is ready
      clusters/<namespace>/<name>/kubeconfig  the same for each logical cluster
      pki/                                    the CA and keys
      (the store's files)                     every object and its recent history

Only loopback is served: this is a control plane for one machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import time
from typing import TYPE_CHECKING, Any, Final

from kubeserver import pki
from kubeserver.background.events import keep_sweeping
from kubeserver.builtin.catalog import EVENTS, EXTENSIONS, builtin_resources
from kubeserver.builtin.events import from_core, to_core
from kubeserver.definitions.definition import STRATEGY as DEFINITIONS
from kubeserver.directory import make_private, make_private_below
from kubeserver.hosted_cluster import HostedCluster
from kubeserver.lane import Lane
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.server import ApiServer
from kubeserver.storage.store import ObjectKey, Store, StoreRefused, Table
from kubeserver.turns import Turns
from kubeserver.wire.asgi import Edge, HttpServer, http_server
from kubeserver.wire.names import dns_label
from kubeserver.wire.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from kubeserver.resources import Resource

Json = dict[str, Any]

HOST: Final = "127.0.0.1"
_RENEW_SECONDS: Final = 30 * 86400  # how old the certificate in a logical cluster's kubeconfig may be at a start
_CLUSTERS: Final = Table("*", "", "clusters")  # no logical cluster can be called *, so this is ours alone


class NotStarted(Exception):
    """Why the control plane could not start, in one sentence."""


class ControlPlane:
    def __init__(self, directory: Path, store: Store, keys: pki.Pki, name: str = "kubeserver") -> None:
        self.directory = directory
        self.name = name
        self.url = ""
        self._store = store
        self._pki = keys
        self._builtin = _builtin()
        self._lane, self._turns = Lane(), Turns()
        self._server = ApiServer(self)
        self.application = Edge(self._server)  # speaks ASGI
        self._changing = asyncio.Lock()  # one logical cluster comes or goes at a time
        self._http: HttpServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        directory: Path,
        *,
        port: int = 0,
        definitions: Iterable[Json] = (),
        namespaces: Iterable[str] = (),
        name: str = "kubeserver",
        field_manager: str = "kubeserver",
        other_files: Collection[str] = (),
    ) -> ControlPlane:
        """Start on `port`, or on the port of last time, or on any free one; return when it is ready.

        `definitions` are CustomResourceDefinitions and `namespaces` are Namespaces that the root cluster has from the
        first request on, owned by `field_manager`. `name` is the context of the kubeconfigs, and `<name>-admin` their
        user. `other_files` are the names of files that the caller keeps in the same directory.
        """
        directory = directory.absolute()
        listener = _listen(port, _last_port(directory / "kubeconfig"))
        try:
            control_plane = await cls.open(directory, name=name, other_files=other_files)
        except BaseException:
            listener.close()
            raise
        control_plane.url = f"https://{HOST}:{listener.getsockname()[1]}"
        try:
            await control_plane.install(definitions, namespaces, field_manager)
            await control_plane.listen(listener)
        except BaseException:
            await control_plane.stop()
            listener.close()
            raise
        return control_plane

    @classmethod
    async def open(
        cls, directory: Path, *, name: str = "kubeserver", other_files: Collection[str] = ()
    ) -> ControlPlane:
        """The control plane of a directory, not yet reachable; raises NotStarted."""
        try:
            make_private(directory, other_files)
            store = await Store.open(directory)
            (directory / "kubeconfig").unlink(missing_ok=True)  # until we are ready
        except OSError as error:
            raise NotStarted(
                f"data directory {directory} cannot be used ({error.strerror}); give another with --data-dir"
            ) from error
        except StoreRefused as error:
            raise NotStarted(str(error)) from error
        try:
            return cls(directory, store, pki.ensure(directory / "pki"), name)
        except pki.UnusableKeys as error:
            await store.close()
            raise NotStarted(str(error)) from error

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    async def install(self, definitions: Iterable[Json], namespaces: Iterable[str], manager: str) -> None:
        """Bring the clusters to life, before any client can ask them anything."""
        await self._host(ROOT)
        await self._server.clusters[ROOT].install(definitions, namespaces, manager)
        if self._store.compacted == 0:
            # A new server has no past that a client could have seen: a watch from before is told to start anew.
            await self._store.compact(self._store.revision)
        await self._host_all()

    async def listen(self, listener: socket.socket) -> None:
        """Answer on this socket; returns once the kubeconfig is there."""
        self._http = http_server(self.application, self._pki.server_context())
        self._serving = asyncio.create_task(self._http.serve(sockets=[listener]), name="http")
        while not self._http.started:
            if self._serving.done():
                await self._serving
                raise NotStarted("the HTTP server stopped while it was starting")
            await asyncio.sleep(0.005)
        self._sweeping = asyncio.create_task(
            keep_sweeping(lambda: (hosted.actor for hosted in self._server.clusters.values())), name="sweep-events"
        )
        self._write_kubeconfig(ROOT)

    async def stop(self) -> None:
        """End watches, finish writes under way, stop listening."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for hosted in list(self._server.clusters.values()):
            await hosted.stop()
        if self._http is not None and self._serving is not None:
            self._http.should_exit = True
            self._store.end_all_watches()
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving
        self._lane.close()
        for hosted in list(self._server.clusters.values()):
            await hosted.webhooks.close()
        await self._store.close()

    # Logical clusters.

    def cluster_names(self) -> list[str]:
        """`<namespace>/<name>` of each logical cluster, sorted."""
        return [entry.key.path for entry in self._store.entries(_CLUSTERS)]

    def cluster_url(self, cluster: str) -> str:
        return f"{self.url}/clusters/{cluster}" if cluster else self.url

    async def add_cluster(self, namespace: str, name: str) -> Path:
        """Make sure a logical cluster exists; returns the path of its kubeconfig."""
        if problems := [*dns_label(namespace), *dns_label(name)]:
            raise ValueError(f"{namespace}/{name} cannot be the name of a cluster: {problems[0]}")
        key = ObjectKey(*_CLUSTERS, namespace, name)
        async with self._changing:
            if self._store.latest(key) is None:
                # A request that outlived an earlier cluster of this name may have left something.
                await self._store.drop_cluster(key.path)
                self._store.end_cluster(key.path)
                await self._store.create(key, lambda revision: json.dumps({"revision": revision}).encode())
            if key.path not in self._server.clusters:
                await self._host(key.path)
            return self._refresh_kubeconfig(key.path)

    async def remove_cluster(self, namespace: str, name: str) -> None:
        """Forget a logical cluster and everything in it; once its record is gone, a restart finishes the rest."""
        key = ObjectKey(*_CLUSTERS, namespace, name)
        async with self._changing:
            if entry := self._store.latest(key):
                last = json.dumps({"revision": entry.revision}).encode()
                await self._store.delete(key, entry.revision, lambda _: last)
            hosted = self._server.clusters.pop(key.path, None)
            if hosted is not None:
                await hosted.stop()
                await hosted.webhooks.close()
            await self._store.drop_cluster(key.path)
            self._store.end_cluster(key.path)
            kubeconfig = self._kubeconfig_of(key.path)
            kubeconfig.unlink(missing_ok=True)
            for directory in (kubeconfig.parent, kubeconfig.parent.parent):
                with contextlib.suppress(OSError):  # not there, or not empty
                    directory.rmdir()

    async def _host_all(self) -> None:
        """Host every logical cluster there is, and finish the removal of those that a crash left half removed."""
        names = self.cluster_names()
        for left in {table.cluster for table in self._store.tables()} - {ROOT, _CLUSTERS.cluster, *names}:
            await self._store.drop_cluster(left)
        for name in names:
            await self._host(name)
            self._refresh_kubeconfig(name)

    async def _host(self, cluster: str) -> None:
        address = self.url.removeprefix("https://")
        hosted = HostedCluster(
            cluster,
            self._store,
            self._builtin,
            self._pki,
            address,
            self._unit(cluster),
            self._lane,
            self._turns,
        )
        try:
            await hosted.start()
        except BaseException:
            await hosted.stop()
            raise
        self._server.clusters[cluster] = hosted

    def _unit(self, cluster: str) -> str:
        """What certificates of a cluster say they are for: it, and not one of the same name before or after it."""
        if not cluster:
            return ""
        record = self._store.get(ObjectKey(*_CLUSTERS, *cluster.split("/")))
        assert record is not None
        return f"{cluster}#{record.revision}"

    def unit_behind(self, cluster: str, kubeconfig: bytes) -> str | None:
        """What the certificate in a kubeconfig is for; None unless it is the kubeconfig of this logical cluster."""
        try:
            written = self._kubeconfig_of(cluster).read_bytes()
        except OSError:
            return None
        known = cluster in self._server.clusters and hmac.compare_digest(written, kubeconfig)
        return self._server.clusters[cluster].unit if known else None

    def _kubeconfig_of(self, cluster: str) -> Path:
        return self.directory / "clusters" / cluster / "kubeconfig" if cluster else self.kubeconfig

    def _write_kubeconfig(self, cluster: str) -> Path:
        path = self._kubeconfig_of(cluster)
        self._pki.write_admin_kubeconfig(path, self.cluster_url(cluster), self._unit(cluster), self.name)
        return path

    def _refresh_kubeconfig(self, cluster: str) -> Path:
        """As `_write_kubeconfig`, unless the one that is there is recent and leads here."""
        path = self._kubeconfig_of(cluster)
        make_private_below(self.directory, path.parent)
        try:
            recent = time.time() - path.stat().st_mtime < _RENEW_SECONDS
            leads_here = f" {self.cluster_url(cluster)}\n" in path.read_text()
        except OSError:
            recent = leads_here = False
        return path if recent and leads_here else self._write_kubeconfig(cluster)


def _builtin() -> list[Resource]:
    types = builtin_types()
    resources = builtin_resources(types.__getitem__)
    for resource in resources:
        if (resource.group, resource.plural) == (EVENTS, "events"):
            resource.from_storage, resource.to_storage = from_core, to_core
        if resource.group == EXTENSIONS:
            resource.strategy = DEFINITIONS
    return resources


def _last_port(kubeconfig: Path) -> int:
    """The port that an earlier run used, so that kubeconfigs people copied keep working; 0: unknown."""
    try:
        text = kubeconfig.read_text()
    except OSError:
        return 0
    found = [part.rsplit(":", 1)[-1] for part in text.split() if part.startswith(f"https://{HOST}:")]
    return int(found[0]) if found and found[0].isdigit() else 0


def _listen(port: int, preferred: int) -> socket.socket:
    for candidate in (port,) if port else (preferred, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate))
        except OSError as error:
            listener.close()
            if port:
                raise NotStarted(
                    f"port {port} on {HOST} cannot be had ({error.strerror}); give another with --port, or leave it out"
                ) from error
        else:
            return listener
    raise NotStarted(f"no free port on {HOST}")
