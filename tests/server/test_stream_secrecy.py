"""What a live stream names: nothing that the listener's own lists do not show, in any part of any frame."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio

from butler.server.cursor import decode_cursor, encode_cursor
from butler.server.stream.changes import StreamPosition
from server.eventually import eventually
from server.follower import KINDS, Follower, Json, apply, following, load, serving, tenant
from server.objects import GROUP, HOME, allocation, pool
from server.rights import grant, namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.server.process import Running
    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
MINE, THEIRS = "secrecy-mine", "secrecy-theirs"
READ = ["get", "list", "watch"]
WORDS = ("topsecret", THEIRS, "secrecy-pool", "secrecy-provider", "secrecy-held", "ours", MINE)
"""Names of objects and namespaces; no one is part of another."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(plane: ControlPlane) -> AsyncIterator[Running]:
    async with serving(plane) as up:
        yield up


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as opened:
        yield opened


@pytest.fixture(scope="module")
def people(plane: ControlPlane) -> list[str]:
    for text in (MINE, THEIRS):
        namespace(plane, text)
    grant(plane, "provider-reader", READ, ["providerconfigs"])
    grant(plane, "allocation-reader", READ, ["ipallocations"])
    grant(plane, "pool-reader", READ, ["networkpools", "ipallocations"])
    grant(plane, "event-reader", READ, ["events"], group="")
    grant(plane, "member", READ, ["tenantclusters"], namespace=MINE)
    grant(plane, "member-with-providers", READ, ["tenantclusters"], namespace=MINE)
    grant(plane, "member-with-providers", READ, ["providerconfigs", "ipallocations"])
    names = ["provider-reader", "allocation-reader", "pool-reader", "event-reader", "member", "member-with-providers"]
    return ["admin", "stranger", *names]


def provider(name: str, pool_name: str, gateway: str) -> Json:
    network = {"mode": "ipam", "gateway": gateway, "poolRefs": [{"name": pool_name, "types": ["nodes"]}]}
    spec = {
        "provider": "harvester",
        "credentialsRef": {"name": "absent"},
        "harvester": {"namespace": "default", "networkName": "default/x"},
        "network": network,
    }
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": GROUP, "kind": "ProviderConfig", "metadata": meta, "spec": spec}


def on_provider(name: str, where: str) -> Json:
    made = tenant(name, where)
    made["spec"]["providerConfigRef"] = {"name": "secrecy-provider", "namespace": HOME}
    return made


async def lists_of(session: aiohttp.ClientSession, url: str, user: str) -> dict[str, dict[str, Json]]:
    return {kind: await load(session, url, kind, user) for kind in KINDS}


async def live(plane: ControlPlane, network: str) -> None:
    """A life of everything: made, changed, and some of it deleted."""
    await apply(plane, pool("secrecy-pool", f"{network}.0.0/24"))
    await apply(plane, provider("secrecy-provider", "secrecy-pool", f"{network}.0.1"))
    for name, where in (("topsecret", THEIRS), ("ours", MINE)):
        await apply(plane, on_provider(name, where))
        await apply(plane, allocation(f"secrecy-held-{name[:3]}", "secrecy-pool", 2, tenant=name, namespace=where))
        path = f"/apis/{GROUP}/namespaces/{where}/tenantclusters/{name}"
        status, found = await asyncio.to_thread(plane.request, "GET", path)
        assert status == 200
        found["spec"]["workers"]["replicas"] = 2
        await asyncio.to_thread(plane.request, "PUT", path, found)


async def test_no_frame_names_what_the_lists_of_its_listener_do_not(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, people: list[str], network: str
) -> None:
    shown: dict[str, str] = dict.fromkeys(people, "")
    lists: dict[str, dict[str, dict[str, Json]]] = {}

    async def look() -> None:
        for user in people:
            lists[user] = await lists_of(session, server.url, user)
            shown[user] += json.dumps(lists[user])

    async with contextlib.AsyncExitStack() as stack:
        followers = {user: await stack.enter_async_context(following(session, server, KINDS, user)) for user in people}
        await live(plane, network)

        async def told() -> None:
            state = followers["admin"].state
            assert state["tenant"].keys() >= {f"{THEIRS}/topsecret", f"{MINE}/ours"}
            assert state["allocation"].keys() >= {f"{HOME}/secrecy-held-top", f"{HOME}/secrecy-held-our"}

        await eventually(told)
        await look()
        path = f"/apis/{GROUP}/namespaces/{THEIRS}/tenantclusters/topsecret"
        assert plane.request("DELETE", path)[0] in (200, 202)
        await asyncio.sleep(2)
        await look()
        again = {user: await replayed(session, server, user) for user in people}
        for user in people:
            frames = followers[user].frames + again[user].frames
            for frame in frames:
                for word in WORDS:
                    assert word not in json.dumps(frame) or word in shown[user], (user, word, frame)
            for frame in (obj for obj in frames if obj["type"] == "changed"):
                tenants, pools = seen_names(shown[user], "tenant"), seen_names(shown[user], "pool")
                assert set(frame["tenants"]) <= tenants, (user, frame)
                assert set(frame["pools"]) <= {name.partition("/")[2] for name in pools}, (user, frame)
        # Who sees providers and no tenants hears nothing when a tenant changes.
        heard = [change for change in followers["provider-reader"].changes("provider") if change["tenants"]]
        assert heard == []
        # Who may see the tenant is told of it.
        assert any(f"{THEIRS}/topsecret" in change["tenants"] for change in followers["admin"].changes("provider"))
        mine = followers["member-with-providers"].changes("provider")
        assert any(obj["tenants"] == [f"{MINE}/ours"] for obj in mine)


def seen_names(shown: str, kind: str) -> set[str]:
    """Every object of a kind that was in any of the lists."""
    found: set[str] = set()
    decoder, at = json.JSONDecoder(), 0
    while at < len(shown):
        lists, at = decoder.raw_decode(shown, at)
        found |= set(lists[kind])
    return found


async def replayed(session: aiohttp.ClientSession, server: Running, user: str) -> Follower:
    """A client that comes back and is told of everything that is remembered."""
    async with following(session, server, KINDS, user) as first:
        position = first.frames[0]["position"]
    back = Follower(session, KINDS, user)
    back.position = _from_the_beginning(position)
    task = asyncio.create_task(back.run(server.url))
    async with asyncio.timeout(20):
        await back.ready.wait()
    await asyncio.sleep(0.5)
    back.cut()
    await asyncio.gather(task, return_exceptions=True)
    return back


def _from_the_beginning(position: str) -> str:
    """The same position before everything that is still remembered."""
    known = decode_cursor(position, StreamPosition)
    assert known is not None
    return encode_cursor(
        StreamPosition({source: max(1, at - 60) for source, at in known.versions.items()}, known.sights)
    )
