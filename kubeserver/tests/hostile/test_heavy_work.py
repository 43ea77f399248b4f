"""Definitions that cost much, readers that are slow, and much data: other clients do not wait for them."""

from __future__ import annotations

import asyncio
import base64
import datetime
import time
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    import aiohttp
    from server_process import ServerProcess


from hostile.talking import APPLY, CONFIGS, MERGE, NOT_FROZEN, Busy, Json, call, secure


def make_certificate() -> bytes:
    """An authority of no one's, as PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hostile")])
    unsigned = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    return unsigned.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


# Definitions that users bring.


def _definition(plural: str, spec: Json, **version: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.hostile.example.com"},
        "spec": {
            "group": "hostile.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                    **version,
                }
            ],
        },
    }


async def define(client: aiohttp.ClientSession, plural: str, spec: Json, **version: Any) -> str:
    definition = _definition(plural, spec, **version)
    code, answer = await call(client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert code == 201, answer
    path = f"/apis/hostile.example.com/v1/namespaces/default/{plural}"
    for _ in range(200):
        if (await call(client, "GET", path))[0] == 200:
            return path
        await asyncio.sleep(0.02)
    raise AssertionError("the definition was not established")


async def test_a_pattern_that_backtracks_does_not_freeze_the_server(client: aiohttp.ClientSession) -> None:
    patterns = ["^(a+)+$", "^(a|aa)+$", "(.*)(.*)(.*)x$", "^(a?){50}a{50}$", "(x{0,900})x{900}y"]
    properties = {f"p{number}": {"type": "string", "pattern": each} for number, each in enumerate(patterns)}
    path = await define(client, "patterns", {"type": "object", "properties": properties})
    async with Busy(client) as others:
        for name in properties:
            for text in ("a" * 40 + "!", "a" * 100_000 + "!", "x" * 100_000):
                spec = {name: text}
                obj = {
                    "apiVersion": "hostile.example.com/v1",
                    "kind": "Patterns",
                    "metadata": {"generateName": "p-"},
                    "spec": spec,
                }
                code, answer = await call(client, "POST", path, obj)
                assert code in (201, 422), answer
    print(f"while patterns that explode were matched, others waited at most {others.worst * 1000:.0f} ms")
    assert others.worst < NOT_FROZEN


@pytest.mark.parametrize("pattern", ["((((){1000}){1000}){1000}){1000}", r"[\D]" * 400, "(a{1000}){16}%d"])
async def test_a_pattern_that_is_long_to_compile_does_not_freeze_the_server(
    client: aiohttp.ClientSession, pattern: str
) -> None:
    properties = {
        f"p{number}": {"type": "string", "pattern": pattern.replace("%d", str(number))}
        for number in range(100 if "%d" in pattern else 1)
    }
    definition = _definition("compiled", {"type": "object", "properties": properties})
    async with Busy(client) as others:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
        code, answer = await call(client, "POST", path, definition)
    assert code in (201, 422), answer
    assert others.worst < 2


async def test_webhooks_with_authorities_of_their_own_do_not_freeze_the_server(client: aiohttp.ClientSession) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    pem = make_certificate()
    hooks = [
        {
            "name": f"hook-{number}.hostile.example.com",
            "clientConfig": {
                "url": "https://127.0.0.1:9/",
                "caBundle": base64.b64encode(pem + b"\n" * number).decode(),
            },
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        for number in range(200)
    ]
    code, answer = await call(client, "POST", path, {"metadata": {"name": "many-authorities"}, "webhooks": hooks})
    assert code == 201, answer
    try:
        async with Busy(client) as others:
            code, answer = await call(client, "POST", f"{CONFIGS}?dryRun=All", {"metadata": {"name": "asked-about"}})
        assert code == 201, answer
        print(f"while 200 webhooks were asked, others waited at most {others.worst * 1000:.0f} ms")
        assert others.worst < 2
    finally:
        await call(client, "DELETE", f"{path}/many-authorities")


async def test_an_expensive_rule_is_cut_off(client: aiohttp.ClientSession) -> None:
    spec = {
        "type": "object",
        "properties": {"list": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 100000}}},
        "x-kubernetes-validations": [{"rule": "self.list.all(a, self.list.all(b, !(a + b).matches('(x+)+y')))"}],
    }
    path = await define(client, "rules", spec)
    obj = {
        "apiVersion": "hostile.example.com/v1",
        "kind": "Rules",
        "metadata": {"name": "costly"},
        "spec": {"list": ["x" * 100_000] * 5},
    }
    async with Busy(client) as others:
        code, answer = await call(client, "POST", path, obj)
    assert code in (201, 422), answer
    assert others.worst < NOT_FROZEN


async def test_large_lists_inside_an_object_are_checked_quickly(client: aiohttp.ClientSession) -> None:
    path = await define(
        client,
        "sets",
        {
            "type": "object",
            "properties": {
                "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
                "map": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["k"],
                        "properties": {"k": {"type": "integer"}, "v": {"type": "string"}},
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                },
            },
        },
    )
    obj = {
        "apiVersion": "hostile.example.com/v1",
        "kind": "Sets",
        "metadata": {"name": "large"},
        "spec": {"set": list(range(100_000)), "map": [{"k": number} for number in range(30_000)]},
    }
    async with Busy(client) as others:
        code, answer = await call(client, "POST", path, obj)
        assert code == 201, str(answer)[:500]
        code, answer = await call(client, "PATCH", f"{path}/large?fieldManager=me&force=true", obj, APPLY)
        assert code == 200, str(answer)[:500]
    print(f"while lists of 100,000 were written, others waited at most {others.worst:.2f} s")
    assert others.worst < NOT_FROZEN


async def test_columns_that_look_at_any_depth_do_not_freeze_the_server(client: aiohttp.ClientSession) -> None:
    columns = [
        {"name": f"c{number}", "type": "string", "jsonPath": path}
        for number, path in enumerate([".spec..a..a..a..a", ".spec..a..a..a..missing", "..a"] * 10)
    ]
    path = await define(
        client,
        "columns",
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        additionalPrinterColumns=columns,
    )
    deep: Json = {"a": "x"}
    for _ in range(60):
        deep = {"a": deep, "b": [1, 2, 3]}
    for number in range(20):
        obj = {"apiVersion": "hostile.example.com/v1", "kind": "Columns", "metadata": {"name": f"c{number}"}}
        code, answer = await call(client, "POST", path, {**obj, "spec": deep})
        assert code == 201, answer
    async with Busy(client) as others:
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        code, answer = await call(client, "GET", path, **accept)
        assert code == 200, answer
        assert len(answer["rows"]) == 20
        code, answer = await call(client, "GET", f"{path}/c0", **accept)
        assert code == 200, answer
    print(f"while columns looked at any depth, others waited at most {others.worst * 1000:.0f} ms")
    assert others.worst < NOT_FROZEN


WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


async def test_conditions_of_webhooks_do_not_freeze_the_server(client: aiohttp.ClientSession) -> None:
    """Neither reading thousands of them nor asking those that go through an object again and again."""
    each_with_each = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'x')))"
    many = ["true" + " && true" * 50] * 63
    webhooks = [
        {
            "name": f"w{number}.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/never-asked"},
            "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "objectSelector": {"matchLabels": {"webhooks": "costly"}},
            "matchConditions": [
                {"name": f"c{at}", "expression": expression} for at, expression in enumerate([*many, each_with_each])
            ],
        }
        for number in range(5)
    ]
    configuration = {"metadata": {"name": "costly"}, "webhooks": webhooks}
    code, answer = await call(client, "POST", WEBHOOKS, configuration)
    assert code == 201, answer
    data = {f"k{number}": "" for number in range(100)}
    try:
        began = time.monotonic()
        async with Busy(client) as others:
            costly = {"metadata": {"name": "costly", "labels": {"webhooks": "costly"}}, "data": data}
            code, answer = await call(client, "POST", f"{CONFIGS}?dryRun=All", costly)
        took = time.monotonic() - began
        assert code == 201, answer
    finally:
        await call(client, "DELETE", f"{WEBHOOKS}/costly")
    print(f"while conditions of webhooks were asked for {took:.1f} s, others waited at most {others.worst:.2f} s")
    assert others.worst < took / 3


# Slow readers and much data.


@pytest.fixture
async def filled(server: ServerProcess) -> str:
    """A namespace with 5,000 objects of 4 kB: 20 MB as a list."""
    async with server.session() as session:
        if (await call(session, "GET", "/api/v1/namespaces/filled"))[0] == 200:
            return "/api/v1/namespaces/filled/configmaps"
        assert (await call(session, "POST", "/api/v1/namespaces", {"metadata": {"name": "filled"}}))[0] == 201
        path = "/api/v1/namespaces/filled/configmaps"
        for start in range(0, 5000, 100):
            made = await asyncio.gather(
                *(
                    call(session, "POST", path, {"metadata": {"name": f"c{i:04}"}, "data": {"a": "x" * 4000}})
                    for i in range(start, start + 100)
                )
            )
            assert {code for code, _ in made} == {201}
        return path


@pytest.mark.parametrize("accept", ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"])
async def test_slow_readers_of_a_big_list_do_not_pile_it_up_in_memory(
    client: aiohttp.ClientSession, server: ServerProcess, filled: str, accept: str
) -> None:
    async with client.get(filled) as answer:
        assert len((await answer.json())["items"]) == 5000
    before = server.rss_megabytes()
    request = f"GET {filled} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n".encode()
    slow = [await asyncio.to_thread(secure, server) for _ in range(20)]
    try:
        async with Busy(client) as others:
            for raw in slow:
                raw.sendall(request)
            for _ in range(10):
                await asyncio.sleep(0.3)
                for raw in slow:
                    raw.recv(1000)
        grown = server.rss_megabytes() - before
        print(f"20 slow readers of 20 MB ({accept}): {grown:.0f} MB more, others waited {others.worst * 1000:.0f} ms")
        assert grown < (120 if accept == "application/json" else 250)
        assert others.worst < NOT_FROZEN
    finally:
        for raw in slow:
            raw.close()


async def _settled(server: ServerProcess) -> float:
    """The memory of a server that has done what it was asked: a busy machine takes longer than a second for that."""
    seen = [server.rss_megabytes()]
    while len(seen) < 4 or max(seen[-3:]) - min(seen[-3:]) > 1:
        await asyncio.sleep(0.5)
        seen.append(server.rss_megabytes())
    return seen[-1]


async def test_a_watcher_that_does_not_read_costs_no_memory(
    client: aiohttp.ClientSession, server: ServerProcess, filled: str
) -> None:
    asleep = [await asyncio.to_thread(secure, server) for _ in range(20)]
    for raw in asleep:
        raw.sendall(f"GET {filled}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    before = await _settled(server)
    try:
        async with Busy(client) as others:
            for turn in range(20):
                made = await asyncio.gather(
                    *(
                        call(client, "PATCH", f"{filled}/c{i:04}", {"data": {"a": f"{turn}" * 4000}}, MERGE)
                        for i in range(50)
                    )
                )
                assert {code for code, _ in made} == {200}
        grown = server.rss_megabytes() - before
        print(f"20 sleeping watchers, 1,000 changes of 4 kB: {grown:.0f} MB more")
        assert grown < 60
        assert others.worst < NOT_FROZEN
    finally:
        for raw in asleep:
            raw.close()


async def test_deleting_thousands_at_once_leaves_room_for_others(client: aiohttp.ClientSession, filled: str) -> None:
    async with Busy(client) as others:
        began = time.monotonic()
        code, answer = await call(client, "DELETE", filled)
        took = time.monotonic() - began
    assert code == 200, str(answer)[:300]
    print(f"deletecollection of 5,000: {took:.1f} s, others waited at most {others.worst * 1000:.0f} ms")
    assert others.worst < NOT_FROZEN
    code, answer = await call(client, "GET", filled)
    assert answer["items"] == []
