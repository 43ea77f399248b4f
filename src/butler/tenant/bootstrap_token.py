"""The token with which a new machine introduces itself to its tenant cluster.

It is a Secret of a form that Kubernetes prescribes (`bootstrap-token-<id>` in kube-system), good for asking for a
kubelet certificate and nothing else, and it expires. One is reused while it lives long enough for a machine that
starts now; then another one is made beside it, so that machines already starting are not locked out, and those that
have expired are removed. Which are ours is told by a label; the tokens of others are never touched or used.

The token is a secret: it is returned to be put into a machine's configuration, and belongs nowhere else.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import secrets
import string
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from butler.api.labels import MANAGED_BY, Label
from butler.api.objects import Json, is_being_deleted, name_of, uid_of
from butler.kube.errors import AlreadyExists, NotFound
from butler.kube.resource import SECRETS

if TYPE_CHECKING:
    from butler.kube.client import Client

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105  # the name of a type
KUBEADM_NODE_GROUP = "system:bootstrappers:kubeadm:default-node-token"
"""The group that kubeadm, and with it Steward, lets ask for node certificates and have them approved."""

LIFETIME = timedelta(hours=48)
AT_LEAST = timedelta(hours=24)
_LETTERS = string.ascii_lowercase + string.digits
_ID, _SECRET = re.compile(r"[a-z0-9]{6}"), re.compile(r"[a-z0-9]{16}")
_MOST = 1000


async def bootstrap_token(
    client: Client,
    name: str,
    *,
    now: datetime,
    lifetime: timedelta = LIFETIME,
    at_least: timedelta = AT_LEAST,
    groups: tuple[str, ...] = (KUBEADM_NODE_GROUP,),
) -> str:
    """A token for machines of the tenant cluster `name` that lives for `at_least` longer: a known one or a new one.

    `now` is aware of its time zone. Two callers at once may make two tokens, of which both are good.
    """
    selector = f"{Label.TENANT}={name},{MANAGED_BY[0]}={MANAGED_BY[1]}"
    listed = await client.list(SECRETS, NAMESPACE, label_selector=selector, limit=100, max_items=_MOST)
    ours = [secret for secret in listed.items if secret.get("type") == SECRET_TYPE and not is_being_deleted(secret)]
    best = max(((expiry_of(own), token) for own in ours if (token := token_of(own, groups))), default=None)
    if best is not None and best[0] >= now + at_least:
        return best[1]
    for secret in ours:
        if expiry_of(secret) < now:
            await _remove(client, secret)
    return await _create(client, name, now + lifetime, groups)


def token_secret(name: str, token: str, expiry: datetime, groups: tuple[str, ...]) -> Json:
    """The Secret that makes a token valid until `expiry`."""
    identity, _, secret = token.partition(".")
    content = {
        "token-id": identity,
        "token-secret": secret,
        "expiration": expiry.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "description": f"Lets machines of the tenant cluster {name} join it. Made and renewed by Butler.",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": ",".join(groups),
    }
    return {
        "metadata": {
            "name": f"bootstrap-token-{identity}",
            "namespace": NAMESPACE,
            "labels": {Label.TENANT.value: name, MANAGED_BY[0]: MANAGED_BY[1]},
        },
        "type": SECRET_TYPE,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in content.items()},
    }


def token_of(secret: Json, groups: tuple[str, ...] = (KUBEADM_NODE_GROUP,)) -> str | None:
    """The token in a Secret, if it would let a machine in: well-formed, for authentication, in these groups."""
    identity, value = _text(secret, "token-id"), _text(secret, "token-secret")
    if not _ID.fullmatch(identity) or not _SECRET.fullmatch(value) or name_of(secret) != f"bootstrap-token-{identity}":
        return None
    if _text(secret, "usage-bootstrap-authentication") != "true":
        return None
    if not set(groups) <= set(_text(secret, "auth-extra-groups").split(",")):
        return None
    return f"{identity}.{value}"


def expiry_of(secret: Json) -> datetime:
    """When a token ends; one that does not say so, or says it badly, is taken for long expired."""
    try:
        expiry = datetime.fromisoformat(_text(secret, "expiration"))
    except ValueError:
        return _NEVER_VALID
    return expiry if expiry.tzinfo is not None else _NEVER_VALID


_NEVER_VALID = datetime.fromisoformat("0001-01-02T00:00:00+00:00")


def _text(secret: Json, key: str) -> str:
    data = secret.get("data")
    try:
        return base64.b64decode(data[key], validate=True).decode("ascii") if isinstance(data, dict) else ""
    except (KeyError, TypeError, binascii.Error, ValueError):
        return ""


async def _create(client: Client, name: str, expiry: datetime, groups: tuple[str, ...]) -> str:
    with contextlib.suppress(AlreadyExists):  # one in two thousand million: another id
        return await _create_once(client, name, expiry, groups)
    return await _create_once(client, name, expiry, groups)


async def _create_once(client: Client, name: str, expiry: datetime, groups: tuple[str, ...]) -> str:
    token = f"{_random(6)}.{_random(16)}"
    await client.create(SECRETS, token_secret(name, token, expiry, groups))
    return token


async def _remove(client: Client, secret: Json) -> None:
    try:
        await client.delete(SECRETS, name_of(secret), NAMESPACE, uid=uid_of(secret))
    except NotFound:
        return  # the cluster's own cleaner was quicker


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))
