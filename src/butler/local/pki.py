"""Keys and certificates of the embedded control plane: one CA of its own, made once and kept in its data directory.

    ca.crt, ca.key            signs everything below; valid for ten years
    server.crt, server.key    for 127.0.0.1 and localhost; made anew when it comes near its end
    tokens.key                signs the tokens of service accounts

Client certificates are handed out in kubeconfigs and not kept. Common name is the user, organisations are the groups,
as Kubernetes reads them; the organisational unit names the logical cluster, because one CA serves them all and a
certificate must be worth nothing in a cluster it was not issued for.

Every private file is created with mode 0600 in a directory with mode 0700. Nothing here prints a key.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Json = dict[str, Any]

_CA_DAYS: Final = 3650
_DAYS: Final = 365
_RENEW_DAYS: Final = 60
_COORDINATE: Final = 32  # bytes of each half of a P-256 signature


@dataclass(slots=True, frozen=True)
class Issued:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


class Pki:
    """The keys of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        ca_key, ca_certificate = _read_pair(directory, "ca")
        self._ca_key = ca_key
        self._ca = x509.load_pem_x509_certificate(ca_certificate)
        self.ca_certificate = ca_certificate.decode()
        self._token_key = _read_key(directory / "tokens.key")

    def server_context(self) -> ssl.SSLContext:
        """TLS for the listener: our certificate, and a client certificate of our CA if the client has one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._directory / "server.crt", self._directory / "server.key")
        context.load_verify_locations(cadata=self.ca_certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def client(self, user: str, groups: tuple[str, ...] = (), cluster: str = "") -> Issued:
        """A client certificate for a user of a logical cluster."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        if cluster:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, cluster))
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = _sign(subject, key, self._ca, self._ca_key, _DAYS, [usage])
        return Issued(_pem(certificate), _key_pem(key))

    def write_admin_kubeconfig(self, path: Path, url: str, cluster: str = "") -> None:
        """A kubeconfig with every permission in one logical cluster, readable by its owner alone."""
        issued = self.client("butler-admin", ("system:masters",), cluster)
        write_private(path, yaml.safe_dump(self.kubeconfig(url, issued), sort_keys=False).encode())

    def kubeconfig(self, url: str, issued: Issued, name: str = "butler") -> Json:
        credentials = {
            "client-certificate-data": base64.b64encode(issued.certificate).decode(),
            "client-key-data": base64.b64encode(issued.key).decode(),
        }
        authority = base64.b64encode(self.ca_certificate.encode()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": name, "user": credentials}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }

    # Tokens: JSON Web Tokens with ES256, as service accounts carry them.

    def sign_token(self, claims: Json) -> str:
        head = _base64(json.dumps({"alg": "ES256", "typ": "JWT"}, separators=(",", ":")).encode())
        signed = f"{head}.{_base64(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._token_key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_base64(r.to_bytes(_COORDINATE) + s.to_bytes(_COORDINATE))}"

    def verify_token(self, token: str) -> Json | None:
        """The claims of a token that we signed; None for any other text. Times are the caller's to check."""
        signed, _, signature = token.rpartition(".")
        head, _, claims = signed.partition(".")
        try:
            if json.loads(_unbase64(head)).get("alg") != "ES256":
                return None
            raw = _unbase64(signature)
            if len(raw) != 2 * _COORDINATE:
                return None
            r, s = int.from_bytes(raw[:_COORDINATE]), int.from_bytes(raw[_COORDINATE:])
            key = self._token_key.public_key()
            key.verify(encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
            found = json.loads(_unbase64(claims))
        except (InvalidSignature, ValueError, AttributeError):
            return None
        return found if isinstance(found, dict) else None


def ensure(directory: Path, extra_names: tuple[str, ...] = ()) -> Pki:
    """The keys in `directory`, made where they are missing or, for the server, about to expire."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (directory / "ca.crt").exists():
        _make_ca(directory)
    if _ends_soon(directory / "server.crt"):
        _make_server(directory, extra_names)
    if not (directory / "tokens.key").exists():
        write_private(directory / "tokens.key", _key_pem(ec.generate_private_key(ec.SECP256R1())))
    return Pki(directory)


def write_private(path: Path, content: bytes) -> None:
    """Write a file as one act, readable by its owner alone: nobody ever sees a half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp creates with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _make_ca(directory: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Butler local CA")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=_CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(directory / "ca.key", _key_pem(key))
    write_private(directory / "ca.crt", _pem(certificate))


def _make_server(directory: Path, extra_names: tuple[str, ...]) -> None:
    ca_key, ca_certificate = _read_pair(directory, "ca")
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName(
        [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address("::1")),
            *(x509.DNSName(each) for each in ("localhost", "kubernetes.default.svc", *extra_names)),
        ]
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Butler local API server")])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    ca = x509.load_pem_x509_certificate(ca_certificate)
    certificate = _sign(subject, key, ca, ca_key, _DAYS, [names, usage])
    write_private(directory / "server.key", _key_pem(key))
    write_private(directory / "server.crt", _pem(certificate))


def _ends_soon(path: Path) -> bool:
    if not path.exists():
        return True
    left = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left < datetime.timedelta(days=_RENEW_DAYS)


def _sign(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    days: int,
    extensions: list[x509.ExtensionType],
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(ca_key, hashes.SHA256())


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _read_pair(directory: Path, name: str) -> tuple[ec.EllipticCurvePrivateKey, bytes]:
    return _read_key(directory / f"{name}.key"), (directory / f"{name}.crt").read_bytes()


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} does not hold an elliptic curve key")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
