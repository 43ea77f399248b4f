"""Bodies and patches that are wrong, huge, deep or meant to explode."""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import ssl

    import aiohttp
    from server_process import ServerProcess

from hostile.talking import (
    APPLY,
    CONFIGS,
    JSON_PATCH,
    MEGABYTE,
    MERGE,
    NOT_FROZEN,
    YAML,
    Busy,
    Json,
    call,
    secure,
    told,
)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 15)]
    return "kind: ConfigMap\napiVersion: v1\nmetadata: {name: laughs}\ndata:\n  " + "\n  ".join(lines)


@pytest.mark.parametrize(
    ("content_type", "body", "codes"),
    [
        ("", "", {400}),
        ("", "null", {422}),
        ("", "[]", {400}),
        ("", "{", {400}),
        ("", '{"metadata":{"name":"x"}', {400}),
        ("", b'{"metadata":{"name":"\xff\xfe"}}', {400, 422}),
        ("", '{"metadata":{"name":"a\\u0000b"}}', {422}),
        ("", '{"metadata":{"name":"\\ud800"}}', {422}),
        ("", '{"metadata":{"name":"big"},"data":' + nested(100_000) + "}", {400}),
        ("", '{"metadata":{"name":"big"},"data":' + nested(800) + "}", {400}),
        ("", '{"metadata":{"name":"n","generation":' + "9" * 5000 + "}}", {400}),
        ("", '{"metadata":{"name":"n","generation":1e999999999}}', {400}),
        ("", '{"metadata":{"name":"n","generation":1.5}}', {400}),
        ("", "[" * 1_000_000, {400}),
        ("", '{"metadata":{"name":"x"},' + '"a":1,' * 200_000 + '"b":2}', {201, 400}),
        (YAML, laughs(), {400}),
        (YAML, "a: &a [*a]", {400}),
        (YAML, "[" * 500_000, {400}),
        (YAML, "- " * 500_000, {400}),
        (YAML, "{a: " * 500_000, {400}),
        (YAML, "metadata: {name: !!python/object/apply:os.system [id]}", {400}),
        (YAML, "a: \x00", {400}),
        ("text/plain", "hello", {415}),
        ("application/vnd.kubernetes.protobuf", b"k8s\x00" + b"\xff" * 1000, {400}),
        ("application/vnd.kubernetes.protobuf", b"\x0a" * 1_000_000, {400}),
    ],
    ids=range(25),
)
async def test_bad_bodies_are_refused_with_a_status(
    client: aiohttp.ClientSession, content_type: str, body: str | bytes, codes: set[int]
) -> None:
    began = time.monotonic()
    code, answer = await call(client, "POST", CONFIGS, body, content_type)
    assert code in codes, answer
    assert time.monotonic() - began < NOT_FROZEN
    if code >= 400:
        assert answer["kind"] == "Status"
        assert answer["message"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{CONFIGS}?labelSelector=a%3E{'9' * 5000}", None),
        (
            "POST",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets?dryRun=All",
            {"metadata": {"name": "digits"}, "spec": {"maxUnavailable": "9" * 5000 + "%", "selector": {}}},
        ),
    ],
)
async def test_numbers_of_thousands_of_digits_are_no_fault_of_the_server(
    client: aiohttp.ClientSession, method: str, path: str, body: Json | None
) -> None:
    code, answer = await call(client, method, path, body)
    assert code == 400, answer
    assert "thousands of digits" in answer["message"]


async def test_a_body_over_three_megabytes_is_too_large_and_one_just_below_is_not(
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    def config(size: int) -> Json:
        return {"metadata": {"generateName": "large-"}, "data": {"a": "x" * size}}

    code, answer = await call(client, "POST", CONFIGS, config(3 * MEGABYTE))
    assert (code, answer["reason"]) == (413, "RequestEntityTooLarge")
    assert answer["message"] == "Request entity too large: limit is 3145728"
    code, answer = await call(client, "POST", CONFIGS, config(MEGABYTE + 1))
    assert code == 422, answer
    assert "Too long: may not be more than 1048576 bytes" in answer["message"]
    assert (await call(client, "POST", CONFIGS, config(MEGABYTE - 1000)))[0] == 201
    # announced, but never sent
    head = f"POST {CONFIGS} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n"
    assert b"413 " in (await asyncio.to_thread(told, server, head.encode()))[:20]


async def test_long_yaml_is_read_without_stopping_the_others(client: aiohttp.ClientSession) -> None:
    dense = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: dense}\ndata: [" + "1," * 400_000 + "1]"
    async with Busy(client) as others:
        code, _ = await call(client, "POST", CONFIGS, dense, YAML)
        assert code == 400
    print(f"while 800 kB of YAML were read, others waited at most {others.worst * 1000:.0f} ms")
    assert others.worst < NOT_FROZEN


@pytest.mark.parametrize("kind", ["many", "copies", "tests"])
async def test_json_patches_cannot_explode(client: aiohttp.ClientSession, kind: str) -> None:
    code, made = await call(
        client, "POST", CONFIGS, {"metadata": {"generateName": "patched-"}, "data": {"a": "x" * 99}}
    )
    assert code == 201
    path = f"{CONFIGS}/{made['metadata']['name']}"
    patches: dict[str, list[Json]] = {
        "many": [{"op": "add", "path": "/data/b", "value": "y"}] * 10_001,
        "copies": [
            {"op": "add", "path": "/data/list", "value": ["x" * 1000]},
            *[{"op": "copy", "from": "/data", "path": f"/data/c{i}"} for i in range(60)],
        ],
        "tests": [{"op": "test", "path": "/data/a", "value": "x" * 99}] * 9_999,
    }
    async with Busy(client) as others:
        code, answer = await call(client, "PATCH", path, patches[kind], JSON_PATCH)
    assert code in {"many": {413}, "copies": {400, 413, 422}, "tests": {200}}[kind], answer
    assert others.worst < NOT_FROZEN


@pytest.mark.parametrize("content_type", [MERGE, "application/strategic-merge-patch+json", APPLY, JSON_PATCH])
async def test_deep_and_wrong_patches_are_refused(client: aiohttp.ClientSession, content_type: str) -> None:
    code, made = await call(client, "POST", CONFIGS, {"metadata": {"generateName": "patched-"}})
    assert code == 201
    path = f"{CONFIGS}/{made['metadata']['name']}?fieldManager=me"
    for body in (
        nested(50_000),
        nested(900),
        "[" * 50_000,
        "null",
        "7",
        '"x"',
        "",
        "\x00",
        '{"metadata":7}',
        '[{"op":1}]',
    ):
        code, answer = await call(client, "PATCH", path, body, content_type)
        assert code in (200, 400, 415, 422), (body[:40], answer)


STRATEGIC = "application/strategic-merge-patch+json"


@pytest.mark.parametrize(
    "patch",
    ["merge", "order", "delete", "retain", "primitive", "operations"],
)
async def test_patches_of_long_lists_cost_what_they_are_long(client: aiohttp.ClientSession, patch: str) -> None:
    """60,000 items took more than three minutes, and every client waited for them."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    code, made = await call(client, "POST", accounts, {"metadata": {"generateName": "patched-"}})
    assert code == 201
    path = f"{accounts}/{made['metadata']['name']}"
    items = [{"name": f"s{number}"} for number in range(30_000)]
    # Names that start alike, and the last first: who compares each with each feels it.
    keys = [f"key-{number:05}" for number in range(20_000)][::-1]
    finalizers = [f"a.example.com/{number}" for number in range(30_000)]
    first: Json = {"secrets": items, "metadata": {"finalizers": finalizers, "annotations": dict.fromkeys(keys, "")}}
    assert (await call(client, "PATCH", path, first, MERGE))[0] == 200
    body: object = {
        "merge": {"secrets": [{"name": f"new-{number}"} for number in range(30_000)]},
        "order": {"secrets": items[::2], "$setElementOrder/secrets": items},
        "delete": {"secrets": [{"$patch": "delete", **item} for item in items]},
        "retain": {"metadata": {"annotations": {"$retainKeys": keys[::-1], keys[0]: "kept"}}},
        "primitive": {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers[::-1]}},
        "operations": [{"op": "add", "path": "/secrets/0", "value": item} for item in items[:9_999]],
    }[patch]
    async with Busy(client) as others:
        began = time.monotonic()
        code, answer = await call(client, "PATCH", path, body, JSON_PATCH if patch == "operations" else STRATEGIC)
        took = time.monotonic() - began
    assert code == 200, str(answer)[:300]
    print(f"{patch}: {took:.1f} s, others waited at most {others.worst * 1000:.0f} ms")
    assert took < NOT_FROZEN
    assert others.worst < NOT_FROZEN / 4
    await call(client, "PATCH", path, {"metadata": {"finalizers": None}}, MERGE)


@pytest.mark.parametrize(
    "kind", ["wrong at the end", "repeated keys", "repeated fields", "no text", "half a character"]
)
async def test_large_and_wrong_json_is_not_read_slowly(client: aiohttp.ClientSession, kind: str) -> None:
    """3 MB with a mistake at the end took 3.6 s; 200,000 repeated keys took hours."""
    body = {
        "wrong at the end": b'{"a":[' + b"1," * 1_500_000 + b"}",
        "repeated keys": b"{" + b",".join(b'"k%d":{},"k%d":{}' % (n, n) for n in range(100_000)) + b"}",
        "repeated fields": b'{"spec":{' + b",".join(b'"k%d":1,"k%d":2' % (n, n) for n in range(100_000)) + b"}}",
        "no text": b'{"a":"\xff",' + b'"b":[' + b'"x",' * 700_000 + b"1]}",
        "half a character": b'{"a":"\\ud800",' + b'"b":[' + b'"x",' * 700_000 + b"1]}",
    }[kind]
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    began = time.monotonic()
    async with Busy(client) as others:
        answers = await asyncio.gather(*(call(client, "POST", review, body) for _ in range(3)))
    assert {code for code, _ in answers} <= {400, 422}, str(answers)[:300]
    print(f"{kind}: {time.monotonic() - began:.1f} s, others waited at most {others.worst * 1000:.0f} ms")
    assert time.monotonic() - began < NOT_FROZEN
    assert others.worst < NOT_FROZEN / 4


async def test_a_body_of_a_stranger_is_not_read(client: aiohttp.ClientSession, server: ServerProcess) -> None:
    """Who may not ask is told so at once, whatever comes behind the head."""
    head = f"POST {CONFIGS} HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n".encode()

    def ask() -> bytes:
        with secure(server, anonymous=True) as raw:
            raw.settimeout(NOT_FROZEN)
            raw.sendall(head + b"{")
            return raw.recv(4096)

    answers = await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(5)))
    assert all(answer.startswith(b"HTTP/1.1 403 ") for answer in answers), answers
    assert all(b"connection: close" in answer.lower() for answer in answers), answers


async def test_half_sent_bodies_take_the_places_of_their_sender_alone(
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    """Of sixty large bodies that never come to an end only some are held, and another user's large body passes them."""
    head = f"POST {CONFIGS} HTTP/1.1\r\nHost: x\r\nImpersonate-User: slow\r\nContent-Length: 3000000\r\n\r\n".encode()
    binding = {
        "metadata": {"name": "slow"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "slow"}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    assert (await call(client, "POST", bindings, binding))[0] == 201
    half = [await asyncio.to_thread(secure, server) for _ in range(60)]
    before = server.rss_megabytes()

    def send(raw: ssl.SSLSocket) -> None:
        raw.settimeout(2)
        with contextlib.suppress(TimeoutError):  # what the server does not read cannot be sent
            raw.sendall(head + b"{" * 2_900_000)

    try:
        with ThreadPoolExecutor(len(half)) as senders:
            await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(senders, send, raw) for raw in half))
        large = {"metadata": {"generateName": "large-"}, "data": {"a": "x" * (MEGABYTE // 2)}}
        async with asyncio.timeout(NOT_FROZEN):
            assert (await call(client, "POST", CONFIGS, large))[0] == 201
        grown = server.rss_megabytes() - before
        print(f"60 half-sent bodies of 2.9 MB: {grown:.0f} MB more")
        assert grown < 100
    finally:
        for raw in half:
            raw.close()
