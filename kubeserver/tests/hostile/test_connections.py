"""Broken HTTP, strangers, odd paths: raw sockets say what no HTTP library would."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    import aiohttp
    from server_process import ServerProcess

from hostile.talking import CONFIGS, MEGABYTE, NOT_FROZEN, Busy, plain, secure, told

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
async def test_malformed_http_is_a_bad_request(
    client: aiohttp.ClientSession, server: ServerProcess, data: bytes
) -> None:
    answer = await asyncio.to_thread(told, server, data, 5)
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]


async def test_requests_behind_each_other_are_answered_in_order(
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    many = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n" * 50
    last = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = await asyncio.to_thread(told, server, many + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 51
    assert answer.endswith(b"ok")


async def test_a_head_has_a_limit(client: aiohttp.ClientSession, server: ServerProcess) -> None:
    bomb = b"GET /readyz HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"a" * 1000) for i in range(3000))
    for data in (bomb, b"GET /" + b"a" * 3 * MEGABYTE, b"GET / HTTP/1.1\r\nX: " + b"a" * 3 * MEGABYTE):
        before = server.rss_megabytes()
        answer = await asyncio.to_thread(told, server, data)
        # A client that still sends when the server has closed may see a reset instead of the answer.
        assert answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")), answer[:100]
        assert server.rss_megabytes() - before < 30


async def test_a_head_of_half_a_megabyte_is_still_read(client: aiohttp.ClientSession, server: ServerProcess) -> None:
    head = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: " + b"a" * (MEGABYTE // 2) + b"\r\n\r\n"
    assert (await asyncio.to_thread(told, server, head)).startswith(b"HTTP/1.1 200 OK")


async def test_garbage_and_plain_http_on_the_tls_port_are_dropped(
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    for data in (b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 300, b"\x00" * 5000):
        with plain(server) as raw:
            raw.sendall(data)
            with contextlib.suppress(ConnectionError):
                assert b"200 OK" not in raw.recv(65536)


async def test_idle_and_half_open_connections_cost_nothing(
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    before = server.rss_megabytes()
    async with Busy(client) as others:
        idle = [await asyncio.to_thread(plain, server) for _ in range(250)]
        half = [await asyncio.to_thread(secure, server) for _ in range(250)]
        for raw in half:
            raw.sendall(b"GET /readyz HTTP/1.1\r\nHost: ")
        await asyncio.sleep(0.5)
        grown = server.rss_megabytes() - before
    print(f"500 idle connections: {grown:.1f} MB, others waited at most {others.worst * 1000:.0f} ms")
    for connection in (*idle, *half):
        connection.close()
    assert grown < 100
    assert others.worst < NOT_FROZEN


async def test_a_handshake_that_does_not_begin_is_not_waited_for(server: ServerProcess) -> None:
    with plain(server) as raw:
        raw.settimeout(40)  # seconds; a busy machine hangs up late, and uvicorn alone after a minute
        assert await asyncio.to_thread(raw.recv, 1) == b""


async def test_a_body_that_comes_byte_by_byte_disturbs_no_other(
    client: aiohttp.ClientSession, server: ServerProcess
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
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    for _ in range(20):
        with secure(server) as raw:
            raw.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{" % CONFIGS.encode())


# Who is asking.


@pytest.mark.parametrize(
    "token", ["x", "a.b.c", "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.e30.AAAA", "\x80é", "." * 5000, "a" * 100_000]
)
async def test_a_wrong_token_is_unauthorized(client: aiohttp.ClientSession, server: ServerProcess, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}".encode().decode("latin-1")}
    async with client.get("/api/v1/pods", headers=headers, ssl=server.plane.anonymous_tls()) as answer:
        assert answer.status == 401
        assert (await answer.json())["reason"] == "Unauthorized"


async def test_without_a_certificate_everything_but_health_is_forbidden(
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    tls = server.plane.anonymous_tls()
    for path, code in (("/readyz", 200), ("/version", 200), ("/api/v1/secrets", 403), ("/apis", 403), ("/", 403)):
        async with client.get(path, ssl=tls) as answer:
            assert answer.status == code, path


async def test_certificates_of_strangers_do_not_pass_tls(
    client: aiohttp.ClientSession, server: ServerProcess, tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(NameOID.COMMON_NAME, "kubeserver-admin"),
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
        ("/apis/unknown.example.com/v1/things?watch=true", {404}),
        ("/api/v1/namespaces/nowhere/configmaps/nothing?watch=true&timeoutSeconds=1", {404}),
    ],
)
async def test_odd_paths_and_queries_are_answered(
    client: aiohttp.ClientSession, server: ServerProcess, path: str, codes: set[int]
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


async def test_who_leaves_early_and_asks_for_what_there_is_not_is_no_error_in_the_log(
    client: aiohttp.ClientSession, server: ServerProcess
) -> None:
    logged = len(server.log())
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
    path = CONFIGS.encode()

    def leave() -> None:
        for data in (
            b"",
            b"GET /rea",
            b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{" % path,
            b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{" % path,
            b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{" % path,
            b"GET /openapi/v2 HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET %s?watch=true HTTP/1.1\r\nHost: x\r\n\r\n" % path,
        ):
            for _ in range(3):
                with secure(server) as raw:
                    raw.sendall(data)

    await asyncio.to_thread(leave)
    for place in (b"/api/v1/pods", path + b"?watch=true"):
        asked = b"GET " + place + b" HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n"
        assert b" 101 " not in await asyncio.to_thread(told, server, asked, 2)
    async with client.get("/readyz") as answer:
        assert answer.status == 200
    await asyncio.sleep(0.5)
    assert not [line for line in server.log()[logged:].splitlines() if line.startswith("ERROR") or "Traceback" in line]
