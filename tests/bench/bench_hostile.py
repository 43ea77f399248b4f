"""A well-behaved client beside hostile ones, on both API servers in one run: `make bench-hostile`.

Each attack is a process of its own, with the rights of a user in one namespace; the well-behaved client is another
process and another user. What counts is how long that client waits: the target on the embedded server is a p99 under
250 ms, and the real kube-apiserver in the same run is the measure. Attackers run at a low priority, so that the
machine's own limits are charged to them first. Nothing here fails on a number.

    python tests/bench/bench_hostile.py [--seconds 8] [--watches 10000] [--only NAME] [--plane embedded] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tools")]

from control_planes import ControlPlane, embedded, kubernetes  # noqa: E402 - after the path is set

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Json = dict[str, Any]

GOOD, BAD = "well-behaved", "hostile"
WATCHED = "watched"  # without the large objects of other attacks, which would come first in every watch
GROUP = "hostile.example.com"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
AT_ONCE = 8  # requests of an attacker under way


def path(namespace: str, plural: str = "configmaps") -> str:
    return f"/api/v1/namespaces/{namespace}/{plural}"


class User:
    """A session that acts as one user."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self._plane = plane
        self._headers = {**plane.headers, "Impersonate-User": name}

    async def __aenter__(self) -> User:
        connector = aiohttp.TCPConnector(ssl=self._plane.tls, limit=0)
        timeout = aiohttp.ClientTimeout(total=120)
        self.session = aiohttp.ClientSession(
            self._plane.url, connector=connector, headers=self._headers, timeout=timeout
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def call(self, method: str, where: str, body: Any = None, content_type: str = "application/json") -> int:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self.session.request(method, where, data=data, headers=headers) as answer:
            await answer.read()
            return answer.status


# The attacks: each is one request, or one thing that is held for as long as the attack goes on.


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


async def selectors(user: User) -> None:
    for text in (",".join(f"k{number}!=v" for number in range(800)), ",".join(f"k{n}!=v" for n in range(8_000))):
        await user.call("GET", f"{path(BAD)}?labelSelector={text}")


def custom(kind: str, spec: Json) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"generateName": "x-"}, "spec": spec}


async def cel(user: User) -> None:
    where = f"/apis/{GROUP}/v1/namespaces/{BAD}/rules"
    await user.call("POST", f"{where}?dryRun=All", custom("Rule", {"list": list(range(400))}))


async def regex(user: User) -> None:
    where = f"/apis/{GROUP}/v1/namespaces/{BAD}/patterns"
    spec = {f"p{number}": "xa" * 10_000 for number in range(len(PATTERNS))}
    await user.call("POST", f"{where}?dryRun=All", custom("Pattern", spec))


async def tables(user: User) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with user.session.get(f"{path('crowd')}?fieldSelector=metadata.name!=x", headers=accept) as answer:
        await answer.read()


ATTACKS: dict[str, Callable[[User], Awaitable[None]]] = {
    attack.__name__: attack
    for attack in (deep, wrong, large, yaml, strategic, operations, applied, selectors, cel, regex, tables)
}
HELD = ("half-sent", "watches")
PATTERNS = ["^(a+)+$", "^(a|aa)+$", "(.*)(.*)(.*)y$", "(x{0,90})x{90}y", "(a|b|c|x)*z{9}"]


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
            with suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
                await ATTACKS[name](user)
                done += 1

    async with User(plane, BAD) as user:
        asking = [asyncio.create_task(again(user)) for _ in range(AT_ONCE)]
        await asyncio.wait(asking, timeout=seconds + 2)
        for task in asking:
            task.cancel()
    print(json.dumps({"done": done}), flush=True)


async def hold(plane: ControlPlane, name: str, seconds: float, count: int) -> None:
    """Open `count` connections, say so on stdout, hold them, and write to what is watched."""
    host, port = plane.url.removeprefix("https://").split(":")
    head = f"Host: x\r\nImpersonate-User: {BAD}\r\n"
    head += "".join(f"{key}: {value}\r\n" for key, value in plane.headers.items())
    if name == "watches":
        request = f"GET {path(WATCHED)}?watch=true HTTP/1.1\r\n{head}\r\n".encode()
    else:
        request = f"POST {path(BAD)} HTTP/1.1\r\n{head}Content-Length: 3000000\r\n\r\n".encode() + b"{" * 100_000
    slots = asyncio.Semaphore(20)
    writers: list[asyncio.StreamWriter] = []

    async def one() -> None:
        async with slots:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(60):
                    _, writer = await asyncio.open_connection(host, int(port), ssl=plane.tls, limit=4096)
                    writer.write(request)
                    writers.append(writer)

    await asyncio.gather(*(one() for _ in range(count)))
    print(json.dumps({"held": len(writers)}), flush=True)
    until = time.monotonic() + seconds
    async with User(plane, BAD) as user:
        while time.monotonic() < until:
            if name == "watches":
                await user.call("POST", path(WATCHED), {"metadata": {"generateName": "seen-"}})
            await asyncio.sleep(0.2)
    for writer in writers:
        writer.transport.abort()
    print(json.dumps({"done": len(writers)}), flush=True)


# The one who must not notice.


async def behave(plane: ControlPlane, seconds: float) -> None:
    """Read, write and list all the time, and print how long each took."""
    took: list[float] = []
    async with User(plane, GOOD) as user:
        until = time.monotonic() + seconds
        turn = 0
        while time.monotonic() < until:
            turn += 1
            where = path(GOOD)
            steps = (
                ("GET", f"{where}/known", None, ""),
                ("PATCH", f"{where}/known", {"data": {"turn": str(turn)}}, "application/merge-patch+json"),
                ("POST", where, {"metadata": {"generateName": "made-"}}, "application/json"),
                ("GET", f"{where}?limit=20", None, ""),
            )
            method, at, body, content_type = steps[turn % len(steps)]
            began = time.monotonic()
            status = await user.call(method, at, body, content_type)
            took.append(time.monotonic() - began)
            assert status in (200, 201), (method, at, status)
            await asyncio.sleep(0.01)
    took.sort()
    figures = {"p50": took[len(took) // 2], "p99": took[int(len(took) * 0.99)], "worst": took[-1], "asked": len(took)}
    print(json.dumps(figures), flush=True)


# Preparing and playing.


def prepare(plane: ControlPlane) -> None:
    for namespace, user in ((GOOD, GOOD), (BAD, BAD), ("crowd", BAD), (WATCHED, BAD)):
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        binding = {
            "metadata": {"name": "owner"},
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": user}],
        }
        plane.request("POST", f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    # Rules of one's own come with definitions, which take more than a namespace: an administrator brought them.
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    rules = {
        "type": "object",
        "properties": {"list": numbers},
        "x-kubernetes-validations": [{"rule": "self.list.all(a, self.list.all(b, a + b < 100000))"}],
    }
    patterns = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "pattern": each} for n, each in enumerate(PATTERNS)},
    }
    for plural, kind, spec in (("rules", "Rule", rules), ("patterns", "Pattern", patterns)):
        schema = {"type": "object", "properties": {"spec": spec}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        definition = {
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [version],
            },
        }
        status, answer = plane.request("POST", CRDS, definition)
        assert status in (201, 409), answer
    plane.request("POST", path(GOOD), {"metadata": {"name": "known"}})
    plane.request("POST", path(BAD, "serviceaccounts"), {"metadata": {"name": "default"}})
    for number in range(1000):
        plane.request("POST", path("crowd"), {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * 1000}})


def start(role: str, plane: ControlPlane, scratch: Path, seconds: float, count: int, priority: int) -> Any:
    command = [sys.executable, __file__, "--role", role, "--kubeconfig", str(plane.kubeconfig)]
    command += ["--scratch", str(scratch), "--seconds", str(seconds), "--count", str(count)]
    return subprocess.Popen(
        ["nice", "-n", str(priority), *command], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    )


def play(plane: ControlPlane, name: str, seconds: float, count: int, scratch: Path) -> Json:
    """One attack, and what the well-behaved client saw of it."""
    attacker = None
    if name != "nothing":
        lasting = seconds + 6
        attacker = start(name, plane, scratch / "bad", lasting, count, 10)
        if name in HELD:
            attacker.stdout.readline()  # when all are held
        time.sleep(2)
    client = start("behave", plane, scratch / "good", seconds, 0, 0)
    figures: Json = json.loads(client.communicate(timeout=seconds + 180)[0])
    if attacker is not None:
        try:
            told = attacker.communicate(timeout=90)[0].strip().splitlines()
            figures |= json.loads(told[-1]) if told else {}
        except subprocess.TimeoutExpired:
            attacker.kill()
            attacker.communicate()
    return figures


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--watches", type=int, default=10_000)
    options.add_argument("--only", action="append")
    options.add_argument("--plane", action="append", choices=["embedded", "kubernetes"])
    options.add_argument("--json", type=Path)
    options.add_argument("--role")
    options.add_argument("--kubeconfig", type=Path)
    options.add_argument("--scratch", type=Path)
    options.add_argument("--count", type=int, default=0)
    given = options.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if given.role:
        plane = ControlPlane.from_kubeconfig("given", given.kubeconfig, given.scratch)
        work = behave(plane, given.seconds) if given.role == "behave" else None
        asyncio.run(work or attack(plane, given.role, given.seconds, given.count))
        return
    wanted = given.only or ["nothing", *ATTACKS, *HELD]
    found: dict[str, Json] = {}
    for kind in given.plane or ["embedded", "kubernetes"]:
        with tempfile.TemporaryDirectory() as directory:
            scratch = Path(directory)
            with (embedded if kind == "embedded" else kubernetes)(scratch) as plane:
                prepare(plane)
                for name in wanted:
                    count = given.watches if name == "watches" else 300
                    figures = play(plane, name, given.seconds, count, scratch)
                    found[f"{kind} {name}"] = figures
                    shown = "  ".join(f"{key} {figures[key] * 1000:6.0f} ms" for key in ("p50", "p99", "worst"))
                    print(f"{kind:10} {name:10}  {shown}  ({figures['asked']} asked; {figures.get('done', 0)} attacks)")
                    sys.stdout.flush()
    if given.json:
        given.json.write_text(json.dumps({"machine": os.cpu_count(), "found": found}, indent=2))


if __name__ == "__main__":
    main()
