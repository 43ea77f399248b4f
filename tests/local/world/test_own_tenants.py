"""The stand-ins' way into tenants of their own process answers as the network does, and is worth no more."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from butler.kube.client import Client
from butler.kube.config import from_text
from butler.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, KubeError, NotFound, Unreachable
from butler.kube.resource import CONFIGMAPS
from butler.local.world.own_tenants import OwnTenantTransport, own_tenant
from kubeserver import ControlPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from butler.kube.config import Connection


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[ControlPlane]:
    plane = await ControlPlane.start(folder / "tenants")
    try:
        yield plane
    finally:
        await plane.stop()


async def way_in(plane: ControlPlane) -> tuple[Connection, bytes]:
    kubeconfig = (await plane.add_cluster("ns", "web")).read_bytes()
    return from_text(kubeconfig, source="test", allow_plain_loopback=True), kubeconfig


def direct(connection: Connection, kubeconfig: bytes, plane: ControlPlane) -> Client:
    own = own_tenant(connection, kubeconfig, plane)
    assert own is not None
    client = Client(connection)
    client.transport = OwnTenantTransport(connection, own)
    return client


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


ASKED: list[Callable[[Client], Awaitable[Any]]] = [
    lambda client: client.get(CONFIGMAPS, "there", "default"),
    lambda client: client.get(CONFIGMAPS, "not there", "default"),
    lambda client: client.create(CONFIGMAPS, configmap("there")),
    lambda client: client.create(CONFIGMAPS, configmap("Not A Name")),
    lambda client: client.create(CONFIGMAPS, configmap("a", b="c"), "nowhere"),
    lambda client: client.list(CONFIGMAPS, "default", label_selector="a=b"),
    lambda client: client.patch(CONFIGMAPS, "there", {"metadata": {"resourceVersion": "1"}}, "default"),
    lambda client: client.apply(CONFIGMAPS, configmap("there", a="ü"), force=True, field_manager="test"),
    lambda client: client.delete(CONFIGMAPS, "there", "default", uid="another"),
]


async def test_every_answer_is_that_of_the_network(tmp_path: Path) -> None:
    async def answers(client: Client) -> list[Any]:
        found = []
        for ask in ASKED:
            try:
                found.append(await ask(client))
            except ApiError as error:
                found.append((type(error), error.message))
        return found

    async with serving(tmp_path) as plane:
        connection, kubeconfig = await way_in(plane)
        async with Client(connection) as network, direct(connection, kubeconfig, plane) as own:
            await network.create(CONFIGMAPS, configmap("there"))
            await network.apply(CONFIGMAPS, configmap("there", a="ü"), force=True, field_manager="test")
            by_network, by_call = await answers(network), await answers(own)
    assert by_network == by_call
    refused = {answer[0] for answer in by_call if isinstance(answer, tuple)}
    assert refused >= {NotFound, AlreadyExists, Invalid, Conflict}


async def test_only_the_kubeconfig_that_this_process_wrote_leads_in(tmp_path: Path) -> None:
    async with serving(tmp_path) as plane, serving(tmp_path / "another") as another:
        connection, kubeconfig = await way_in(plane)
        assert own_tenant(connection, kubeconfig, plane) is not None
        assert own_tenant(connection, kubeconfig + b"\n", plane) is None
        assert own_tenant(connection, kubeconfig, another) is None
        theirs, other = await way_in(another)
        assert own_tenant(theirs, other, plane) is None


async def test_it_is_worth_nothing_in_the_next_tenant_of_the_name(tmp_path: Path) -> None:
    async with serving(tmp_path) as plane:
        connection, kubeconfig = await way_in(plane)
        async with direct(connection, kubeconfig, plane) as own:
            await own.create(CONFIGMAPS, configmap("mine"))
            await plane.remove_cluster("ns", "web")
            with pytest.raises(KubeError):
                await own.get(CONFIGMAPS, "mine", "default")
            await way_in(plane)
            with pytest.raises(Forbidden):
                await own.create(CONFIGMAPS, configmap("mine"))
            assert own_tenant(connection, kubeconfig, plane) is None


async def test_who_leaves_does_not_end_what_the_server_has_begun(tmp_path: Path) -> None:
    async with serving(tmp_path) as plane:
        connection, kubeconfig = await way_in(plane)
        async with direct(connection, kubeconfig, plane) as own:
            for number in range(20):
                asked = asyncio.create_task(own.create(CONFIGMAPS, configmap(f"c{number}")))
                for _ in range(number):
                    await asyncio.sleep(0)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            await own.create(CONFIGMAPS, configmap("last"))
            there = {item["metadata"]["name"] for item in (await own.list(CONFIGMAPS, "default")).items}
            assert {f"c{number}" for number in range(2, 20)} | {"last"} <= there


async def test_a_client_that_was_closed_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as plane:
        connection, kubeconfig = await way_in(plane)
        own = direct(connection, kubeconfig, plane)
        await own.close()
        with pytest.raises(Unreachable):
            await own.get(CONFIGMAPS, "there", "default")
