"""Credentials that rotate: token files, exec plugins as real programs, certificates, 401s."""

import asyncio
import contextlib
import json
import os
import ssl
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from butler.kube.client import Client
from butler.kube.config import Connection, ExecPlugin, Impersonation
from butler.kube.credentials import ConnectionCredentials
from butler.kube.errors import ConfigError, OutcomeUnknown, Unauthorized, Unreachable
from butler.kube.resource import CONFIGMAPS
from unit.kube.fake_api import FakeApi, refusal

V1 = "client.authentication.k8s.io/v1"


def program(path: Path, body: str) -> str:
    """A real executable that appends a line to `calls` whenever it runs."""
    calls = path.with_suffix(".calls")
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\nopen({str(calls)!r}, 'a').write('x\\n')\n"
        f"count = len(open({str(calls)!r}).readlines())\n{body}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def calls(path: Path) -> int:
    return len(path.with_suffix(".calls").read_text().splitlines())


def grant(version: str = V1, **status: Any) -> str:
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"print(json.dumps({answer!r}).replace('COUNT', str(count)))"


def authorization(headers: list[tuple[str, str]]) -> str:
    return dict(headers)["Authorization"]


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
async def test_a_plugin_runs_once_until_its_credentials_expire(tmp_path: Path, version: str) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=100)).strftime("%Y-%m-%dT%H:%M:%SZ")
    login = program(tmp_path / "login", grant(version, token="tokenCOUNT", expirationTimestamp=soon))
    wall = datetime.now(UTC).timestamp()
    credentials = ConnectionCredentials(
        Connection("https://x", exec_plugin=ExecPlugin(login, version)), wall=lambda: wall
    )
    assert authorization(await credentials.headers()) == "Bearer token1"
    wall += 50
    assert authorization(await credentials.headers()) == "Bearer token1"
    wall += 60
    assert authorization(await credentials.headers()) == "Bearer token2"
    assert calls(tmp_path / "login") == 2


async def test_a_plugin_gets_its_arguments_environment_and_cluster(tmp_path: Path) -> None:
    body = f"""
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert info["kind"] == "ExecCredential" and info["apiVersion"] == "{V1}"
spec = info["spec"]
token = "-".join([sys.argv[1], os.environ["FLAVOUR"], spec["cluster"]["server"], str(spec["interactive"])])
print(json.dumps({{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": token}}}}))
"""
    login = program(tmp_path / "login", body)
    plugin = ExecPlugin(login, V1, ("--arg",), (("FLAVOUR", "mint"),), cluster_info={"server": "https://x"})
    credentials = ConnectionCredentials(Connection("https://x", exec_plugin=plugin))
    assert authorization(await credentials.headers()) == "Bearer --arg-mint-https://x-False"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("sys.stderr.write('please log in first'); sys.exit(3)", "failed with code 3: please log in first"),
        ("print('hello')", "did not print an ExecCredential"),
        (grant("client.authentication.k8s.io/v1beta1", token="x"), "v1 was expected"),
        (grant(), "neither a token nor a client certificate"),
        (grant(clientCertificateData="x"), "only one of"),
    ],
)
async def test_a_plugin_that_fails_is_named_with_what_it_said(tmp_path: Path, body: str, complaint: str) -> None:
    login = program(tmp_path / "login", body)
    credentials = ConnectionCredentials(Connection("https://x", source="test", exec_plugin=ExecPlugin(login, V1)))
    with pytest.raises(ConfigError, match=complaint) as caught:
        await credentials.headers()
    assert "login" in str(caught.value)


async def test_a_plugin_that_is_missing_comes_with_its_install_hint(tmp_path: Path) -> None:
    plugin = ExecPlugin(str(tmp_path / "nowhere"), V1, install_hint="get it from the shelf")
    with pytest.raises(ConfigError, match="get it from the shelf"):
        await ConnectionCredentials(Connection("https://x", exec_plugin=plugin)).headers()


async def test_a_refused_token_is_fetched_anew_once(api: FakeApi, tmp_path: Path) -> None:
    login = program(tmp_path / "login", grant(token="tokenCOUNT"))
    api.put("/api/v1/namespaces/default/configmaps/a")
    async with Client(Connection(api.url, exec_plugin=ExecPlugin(login, V1))) as client:
        api.refuse.append(refusal(401, "Unauthorized"))
        await client.create(CONFIGMAPS, {"metadata": {"name": "b"}}, "default")
        assert [headers["Authorization"] for headers in api.headers] == ["Bearer token1", "Bearer token2"]
        api.refuse.extend([refusal(401, "Unauthorized")] * 2)
        with pytest.raises(Unauthorized):
            await client.get(CONFIGMAPS, "a", "default")
    assert calls(tmp_path / "login") == 3


async def test_requests_refused_together_run_the_plugin_once_more_not_once_each(api: FakeApi, tmp_path: Path) -> None:
    login = program(tmp_path / "login", grant(token="tokenCOUNT"))
    everyone_is_here, renewed = asyncio.Barrier(20), asyncio.Event()

    async def refuse_the_first_token(request: web.Request) -> web.Response | None:
        if request.headers["Authorization"] != "Bearer token1":
            renewed.set()
            return None
        if await everyone_is_here.wait() > 0:
            await renewed.wait()  # one is told at once, the others when it has already seen to it
        code, body, _ = refusal(401, "Unauthorized")
        return web.json_response(body, status=code)

    api.put("/api/v1/namespaces/default/configmaps/a")
    api.before = refuse_the_first_token
    async with Client(Connection(api.url, exec_plugin=ExecPlugin(login, V1))) as client:
        await asyncio.gather(*(client.get(CONFIGMAPS, "a", "default") for _ in range(20)))
    assert calls(tmp_path / "login") == 2


async def test_a_watch_that_is_refused_shows_other_credentials_next_time(api: FakeApi, tmp_path: Path) -> None:
    login = program(tmp_path / "login", grant(token="tokenCOUNT"))
    api.refuse.append(refusal(401, "Unauthorized"))
    async with Client(Connection(api.url, exec_plugin=ExecPlugin(login, V1))) as client:
        for _ in range(2):
            with contextlib.suppress(Unauthorized, OutcomeUnknown):
                async for _ in client.watch(CONFIGMAPS, "default", silence=0.1):
                    pass
    assert [headers["Authorization"] for headers in api.headers] == ["Bearer token1", "Bearer token2"]


async def test_a_token_file_is_read_again_as_it_rotates(tmp_path: Path) -> None:
    token, time = tmp_path / "token", 0.0
    token.write_text("first\n")
    credentials = ConnectionCredentials(Connection("https://x", token_file=token), clock=lambda: time)
    assert authorization(await credentials.headers()) == "Bearer first"
    token.write_text("second\n")
    assert authorization(await credentials.headers()) == "Bearer first"
    time = 11
    assert authorization(await credentials.headers()) == "Bearer second"
    token.write_text("third")
    credentials.forget(credentials.generation)
    assert authorization(await credentials.headers()) == "Bearer third"
    token.write_text("")
    time = 25
    assert authorization(await credentials.headers()) == "Bearer third", "so does one that is being written"
    token.unlink()
    time = 40
    assert authorization(await credentials.headers()) == "Bearer third", "a missing file keeps the last good token"


async def test_a_token_file_that_never_was_is_an_error(tmp_path: Path) -> None:
    credentials = ConnectionCredentials(Connection("https://x", token_file=tmp_path / "none"))
    with pytest.raises(ConfigError, match="none cannot be read"):
        await credentials.headers()


async def test_basic_authentication_and_impersonation_are_headers() -> None:
    whom = Impersonation("jane", "7", ("dev", "ops"), (("example.com/Reason", ("a", "b")),))
    connection = Connection("https://x", username="u", password="p", impersonate=whom)
    headers = await ConnectionCredentials(connection).headers()
    assert headers == [
        ("Authorization", "Basic dTpw"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.com%2Freason", "a"),
        ("Impersonate-Extra-example.com%2Freason", "b"),
    ]
    assert not ConnectionCredentials(connection).renewable


class Authority:
    """A certificate authority for one test."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        self.cert = (
            self._builder(self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(hours=1))
        )

    @property
    def pem(self) -> bytes:
        return self.cert.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *, password: bytes | None = None) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternative = x509.SubjectAlternativeName([x509.DNSName(name)])
        cert = self._builder(subject, key).add_extension(alternative, critical=False).sign(self.key, hashes.SHA256())
        hiding = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        return cert.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hiding
        )


@pytest.fixture
async def authority() -> Authority:
    return Authority()


async def secure(api: FakeApi, authority: Authority, folder: Path) -> list[str]:
    """Serve over TLS as `kubernetes`, asking for client certificates; gives the names that came."""
    cert, key = authority.issue("kubernetes")
    (folder / "server.crt").write_bytes(cert)
    (folder / "server.key").write_bytes(key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # a CA as plain as many clusters have
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    names: list[str] = []

    async def look(request: web.Request) -> None:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        names.append(peer["subject"][0][0][1] if peer else "anonymous")

    api.before = look
    await api.stop()
    await api.start(context)
    return names


async def test_a_client_certificate_is_shown_and_the_server_name_checked(
    api: FakeApi, authority: Authority, tmp_path: Path
) -> None:
    names = await secure(api, authority, tmp_path)
    cert, key = authority.issue("jane")
    secret = Connection(
        api.url, ca=authority.pem, server_name="kubernetes", client_cert=cert, client_key=key, source="test"
    )
    async with Client(secret) as client:
        await client.list(CONFIGMAPS)
    assert names == ["jane"]
    async with Client(Connection(api.url, ca=authority.pem, source="test")) as client:
        with pytest.raises(Unreachable, match="TLS failed"):
            await client.list(CONFIGMAPS)
    async with Client(Connection(api.url, insecure=True)) as client:
        await client.list(CONFIGMAPS)
    assert names == ["jane", "anonymous"]


async def test_a_certificate_authority_that_is_replaced_is_read_again(
    api: FakeApi, authority: Authority, tmp_path: Path
) -> None:
    await secure(api, authority, tmp_path)
    ca = tmp_path / "ca.crt"
    async with Client(Connection(api.url, ca=ca, server_name="kubernetes", source="test")) as client:
        with pytest.raises(ConfigError, match=r"ca\.crt cannot be read"):
            await client.list(CONFIGMAPS)
        ca.write_bytes(Authority().pem)
        with pytest.raises(Unreachable, match="TLS failed"):
            await client.list(CONFIGMAPS)
        ca.write_bytes(authority.pem)
        await client.list(CONFIGMAPS)


async def test_a_plugin_may_grant_a_certificate(api: FakeApi, authority: Authority, tmp_path: Path) -> None:
    names = await secure(api, authority, tmp_path)
    pairs = [authority.issue(name) for name in ("jane", "john")]
    (tmp_path / "pairs.json").write_text(json.dumps([[half.decode() for half in pair] for pair in pairs]))
    body = f"""
cert, key = json.load(open({str(tmp_path / "pairs.json")!r}))[count - 1]
print(json.dumps({{"apiVersion": "{V1}", "kind": "ExecCredential",
                   "status": {{"clientCertificateData": cert, "clientKeyData": key}}}}))
"""
    plugin = ExecPlugin(program(tmp_path / "login", body), V1)
    connection = Connection(api.url, ca=authority.pem, server_name="kubernetes", exec_plugin=plugin)
    async with Client(connection) as client:
        await client.list(CONFIGMAPS)
        api.refuse.append(refusal(401, "Unauthorized"))
        await client.list(CONFIGMAPS)
    assert names == ["jane", "jane", "john"], "after a 401 the new certificate is shown on a new connection"


async def test_keys_leave_no_file_behind_and_encrypted_ones_are_refused(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    cert, key = authority.issue("jane")
    assert ConnectionCredentials(Connection("https://x", client_cert=cert, client_key=key)).tls() is not None
    assert os.listdir(tmp_path) == []
    cert, key = authority.issue("jane", password=b"open sesame")
    with pytest.raises(ConfigError, match="encrypted"):
        ConnectionCredentials(Connection("https://x", client_cert=cert, client_key=key)).tls()
    with pytest.raises(ConfigError, match="cannot be used"):
        ConnectionCredentials(Connection("https://x", client_cert=b"junk", client_key=b"junk")).tls()
