"""One client per tenant: made from its Secret, renewed with it, and no tenant at the expense of another."""

import asyncio
import base64
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from aiohttp import web

from butler.api.objects import Key
from butler.kube.client import Client
from butler.kube.errors import ApiError, BadAnswer, ConfigError, Forbidden, KubeError, Unreachable
from butler.kube.resource import CONFIGMAPS
from butler.kube.retry import Backoff
from butler.kube.transport import Timeouts
from butler.tenant.clusters import (
    TenantClients,
    TenantLimits,
    TenantResting,
    connection_from,
    kubeconfig_from,
    kubeconfig_secret,
)
from unit.kube.fake_api import FakeApi

Json = dict[str, Any]
KEY = Key("team-payments", "payments")
MAP = "/api/v1/namespaces/default/configmaps/a"
LIMITS = TenantLimits(timeouts=Timeouts(connect=1, attempt=1, total=2), max_answer=64 * 1024, rest=Backoff(20, cap=20))


def kubeconfig(server: str, **user: str) -> bytes:
    return yaml.safe_dump(
        {
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "users": [{"name": "a", "user": {"token": "t", **user}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }
    ).encode()


def secret(version: str = "1", **data: bytes) -> Json:
    named = {name.replace("_", "."): base64.b64encode(value).decode() for name, value in data.items()}
    return {
        "metadata": {"name": "payments-admin-kubeconfig", "namespace": "payments-1", "resourceVersion": version},
        "data": named,
    }


@pytest.fixture
async def clients() -> AsyncIterator[TenantClients]:
    async with TenantClients(limits=LIMITS, rng=random.Random(1)) as held:
        yield held


def test_the_secret_is_named_as_steward_names_it() -> None:
    assert kubeconfig_secret("payments") == "payments-admin-kubeconfig"


def test_the_service_address_is_used_only_inside_the_cluster() -> None:
    both = secret(admin_conf=kubeconfig("https://10.0.0.1:6443"), admin_svc=kubeconfig("https://payments.svc:6443"))
    assert connection_from(both).server == "https://10.0.0.1:6443"
    assert connection_from(both, in_cluster=True).server == "https://payments.svc:6443"
    outside = secret(admin_conf=kubeconfig("https://10.0.0.1:6443"))
    assert connection_from(outside, in_cluster=True).server == "https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (secret(), "has no admin.conf"),
        ({"metadata": {"name": "x", "namespace": "y"}}, "Secret y/x has no admin.conf"),
        ({"metadata": {"name": "x", "namespace": "y"}, "data": {"admin.conf": "%%"}}, "admin.conf is not base64"),
        ({"metadata": {"name": "x", "namespace": "y"}, "data": {"admin.conf": 7}}, "admin.conf is not base64"),
        (secret(admin_conf=b"- a"), "not a kubeconfig"),
        (secret(admin_conf=kubeconfig("https://x", tokenFile="/etc/passwd")), "tokenFile is not allowed"),
    ],
)
async def test_a_secret_that_is_no_use_is_explained(clients: TenantClients, content: Json, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await clients.client(KEY, "u1", content)
    assert len(clients) == 0


async def test_a_client_is_kept_while_its_secret_stays(api: FakeApi, clients: TenantClients) -> None:
    api.put(MAP)
    first = await clients.client(KEY, "u1", secret(admin_conf=kubeconfig(api.url)))
    assert (await first.get(CONFIGMAPS, "a", "default"))["metadata"]["name"] == "a"
    assert api.headers[-1]["Authorization"] == "Bearer t"
    assert await clients.client(KEY, "u1", secret(admin_conf=kubeconfig(api.url))) is first
    assert await clients.client(KEY, "u2", secret(admin_conf=kubeconfig(api.url))) is not first, "same name, other UID"
    assert len(clients) == 2


async def test_a_changed_secret_gives_a_new_client_and_lets_the_old_one_finish(
    api: FakeApi, clients: TenantClients
) -> None:
    api.put(MAP)
    asked, go = asyncio.Event(), asyncio.Event()

    async def hold(request: web.Request) -> None:
        if request.headers["Authorization"] == "Bearer t":
            asked.set()
            await go.wait()

    api.before = hold
    old = await clients.client(KEY, "u1", secret("1", admin_conf=kubeconfig(api.url)))
    under_way = asyncio.create_task(old.get(CONFIGMAPS, "a", "default"))
    await asyncio.wait_for(asked.wait(), 5)
    new = await clients.client(KEY, "u1", secret("2", admin_conf=kubeconfig(api.url, token="new")))
    assert new is not old
    await new.get(CONFIGMAPS, "a", "default")
    assert api.headers[-1]["Authorization"] == "Bearer new"
    go.set()
    assert (await under_way)["metadata"]["name"] == "a"
    with pytest.raises(Unreachable, match="was closed"):
        await old.get(CONFIGMAPS, "a", "default")


async def test_a_secret_that_turns_bad_leaves_the_client_that_works(api: FakeApi, clients: TenantClients) -> None:
    good = await clients.client(KEY, "u1", secret("1", admin_conf=kubeconfig(api.url)))
    with pytest.raises(ConfigError):
        await clients.client(KEY, "u1", secret("2", admin_conf=b"- a"))
    assert await clients.client(KEY, "u1", secret("1", admin_conf=kubeconfig(api.url))) is good


async def test_a_forgotten_tenant_is_hung_up_on(api: FakeApi, clients: TenantClients) -> None:
    api.put(MAP)
    held = await clients.client(KEY, "u1", secret(admin_conf=kubeconfig(api.url)))
    await held.get(CONFIGMAPS, "a", "default")
    await clients.forget("u1")
    await clients.forget("never seen")
    with pytest.raises(Unreachable):
        await held.get(CONFIGMAPS, "a", "default")
    assert len(clients) == 0


async def test_the_end_closes_also_those_that_were_leaving(api: FakeApi) -> None:
    asked = asyncio.Event()

    async def hold(_: web.Request) -> None:
        asked.set()
        await asyncio.sleep(3600)

    api.before = hold
    clients = TenantClients(limits=LIMITS)
    old = await clients.client(KEY, "u1", secret("1", admin_conf=kubeconfig(api.url)))
    under_way = asyncio.create_task(old.get(CONFIGMAPS, "a", "default"))
    await asyncio.wait_for(asked.wait(), 5)
    new = await clients.client(KEY, "u1", secret("2", admin_conf=kubeconfig(api.url)))
    await clients.aclose()
    for held in (old, new):
        with pytest.raises(Unreachable):
            await held.get(CONFIGMAPS, "b", "default")
    with pytest.raises(KubeError):
        await under_way


async def test_a_tenant_that_does_not_answer_is_left_alone_for_a_while(api: FakeApi) -> None:
    now = 100.0
    silent = kubeconfig("http://127.0.0.1:1")
    async with TenantClients(limits=LIMITS, rng=random.Random(1), clock=lambda: now) as clients:
        held = await clients.client(KEY, "down", secret(admin_conf=silent))
        with pytest.raises(Unreachable):
            await held.get(CONFIGMAPS, "a", "default")
        with pytest.raises(TenantResting, match="team-payments/payments did not answer") as caught:
            await clients.client(KEY, "down", secret(admin_conf=silent))
        assert 10 <= caught.value.seconds <= 20
        await clients.client(Key("b", "other"), "up", secret(admin_conf=kubeconfig(api.url)))
        assert await clients.client(KEY, "down", secret("2", admin_conf=kubeconfig(api.url))), "a new Secret, a new try"
        now += 21
        assert await clients.client(KEY, "down", secret("2", admin_conf=kubeconfig(api.url)))


async def test_a_refusal_is_a_sign_of_life(api: FakeApi, clients: TenantClients) -> None:
    content = secret(admin_conf=kubeconfig(api.url))
    held = await clients.client(KEY, "u1", content)
    with pytest.raises(ApiError):
        await held.get(CONFIGMAPS, "missing", "default")
    assert await clients.client(KEY, "u1", content) is held


async def test_no_more_connections_than_allowed_are_opened(api: FakeApi, clients: TenantClients) -> None:
    api.put(MAP)
    at_once = most = 0

    async def count(_: web.Request) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    api.before = count
    held = await clients.client(KEY, "u1", secret(admin_conf=kubeconfig(api.url)))
    await asyncio.gather(*(held.get(CONFIGMAPS, "a", "default") for _ in range(10)))
    assert most == LIMITS.connections == 3


async def test_a_connection_that_is_not_used_is_let_go(api: FakeApi) -> None:
    api.put(MAP)
    seen: list[asyncio.BaseTransport] = []

    async def note(request: web.Request) -> None:
        assert request.transport is not None
        seen.append(request.transport)

    api.before = note
    assert TenantLimits().keep_idle == 10
    async with TenantClients(limits=replace(LIMITS, keep_idle=0.05)) as clients:
        held = await clients.client(KEY, "u1", secret(admin_conf=kubeconfig(api.url)))
        await held.get(CONFIGMAPS, "a", "default")
        async with asyncio.timeout(30):
            while not seen[0].is_closing():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await held.get(CONFIGMAPS, "a", "default"), "the next request opens another"
        assert seen[1] is not seen[0]


# Hostile tenants.


async def hostile(api: FakeApi, clients: TenantClients, answer: Any) -> Client:
    async def respond(request: web.Request) -> web.StreamResponse:
        return await answer(request)  # type: ignore[no-any-return]

    api.before = respond
    return await clients.client(KEY, "hostile", secret(admin_conf=kubeconfig(api.url)))


async def endless(request: web.Request, code: int = 200) -> web.StreamResponse:
    response = web.StreamResponse(status=code)
    await response.prepare(request)
    while True:
        await response.write(b"[" * 65536)


async def announced(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b" " * 200_000)


async def endless_refusal(request: web.Request) -> web.StreamResponse:
    return await endless(request, 403)


async def deep(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b'{"metadata":' + b"[" * 30_000 + b"]" * 30_000 + b"}")


async def garbage(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x00\xff<html>")


async def redirect(request: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": f"http://{request.host}/elsewhere"})


async def no_end(_: web.Request) -> web.StreamResponse:
    return web.json_response({"metadata": {"resourceVersion": "1", "continue": "more"}, "items": []})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (endless, BadAnswer),
        (announced, BadAnswer),
        (endless_refusal, BadAnswer),
        (deep, BadAnswer),
        (garbage, BadAnswer),
        (redirect, ApiError),
    ],
)
async def test_a_hostile_answer_is_an_error_and_nothing_worse(
    api: FakeApi, clients: TenantClients, answer: Any, error: type[Exception]
) -> None:
    held = await hostile(api, clients, answer)
    with pytest.raises(error) as caught:
        await held.get(CONFIGMAPS, "a", "default")
    assert len(str(caught.value)) < 1000
    with pytest.raises(error):
        await held.list(CONFIGMAPS, "default", max_items=1000)
    assert not [path for _, path in api.requests if "elsewhere" in path], "redirects are not followed"


async def test_a_list_without_end_is_refused(api: FakeApi, clients: TenantClients) -> None:
    held = await hostile(api, clients, no_end)
    with pytest.raises(BadAnswer, match="no end"):
        await held.list(CONFIGMAPS, "default", max_items=1000)


async def test_a_watch_line_without_end_is_refused(api: FakeApi, clients: TenantClients) -> None:
    held = await hostile(api, clients, endless)
    with pytest.raises(BadAnswer, match="a line of more than"):
        async for _ in held.watch(CONFIGMAPS, "default"):
            pass


async def test_a_slow_answer_ends_in_time_and_harms_no_other(api: FakeApi, clients: TenantClients) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)

    other = FakeApi()
    await other.start()
    try:
        other.put(MAP)
        slow = await hostile(api, clients, drip)
        quick = await clients.client(Key("b", "quick"), "quick", secret(admin_conf=kubeconfig(other.url)))
        waiting = asyncio.create_task(slow.get(CONFIGMAPS, "a", "default"))
        for _ in range(5):
            await quick.get(CONFIGMAPS, "a", "default")
        assert not waiting.done()
        with pytest.raises(KubeError):
            await asyncio.wait_for(waiting, 30)
    finally:
        await other.stop()


# Where it leads.


@pytest.mark.parametrize(
    ("server", "endpoint", "leads_there"),
    [
        ("https://10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("https://10.0.0.1:6443/", "https://10.0.0.1:6443", True),
        ("https://127.0.0.1:7443/clusters/a/b", "https://127.0.0.1:7443", True),
        ("http://127.0.0.1:7443", "https://127.0.0.1:7443", True),
        ("https://API.example.com", "https://api.example.com:443", True),
        ("https://[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("https://10.0.0.1:443", "https://10.0.0.1:6443", False),
        ("https://169.254.169.254:6443", "https://10.0.0.1:6443", False),
        ("https://kubernetes.default.svc:6443", "https://10.0.0.1:6443", False),
        ("https://x.payments-1.svc:6443", "https://10.0.0.1:6443", False),
        ("http://127.0.0.1:8080", "https://127.0.0.1:7443", False),
        ("https://10.0.0.1.example.com:6443", "https://10.0.0.1:6443", False),
    ],
)
async def test_a_kubeconfig_leads_to_its_own_tenant_or_nowhere(server: str, endpoint: str, leads_there: bool) -> None:
    content = secret(admin_conf=kubeconfig(server))
    async with TenantClients({"u1": endpoint}.get, limits=LIMITS) as clients:
        if leads_there:
            assert connection_from(content, endpoint).server == server.rstrip("/")
            await clients.client(KEY, "u1", content)
            return
        for ask in (lambda: connection_from(content, endpoint), lambda: kubeconfig_from(content, endpoint, "payments")):
            with pytest.raises(ConfigError, match=r"leads to another server than status\.controlPlaneEndpoint"):
                ask()
        with pytest.raises(ConfigError, match="leads to another server"):
            await clients.client(KEY, "u1", content)


async def test_a_tenant_of_which_it_is_not_known_where_it_is_is_not_asked() -> None:
    async with TenantClients({"u1": None}.get, limits=LIMITS) as clients:
        with pytest.raises(ConfigError, match="is not known yet"):
            await clients.client(KEY, "u1", secret(admin_conf=kubeconfig("https://10.0.0.1:6443")))


def test_any_certificate_is_believed_on_this_machine_alone() -> None:
    def trusting_all(server: str) -> Json:
        document = yaml.safe_load(kubeconfig(server))
        document["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
        return secret(admin_conf=yaml.safe_dump(document).encode())

    with pytest.raises(ConfigError, match="insecure-skip-tls-verify"):
        connection_from(trusting_all("https://10.0.0.1:6443"), "https://10.0.0.1:6443")
    assert connection_from(trusting_all("https://127.0.0.1:6443"), "https://127.0.0.1:6443").insecure


def test_what_is_handed_on_is_written_anew() -> None:
    document = yaml.safe_load(kubeconfig("https://10.0.0.1:6443"))
    document["clusters"][0]["cluster"]["extensions"] = [{"name": "x", "extension": "y"}]
    document["contexts"][0]["context"]["namespace"] = "kube-system"
    document["preferences"] = {"colors": True}
    document["contexts"].append({"name": "prod", "context": {"cluster": "a", "user": "a"}})
    found = kubeconfig_from(secret(admin_conf=yaml.safe_dump(document).encode()), "https://10.0.0.1:6443", "payments")
    assert yaml.safe_load(found) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "payments", "cluster": {"server": "https://10.0.0.1:6443"}}],
        "users": [{"name": "payments", "user": {"token": "t"}}],
        "contexts": [{"name": "payments", "context": {"cluster": "payments", "user": "payments"}}],
        "current-context": "payments",
    }
    document["users"].append({"name": "b", "user": {"exec": {"command": "sh", "args": ["-c", "id"]}}})
    with pytest.raises(ConfigError, match="exec is not allowed"):
        kubeconfig_from(secret(admin_conf=yaml.safe_dump(document).encode()), "https://10.0.0.1:6443", "payments")


@pytest.mark.parametrize(
    "body",
    ["db password is hunter2", '{"error": "hunter2"}', '{"message": "hunter2", "kind": "Pod"}', '["hunter2"]'],
)
async def test_words_that_are_no_status_are_not_repeated(api: FakeApi, clients: TenantClients, body: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=403, text=body)

    api.before = answer
    tenant = await clients.client(KEY, "u1", secret(admin_conf=kubeconfig(api.url)))
    with pytest.raises(Forbidden) as refused:
        await tenant.get(CONFIGMAPS, "a", "default")
    assert "hunter2" not in str(refused.value)


async def test_a_status_is_repeated_in_short_and_on_one_line(api: FakeApi, clients: TenantClients) -> None:
    async def answer(_: web.Request) -> web.Response:
        said = "no \x1b]0;pwned\x07\n\u202e" + "x" * 5000
        return web.json_response({"kind": "Status", "message": said, "reason": "Forbidden\x1b"}, status=403)

    api.before = answer
    tenant = await clients.client(KEY, "u1", secret(admin_conf=kubeconfig(api.url)))
    with pytest.raises(Forbidden) as refused:
        await tenant.get(CONFIGMAPS, "a", "default")
    assert refused.value.message.isprintable()
    assert len(refused.value.message) == 300
    assert refused.value.reason == ""
