"""What the Secret of a provider must hold, and what is wrong with one that does not.

Each provider reads its own keys; those with a single key (a kubeconfig, a service account's key) can be told another
one by `credentialsRef.key`. Shapes are checked as far as they can be known without asking the provider, because the
usual mistakes are of this sort: a key by another name, a line break at the end, the id of a secret in place of its
value. Sentences say what to do. They never quote what is in the Secret, not even what looks harmless: a password
often sits in the wrong field.
"""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from butler.api.providers import Provider
from butler.kube.config import from_text
from butler.kube.errors import ConfigError
from butler.rules.provider.settings import UUID, settings_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from butler.api.providerconfig import ProviderConfig

KUBECONFIG: Final = "kubeconfig"
SERVICE_ACCOUNT_KEY: Final = "serviceAccountKey"

_ACCESS_KEY = re.compile(r"[A-Z0-9]{16,128}")
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+=]{30,128}")
_PROXMOX_TOKEN = re.compile(r"[^\s:/@!]+@[A-Za-z][A-Za-z0-9._-]*![A-Za-z][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class _Keys:
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()


_KEYS: Final = {
    Provider.HARVESTER: _Keys((KUBECONFIG,)),
    Provider.NUTANIX: _Keys(("username", "password"), ("ca.pem",)),
    Provider.PROXMOX: _Keys(("username", "password"), ("ca.pem",)),
    Provider.AWS: _Keys(("accessKeyID", "secretAccessKey")),
    Provider.GCP: _Keys((SERVICE_ACCOUNT_KEY,)),
    Provider.AZURE: _Keys(("clientID", "clientSecret", "tenantID"), ("subscriptionID", "securityGroupName")),
    Provider.LOCAL: _Keys(()),
}
_FILES: Final = frozenset((KUBECONFIG, SERVICE_ACCOUNT_KEY, "ca.pem"))
"""Values that are files, and end with a line break as files do."""


class ServiceAccountKey(msgspec.Struct):
    """A Google service account's key, as far as it is used."""

    type: str = ""
    client_email: str = ""
    private_key: str = ""
    private_key_id: str = ""
    universe_domain: str = "googleapis.com"


def needed_keys(config: ProviderConfig) -> tuple[str, ...]:
    """The keys that the Secret must have, by the names that they have there."""
    return tuple(_name_in_secret(config, key) for key in _KEYS[config.spec.provider].needed)


def decode_data(data: Mapping[str, str] | None) -> dict[str, bytes]:
    """A Secret's data without its base64; what is none was not written by an API server, and counts as missing."""
    found = {}
    for key, value in (data or {}).items():
        try:
            found[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError):
            continue
    return found


def read(config: ProviderConfig, data: Mapping[str, bytes]) -> dict[str, str]:
    """What the Secret holds for this provider, by the keys' usual names; call `check` first."""
    keys = _KEYS[config.spec.provider]
    found = {key: data.get(_name_in_secret(config, key)) for key in (*keys.needed, *keys.optional)}
    return {key: value.decode("utf-8", "replace") for key, value in found.items() if value is not None}


def check(config: ProviderConfig, data: Mapping[str, bytes]) -> list[str]:
    """What is wrong with a Secret, as sentences; empty when the provider could be asked with it."""
    settled = [problem for problem in settings_problems(config.spec) if problem.field == "spec.credentialsRef.key"]
    if settled:
        return [f"{problem.field}: {problem.message}" for problem in settled]
    missing = [key for key in needed_keys(config) if not data.get(key)]
    if missing:
        return [_missing(config, missing, data)]
    problems = list(_plain_text_problems(config, data))
    return problems or list(_SHAPES[config.spec.provider](config, data))


def server_in(config: ProviderConfig, data: Mapping[str, bytes]) -> str | None:
    """The server that the credentials themselves are for, where they say so; call `check` first."""
    if config.spec.harvester is None or not config.spec.harvester.endpoint:
        return None  # nothing that could lead elsewhere
    name = _name_in_secret(config, KUBECONFIG)
    try:
        return from_text(data[name], source=name, environ={}).server
    except (ConfigError, KeyError):
        return None


def _name_in_secret(config: ProviderConfig, key: str) -> str:
    reference = config.spec.credentials_ref
    single = len(_KEYS[config.spec.provider].needed) == 1
    return reference.key if single and reference is not None and reference.key is not None else key


def _missing(config: ProviderConfig, missing: list[str], data: Mapping[str, bytes]) -> str:
    empty = [key for key in missing if key in data]
    if empty:
        return f"{_listed(empty)} {_is(empty)} empty: fill in {'it' if len(empty) == 1 else 'them'}"
    there = f"it has {_listed(sorted(data)[:8])}" if data else "it is empty"
    advice = "add it"
    if len(_KEYS[config.spec.provider].needed) == 1:
        advice = "add it, or name another in spec.credentialsRef.key"
    elif len(missing) > 1:
        advice = "add them"
    noun = "key" if len(missing) == 1 else "keys"
    return f"{noun} {_listed(missing)} {_is(missing)} missing ({there}): {advice}"


def _plain_text_problems(config: ProviderConfig, data: Mapping[str, bytes]) -> Iterator[str]:
    for key in (*_KEYS[config.spec.provider].needed, *_KEYS[config.spec.provider].optional):
        name = _name_in_secret(config, key)
        value = data.get(name)
        if value is None:
            continue
        try:
            text = value.decode()
        except UnicodeDecodeError:
            yield f"{name} is not text: was it encoded in base64 twice, or taken from a binary file?"
            continue
        if key in _FILES:
            continue
        if text != text.strip():
            yield (
                f"{name} has a space or a line break at its start or end:"
                " create it with kubectl create secret --from-literal, or with printf in place of echo"
            )
        elif not text.isprintable():
            yield f"{name} has characters that cannot be typed, such as line breaks: write it on one line"


# Shapes, one function per provider.


def _kubeconfig(config: ProviderConfig, data: Mapping[str, bytes]) -> Iterator[str]:
    name = _name_in_secret(config, KUBECONFIG)
    try:
        connection = from_text(data[name], source=name, environ={})
    except ConfigError as error:
        yield str(error)
        return
    if isinstance(connection.ca, bytes) and not _is_certificate(connection.ca):
        yield f"{name}: certificate-authority-data holds no certificate"


def _nutanix(_: ProviderConfig, data: Mapping[str, bytes]) -> Iterator[str]:
    if b":" in data["username"]:
        yield "username has a colon, which a login to Prism Central cannot carry: is it the user name alone?"
    yield from _authority(data)


def _proxmox(_: ProviderConfig, data: Mapping[str, bytes]) -> Iterator[str]:
    # Cluster API's provider for Proxmox logs in with a token and in no other way.
    if not _PROXMOX_TOKEN.fullmatch(data["username"].decode()):
        yield "username must be the id of an API token, as in butler@pve!token"
    if not UUID.fullmatch(data["password"].decode()):
        yield "password must be the secret of that API token, which is a UUID"
    yield from _authority(data)


def _authority(data: Mapping[str, bytes]) -> Iterator[str]:
    pem = data.get("ca.pem")
    if pem is not None and not _is_certificate(pem):
        yield "ca.pem holds no certificate: put the PEM of the server's authority there, or remove the key"


def _aws(_: ProviderConfig, data: Mapping[str, bytes]) -> Iterator[str]:
    access_key = data["accessKeyID"].decode()
    if not _ACCESS_KEY.fullmatch(access_key):
        yield "accessKeyID is not the id of an access key, which looks like AKIA and sixteen more capitals and digits"
    elif access_key.startswith("ASIA"):
        yield "accessKeyID is of temporary credentials, which would end while clusters live: use those of an IAM user"
    if not _AWS_SECRET.fullmatch(data["secretAccessKey"].decode()):
        yield "secretAccessKey is not the secret of an access key, which is 40 letters, digits, / and +"


def _gcp(config: ProviderConfig, data: Mapping[str, bytes]) -> Iterator[str]:
    name = _name_in_secret(config, SERVICE_ACCOUNT_KEY)
    try:
        key = msgspec.json.decode(data[name], type=ServiceAccountKey)
    except (msgspec.MsgspecError, RecursionError):
        yield f"{name} is no JSON key of a service account: store the file that Google Cloud offered for download"
        return
    if key.type != "service_account":
        yield f"{name} is a credential of another type: create a JSON key for a service account"
        return
    missing = [field for field in ("client_email", "private_key") if not getattr(key, field)]
    if missing:
        yield f"{name} lacks {_listed(missing)}: store the file that Google Cloud offered for download, unchanged"
    elif private_key(key) is None:
        yield f"{name}: private_key is no RSA key in PEM: store the file unchanged, with its \\n as they are"


def _azure(config: ProviderConfig, data: Mapping[str, bytes]) -> Iterator[str]:
    for key in ("clientID", "tenantID", "subscriptionID"):
        if key in data and not UUID.fullmatch(data[key].decode()):
            yield f"{key} is no UUID: Azure shows it as the id, next to the name"
    if UUID.fullmatch(data["clientSecret"].decode()):
        yield "clientSecret is a secret's id: give its value, which Azure shows once, when the secret is made"
    wanted = config.spec.azure.subscription_id.lower() if config.spec.azure is not None else ""
    if data.get("subscriptionID", wanted.encode()).decode().lower() != wanted:
        yield "subscriptionID is another one than spec.azure.subscriptionID: remove it from the Secret"


def _nothing(_: ProviderConfig, __: Mapping[str, bytes]) -> Iterator[str]:
    return iter(())


_SHAPES: Final[Mapping[Provider, Callable[[ProviderConfig, Mapping[str, bytes]], Iterator[str]]]] = {
    Provider.HARVESTER: _kubeconfig,
    Provider.NUTANIX: _nutanix,
    Provider.PROXMOX: _proxmox,
    Provider.AWS: _aws,
    Provider.GCP: _gcp,
    Provider.AZURE: _azure,
    Provider.LOCAL: _nothing,
}


def private_key(key: ServiceAccountKey) -> RSAPrivateKey | None:
    """The key to sign with; None where it is none."""
    try:
        found = load_pem_private_key(key.private_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return found if isinstance(found, RSAPrivateKey) else None


def _is_certificate(pem: bytes) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return True


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
