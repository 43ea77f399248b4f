"""The admission server over real TLS: it answers everything, in time, and shows the certificate of the day."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import socket
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cryptography import x509

from butler.webhooks import review, server
from butler.webhooks.certificates import FromFiles, SelfMade, Serving, UnusableCertificate
from butler.webhooks.server import AdmissionServer
from unit.webhooks.given import body, pool, question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from butler.webhooks.review import AdmissionAnswer, Question

ASKED = body(question("CREATE", new=pool()))


async def consent(_: Question) -> AdmissionAnswer:
    return review.allow(["mind the gap"])


@asynccontextmanager
async def serving(decide: Any = consent, **options: Any) -> AsyncIterator[AdmissionServer]:
    async with AdmissionServer(decide, SelfMade(["127.0.0.1"]), **options) as started:
        yield started


def trusting(bundle: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=bundle.decode())


async def post(
    to: AdmissionServer, data: Any = ASKED, method: str = "POST", path: str = "", **headers: str
) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    url = to.url.replace(to.path, path.replace("PATH", to.path)) if path else to.url
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, data=data, headers=headers, ssl=trusting(to.ca_bundle)) as answer,
    ):
        return answer.status, await answer.read()


async def test_it_listens_on_the_loopback_interface_and_answers() -> None:
    async with serving() as started:
        assert started.address is not None
        assert started.address[0] == "127.0.0.1"
        code, text = await post(started)
    assert code == 200
    assert json.loads(text)["response"] == {"uid": "question-1", "allowed": True, "warnings": ["mind the gap"]}


@pytest.mark.parametrize("name", ["an API server's parameters", "charset"])
async def test_usual_variations_are_understood(name: str) -> None:
    async with serving() as started:
        if name == "charset":
            assert (await post(started, Content_Type="application/json; charset=utf-8"))[0] == 200
        else:
            assert (await post(started, path="PATH?timeout=5s"))[0] == 200


@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [
        ({"data": b"garbage"}, 400, b"the body is no AdmissionReview"),
        ({"data": b""}, 400, b"the body is no AdmissionReview"),
        ({"Content_Type": "text/yaml"}, 415, b"expected application/json, got 'text/yaml'"),
        ({"data": io.BytesIO(b" " * (server.BODY_LIMIT + 1))}, 413, b"larger than 16777216 bytes"),
    ],
)
async def test_what_is_no_question_gets_an_http_error_and_the_server_lives_on(
    sent: dict[str, Any], code: int, said: bytes
) -> None:
    async with serving() as started:
        found, text = await post(started, **sent)
        assert found == code
        assert said in text
        assert (await post(started))[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        {"path": "/"},
        {"path": "/admission"},
        {"path": "/admission/"},
        {"path": f"/admission/{'0' * 64}"},
        {"path": "PATH0"},
        {"path": "PATH/"},
        {"path": "/elsewhere?x=PATH"},
        {"path": "/%61dmission/x"},
        {"path": "/admission/%00é"},
        {"method": "GET", "data": None},
        {"method": "PUT"},
        {"path": "/admission", "data": b"garbage", "Content_Type": "text/yaml"},
        pytest.param({"path": "/admission", "data": io.BytesIO(b" " * (server.BODY_LIMIT + 1))}, id="too much"),
    ],
    ids=str,
)
async def test_a_stranger_is_told_nothing_and_asks_nothing(sent: dict[str, Any]) -> None:
    asked: list[Question] = []

    async def note(question: Question) -> AdmissionAnswer:
        asked.append(question)
        return review.allow()

    async with serving(note) as started:
        try:
            assert await post(started, **sent) == (404, b"")
        except aiohttp.ClientOSError:
            assert isinstance(sent["data"], io.BytesIO), "only who sends on and on is hung up on before the answer"
        assert not asked
        assert (await post(started))[0] == 200


async def test_strangers_do_not_get_in_the_way_and_are_hung_up_on() -> None:
    """From the API server's own address, with half a handshake, half a head and half a body each."""
    async with serving(strangers=20, stranger_seconds=1.0) as started:
        assert started.address is not None
        assert started._connections is not None
        calm = ssl.create_default_context()
        calm.check_hostname, calm.verify_mode = False, ssl.CERT_NONE
        halves = [
            b"",
            b"POST /adm",
            b"POST /admission HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n",
            b"POST /admission HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
        ]
        held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for number in range(100):
            tls = None if number % 5 == 0 else calm
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(*started.address, ssl=tls)
                held.append((reader, writer))
                writer.write(halves[number % len(halves)])
            assert started._connections.strangers <= 20
            if number % 10 == 0:
                assert (await post(started))[0] == 200
        assert (await post(started))[0] == 200
        async with asyncio.timeout(60):
            for reader, _ in held:
                with contextlib.suppress(OSError):
                    await reader.read()  # until it is hung up
            while started._connections.strangers:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        for _, writer in held:
            writer.close()


async def test_half_a_question_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READ_WITHIN", 30.0)
    async with serving() as started:
        assert started.address is not None
        writers = []
        for _ in range(server.MOST_AT_ONCE + 1):
            _, writer = await asyncio.open_connection(*started.address, ssl=trusting(started.ca_bundle))
            head = f"POST {started.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            writers.append(writer)
        async with asyncio.timeout(20):
            assert (await post(started))[0] == 200
        for writer in writers:
            writer.close()


async def test_a_caller_that_is_known_keeps_its_connection() -> None:
    async with serving(stranger_seconds=0.2) as started:
        headers = {"Content-Type": "application/json"}
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
            used = set()
            for _ in range(3):
                tls = trusting(started.ca_bundle)
                async with session.post(started.url, data=ASKED, headers=headers, ssl=tls) as answer:
                    assert answer.status == 200
                    used.add(id(answer.connection))
                await asyncio.sleep(0.3)
        assert started._connections is not None
        assert started._connections.strangers == 0


async def test_an_object_that_cannot_be_read_is_refused_and_not_an_error() -> None:
    """An HTTP error would be a failed call, after which API servers let some of our writes pass."""
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    head = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"question-1",'
    asked = (
        head + b'"operation":"CREATE","resource":{"group":"g","version":"v1","resource":"r"},"object":' + deep + b"}}"
    )
    async with serving() as started:
        code, text = await post(started, asked)
        assert code == 200, text
        answer = json.loads(text)["response"]
        assert (answer["uid"], answer["allowed"], answer["status"]["code"]) == ("question-1", False, 400)
        assert "could not be checked" in answer["status"]["message"]


async def test_a_rule_that_fails_refuses_the_write_and_keeps_its_reason_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: Question) -> AdmissionAnswer:
        raise KeyError("a secret")

    async with serving(broken) as started:
        with caplog.at_level(logging.CRITICAL):
            code, text = await post(started)
    assert code == 200
    response = json.loads(text)["response"]
    assert response["allowed"] is False
    assert response["status"]["code"] == 503
    assert "the check itself failed (KeyError, see the log of Butler); try again" in response["status"]["message"]
    assert "a secret" not in text.decode()


async def test_a_rule_that_takes_too_long_is_cut_off_with_an_answer() -> None:
    async def slow(_: Question) -> AdmissionAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(slow, decide_within=0.05) as started:
        _, text = await post(started)
    assert "it took longer than 0.05 seconds" in json.loads(text)["response"]["status"]["message"]


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READ_WITHIN", 0.1)
    async with serving() as started:
        assert started.address is not None
        reader, writer = await asyncio.open_connection(*started.address, ssl=trusting(started.ca_bundle))
        head = f"POST {started.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in await reader.readline()
        writer.close()
        assert (await post(started))[0] == 200


async def test_a_client_that_does_not_speak_tls_harms_no_other() -> None:
    async with serving() as started:
        assert started.address is not None
        with socket.create_connection(started.address) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert (await post(started))[0] == 200


async def test_a_port_that_is_taken_is_an_error_at_start() -> None:
    async with serving() as started:
        assert started.address is not None
        with pytest.raises(OSError, match=r"(?i)address already in use"):
            async with serving(port=started.address[1]):
                pass


# Certificates.


def put(directory: Path, made: Serving) -> FromFiles:
    for name, content in (("tls.crt", made.certificate), ("tls.key", made.key), ("ca.crt", made.authorities)):
        (directory / f"{name}.new").write_bytes(content)
        (directory / f"{name}.new").rename(directory / name)
    return FromFiles(directory / "tls.crt", directory / "tls.key", directory / "ca.crt")


async def shown(to: AdmissionServer) -> x509.Certificate:
    assert to.address is not None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection(*to.address, ssl=context)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(found)


async def test_a_replaced_certificate_is_shown_to_the_next_connection(tmp_path: Path) -> None:
    first, second = await SelfMade(["127.0.0.1"]).fetch(), await SelfMade(["127.0.0.1"]).fetch()
    told: list[bool] = []
    started = AdmissionServer(consent, put(tmp_path, first), look_every=0.01, on_registration=lambda: told.append(True))
    async with started:
        assert await shown(started) == x509.load_pem_x509_certificate(first.certificate)
        put(tmp_path, second)
        async with asyncio.timeout(10):
            while not told:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await shown(started) == x509.load_pem_x509_certificate(second.certificate)
        assert started.ca_bundle == second.authorities
        assert (await post(started))[0] == 200


async def test_a_broken_certificate_is_told_once_and_the_old_one_serves_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = await SelfMade(["127.0.0.1"]).fetch()
    async with AdmissionServer(consent, put(tmp_path, first), look_every=0.01) as started:
        with caplog.at_level(logging.WARNING):
            (tmp_path / "tls.crt").write_bytes(b"half a certif")
            async with asyncio.timeout(10):
                while not started.why_stale:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
        assert len(caplog.records) == 1
        assert "is kept as it is" in caplog.text
        assert (await post(started))[0] == 200


async def test_without_a_certificate_it_does_not_start(tmp_path: Path) -> None:
    started = AdmissionServer(consent, FromFiles(tmp_path / "a", tmp_path / "b"))
    with pytest.raises(UnusableCertificate, match="cannot be read"):
        await started.start()
    await started.stop()
