"""The lines of controllers to both sides, each through a proxy that a test may listen to, hold up and cut.

A controller is given a kubeconfig that leads to a proxy before the management cluster. On the way through that proxy
the kubeconfig Secrets of tenants are changed, so that it also finds its tenants behind proxies: nothing on the servers
is different, and all other clients (MetalLB, users, the record) talk to them directly. Each controller has lines of its
own, so a test can tell who wrote, and hold up one and not the other.

The proxies live in an event loop of their own thread; what tests register there is called in it.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping
    from types import TracebackType

    from control_planes import ControlPlane

T = TypeVar("T")


class Switchboard:
    """A thread with an event loop in which proxies live."""

    def __enter__(self) -> Switchboard:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._wind_up())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    async def _wind_up(self) -> None:
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0.5)  # for TLS connections to say goodbye: a loop that stops would leave them open
        await self.loop.shutdown_asyncgens()


class Lines:
    """All lines of one controller: to the management cluster, and to each tenant by its name."""

    def __init__(self, board: Switchboard, plane: ControlPlane, tenants: Mapping[str, ControlPlane]) -> None:
        self._board = board
        self._plane = plane
        self._planes = tenants
        self._stack = AsyncExitStack()
        self.tenants: dict[str, FaultProxy] = {}

    def open(self) -> None:
        self._board.run(self._open())

    def close(self) -> None:
        self._board.run(self._stack.aclose())

    async def _open(self) -> None:
        swap: dict[bytes, bytes] = {}
        for name, plane in self._planes.items():
            line = await self._stack.enter_async_context(FaultProxy(plane.url, plane.tls, dict(plane.headers)))
            self.tenants[name] = line
            swap[base64.b64encode(plane.kubeconfig.read_bytes())] = base64.b64encode(_kubeconfig(line.url))
        self.management = await self._stack.enter_async_context(
            FaultProxy(self._plane.url, self._plane.tls, dict(self._plane.headers), rewrite=_swapping(swap.items()))
        )

    def go_dark(self, name: str, dark: bool = True) -> None:
        """Cut a tenant off, for this controller alone, or let it be reached again."""
        self._board.loop.call_soon_threadsafe(self.tenants[name].go_dark, dark)


def _swapping(pairs: Iterable[tuple[bytes, bytes]]) -> Any:
    known = list(pairs)

    def swapped(content: bytes) -> bytes:
        for old, new in known:
            if old in content:
                content = content.replace(old, new)
        return content

    return swapped


def _kubeconfig(url: str) -> bytes:
    """The proxy knows the credentials."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "line", "cluster": {"server": url}}],
        "users": [{"name": "anonymous", "user": {}}],
        "contexts": [{"name": "line", "context": {"cluster": "line", "user": "anonymous"}}],
        "current-context": "line",
    }
    return yaml.safe_dump(config).encode()
