"""What the tests of the controller runtime share: a client, a namespace, and a proxy that can misbehave."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from butler.kube import config
from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.retry import Backoff
from butler.kube.transport import Timeouts
from fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from control_planes import ControlPlane

QUICK = Backoff(first=0.01, cap=0.1)


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    return control_plane.fresh_namespace("runtime")


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """Straight to the server."""
    async with Client(config.load(control_plane.kubeconfig)) as connected:
        yield connected


@pytest.fixture
async def proxy(control_plane: ControlPlane) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(control_plane.url, control_plane.tls, control_plane.headers) as between:
        yield between


@pytest.fixture
async def shaken(proxy: FaultProxy) -> AsyncIterator[Client]:
    """Through the proxy, with little patience."""
    async with shaken_client(proxy) as connected:
        yield connected


@asynccontextmanager
async def shaken_client(proxy: FaultProxy) -> AsyncIterator[Client]:
    timeouts = Timeouts(connect=1, attempt=1, total=3)
    async with Client(Connection(proxy.url), timeouts=timeouts, backoff=QUICK) as connected:
        yield connected
