"""A kubeconfig that came out of a Secret: read as plain data, and refused where it would make this process do things.

A kubeconfig on an administrator's own disk may run programs, read files and choose a proxy; `butler.kube.config`
does all that. One from a Secret was written by whoever may write Secrets, and is read inside Butler's own process,
with Butler's files and network around it. So here everything must be inline: a program to run, a file to read or a
proxy to go through is refused by name, in any entry of the file and not only in the chosen one, so that a change of
`current-context` cannot bring it to life. Messages name fields, never values.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from butler.kube.config import Connection, Impersonation

Json = dict[str, Any]

MOST_BYTES: Final = 64 * 1024
"""Larger files are no kubeconfigs, and reading YAML is slow work."""

_FOREIGN_CLUSTER_SETTINGS: Final = {
    "certificate-authority": "names a file: put its content into certificate-authority-data",
    "proxy-url": "sends Butler through a proxy of the file's choice: remove it",
}
_FOREIGN_USER_SETTINGS: Final = {
    "exec": "would run a program inside Butler: use a token or a client certificate",
    "auth-provider": "is a way to log in that Kubernetes has given up: use a token or a client certificate",
    "tokenFile": "names a file: put its content into token",
    "client-certificate": "names a file: put its content into client-certificate-data",
    "client-key": "names a file: put its content into client-key-data",
}


class UnusableKubeconfig(Exception):
    """What is wrong with a kubeconfig, as a sentence that quotes nothing secret."""


def read_kubeconfig(content: bytes, source: str) -> Connection:
    """Where the current context leads, and as whom. Raises `UnusableKubeconfig`."""
    document = _read(content)
    clusters, users, contexts = (_entries(document, section) for section in ("clusters", "users", "contexts"))
    for name, cluster in clusters.items():
        _refuse(cluster, _FOREIGN_CLUSTER_SETTINGS, f"cluster {name!r}")
    for name, user in users.items():
        _refuse(user, _FOREIGN_USER_SETTINGS, f"user {name!r}")
    current = document.get("current-context")
    if not isinstance(current, str) or not current:
        raise UnusableKubeconfig("current-context is not set: name the context to use")
    context = _find(contexts, current, "current-context is")
    cluster = _find(clusters, _text(context, "cluster") or "", f"context {current!r} names cluster")
    user = _find(users, user_name := _text(context, "user") or "", f"context {current!r} names user")
    ca, insecure = _data(cluster, "certificate-authority-data"), bool(cluster.get("insecure-skip-tls-verify"))
    if insecure and ca is not None:
        raise UnusableKubeconfig("insecure-skip-tls-verify and certificate-authority-data are both set: remove one")
    certificate, key = _data(user, "client-certificate-data"), _data(user, "client-key-data")
    token, username, password = (_text(user, name) for name in ("token", "username", "password"))
    if (certificate is None) != (key is None):
        raise UnusableKubeconfig("client-certificate-data and client-key-data belong together: set both")
    if not (token or certificate or (username and password)):
        raise UnusableKubeconfig(f"user {user_name!r} has no token and no client certificate: add one")
    return Connection(
        server=_server(cluster),
        source=source,
        ca=ca,
        insecure=insecure,
        server_name=_text(cluster, "tls-server-name"),
        client_cert=certificate,
        client_key=key,
        token=token,
        username=None if token else username,
        password=None if token else password,
        impersonate=_impersonation(user),
    )


def _read(content: bytes) -> Json:
    if len(content) > MOST_BYTES:
        raise UnusableKubeconfig(f"is larger than {MOST_BYTES // 1024} KiB, which no kubeconfig is")
    try:
        # Not the loader in C, though it is quicker: deep nesting makes that one crash the process.
        document = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise UnusableKubeconfig(f"is no YAML{where}: store the whole file as it is") from None
    if not isinstance(document, dict) or "clusters" not in document:
        raise UnusableKubeconfig("is no kubeconfig: clusters, users and contexts were expected")
    return document


def _entries(document: Json, section: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    listed = document.get(section) or []
    for entry in listed if isinstance(listed, list) else [None]:
        body = entry.get(section[:-1]) if isinstance(entry, dict) else None
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not isinstance(body, dict | None):
            raise UnusableKubeconfig(f"an entry under {section} is not a name and a {section[:-1]}")
        found.setdefault(name, body or {})
    return found


def _refuse(entry: Json, foreign: dict[str, str], where: str) -> None:
    for name, why in foreign.items():
        if entry.get(name):
            raise UnusableKubeconfig(f"{name} of {where} {why}")


def _find(entries: dict[str, Json], name: str, why: str) -> Json:
    try:
        return entries[name]
    except KeyError:
        raise UnusableKubeconfig(f"{why} {name!r}, which the file does not have") from None


def _server(cluster: Json) -> str:
    server = (_text(cluster, "server") or "").rstrip("/")
    try:
        parts = urlsplit(server)
        usable = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable or parts.scheme != "https":
        raise UnusableKubeconfig("server of its cluster is not an https URL")
    return server


def _data(entry: Json, name: str) -> bytes | None:
    text = entry.get(name)
    if not text:
        return None
    try:
        pem = base64.b64decode(text if isinstance(text, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise UnusableKubeconfig(f"{name} is not base64") from None
    if b"-----BEGIN " not in pem:
        raise UnusableKubeconfig(f"{name} is not PEM in base64")
    return pem


def _text(entry: Json, name: str) -> str | None:
    value = entry.get(name)
    if not value:
        return None
    # Only texts are made into text: printing a list that YAML folded into itself would never end.
    if not isinstance(value, str):
        raise UnusableKubeconfig(f"{name} is no text: put it in quotes")
    if not value.isprintable():
        raise UnusableKubeconfig(f"{name} has characters that cannot be sent, such as line breaks")
    return value


def _impersonation(user: Json) -> Impersonation | None:
    if user.get("as-uid") or user.get("as-groups") or user.get("as-user-extra"):
        raise UnusableKubeconfig("as-uid, as-groups and as-user-extra are not supported here: log in as that user")
    name = _text(user, "as")
    return Impersonation(user=name) if name else None
