"""How `butleradm local up` keeps its controllers: they end together with it, no matter which ends first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from butler.kube.config import Connection
from butler.processes import local
from butler.rules.tenant.settings import TenantSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Controllers:
    """An operator that does as it is told: by default, it works until it is stopped."""

    def __init__(self, run: Callable[[], Awaitable[None]] | None = None, *, unready: bool = False) -> None:
        self._run = run
        self._unready = unready
        self.stopped = asyncio.Event()

    async def run(self, *, handle_signals: bool) -> None:
        await (self._run or self.stopped.wait)()

    def why_unready(self) -> list[str]:
        return ["starting"] if self._unready else []

    def stop(self) -> None:
        self.stopped.set()


def keeping(monkeypatch: pytest.MonkeyPatch, operator: Controllers, stop: asyncio.Event) -> Any:
    monkeypatch.setattr("butler.kube.config.load", lambda _: Connection("http://127.0.0.1:1"))
    monkeypatch.setattr(local, "build", lambda *_: operator)
    return local._controllers(SimpleNamespace(kubeconfig="none"), TenantSettings(), stop)  # type: ignore[arg-type]


async def test_controllers_that_break_stop_everything_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks() -> None:
        await asyncio.sleep(0.02)
        raise RuntimeError("a worker ended by itself")

    stop = asyncio.Event()
    with pytest.raises(RuntimeError, match="a worker ended"):
        async with keeping(monkeypatch, Controllers(breaks), stop):
            await asyncio.wait_for(stop.wait(), 10)


async def test_a_signal_is_heeded_while_the_controllers_are_not_ready_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = asyncio.Event()
    operator = Controllers(unready=True)
    asyncio.get_running_loop().call_later(0.02, stop.set)
    async with asyncio.timeout(10), keeping(monkeypatch, operator, stop):
        pass
    assert operator.stopped.is_set()
