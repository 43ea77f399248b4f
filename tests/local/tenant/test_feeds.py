"""The feeds of many tenants at once: live on both control planes, and no tenant at the expense of another."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from butler.api.objects import Json, Key
from butler.kube.client import Client
from butler.kube.config import from_text
from butler.kube.resource import NAMESPACES, SERVICES
from butler.kube.retry import Backoff
from butler.kube.transport import Timeouts
from butler.tenant import services
from butler.tenant.clusters import TenantClients, TenantLimits
from butler.tenant.service_feed import ServiceFeed, TenantFeeds
from local.tenant.conftest import KEY, kubeconfig_of
from local.tenant.hostile_server import BEHAVIOURS
from local.tenant.test_clusters import fresh_namespace, service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from control_planes import ControlPlane

LIMITS = TenantLimits(timeouts=Timeouts(connect=1, attempt=1, total=2), max_answer=1024 * 1024)
QUIETLY_BAD = {"chattering", "flooding", "trickling_watch", "empty_lines"}
"""They can be heard, after a fashion: what they say is bounded, but there is nothing to complain of, or not soon."""
MOST_SERVICES = 2000
MOST_MEMORY = 200.0


async def until(condition: Callable[[], object], story: Callable[[], object] = lambda: "") -> None:
    try:
        async with asyncio.timeout(90):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"it did not happen: {story()}") from None


async def follow(feeds: TenantFeeds, key: Key, kubeconfig: str) -> ServiceFeed:
    content = base64.b64encode(kubeconfig.encode()).decode()

    async def secret() -> Json:
        return {
            "metadata": {"name": key.name, "namespace": "x", "resourceVersion": "1"},
            "data": {"admin.conf": content},
        }

    return await feeds.follow(key, f"uid-of-{key.name}", "1", secret)


def kubeconfig_to(server: str, **cluster: str) -> str:
    return yaml.safe_dump(
        {
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "a", "user": {"token": "hostile-token"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }
    )


async def test_a_feed_is_live(tenant: Client, kubeconfig_secret: Json) -> None:
    text = base64.b64decode(kubeconfig_secret["data"]["admin.conf"]).decode()
    namespace = await fresh_namespace(tenant)
    async with TenantClients() as clients, TenantFeeds(clients, lambda _: None) as feeds:
        feed = await follow(feeds, KEY, text)
        await until(lambda: feed.is_synced, lambda: feed.trouble)

        def seen() -> dict[str, tuple[str, ...]]:
            return {item.name: item.addresses for item in feed.services() if item.namespace == namespace}

        await tenant.create(SERVICES, service("inner", "ClusterIP"), namespace)
        await tenant.create(SERVICES, service("outer", "LoadBalancer"), namespace)
        await until(lambda: seen() == {"outer": ()})
        given = {"status": {"loadBalancer": {"ingress": [{"ip": "10.40.1.8"}]}}}
        await tenant.patch(SERVICES, "outer", given, namespace, subresource="status")
        await until(lambda: seen() == {"outer": ("10.40.1.8",)})
        await tenant.patch(SERVICES, "inner", {"spec": {"type": "LoadBalancer"}}, namespace)
        await until(lambda: sorted(seen()) == ["inner", "outer"])
        await tenant.patch(SERVICES, "outer", {"spec": {"type": "ClusterIP"}}, namespace)
        await until(lambda: sorted(seen()) == ["inner"])
        assert feed.trouble == ""
        for name in ("inner", "outer"):
            await tenant.delete(SERVICES, name, namespace)


@pytest.fixture
def hostile() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).with_name("hostile_server.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


def memory() -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


@pytest.mark.parametrize("control_plane", ["embedded"], indirect=True)
async def test_hostile_tenants_cost_only_themselves(
    control_plane: ControlPlane, hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them at once, beside one that is well: its changes keep coming, in order, and memory stays bounded."""
    monkeypatch.setattr(services, "MOST_SERVICES", MOST_SERVICES)
    text = kubeconfig_of(control_plane)
    arrived: list[str] = []

    def on_service(key: Key, _: object, new: object) -> None:
        if key == KEY and new is not None:
            arrived.append(str(new).partition("/")[2])

    foreign = kubeconfig_of(control_plane).replace(
        "certificate-authority-data: LS0t", "certificate-authority-data: LS0u"
    )
    before = memory()
    async with (
        Client(from_text(text, source="test", allow_plain_loopback=True)) as tenant,
        TenantClients(limits=LIMITS) as clients,
        TenantFeeds(clients, lambda _: None, on_service=on_service, pace=Backoff(0.05, cap=1)) as feeds,
    ):
        healthy = await follow(feeds, KEY, text)
        await until(lambda: healthy.is_synced)
        bad = {name: await follow(feeds, Key("bad", name), kubeconfig_to(f"{hostile}/{name}")) for name in BEHAVIOURS}
        bad["refusing"] = await follow(feeds, Key("bad", "refusing"), kubeconfig_to("http://127.0.0.1:1"))
        bad["other_ca"] = await follow(feeds, Key("bad", "other_ca"), kubeconfig_to(control_plane.url))
        bad["broken_ca"] = await follow(feeds, Key("bad", "broken_ca"), foreign)
        await tenant.create(NAMESPACES, {"metadata": {"name": "web"}})
        made = []
        for number in range(30):
            made.append(f"web-{number}")
            await tenant.create(SERVICES, service(made[-1], "LoadBalancer"), "web")
            await until(lambda: arrived == made, lambda: f"{arrived} of {made}")
            await asyncio.sleep(0.05)
        complaining = {name: feed for name, feed in bad.items() if name not in QUIETLY_BAD}
        await until(
            lambda: all(feed.trouble for feed in complaining.values()),
            lambda: [name for name, feed in complaining.items() if not feed.trouble],
        )
        assert (healthy.trouble, len(healthy.services())) == ("", 30)
        for name, feed in bad.items():
            assert len(feed.trouble) <= 500, name
            assert "hostile-token" not in feed.trouble, name
            assert len(feed.services()) <= MOST_SERVICES, name
        assert memory() - before < MOST_MEMORY, "megabytes"
