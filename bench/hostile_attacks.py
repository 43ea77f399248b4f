"""What hostile clients do to an API server, each as a process of its own: the attackers of `bench_hostile.py`.

An attack is one request that is sent again as soon as it is answered, by several connections at once, or connections
that are opened once and held. All act as one user, who may do anything in some namespaces and nothing elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from control_planes import ControlPlane

Json = dict[str, Any]

BAD = "hostile"
WATCHED = "watched"  # without the large objects of other attacks, which would come first in every watch
CROWD = "crowd"  # thousands of objects
GROUP = "hostile.example.com"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PATTERNS = ["^(a+)+$", "^(a|aa)+$", "(.*)(.*)(.*)y$", "(x{0,90})x{90}y", "(a|b|c|x)*z{9}"]
AT_ONCE = 8  # requests of an attacker under way
MORE_AT_ONCE = {"initial": 100, "handshakes": 32}


def path(namespace: str, plural: str = "configmaps") -> str:
    return f"/api/v1/namespaces/{namespace}/{plural}"


class User:
    """A session that acts as one user."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane = plane
        self._headers = {**plane.headers, "Impersonate-User": name}

    async def __aenter__(self) -> User:
        connector = aiohttp.TCPConnector(ssl=self.plane.tls, limit=0)
        timeout = aiohttp.ClientTimeout(total=120)
        self.session = aiohttp.ClientSession(
            self.plane.url, connector=connector, headers=self._headers, timeout=timeout
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def call(
        self, method: str, where: str, body: Any = None, content_type: str = "application/json", **headers: str
    ) -> int:
        """Send a request, read the answer in pieces and forget it."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = content_type
        async with self.session.request(method, where, data=data, headers=headers) as answer:
            async for _ in answer.content.iter_chunked(1 << 18):
                pass
            return answer.status


# Bodies and patches.


def names(count: int) -> list[Json]:
    return [{"name": f"s{number}"} for number in range(count)]


async def deep(user: User) -> None:
    await user.call("POST", path(BAD), b"[" * 1_500_000)
    await user.call("POST", path(BAD), b'{"metadata":' + b'{"a":' * 250_000 + b"1" + b"}" * 250_001)


async def wrong(user: User) -> None:
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    await user.call("POST", review, b'{"a":[' + b"1," * 1_500_000 + b"}")
    await user.call("POST", review, b"{" + b",".join(b'"k%d":1,"k%d":2' % (n, n) for n in range(100_000)) + b"}")


async def large(user: User) -> None:
    data = {f"key-{number}": "x" for number in range(50_000)}
    await user.call("POST", path(BAD), {"metadata": {"generateName": "large-"}, "data": data})


async def yaml(user: User) -> None:
    text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: dense}\ndata: [" + "1," * 200_000 + "1]"
    await user.call("POST", path(BAD), text.encode(), "application/yaml")


async def strategic(user: User) -> None:
    order = [{"name": f"s{number}"} for number in reversed(range(10_000))]
    patch = {"secrets": names(10_000), "$setElementOrder/secrets": order[::-1]}
    await user.call("PATCH", f"{path(BAD, 'serviceaccounts')}/default", patch, STRATEGIC)


async def operations(user: User) -> None:
    inserts = [{"op": "add", "path": "/secrets/0", "value": {"name": f"t{number}"}} for number in range(9_998)]
    patch = [{"op": "add", "path": "/secrets", "value": names(20_000)}, *inserts]
    await user.call("PATCH", f"{path(BAD, 'serviceaccounts')}/default", patch, JSON_PATCH)


async def applied(user: User) -> None:
    data = {f"key-{number}": "x" for number in range(60_000)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}
    await user.call("PATCH", f"{path(BAD)}/applied?fieldManager=me&force=true", body, APPLY)


# Rules and patterns.


def custom(kind: str, spec: Json) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"generateName": "x-"}, "spec": spec}


async def cel(user: User) -> None:
    where = f"/apis/{GROUP}/v1/namespaces/{BAD}/rules"
    await user.call("POST", f"{where}?dryRun=All", custom("Rule", {"list": list(range(400))}))


async def regex(user: User) -> None:
    where = f"/apis/{GROUP}/v1/namespaces/{BAD}/patterns"
    spec = {f"p{number}": "xa" * 10_000 for number in range(len(PATTERNS))}
    await user.call("POST", f"{where}?dryRun=All", custom("Pattern", spec))


async def roles(user: User) -> None:
    """Rights that take few words and mean billions, changed again and again: every check has to know the new ones."""
    where = f"{RBAC}/namespaces/{BAD}"
    rule = {key: [f"{key}{n}" for n in range(1_000)] for key in ("verbs", "apiGroups", "resources")}
    name = f"billions-{random.randrange(100)}"
    body = {"metadata": {"name": name, "annotations": {"at": str(time.time())}}, "rules": [rule]}
    if await user.call("PUT", f"{where}/roles/{name}", body) == 404:
        await user.call("POST", f"{where}/roles", body)
        subjects = [{"kind": "User", "name": BAD, "apiGroup": "rbac.authorization.k8s.io"}]
        reference = {"kind": "Role", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference}
        await user.call("POST", f"{where}/rolebindings", binding)
    await user.call("GET", f"{path(BAD)}/none")


# Much to read.


async def selectors(user: User) -> None:
    for text in (",".join(f"k{number}!=v" for number in range(800)), ",".join(f"k{n}!=v" for n in range(7_000))):
        await user.call("GET", f"{path(BAD)}?labelSelector={text}")


async def lists(user: User) -> None:
    await user.call("GET", path(CROWD))


async def tables(user: User) -> None:
    await user.call("GET", f"{path(CROWD)}?fieldSelector=metadata.name!=x", Accept=TABLE)


async def documents(user: User) -> None:
    for where in ("/openapi/v2", "/openapi/v3/api/v1", "/apis", "/api/v1"):
        await user.call("GET", where)


async def deletions(user: User) -> None:
    await user.call("DELETE", f"{path(CROWD)}?dryRun=All")


async def initial(user: User) -> None:
    await user.call("GET", f"{path(CROWD)}?watch=true&timeoutSeconds=2")


async def handshakes(user: User) -> None:
    host, port = user.plane.url.removeprefix("https://").split(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=user.plane.tls)
    writer.transport.abort()


ATTACKS: dict[str, Callable[[User], Awaitable[None]]] = {
    attack.__name__: attack
    for attack in (
        deep, wrong, large, yaml, strategic, operations, applied, cel, regex, roles,
        selectors, lists, tables, documents, deletions, initial, handshakes,
    )
}  # fmt: skip
HELD = {"half-sent": 300, "watches": 10_000, "sieved": 1_000}  # connections


async def attack(plane: ControlPlane, name: str, seconds: float, count: int) -> None:
    """What a hostile process does: as many requests as it gets answered, or connections that are held."""
    if name in HELD:
        await hold(plane, name, seconds, count)
        return
    until = time.monotonic() + seconds
    done = 0

    async def again(user: User) -> None:
        nonlocal done
        while time.monotonic() < until:
            with suppress(aiohttp.ClientError, TimeoutError, OSError):
                await ATTACKS[name](user)
                done += 1

    async with User(plane, BAD) as user:
        asking = [asyncio.create_task(again(user)) for _ in range(MORE_AT_ONCE.get(name, AT_ONCE))]
        await asyncio.wait(asking, timeout=seconds + 2)
        for task in asking:
            task.cancel()
    print(json.dumps({"done": done}), flush=True)


def held_request(name: str, number: int, head: str) -> bytes:
    """What a connection says that is held: `half-sent` never ends it, `sieved` wants a table of few of the changes."""
    if name == "half-sent":
        return f"POST {path(BAD)} HTTP/1.1\r\n{head}Content-Length: 3000000\r\n\r\n".encode() + b"{" * 100_000
    where = f"{path(WATCHED)}?watch=true"
    if name == "sieved":
        where += f"&labelSelector=a!=x{number}"
        head += f"Accept: {TABLE}\r\n"
    return f"GET {where} HTTP/1.1\r\n{head}\r\n".encode()


class Ear(asyncio.Protocol):
    """A connection that says one thing and listens to what comes, as cheaply as Python can."""

    def __init__(self, request: bytes, heard: list[int]) -> None:
        self._request = request
        self._heard = heard

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._heard[0] += data.count(b'"ADDED"')


async def hold(plane: ControlPlane, name: str, seconds: float, count: int) -> None:
    """Open `count` connections, say so on stdout, hold them, and write to what is watched."""
    host, port = plane.url.removeprefix("https://").split(":")
    head = f"Host: x\r\nImpersonate-User: {BAD}\r\n"
    head += "".join(f"{key}: {value}\r\n" for key, value in plane.headers.items())
    slots = asyncio.Semaphore(20)
    loop = asyncio.get_running_loop()
    heard = [0]
    ears: list[Ear] = []

    async def one(number: int) -> None:
        request = held_request(name, number, head)
        async with slots:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(60):
                    _, ear = await loop.create_connection(lambda: Ear(request, heard), host, int(port), ssl=plane.tls)
                    ears.append(ear)

    await asyncio.gather(*(one(number) for number in range(count)))
    print(json.dumps({"held": len(ears)}), flush=True)
    heard[0] = written = 0
    until = time.monotonic() + seconds
    async with User(plane, BAD) as user:
        while time.monotonic() < until:
            if name != "half-sent":
                await user.call("POST", path(WATCHED), {"metadata": {"generateName": "seen-"}})
                written += 1
            await asyncio.sleep(0.2)
    held = sum(not ear.transport.is_closing() for ear in ears)
    for ear in ears:
        ear.transport.abort()
    print(json.dumps({"done": held, "written": written, "heard": heard[0]}), flush=True)
