"""Keys and certificates of the embedded control plane: one CA of its own, made once and kept in its data directory.

    ca.crt, ca.key            signs everything below; valid for ten years, then renewed with the same key
    server.crt, server.key    for 127.0.0.1 and localhost; made anew near its end, or when it does not fit
    tokens.key                signs the tokens of service accounts

Client certificates are handed out in kubeconfigs and not kept. Common name is the user, organisations are the groups,
as Kubernetes reads them; the organisational unit names the logical cluster, because one CA serves them all and a
certificate must be worth nothing in a cluster it was not issued for.

Every file is created with mode 0600 in a directory with mode 0700, whole or not at all. Nothing here prints a key.
What cannot be read is never replaced silently: a new CA would lock out every client that trusts the old one.
"""

from __future__ import annotations

import base64
import datetime
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubeserver.certificates import (
    Issued,
    authority,
    certificate_pem,
    for_server,
    general_name,
    key_pem,
    new_key,
    signed,
)

Json = dict[str, Any]

_RENEW_DAYS: Final = 60
_COORDINATE: Final = 32  # bytes of each half of a P-256 signature
_NAMES: Final = ("127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class UnusableKeys(Exception):
    """The key files cannot be used; the text says which, why, and what to do."""


class Pki:
    """The keys of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca_key = _read_key(directory / "ca.key")
        self._ca = _read_certificate(directory / "ca.crt")
        self.ca_certificate = certificate_pem(self._ca).decode()
        self._token_key = _read_key(directory / "tokens.key")

    def server_context(self) -> ssl.SSLContext:
        """TLS for the listener: our certificate, and a client certificate of our CA if the client has one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._directory / "server.crt", self._directory / "server.key")
        context.load_verify_locations(cadata=self.ca_certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def client(self, user: str, groups: tuple[str, ...] = (), unit: str = "") -> Issued:
        """A client certificate for a user of the logical cluster that accepts `unit`."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        if unit:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        key = new_key()
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        now = datetime.datetime.now(datetime.UTC)
        certificate = signed(subject, key, self._ca, self._ca_key, now, [usage])
        return Issued(certificate_pem(certificate), key_pem(key))

    def write_admin_kubeconfig(self, path: Path, url: str, unit: str = "", name: str = "kubeserver") -> None:
        """A kubeconfig with every permission in one logical cluster, readable by its owner alone."""
        issued = self.client(f"{name}-admin", ("system:masters",), unit)
        write_private(path, yaml.safe_dump(self.kubeconfig(url, issued, name), sort_keys=False).encode())

    def kubeconfig(self, url: str, issued: Issued, name: str) -> Json:
        credentials = {
            "client-certificate-data": base64.b64encode(issued.certificate).decode(),
            "client-key-data": base64.b64encode(issued.key).decode(),
        }
        trusted = base64.b64encode(self.ca_certificate.encode()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": trusted}}],
            "users": [{"name": name, "user": credentials}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }

    # Tokens: JSON Web Tokens with ES256, as service accounts carry them.

    def sign_token(self, claims: Json) -> str:
        signed = f"{_TOKEN_HEAD}.{_base64(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._token_key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_base64(r.to_bytes(_COORDINATE) + s.to_bytes(_COORDINATE))}"

    def verify_token(self, token: str) -> Json | None:
        """The claims of a token that we signed; None for any other text. Times are the caller's to check."""
        signed, _, signature = token.rpartition(".")
        head, _, claims = signed.partition(".")
        # We write only this head. Nothing that a stranger sends is parsed before its signature is verified.
        if head != _TOKEN_HEAD:
            return None
        try:
            raw = _unbase64(signature)
            if len(raw) != 2 * _COORDINATE:
                return None
            r, s = int.from_bytes(raw[:_COORDINATE]), int.from_bytes(raw[_COORDINATE:])
            key = self._token_key.public_key()
            key.verify(encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
            return msgspec.json.decode(_unbase64(claims), type=Json)
        except (InvalidSignature, ValueError):
            return None


def ensure(directory: Path, extra_names: tuple[str, ...] = (), *, now: datetime.datetime | None = None) -> Pki:
    """The keys in `directory`, made where they are missing or about to expire; raises UnusableKeys.

    `extra_names` are host names or addresses that the server's certificate is to be good for as well.
    """
    now = now or datetime.datetime.now(datetime.UTC)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (directory / "ca.key").exists():
        if (directory / "ca.crt").exists():
            raise UnusableKeys(_advice(directory / "ca.key", "it is missing, although ca.crt is there"))
        _make_key(directory / "ca.key")
    if not (directory / "tokens.key").exists():
        _make_key(directory / "tokens.key")
    ca_key = _read_key(directory / "ca.key")
    if not _is_good(directory / "ca.crt", ca_key, now):
        write_private(directory / "ca.crt", certificate_pem(authority("kubeserver CA", ca_key, now)))
    ca = _read_certificate(directory / "ca.crt")
    names = tuple(dict.fromkeys((*_NAMES, *extra_names)))
    if not _server_fits(directory, names, ca_key, now):
        _make_server(directory, names, ca, ca_key, now)
    return Pki(directory)


def write_private(path: Path, content: bytes) -> None:
    """Write a file as one act, readable by its owner alone: no process ever reads a half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp creates with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _make_key(path: Path) -> None:
    write_private(path, key_pem(new_key()))


def _make_server(
    directory: Path,
    names: tuple[str, ...],
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
) -> None:
    key = new_key()
    certificate = for_server("kubeserver", names, key, ca, ca_key, now)
    write_private(directory / "server.key", key_pem(key))
    write_private(directory / "server.crt", certificate_pem(certificate))


def _server_fits(
    directory: Path, names: tuple[str, ...], ca_key: ec.EllipticCurvePrivateKey, now: datetime.datetime
) -> bool:
    """Whether the server's certificate is ours, lasts, names all names, and belongs to its key.

    The two are two files: a crash between writing them leaves a pair that does not match.
    """
    try:
        key = _read_key(directory / "server.key")
        if not _is_good(directory / "server.crt", key, now):
            return False
        certificate = _read_certificate(directory / "server.crt")
        ca_key.public_key().verify(certificate.signature, certificate.tbs_certificate_bytes, ec.ECDSA(hashes.SHA256()))
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (UnusableKeys, InvalidSignature, x509.ExtensionNotFound):
        return False
    return {general_name(name) for name in names} <= set(named)


def _is_good(path: Path, key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> bool:
    """Whether there is a certificate for this key that will last for a while."""
    if not path.exists():
        return False
    certificate = _read_certificate(path)
    lasts = certificate.not_valid_after_utc - now >= datetime.timedelta(days=_RENEW_DAYS)
    return lasts and certificate.public_key() == key.public_key()


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UnusableKeys(_advice(path, error)) from error


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKeys(_advice(path, error)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableKeys(_advice(path, "it does not hold an elliptic curve key"))
    return key


def _advice(path: Path, why: object) -> str:
    return (
        f"{path} cannot be used: {why}. Restore it from a backup, or move the whole directory {path.parent} away:"
        " new keys will be made, and kubeconfigs handed out so far will no longer work."
    )


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


_TOKEN_HEAD: Final = _base64(b'{"alg":"ES256","typ":"JWT"}')
