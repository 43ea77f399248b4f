"""The API server goes away and comes back, and forgets: controllers must not notice more than a pause."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from run_kubernetes import Kubernetes, find_binaries

import control_planes
from butler.api.objects import Key, version_of
from butler.kube import config
from butler.kube.client import Client
from butler.kube.metrics import Metrics
from butler.kube.resource import CONFIGMAPS
from control_planes import ControlPlane
from fault_proxy import FaultProxy
from local.runtime.conftest import shaken_client
from local.runtime.witness import Witness, cache_state, following, hasty, server_state, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def embedded(folder: Path) -> Iterator[tuple[ControlPlane, Callable[[], None]]]:
    """Butler's own server on a fixed port, and a way to restart it on the same data."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with ExitStack() as stack:

        def start() -> ControlPlane:
            return stack.enter_context(control_planes.embedded(folder, arguments=["--port", str(port)]))

        def restart() -> None:
            stack.close()
            (folder / "server" / "kubeconfig").unlink(missing_ok=True)  # its return says that the server is back
            start()

        yield start(), restart


@contextmanager
def kubernetes(folder: Path) -> Iterator[tuple[ControlPlane, Callable[[], None]]]:
    """A real one whose API server is killed and started anew; etcd stays, and forgets old revisions quickly."""
    flags = ["--etcd-compaction-interval=1s"]
    with Kubernetes(folder / "server", find_binaries(), controllers=[], apiserver_flags=flags) as server:

        def restart() -> None:
            old = server.processes["kube-apiserver"]
            old.kill()
            old.wait()
            arguments: Any = old.args
            server._launch("kube-apiserver", arguments[1:])
            server._wait("/readyz")

        yield ControlPlane.from_kubeconfig("kubernetes", server.kubeconfig, folder / "client"), restart


@pytest.fixture
def restartable(control_plane: ControlPlane, tmp_path: Path) -> Iterator[tuple[ControlPlane, Callable[[], None]]]:
    """A server of the same make as `control_plane`, of our own."""
    if not control_plane.disposable:
        pytest.skip("a server that was lent cannot be restarted")
    with (embedded if control_plane.name == "embedded" else kubernetes)(tmp_path) as own:
        yield own


async def put(client: Client, namespace: str, *names: str) -> None:
    for name in names:
        await client.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace)


async def test_a_cache_follows_through_restarts_of_the_server(
    restartable: tuple[ControlPlane, Callable[[], None]],
) -> None:
    plane, restart = restartable
    namespace = plane.fresh_namespace("restart")
    async with Client(config.load(plane.kubeconfig)) as client:
        cache = hasty(client, namespace, seed=1)
        witness = Witness(cache)
        async with following(cache.run()):
            for round_ in range(3):
                await put(client, namespace, f"stays-{round_}", f"goes-{round_}")
                before = await server_state(client, namespace)
                await until(lambda wanted=before: cache_state(cache) == wanted, "in step before the restart")
                await asyncio.to_thread(restart)
                await client.delete(CONFIGMAPS, f"goes-{round_}", namespace)
                after = await server_state(client, namespace)
                await until(lambda wanted=after: cache_state(cache) == wanted, lambda: f"in step: {cache.last_error}")
        assert witness.told_state() == await server_state(client, namespace)
        assert set(before) - set(after) == {Key(namespace, "goes-2")}


async def test_what_was_deleted_while_the_server_forgot_is_told(
    restartable: tuple[ControlPlane, Callable[[], None]],
) -> None:
    """Cut off, the cache misses deletions; when it comes back, the history it would resume from is gone."""
    plane, restart = restartable
    namespace = plane.fresh_namespace("compaction")
    metrics = Metrics()
    async with (
        Client(config.load(plane.kubeconfig)) as client,
        FaultProxy(plane.url, plane.tls, plane.headers) as proxy,
        shaken_client(proxy) as shaken,
    ):
        cache = hasty(shaken, namespace, seed=1, metrics=metrics)
        witness = Witness(cache)
        await put(client, namespace, "stays", "goes", "reborn")
        async with following(cache.run()):
            await until(lambda: Key(namespace, "reborn") in cache, "first list")
            proxy.go_dark()
            for name in ("goes", "reborn"):
                await client.delete(CONFIGMAPS, name, namespace)
            await put(client, namespace, "reborn")
            for number in range(20):
                patch = {"data": {"n": str(number)}}
                newest = await client.patch(CONFIGMAPS, "stays", patch, namespace)
            if plane.name == "kubernetes":
                await asyncio.sleep(3)  # two compactions
                await asyncio.to_thread(restart)  # its own memory of the last minutes goes too
            proxy.go_dark(False)
            truth = await server_state(client, namespace)
            await until(lambda: cache_state(cache) == truth, lambda: f"in step: {cache.last_error}")
        assert witness.told_state() == truth
        assert truth[Key(namespace, "stays")] == version_of(newest)
        gone = [change.key.name for change in witness.changes if change.new is None]
        assert sorted(gone) == ["goes", "reborn"]
        if plane.name == "kubernetes":
            expired = {"resource": "configmaps", "reason": "expired"}
            assert metrics.registry.get_sample_value("butler_watch_restarts_total", expired), "the server did say 410"
