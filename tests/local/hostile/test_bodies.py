"""Bodies and patches that are wrong, huge, deep or meant to explode."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import aiohttp

    from local_server import LocalServer

from local.hostile.talking import APPLY, CONFIGS, JSON_PATCH, MEGABYTE, MERGE, NOT_FROZEN, YAML, Busy, Json, call, told


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


async def test_a_body_over_three_megabytes_is_too_large_and_one_just_below_is_not(
    client: aiohttp.ClientSession, server: LocalServer
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
    operations: list[Json] = {
        "many": [{"op": "add", "path": "/data/b", "value": "y"}] * 10_001,
        "copies": [
            {"op": "add", "path": "/data/list", "value": ["x" * 1000]},
            *[{"op": "copy", "from": "/data", "path": f"/data/c{i}"} for i in range(60)],
        ],
        "tests": [{"op": "test", "path": "/data/a", "value": "x" * 99}] * 9_999,
    }[kind]
    async with Busy(client) as others:
        code, answer = await call(client, "PATCH", path, operations, JSON_PATCH)
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
