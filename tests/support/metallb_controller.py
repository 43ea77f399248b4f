"""The real MetalLB controller at work on an API server: built from its Go module, started, frozen, killed, stopped.

    async with MetallbController(control_plane.kubeconfig, tmp_path) as metallb:
        ...                          # pools and Services are served from here on
        metallb.freeze()             # it hears nothing, as if its node were stuck; `thaw` lets it catch up
        metallb.kill()               # no goodbye
        await metallb.start()        # and back, with whatever the API server remembers

`install` brings its definitions and its namespace, of the version that the program was built from. It runs as it does
in a cluster, with these differences: it has the administrator's rights, no speakers stand beside it (nothing is
announced), and it listens nowhere. Its metrics and its webhook could only be served on all interfaces of the machine,
the webhook on a fixed port besides, so the webhook is off and the metrics get a port that does not exist; it notes
that it cannot listen and works on. What the webhook would refuse is therefore written, and the controller itself
rejects it and goes on with the pools it had.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import build_kubernetes
import yaml
from metallb_definitions import fetch
from run_kubernetes import end_with_parent

from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import AlreadyExists, ApiError
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, untyped

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

Json = dict[str, Any]

NAMESPACE = "metallb-system"
CONFIGURATION_STATES = untyped("metallb.io", "v1beta1", "configurationstates", "ConfigurationState")
START_SECONDS = 90.0
STOP_SECONDS = 2.0
_NO_PORT = "-1"
_READY = '"controller":"PoolReconciler","end reconcile"'


def program() -> Path:
    """The controller, building it first where it is missing; `build_kubernetes.UnavailableError` where it cannot be."""
    return build_kubernetes.build(build_kubernetes.METALLB, lambda _: None) / "metallb-controller"


def definitions() -> list[Json]:
    """MetalLB's kinds as it publishes them."""
    return [
        yaml.load(file.read_text(), Loader=yaml.CSafeLoader) for file in sorted(fetch(lambda _: None).glob("*.yaml"))
    ]


async def install(client: Client) -> None:
    """Bring the kinds and the namespace, and wait until the kinds are served."""
    wanted = definitions()
    for definition in wanted:
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, force=True, field_manager="test")
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for definition in wanted:
        spec = definition["spec"]
        version = next(item["name"] for item in spec["versions"] if item["storage"])
        await _served(client, spec["group"], version, spec["names"])


async def _served(client: Client, group: str, version: str, names: Json) -> None:
    resource = untyped(group, version, names["plural"], names["kind"])
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            await client.list(resource, NAMESPACE)
        except ApiError:
            assert time.monotonic() < deadline, f"{names['plural']}.{group} is not served"
            await asyncio.sleep(0.1)
        else:
            return


class MetallbController:
    """The process; its log is kept over restarts."""

    def __init__(self, kubeconfig: Path, directory: Path, *, options: tuple[str, ...] = ()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = kubeconfig
        self.log_file = directory / "metallb-controller.log"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> MetallbController:
        async with Client(config.load(self.kubeconfig), field_manager="test") as client:
            await install(client)
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start it; returns when it has read the pools, or rejected them, and is about to go through the Services."""
        assert self._process is None, "it runs already"
        before = len(self.log())
        process = self._process = self._launch(await asyncio.to_thread(program))
        deadline = time.monotonic() + START_SECONDS
        while _READY not in self.log()[before:]:
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"MetalLB did not start: {self.log()[before:][-3000:]}")
            await asyncio.sleep(0.02)

    def _launch(self, binary: Path) -> subprocess.Popen[bytes]:
        command = [str(binary), f"--namespace={NAMESPACE}", "--webhook-mode=disabled", f"--port={_NO_PORT}"]
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                [*command, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
            )

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """`kill -9`: no goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop it where it is: its watches stay open, but it hears and does nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def stop(self) -> None:
        """SIGTERM, also for one that is frozen; now and then it hangs in its own shutdown, and is killed then."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            self.thaw()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, STOP_SECONDS)
        self.kill()

    async def restart(self) -> None:
        self.kill()
        await self.start()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def panics(self) -> list[str]:
        """Lines of the log that tell of a bug in it: it must not be blamed on us unseen."""
        return [line for line in self.log().splitlines() if line.startswith("panic:") or '"bug":"true"' in line]
