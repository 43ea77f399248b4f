"""A kubeconfig out of a Secret, of a tenant or of a provider: read without trusting its author.

A kubeconfig is a program as much as it is data: it may name a command to run, files of this machine to read and
send, a proxy to go through. What a person keeps in their own file is theirs to decide; what comes out of a Secret
is not, or every author of a Secret reads our service account's token and runs commands in our pod. So here only
inline data counts, every reference to this machine is refused by name, and all that will end up in a header or a
TLS handshake must look like what it claims to be. Nothing of the contents but the names of contexts, clusters and
users is repeated in an error: a Secret that cannot be read must not be readable in a log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import yaml

from butler.kube.errors import ConfigError

if TYPE_CHECKING:
    from butler.api.objects import Json

OF_CLUSTER = ("server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify")
OF_USER = ("client-certificate-data", "client-key-data", "token", "username", "password")
"""All that is kept of a kubeconfig that is handed on."""
LARGEST = 64 * 1024
"""Bytes; an administrator's kubeconfig has about 6000, and reading YAML is slow enough to hurt."""

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_REFUSED_OF_CLUSTER = {"certificate-authority": "put the certificate into certificate-authority-data"}
_REFUSED_OF_USER = {
    "exec": "a command is never run on behalf of a Secret; use a token or a client certificate",
    "auth-provider": "use a token or a client certificate",
    "client-certificate": "put the certificate into client-certificate-data",
    "client-key": "put the key into client-key-data",
    "tokenFile": "put the token itself into token",
    "as": "give the credentials of whom to act as",
    "as-uid": "give the credentials of whom to act as",
    "as-groups": "give the credentials of whom to act as",
    "as-user-extra": "give the credentials of whom to act as",
}


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class _User(msgspec.Struct, rename="kebab"):
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    username: str | None = None
    password: str | None = None


class _Context(msgspec.Struct):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context | None = None


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    """The shape that a kubeconfig must have before anything looks into it; what it does not name may be anything."""

    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few of them unfold to more than any memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError
        return super().compose_node(parent, index)


def parse(text: str | bytes, source: str) -> Json:
    """The document, with every value that will be used being of the type it must have."""
    if len(text) > LARGEST:
        raise ConfigError(f"{source}: larger than a kubeconfig can be ({len(text)} bytes, {LARGEST} allowed)")
    try:
        document: Any = yaml.load(text, Loader=_PlainLoader)  # noqa: S506  # a SafeLoader, narrowed
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a number or a date out of bounds
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        # Not `from error`: the parser's own words quote the line, and the line may hold a key.
        raise ConfigError(f"{source}: the kubeconfig is not plain YAML{where}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: not a kubeconfig: a mapping was expected")
    try:
        msgspec.convert(document, _Kubeconfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: not a kubeconfig: {error}") from None
    return document


def refuse_every(document: Json, source: str, *, allow_proxy: bool) -> None:
    """Refuse, by name, whatever would make a reader of the kubeconfig touch the machine that it is read on.

    In every entry, chosen or not: people use the other contexts of a file that they are handed, too.
    """
    for section, refused in (("clusters", _REFUSED_OF_CLUSTER), ("users", _REFUSED_OF_USER)):
        for entry in document.get(section) or ():
            body = entry.get(section[:-1]) or {}
            for name, advice in refused.items():
                if body.get(name) is not None:
                    raise ConfigError(f"{source}: {name} is not allowed in a kubeconfig from a Secret: {advice}")
            if body.get("proxy-url") and not allow_proxy:
                raise ConfigError(
                    f"{source}: proxy-url is not allowed in a kubeconfig from a Secret: "
                    "set HTTPS_PROXY for Butler where a proxy is needed"
                )


def check_chosen(cluster: Json, user: Json, source: str, *, allow_plain_loopback: bool) -> None:
    """Check that what is sent, and where, is what it claims to be."""
    server = str(cluster.get("server") or "")
    _check_server(server, source, allow_plain_loopback=allow_plain_loopback)
    server_name = cluster.get("tls-server-name")
    if server_name and not _HOST.fullmatch(server_name):
        raise ConfigError(f"{source}: tls-server-name is not the name of a host")
    token = user.get("token")
    if token and not _TOKEN.fullmatch(token):
        raise ConfigError(f"{source}: the token has a space, a line break or another character that no token has")
    for name in ("username", "password"):
        if not str(user.get(name) or "").isprintable():
            raise ConfigError(f"{source}: {name} has characters that cannot be sent, such as line breaks")
    certificate = user.get("client-certificate-data") or user.get("client-key-data")
    if not (token or certificate or (user.get("username") and user.get("password"))) and server.startswith("https:"):
        raise ConfigError(f"{source}: the user has no token and no client certificate: add one")


def _check_server(server: str, source: str, *, allow_plain_loopback: bool) -> None:
    if not server:
        raise ConfigError(f"{source}: the cluster has no server")
    try:
        parts = urlsplit(server)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or port == 0:
        raise ConfigError(f"{source}: the server is not a URL as in https://10.40.0.10:6443")
    if "@" in parts.netloc or parts.query or parts.fragment or not re.fullmatch(r"[\w./~:-]*", parts.path):
        raise ConfigError(f"{source}: the server's URL may have a host, a port and a path, and nothing else")
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")
    if parts.scheme == "http" and not (allow_plain_loopback and is_loopback):
        raise ConfigError(f"{source}: the server's URL must be https, or the credentials would travel in the clear")


def rewritten(cluster: Json, user: Json, name: str) -> str:
    """A kubeconfig with one context, of this cluster and this user and nothing else that their entries hold."""
    kept = {key: cluster[key] for key in OF_CLUSTER if cluster.get(key) is not None}
    shown = {key: user[key] for key in OF_USER if user.get(key) is not None}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": kept}],
        "users": [{"name": name, "user": shown}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return str(yaml.safe_dump(document, sort_keys=False))


def check_pem(data: bytes | None, what: str, source: str) -> None:
    """Say now, rather than at the first request, that something is no certificate or key at all."""
    if data is not None and b"-----BEGIN " not in data:
        raise ConfigError(f"{source}: {what} is not PEM")
