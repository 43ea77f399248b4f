"""The keys of the embedded control plane: who can connect to whom, what is kept, what is renewed, what is refused."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import json
import os
import ssl
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from kubeserver import pki
from kubeserver.pki import Issued, Pki, UnusableKeys, ensure, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def keys() -> Iterator[Pki]:
    with tempfile.TemporaryDirectory() as directory:
        yield ensure(Path(directory) / "pki")


def client_context(authority: str, issued: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    if issued is not None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(issued.certificate + issued.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


async def greeted(server: Pki, client: ssl.SSLContext, host: str = "localhost") -> dict[str, Any]:
    """The client's certificate as the server saw it after a real handshake; {} if it sent none."""
    seen: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(writer.get_extra_info("peercert") or {})
        writer.write(await reader.readline())
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server.server_context())
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=host)
        try:
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
        finally:
            writer.close()
        return await seen


def subject(certificate: dict[str, Any]) -> list[tuple[str, str]]:
    return [pair for group in certificate["subject"] for pair in group]


# Handshakes.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "kubernetes.default.svc"])
async def test_a_client_that_trusts_the_ca_reaches_the_server_by_its_names(keys: Pki, host: str) -> None:
    assert await greeted(keys, client_context(keys.ca_certificate), host) == {}


async def test_the_server_is_not_taken_for_another_host(keys: Pki) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        await greeted(keys, client_context(keys.ca_certificate), "example.com")


async def test_the_server_sees_the_user_the_groups_and_the_cluster(keys: Pki) -> None:
    cluster = f"{'n' * 63}/{'c' * 63}"
    issued = keys.client("jane", ("developers", "system:masters"), cluster)
    seen = await greeted(keys, client_context(keys.ca_certificate, issued))
    assert subject(seen) == [
        ("organizationName", "developers"),
        ("organizationName", "system:masters"),
        ("organizationalUnitName", cluster),
        ("commonName", "jane"),
    ]


async def test_a_certificate_of_another_ca_gets_nowhere(keys: Pki, tmp_path: Path) -> None:
    stranger = ensure(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        await greeted(stranger, client_context(keys.ca_certificate))
    issued = stranger.client("jane", ("system:masters",))
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        async with asyncio.timeout(5):
            await greeted(keys, client_context(keys.ca_certificate, issued))


async def test_a_client_certificate_cannot_play_the_server(keys: Pki, tmp_path: Path) -> None:
    pretender = ensure(tmp_path)
    issued = keys.client("localhost")
    (tmp_path / "server.crt").write_bytes(issued.certificate)
    (tmp_path / "server.key").write_bytes(issued.key)
    with pytest.raises(ssl.SSLCertVerificationError):
        await greeted(pretender, client_context(keys.ca_certificate))


# Files.


def test_keys_are_made_once_private_and_reused(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        first = ensure(tmp_path / "pki")
    finally:
        os.umask(old)
    before = {file.name: file.read_bytes() for file in (tmp_path / "pki").iterdir()}
    assert sorted(before) == ["ca.crt", "ca.key", "server.crt", "server.key", "tokens.key"]
    assert all(stat.S_IMODE((tmp_path / "pki" / name).stat().st_mode) == 0o600 for name in before)
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
    second = ensure(tmp_path / "pki")
    assert {file.name: file.read_bytes() for file in (tmp_path / "pki").iterdir()} == before
    assert second.ca_certificate == first.ca_certificate
    assert second.verify_token(first.sign_token({"sub": "x"})) == {"sub": "x"}


async def test_the_server_certificate_is_renewed_before_it_ends_and_the_ca_stays(tmp_path: Path) -> None:
    ensure(tmp_path, now=NOW - datetime.timedelta(days=310))
    ca, server = (tmp_path / "ca.crt").read_bytes(), (tmp_path / "server.crt").read_bytes()
    ensure(tmp_path, now=NOW - datetime.timedelta(days=1))
    assert (tmp_path / "server.crt").read_bytes() != server
    assert (tmp_path / "ca.crt").read_bytes() == ca
    renewed = ensure(tmp_path)
    await greeted(renewed, client_context(ca.decode()))


async def test_a_renewed_ca_keeps_its_key_so_that_no_client_is_locked_out(tmp_path: Path) -> None:
    long_ago = ensure(tmp_path, now=NOW - datetime.timedelta(days=3600))
    issued = long_ago.client("jane")
    renewed = ensure(tmp_path)
    assert renewed.ca_certificate != long_ago.ca_certificate
    left = x509.load_pem_x509_certificate(renewed.ca_certificate.encode()).not_valid_after_utc - NOW
    assert left > datetime.timedelta(days=3000)
    for trusted in (long_ago.ca_certificate, renewed.ca_certificate):
        assert subject(await greeted(renewed, client_context(trusted, issued))) == [("commonName", "jane")]


async def test_a_certificate_that_lost_its_key_in_a_crash_is_made_anew(tmp_path: Path) -> None:
    ensure(tmp_path)
    ensure(tmp_path / "other")
    (tmp_path / "server.key").write_bytes((tmp_path / "other" / "server.key").read_bytes())
    healed = ensure(tmp_path)
    await greeted(healed, client_context(healed.ca_certificate))
    (tmp_path / "server.crt").write_bytes(b"")
    healed = ensure(tmp_path)
    await greeted(healed, client_context(healed.ca_certificate))


async def test_extra_names_are_added_also_to_an_existing_certificate(tmp_path: Path) -> None:
    ensure(tmp_path)
    named = ensure(tmp_path, ("server.example", "192.0.2.7"))
    certificate = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "server.example" in names.get_values_for_type(x509.DNSName)
    assert ipaddress.ip_address("192.0.2.7") in names.get_values_for_type(x509.IPAddress)
    await greeted(named, client_context(named.ca_certificate), "server.example")
    await greeted(named, client_context(named.ca_certificate), "192.0.2.7")


@pytest.mark.parametrize("name", ["ca.key", "ca.crt", "tokens.key"])
def test_a_damaged_file_is_refused_with_advice_and_not_replaced(tmp_path: Path, name: str) -> None:
    ensure(tmp_path)
    (tmp_path / name).write_bytes(b"-----BEGIN GARBAGE-----\n")
    with pytest.raises(UnusableKeys, match=rf"{name} cannot be used: .* move the whole directory"):
        ensure(tmp_path)
    assert (tmp_path / name).read_bytes() == b"-----BEGIN GARBAGE-----\n"


def test_a_lost_ca_key_is_not_silently_replaced(tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(UnusableKeys, match="missing"):
        ensure(tmp_path)


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    ensure(tmp_path)
    other = ed25519.Ed25519PrivateKey.generate()
    (tmp_path / "tokens.key").write_bytes(
        other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    with pytest.raises(UnusableKeys, match="elliptic curve"):
        ensure(tmp_path)


def test_a_private_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    write_private(path, b"first")

    def full(_: int) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            write_private(path, b"second")
    assert path.read_bytes() == b"first"
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    path.chmod(0o644)
    write_private(path, b"second")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Kubeconfigs.


async def test_an_admin_kubeconfig_is_private_and_gets_its_owner_in(keys: Pki, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    keys.write_admin_kubeconfig(path, "https://127.0.0.1:6443/clusters/team/dev", "team/dev")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    context = next(item for item in config["contexts"] if item["name"] == config["current-context"])["context"]
    cluster = next(item for item in config["clusters"] if item["name"] == context["cluster"])["cluster"]
    user = next(item for item in config["users"] if item["name"] == context["user"])["user"]
    assert cluster["server"] == "https://127.0.0.1:6443/clusters/team/dev"
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    issued = Issued(base64.b64decode(user["client-certificate-data"]), base64.b64decode(user["client-key-data"]))
    seen = subject(await greeted(keys, client_context(authority, issued), "127.0.0.1"))
    assert ("organizationName", "system:masters") in seen
    assert ("organizationalUnitName", "team/dev") in seen


# Tokens.


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_a_token_says_what_was_signed(keys: Pki) -> None:
    claims = {"iss": "https://kubeserver.local", "sub": "system:serviceaccount:default:x", "exp": 1, "ü": ["é"]}
    token = keys.sign_token(claims)
    assert keys.verify_token(token) == claims
    head, body, _ = token.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "ES256", "typ": "JWT"}
    assert json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))) == claims


def test_a_token_with_one_bit_changed_is_not_ours(keys: Pki) -> None:
    token = keys.sign_token({"sub": "jane"})
    head, body, signature = token.split(".")
    root = unpadded(b'{"sub":"root"}')
    unsigned = unpadded(b'{"alg":"none"}')
    symmetric = unpadded(b'{"alg":"HS256","typ":"JWT"}')
    deep = unpadded(b"[" * 20000)
    for changed in (
        f"{head}.{root}.{signature}",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}.{body}.{signature}.{signature}",
        f"{unsigned}.{body}.",
        f"{unsigned}.{body}.{signature}",
        f"{symmetric}.{body}.{signature}",
        f"{deep}.{body}.{signature}",
        f"{head}.{deep}.{signature}",
        f"{head}.{body}.{unpadded(bytes(64))}",
        f"{head}.{body}.{unpadded(bytes([255]) * 64)}",
        f"{head}.{body}.\u00fc\u00fc",
        "",
        "..",
        "a.b.c",
    ):
        assert keys.verify_token(changed) is None, changed[:80]


def test_a_token_of_another_control_plane_is_not_ours(keys: Pki, tmp_path: Path) -> None:
    assert keys.verify_token(ensure(tmp_path).sign_token({"sub": "jane"})) is None


def test_a_signed_text_that_is_no_object_is_no_token(keys: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (b"[]", b"null", b"{", b"\xff"):
        with monkeypatch.context() as patch:
            patch.setattr(pki.msgspec.json, "encode", lambda _, text=text: text)
            token = keys.sign_token({})
        assert keys.verify_token(token) is None, text
