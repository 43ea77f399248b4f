"""Opening the place where records are kept: the namespace, and the one key that all replicas share.

The key is made at the first start and kept in a Secret there. With it a made-up cookie is told from a real one without
a request, what a browser has to carry from one step of a login to the next is sealed, and so is every record.
Deleting the Secret and starting the servers anew ends every session, and the local administrator's password with them.
"""

from __future__ import annotations

import base64
import secrets
from typing import Final

import msgspec

from butler.api.objects import Json
from butler.kube.client import Client
from butler.kube.errors import AlreadyExists, BadAnswer, Forbidden, NotFound
from butler.kube.resource import NAMESPACES, SECRETS
from butler.server.access.keys import RANDOM, SigningKey
from butler.server.access.records import FIELD, LABEL, PATIENCE, RecordStore, secret_type

NAME: Final = "butler-console-key"


class _Key(msgspec.Struct, frozen=True):
    key: bytes


async def open_store(client: Client, namespace: str) -> RecordStore:
    """The store with the key of all replicas; the first to come makes it."""
    return RecordStore(client, namespace, SigningKey(await _shared_key(client, namespace)))


async def _shared_key(client: Client, namespace: str) -> bytes:
    for _ in range(5):
        try:
            return _read(await client.get(SECRETS, NAME, namespace, timeout=PATIENCE), namespace)
        except NotFound:
            await _make_key(client, namespace)
    raise BadAnswer(f"Secret {namespace}/{NAME} is deleted again and again: find out by whom, and start again")


async def _make_key(client: Client, namespace: str) -> None:
    document = msgspec.json.encode(_Key(secrets.token_bytes(RANDOM)))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": namespace, "labels": {LABEL: "key"}},
        "type": secret_type("key"),
        "data": {FIELD: base64.b64encode(document).decode()},
    }
    try:
        await client.create(SECRETS, secret, timeout=PATIENCE)
    except AlreadyExists:
        return  # another replica was first: its key is the key
    except NotFound:
        await _make_namespace(client, namespace)


async def _make_namespace(client: Client, namespace: str) -> None:
    try:
        await client.create(NAMESPACES, {"metadata": {"name": namespace}}, timeout=PATIENCE)
    except AlreadyExists:
        return
    except Forbidden:
        raise BadAnswer(
            f"namespace {namespace}, in which the console keeps its sessions, does not exist:"
            " have an administrator apply examples/console/access.yaml, which makes it"
        ) from None


def _read(secret: Json, namespace: str) -> bytes:
    try:
        raw = base64.b64decode((secret.get("data") or {}).get(FIELD) or "", validate=True)
        key = msgspec.json.decode(raw, type=_Key).key
    except (ValueError, msgspec.MsgspecError):
        key = b""
    if secret.get("type") != secret_type("key") or len(key) < RANDOM:
        raise BadAnswer(f"Secret {namespace}/{NAME} is there but holds no key: delete it, and a new one is made")
    return key
