"""Clumsy and hostile clients: each gets a clear refusal, and everybody else does not notice.

After every test the server must soon answer `/readyz` and take a normal write, and it must not have
logged a traceback. Raw sockets say what no HTTP library would.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from local_server import LocalServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    import aiohttp

Json = dict[str, Any]

CONFIGS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"
MEGABYTE = 1 << 20
# What is caught here runs for minutes or for ever; a slow machine must not look like that.
NOT_FROZEN = 20.0  # seconds


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with LocalServer(tmp_path_factory.mktemp("hostile")) as running:
        yield running


@pytest.fixture
async def client(server: LocalServer) -> AsyncIterator[aiohttp.ClientSession]:
    """The administrator's session; afterwards the server is found well."""
    logged = len(server.log())
    async with server.session() as session:
        yield session
        began = time.monotonic()
        async with session.get("/readyz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        assert time.monotonic() - began < NOT_FROZEN, "the server was busy with something"
        code, made = await call(session, "POST", CONFIGS, {"metadata": {"generateName": "well-"}})
        assert code == 201, made
    assert "Traceback" not in server.log()[logged:], server.log()[logged:][-3000:]


async def call(
    session: aiohttp.ClientSession, method: str, path: str, body: Any = None, content_type: str = "", **headers: str
) -> tuple[int, Any]:
    data = body.encode() if isinstance(body, str) else body
    if data is not None and not isinstance(data, bytes):
        data = json.dumps(data).encode()
    given = {**headers, **({"Content-Type": content_type or "application/json"} if data is not None else {})}
    async with session.request(method, path, data=None if data is None else _stream(data), headers=given) as answer:
        text = await answer.text(errors="replace")
    with contextlib.suppress(ValueError):
        return answer.status, json.loads(text)
    return answer.status, text


async def _stream(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 65536):
        yield data[start : start + 65536]


class Busy:
    """How long others wait for their answers while something is going on."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.worst = 0.0

    async def __aenter__(self) -> Busy:
        self._task = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _ask(self) -> None:
        while True:
            began = time.monotonic()
            async with self._session.get("/api/v1/namespaces/default") as answer:
                await answer.read()
            self.worst = max(self.worst, time.monotonic() - began)
            await asyncio.sleep(0.02)


def plain(server: LocalServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def secure(server: LocalServer, *, anonymous: bool = False) -> ssl.SSLSocket:
    tls = server.plane.anonymous_tls() if anonymous else server.plane.tls
    return tls.wrap_socket(plain(server), server_hostname="127.0.0.1")


def told(server: LocalServer, data: bytes, seconds: float = 10) -> bytes:
    """Send raw bytes and read until the server closes or has nothing more to say."""
    with secure(server) as raw:
        raw.settimeout(seconds)
        received = b""
        with contextlib.suppress(OSError):
            raw.sendall(data)
        with contextlib.suppress(OSError):
            while piece := raw.recv(65536):
                received += piece
        return received


# The wire.


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /readyz HTTP/9.9\r\n\r\n",
        b"GET /readyz HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=range(10),
)
async def test_malformed_http_is_a_bad_request(client: aiohttp.ClientSession, server: LocalServer, data: bytes) -> None:
    answer = await asyncio.to_thread(told, server, data, 5)
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]


async def test_requests_behind_each_other_are_answered_in_order(
    client: aiohttp.ClientSession, server: LocalServer
) -> None:
    many = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n" * 50
    last = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = await asyncio.to_thread(told, server, many + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 51
    assert answer.endswith(b"ok")


async def test_a_head_has_a_limit(client: aiohttp.ClientSession, server: LocalServer) -> None:
    bomb = b"GET /readyz HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"a" * 1000) for i in range(3000))
    for data in (bomb, b"GET /" + b"a" * 3 * MEGABYTE, b"GET / HTTP/1.1\r\nX: " + b"a" * 3 * MEGABYTE):
        before = server.rss_megabytes()
        answer = await asyncio.to_thread(told, server, data)
        # A client that still sends when the server has closed may see a reset instead of the answer.
        assert answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")), answer[:100]
        assert server.rss_megabytes() - before < 30


async def test_a_head_of_half_a_megabyte_is_still_read(client: aiohttp.ClientSession, server: LocalServer) -> None:
    head = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: " + b"a" * (MEGABYTE // 2) + b"\r\n\r\n"
    assert (await asyncio.to_thread(told, server, head)).startswith(b"HTTP/1.1 200 OK")


async def test_garbage_and_plain_http_on_the_tls_port_are_dropped(
    client: aiohttp.ClientSession, server: LocalServer
) -> None:
    for data in (b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 300, b"\x00" * 5000):
        with plain(server) as raw:
            raw.sendall(data)
            with contextlib.suppress(ConnectionError):
                assert b"200 OK" not in raw.recv(65536)


async def test_idle_and_half_open_connections_cost_nothing(client: aiohttp.ClientSession, server: LocalServer) -> None:
    before = server.rss_megabytes()
    async with Busy(client) as others:
        idle = [await asyncio.to_thread(plain, server) for _ in range(250)]
        half = [await asyncio.to_thread(secure, server) for _ in range(250)]
        for raw in half:
            raw.sendall(b"GET /readyz HTTP/1.1\r\nHost: ")
        await asyncio.sleep(0.5)
        grown = server.rss_megabytes() - before
    print(f"500 idle connections: {grown:.1f} MB, others waited at most {others.worst * 1000:.0f} ms")
    for raw in (*idle, *half):
        raw.close()
    assert grown < 100
    assert others.worst < NOT_FROZEN


async def test_a_body_that_comes_byte_by_byte_disturbs_nobody(
    client: aiohttp.ClientSession, server: LocalServer
) -> None:
    body = json.dumps({"metadata": {"generateName": "slow-"}}).encode()

    def send(raw: ssl.SSLSocket) -> bytes:
        raw.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CONFIGS.encode(), len(body)))
        for byte in body:
            raw.sendall(bytes([byte]))
            time.sleep(0.02)
        return raw.recv(65536)

    async with Busy(client) as others:
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(secure(server)) for _ in range(10)]
            answers = await asyncio.gather(*(asyncio.to_thread(send, raw) for raw in slow))
    assert all(answer.startswith(b"HTTP/1.1 201 Created") for answer in answers)
    assert others.worst < NOT_FROZEN


async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing(
    client: aiohttp.ClientSession, server: LocalServer
) -> None:
    for _ in range(20):
        with secure(server) as raw:
            raw.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{" % CONFIGS.encode())


# Who is asking.


@pytest.mark.parametrize(
    "token", ["x", "a.b.c", "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.e30.AAAA", "\x80é", "." * 5000, "a" * 100_000]
)
async def test_a_wrong_token_is_unauthorized(client: aiohttp.ClientSession, server: LocalServer, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}".encode().decode("latin-1")}
    async with client.get("/api/v1/pods", headers=headers, ssl=server.plane.anonymous_tls()) as answer:
        assert answer.status == 401
        assert (await answer.json())["reason"] == "Unauthorized"


async def test_without_a_certificate_everything_but_health_is_forbidden(
    client: aiohttp.ClientSession, server: LocalServer
) -> None:
    tls = server.plane.anonymous_tls()
    for path, code in (("/readyz", 200), ("/version", 200), ("/api/v1/secrets", 403), ("/apis", 403), ("/", 403)):
        async with client.get(path, ssl=tls) as answer:
            assert answer.status == code, path


async def test_certificates_of_strangers_do_not_pass_tls(
    client: aiohttp.ClientSession, server: LocalServer, tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(NameOID.COMMON_NAME, "butler-admin"),
        ]
    )
    ours = x509.load_pem_x509_certificate(server.plane.ca_file.read_bytes())
    for issuer in (subject, ours.subject):
        certificate = (
            x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(ours.not_valid_before_utc)
            .not_valid_after(ours.not_valid_after_utc)
            .sign(key, hashes.SHA256())
        )
        (tmp_path / "crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (tmp_path / "key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        tls = server.plane.anonymous_tls()
        tls.check_hostname = False
        tls.load_cert_chain(tmp_path / "crt", tmp_path / "key")
        answer = b""
        with (
            contextlib.suppress(OSError),
            plain(server) as raw,
            tls.wrap_socket(raw, server_hostname="127.0.0.1") as it,
        ):
            it.sendall(b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = it.recv(1000)
        assert answer == b""


# Paths and queries.


@pytest.mark.parametrize(
    ("path", "codes"),
    [
        ("/api/v1/namespaces/../../../etc/passwd", {404}),
        ("/api/v1/namespaces/%2e%2e/configmaps", {200, 400, 404}),
        ("/api/v1/namespaces/default/configmaps/%2e%2e", {400, 404}),
        ("/api/v1/namespaces/default/configmaps/a%2fb", {400, 404}),
        ("//api/v1//namespaces", {404, 301, 200}),
        ("/api/v1/namespaces/default/configmaps/a%00b", {400, 404}),
        ("/api/v1/namespaces/default/configmaps/%ff%fe", {400, 404}),
        ("/api/v1/namespaces/default/configmaps/" + "a" * 60_000, {404, 414}),
        ("/clusters/../api/v1/secrets", {403, 404}),
        ("/clusters/%2e%2e/%2e%2e/api", {404}),
        ("/api/v1/configmaps?labelSelector=%00", {200}),
        ("/api/v1/configmaps?fieldSelector=%00%ff=1", {400}),
        ("/api/v1/configmaps?limit=99999999999999999999999", {400}),
        ("/api/v1/configmaps?limit=-1", {200}),
        ("/api/v1/configmaps?limit=" + "9" * 5000, {400}),
        ("/api/v1/configmaps?resourceVersion=" + "9" * 5000, {400}),
        ("/api/v1/configmaps?resourceVersion=-1", {400}),
        ("/api/v1/configmaps?continue=%00%00", {400}),
        ("/api/v1/configmaps?timeoutSeconds=1e400", {400}),
        ("/api/v1/nonsense?watch=true", {404}),
        ("/apis/nobody.example.com/v1/things?watch=true", {404}),
        ("/api/v1/namespaces/nowhere/configmaps/nothing?watch=true&timeoutSeconds=1", {404}),
    ],
)
async def test_odd_paths_and_queries_are_answered(
    client: aiohttp.ClientSession, server: LocalServer, path: str, codes: set[int]
) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    answer = await asyncio.to_thread(told, server, request)
    assert int(answer.split()[1]) in codes, answer[:300]


@pytest.mark.parametrize(
    "selector",
    ["a" * 100_000, "a=" + "b" * 100_000, "a in (" + "b," * 50_000 + ")", "(" * 100_000, "," * 100_000, "!" * 100_000],
)
async def test_a_huge_selector_is_refused_or_answered_at_once(client: aiohttp.ClientSession, selector: str) -> None:
    for name in ("labelSelector", "fieldSelector"):
        began = time.monotonic()
        async with client.get("/api/v1/configmaps", params={name: selector}) as answer:
            assert answer.status in (200, 400)
            await answer.read()
        assert time.monotonic() - began < NOT_FROZEN


# Bodies.


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


# Definitions that users bring.


async def define(client: aiohttp.ClientSession, plural: str, spec: Json) -> str:
    definition = {
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
                }
            ],
        },
    }
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


# Slow readers and much data.


@pytest.fixture
async def filled(server: LocalServer) -> str:
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
    client: aiohttp.ClientSession, server: LocalServer, filled: str, accept: str
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


async def test_a_watcher_that_does_not_read_costs_no_memory(
    client: aiohttp.ClientSession, server: LocalServer, filled: str
) -> None:
    asleep = [await asyncio.to_thread(secure, server) for _ in range(20)]
    for raw in asleep:
        raw.sendall(f"GET {filled}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await asyncio.sleep(1)
    before = server.rss_megabytes()
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
