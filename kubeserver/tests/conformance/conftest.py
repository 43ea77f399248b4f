"""What every conformance case starts from: a connection, a namespace of its own, and shared custom resources.

A custom resource definition takes a server a moment to establish, so the common ones are made once per server;
cases keep apart by their namespaces. On a server that is not ours, namespaces and definitions are removed again.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import aiohttp
import pytest

from conformance import kinds
from conformance.wire import Api, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from api_servers import ControlPlane

    from conformance.wire import Object

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[Api]:
    """The administrator's connection."""
    connector = aiohttp.TCPConnector(ssl=control_plane.tls)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=True) as session:
        yield Api(session, control_plane.url, control_plane.headers)


@pytest.fixture
async def stranger(control_plane: ControlPlane) -> AsyncIterator[Api]:
    """A connection without any credentials."""
    connector = aiohttp.TCPConnector(ssl=control_plane.anonymous_tls())
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Api(session, control_plane.url, {})


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a namespace that only this case uses."""
    name = control_plane.fresh_namespace("conformance")
    yield name
    if not control_plane.disposable:
        _release(control_plane, f"/api/v1/namespaces/{name}/configmaps")
        _release(control_plane, f"/apis/{kinds.GROUP}/v1/namespaces/{name}/widgets")
        control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


def _release(control_plane: ControlPlane, path: str) -> None:
    """Take away the finalizers that a case left, which would hold its namespace for ever."""
    _, answer = control_plane.request("GET", path)
    for item in answer["items"] if isinstance(answer, dict) and "items" in answer else ():
        if item["metadata"].pop("finalizers", None):
            control_plane.request("PUT", f"{path}/{item['metadata']['name']}", item)


@pytest.fixture
async def pods(api: Api, namespace: str) -> str:
    """The path of this case's pods, once its namespace has the service account that they need."""

    async def admitted() -> bool:
        answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", kinds.pod("probe"), dryRun="All")
        return answer.status == 201

    await eventually(admitted, "pods are admitted")
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def unique() -> str:
    """A suffix for the names of objects that live outside namespaces."""
    return secrets.token_hex(4)


@pytest.fixture(scope="session")
def widgets(control_plane: ControlPlane) -> Iterator[str]:
    """The plain custom resource of most cases (kinds.WIDGETS); gives the path of its group and version."""
    yield from _established(control_plane, kinds.WIDGETS, "v1")


@pytest.fixture(scope="session")
def gadgets(control_plane: ControlPlane) -> Iterator[str]:
    """A custom resource whose schema uses every validation keyword (kinds.GADGETS)."""
    yield from _established(control_plane, kinds.GADGETS, "v1")


@pytest.fixture(scope="session")
def rules(control_plane: ControlPlane) -> Iterator[str]:
    """A custom resource with CEL rules (kinds.RULES)."""
    yield from _established(control_plane, kinds.RULES, "v1")


def _established(control_plane: ControlPlane, definition: Object, version: str) -> Iterator[str]:
    """Create the definition, after an earlier run's one has gone, and wait until its objects are served."""
    name = definition["metadata"]["name"]
    path = f"/apis/{definition['spec']['group']}/{version}"
    deadline = time.monotonic() + 60
    while control_plane.request("POST", DEFINITIONS, definition)[0] != 201:
        assert time.monotonic() < deadline, f"{name} cannot be created"
        control_plane.request("DELETE", f"{DEFINITIONS}/{name}")
        time.sleep(0.2)
    while control_plane.request("GET", f"{path}/{definition['spec']['names']['plural']}")[0] != 200:
        assert time.monotonic() < deadline, f"{name} is not served"
        time.sleep(0.05)
    yield path
    if not control_plane.disposable:
        control_plane.request("DELETE", f"{DEFINITIONS}/{name}")
