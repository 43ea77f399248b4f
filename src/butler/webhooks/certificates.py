"""The certificate that the admission server shows, and the authority that API servers are told to trust for it.

Three ways to come by one, each a `Source`:

- `SelfMade`: an authority and a certificate in memory, for one process. For a machine of its own, where the one
  process that serves also writes the webhook configuration.
- `FromFiles`: cert-manager or an operator maintains the files; they are read again when they change.
- `FromSecret`: the replicas of a Deployment share one authority through a Secret. The first replica makes it, by
  compare-and-swap, and a replica that finds the certificate near its end renews it under the same authority, so the
  bundle in the webhook configuration stays right for all replicas.

A source is asked again and again (`fetch`); it answers with the same object while nothing changed. What cannot be
used raises `UnusableCertificate`, and the server goes on with what it has. Keys are never logged.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from butler.kube.errors import AlreadyExists, Conflict, NotFound
from butler.kube.resource import SECRETS
from kubeserver.certificates import (
    authority,
    certificate_pem,
    for_server,
    general_name,
    key_pem,
    new_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butler.kube.client import Client

RENEW_BEFORE: Final = datetime.timedelta(days=60)
_ATTEMPTS: Final = 5
_NAME: Final = "Butler admission webhooks"
_AUTHORITY: Final = f"{_NAME} CA"
"""Not the name of what it signs: a certificate whose issuer is itself by name is taken for self-signed."""


class UnusableCertificate(Exception):
    """Why a certificate cannot be used, and what to do."""


@dataclass(frozen=True, slots=True)
class Serving:
    """All PEM: the certificate with its chain, its key, and the authorities that a caller is to trust."""

    certificate: bytes
    key: bytes = field(repr=False)
    authorities: bytes


class Source(Protocol):
    """Where the certificate comes from."""

    async def fetch(self) -> Serving:
        """The certificate to show now; raises UnusableCertificate, or what reading it raises."""


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def load(context: ssl.SSLContext, serving: Serving) -> None:
    """Let new connections of a TLS context show this certificate; raises UnusableCertificate and changes nothing."""
    # Python's TLS reads keys from files only. This one is ours alone (mode 0600) and gone at once.
    handle, name = tempfile.mkstemp(prefix="butler-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(serving.key.rstrip() + b"\n" + serving.certificate)
        try:
            # A pair that does not match would leave half of it in the context: try it out elsewhere first.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(name)
        except (ssl.SSLError, OSError) as error:
            raise UnusableCertificate(
                f"certificate and key do not belong together or cannot be read: {error}"
            ) from error
        context.load_cert_chain(name)
    finally:
        Path(name).unlink(missing_ok=True)


class SelfMade:
    """An authority of this process alone, and a certificate for `hosts` that is renewed in time."""

    def __init__(self, hosts: Iterable[str], clock: Callable[[], datetime.datetime] = _now) -> None:
        self._hosts = tuple(hosts)
        self._clock = clock
        self._made: _Made | None = None

    async def fetch(self) -> Serving:
        now = self._clock()
        if self._made is None or not self._made.lasts(now):
            self._made = _Made.anew(self._hosts, now) if self._made is None else self._made.renewed(self._hosts, now)
        return self._made.serving


class FromFiles:
    """Files of another program: certificate, key, and the authorities (by default the certificate itself)."""

    def __init__(self, certificate: Path, key: Path, authorities: Path | None = None) -> None:
        self._paths = (certificate, key, authorities or certificate)
        self._seen: tuple[object, ...] = ()
        self._serving: Serving | None = None

    async def fetch(self) -> Serving:
        try:
            state = tuple(_state(path) for path in self._paths)
            if self._serving is None or state != self._seen:
                certificate, key, authorities = (path.read_bytes() for path in self._paths)
                self._serving = Serving(certificate, key, _only_certificates(authorities, self._paths[2]))
                self._seen = state
        except OSError as error:
            raise UnusableCertificate(
                f"{error.filename} cannot be read ({error.strerror}): mount the webhook's certificate there"
            ) from error
        return self._serving


class FromSecret:
    """An authority that all replicas share through a Secret of type kubernetes.io/tls, with the authority's key."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        hosts: Sequence[str],
        clock: Callable[[], datetime.datetime] = _now,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._hosts = tuple(hosts)
        self._clock = clock
        self._serving: Serving | None = None

    async def fetch(self) -> Serving:
        for _ in range(_ATTEMPTS):
            try:
                made = await self._agree()
            except (AlreadyExists, Conflict):
                continue  # another replica was quicker: take what it made
            if self._serving is None or made.serving != self._serving:
                self._serving = made.serving
            return self._serving
        raise UnusableCertificate(
            f"Secret {self._namespace}/{self._name} is rewritten all the time; look at who does it"
        )

    async def _agree(self) -> _Made:
        now = self._clock()
        try:
            secret = await self._client.get(SECRETS, self._name, self._namespace)
        except NotFound:
            made = _Made.anew(self._hosts, now)
            await self._client.create(SECRETS, self._as_secret(made), self._namespace)
            return made
        found = _Made.read(secret.get("data") or {}, f"Secret {self._namespace}/{self._name}")
        if found.lasts(now) and found.is_for(self._hosts):
            return found
        renewed = found.renewed(self._hosts, now)
        await self._client.replace(SECRETS, {**secret, "data": self._as_secret(renewed)["data"]})
        return renewed

    def _as_secret(self, made: _Made) -> dict[str, Any]:
        data = {
            "tls.crt": made.serving.certificate,
            "tls.key": made.serving.key,
            "ca.crt": made.serving.authorities,
            "ca.key": key_pem(made.ca_key),
        }
        return {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "kubernetes.io/tls",
            "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        }


@dataclass(frozen=True, slots=True)
class _Made:
    """An authority with its key, and a certificate of it."""

    ca: x509.Certificate
    ca_key: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate
    serving: Serving

    @classmethod
    def anew(cls, hosts: Sequence[str], now: datetime.datetime) -> _Made:
        ca_key = new_key()
        return cls._signed(authority(_AUTHORITY, ca_key, now), ca_key, hosts, now)

    def renewed(self, hosts: Sequence[str], now: datetime.datetime) -> _Made:
        """A new certificate; a new authority only when the old one ends soon, and then with the same key."""
        keep = self.ca.not_valid_after_utc - now >= 2 * RENEW_BEFORE
        return self._signed(self.ca if keep else authority(_AUTHORITY, self.ca_key, now), self.ca_key, hosts, now)

    @classmethod
    def _signed(
        cls, ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, hosts: Sequence[str], now: datetime.datetime
    ) -> _Made:
        key = new_key()
        certificate = for_server(_NAME, hosts, key, ca, ca_key, now)
        return cls(ca, ca_key, certificate, Serving(certificate_pem(certificate), key_pem(key), certificate_pem(ca)))

    @classmethod
    def read(cls, data: dict[str, str], where: str) -> _Made:
        try:
            part = {
                name: base64.b64decode(data[name], validate=True) for name in ("tls.crt", "tls.key", "ca.crt", "ca.key")
            }
            ca_key = serialization.load_pem_private_key(part["ca.key"], password=None)
            ca = x509.load_pem_x509_certificate(part["ca.crt"])
            certificate = x509.load_pem_x509_certificate(part["tls.crt"])
        except (KeyError, binascii.Error, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise UnusableCertificate(f"{where} cannot be used ({error!r}): delete it, and a new one is made") from None
        if not isinstance(ca_key, ec.EllipticCurvePrivateKey) or ca_key.public_key() != ca.public_key():
            raise UnusableCertificate(
                f"{where} holds another key than its authority's: delete it, and a new one is made"
            )
        return cls(ca, ca_key, certificate, Serving(part["tls.crt"], part["tls.key"], part["ca.crt"]))

    def lasts(self, now: datetime.datetime) -> bool:
        return self.certificate.not_valid_after_utc - now >= RENEW_BEFORE

    def is_for(self, hosts: Sequence[str]) -> bool:
        try:
            named = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return False
        return {general_name(host) for host in hosts} <= set(named)


def _only_certificates(pem: bytes, path: Path) -> bytes:
    """The certificates of a file that may hold a key as well: what we trust is published."""
    try:
        return b"".join(
            certificate_pem(load_pem_x509_certificate)
            for load_pem_x509_certificate in x509.load_pem_x509_certificates(pem)
        )
    except ValueError as error:
        raise UnusableCertificate(f"{path} holds no certificate that can be read: {error}") from None


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
