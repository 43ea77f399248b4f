"""What Steward's trustd leaves for Talos machines: a token, the operating system's CA, and a client for people.

No process serves trustd on one machine, so the keys open nothing; they are real in form, so that configurations made
from them are, too.
"""

from __future__ import annotations

import base64
import datetime
import secrets

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_DAYS = 3650


def credentials() -> dict[str, str]:
    """Data of the Secret `<cluster>-trustd-creds`, encoded as Secrets are."""
    authority_key, admin_key = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    authority = _certificate("talos", authority_key, authority_key, None)
    admin = _certificate("os:admin", admin_key, authority_key, authority)
    token = f"{secrets.token_hex(3)}.{secrets.token_hex(8)}".encode()
    private = admin_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    entries = {
        "token": token,
        "os-ca.crt": authority.public_bytes(Encoding.PEM),
        "admin.crt": admin.public_bytes(Encoding.PEM),
        "admin.key": private,
    }
    return {name: base64.b64encode(value).decode() for name, value in entries.items()}


def _certificate(
    organization: str, key: Ed25519PrivateKey, signer: Ed25519PrivateKey, issuer: x509.Certificate | None
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.subject if issuer is not None else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .sign(signer, None)
    )
