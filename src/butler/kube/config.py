"""Where the API server is and who we are there: kubeconfig files and in-cluster service accounts.

Reads the same files by the same rules as kubectl: KUBECONFIG may name several, the first to set a value wins, paths
inside a file are relative to that file, inline data wins over a path. The outcome is one `Connection`, plain data.
A setting that we do not support is refused by name, never ignored; every error says which file and which context.
Secrets stay out of repr and out of errors.
"""

from __future__ import annotations

import base64
import binascii
import os
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import yaml

from butler.kube import untrusted_kubeconfig as foreign
from butler.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.objects import Json

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
Pem = bytes | Path  # a path is read anew when credentials are refreshed, so that rotated files are picked up


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    cluster_info: Json | None = None


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as. Sent as Impersonate-* headers."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Connection:
    """All that is needed to reach one API server as one user. `source` is for error messages."""

    server: str
    namespace: str = "default"
    source: str = "given in code"
    ca: Pem | None = None
    insecure: bool = False
    server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    client_cert: Pem | None = field(default=None, repr=False)
    client_key: Pem | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    exec_plugin: ExecPlugin | None = None
    impersonate: Impersonation | None = None


def load(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the API server as an operator expects: the given file, KUBECONFIG, the pod's own, ~/.kube/config."""
    if kubeconfig is not None:
        return from_files([Path(kubeconfig)], context, environ=environ)
    named = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        return from_files(named, context, environ=environ)
    if "KUBERNETES_SERVICE_HOST" in environ and context is None:
        return in_cluster(environ=environ, service_account=service_account)
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if not home.exists():
        raise ConfigError(
            f"no Kubernetes API server is configured: KUBECONFIG is not set, {home} does not exist and this is not "
            "a pod. Start one with `butleradm local up`, or name a kubeconfig."
        )
    return from_files([home], context, environ=environ)


def in_cluster(*, environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT) -> Connection:
    """The API server as a pod sees it. The token file is read again as the kubelet rotates it."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST is not set")
    token_file = service_account / "token"
    if not token_file.exists():
        raise ConfigError(
            f"in a pod, but {token_file} is missing: set automountServiceAccountToken on its ServiceAccount"
        )
    namespace = service_account / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        source="the pod's service account",
        ca=service_account / "ca.crt",
        token_file=token_file,
    )


def from_files(paths: list[Path], context: str | None = None, *, environ: Mapping[str, str] = os.environ) -> Connection:
    """Merge the files and pick a context. Missing files are passed over as long as one exists, as kubectl does."""
    present = [path for path in paths if path.exists()]
    if not present:
        raise ConfigError(f"kubeconfig not found: {', '.join(map(str, paths))}")
    merged = _Merged([(path, _read_yaml(path)) for path in present])
    return merged.connection(context, environ)


def from_text(
    text: str | bytes,
    *,
    source: str,
    context: str | None = None,
    allow_proxy: bool = False,
    allow_plain_loopback: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """Read a kubeconfig that came out of a Secret and is therefore foreign: inline data only (see `foreign`).

    `source` names the Secret in errors, which repeat nothing of what it holds. `allow_plain_loopback` takes servers of
    this machine that speak http and ask for no credentials, as those of a local world do.
    """
    document = foreign.parse(text, source)
    foreign.refuse_every(document, source, allow_proxy=allow_proxy)
    merged = _Merged([(Path(source), document)])
    name, _, (_, cluster), (_, user) = merged.choose(context)
    where = f"{source}, context {name!r}"
    foreign.check_chosen(cluster, user, where, allow_plain_loopback=allow_plain_loopback)
    connection = merged.connection(context, environ)
    for what, pem in (
        ("certificate-authority-data", connection.ca),
        ("client-certificate-data", connection.client_cert),
        ("client-key-data", connection.client_key),
    ):
        foreign.check_pem(pem if isinstance(pem, bytes) else None, what, where)
    return connection


def rewritten(text: str | bytes, *, source: str, name: str) -> str:
    """The current context of a foreign kubeconfig as a kubeconfig of its own; check it with `from_text` first."""
    _, _, (_, cluster), (_, user) = _Merged([(Path(source), foreign.parse(text, source))]).choose(None)
    return foreign.rewritten(cluster, user, name)


class _Merged:
    """Several kubeconfig files as one: for each name, and for current-context, the first file wins."""

    def __init__(self, documents: list[tuple[Path, Json]]) -> None:
        self.where = ", ".join(str(path) for path, _ in documents)
        self.current = ""
        self.entries: dict[str, dict[str, tuple[Path, Json]]] = {"clusters": {}, "contexts": {}, "users": {}}
        for path, document in documents:
            self.current = self.current or str(document.get("current-context") or "")
            for section, known in self.entries.items():
                for entry in document.get(section) or []:
                    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                        raise ConfigError(f"{path}: an entry under {section} has no name")
                    known.setdefault(entry["name"], (path, entry.get(section[:-1]) or {}))

    def find(self, section: str, name: str, why: str) -> tuple[Path, Json]:
        try:
            return self.entries[section][name]
        except KeyError:
            known = ", ".join(sorted(self.entries[section])) or "none"
            raise ConfigError(f"{self.where}: {why} {name!r}, which is not under {section} (there: {known})") from None

    def choose(self, context: str | None) -> tuple[str, Json, tuple[Path, Json], tuple[Path, Json]]:
        """The context's name, itself, and the cluster and user that it names, each with the file that has it."""
        name = context or self.current
        if not name:
            known = ", ".join(sorted(self.entries["contexts"])) or "none"
            raise ConfigError(
                f"{self.where}: no current-context is set; choose a context (there: {known}) with --context"
            )
        _, chosen = self.find("contexts", name, "the wanted context is")
        cluster_file, cluster = self.find(
            "clusters", str(chosen.get("cluster") or ""), f"context {name!r} names cluster"
        )
        user_file, user = cluster_file, cast("Json", {})
        if chosen.get("user"):
            user_file, user = self.find("users", str(chosen["user"]), f"context {name!r} names user")
        return name, chosen, (cluster_file, cluster), (user_file, user)

    def connection(self, context: str | None, environ: Mapping[str, str]) -> Connection:
        name, chosen, (cluster_file, cluster), (user_file, user) = self.choose(context)
        reader = _Reader(f"{self.where}, context {name!r}", environ)
        return reader.connection(chosen, cluster, cluster_file.parent, user, user_file.parent)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns one cluster and one user entry into a Connection, with errors that say where."""

    source: str
    environ: Mapping[str, str]

    def connection(self, context: Json, cluster: Json, cluster_dir: Path, user: Json, user_dir: Path) -> Connection:
        ca = self.pem(cluster, "certificate-authority", cluster_dir)
        insecure = bool(cluster.get("insecure-skip-tls-verify"))
        if insecure and ca is not None:
            raise self.error("insecure-skip-tls-verify and certificate-authority are both set; remove one")
        if "auth-provider" in user:
            raise self.error("auth-provider is no longer supported; use an exec plugin instead")
        cert, key = self.pem(user, "client-certificate", user_dir), self.pem(user, "client-key", user_dir)
        if (cert is None) != (key is None):
            raise self.error("client-certificate and client-key must both be set")
        server = self.server(cluster, tls=ca is not None or insecure or cert is not None)
        proxy = cluster.get("proxy-url") or environment_proxy(server, self.environ)
        if proxy and urlsplit(proxy).scheme not in ("http", "https"):
            raise self.error(f"proxy-url scheme {urlsplit(proxy).scheme!r} is not supported; use an http proxy")
        token, token_file = user.get("token"), user.get("tokenFile")
        if user.get("username") and (token or token_file):
            raise self.error("a token and a username are both set; only one way to authenticate is allowed")
        return Connection(
            server=server,
            namespace=str(context.get("namespace") or "default"),
            source=self.source,
            ca=ca,
            insecure=insecure,
            server_name=cluster.get("tls-server-name") or None,
            proxy=proxy or None,
            client_cert=cert,
            client_key=key,
            token=str(token) if token else None,
            token_file=_beside(user_dir, str(token_file)) if token_file else None,
            username=str(user["username"]) if user.get("username") else None,
            password=str(user["password"]) if user.get("password") else None,
            exec_plugin=self.exec_plugin(user["exec"], user_dir, cluster, ca) if user.get("exec") else None,
            impersonate=self.impersonation(user),
        )

    def error(self, text: str) -> ConfigError:
        return ConfigError(f"{self.source}: {text}")

    def server(self, cluster: Json, *, tls: bool) -> str:
        server = str(cluster.get("server") or "").rstrip("/")
        if not server:
            raise self.error("the cluster has no server")
        if "://" not in server:
            server = f"{'https' if tls else 'http'}://{server}"
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise self.error(f"server {server!r} is not an http or https URL")
        return server

    def pem(self, entry: Json, name: str, folder: Path) -> Pem | None:
        data, path = entry.get(f"{name}-data"), entry.get(name)
        if data:
            try:
                return base64.b64decode(str(data), validate=True)
            except binascii.Error:
                raise self.error(f"{name}-data is not base64") from None
        if not path:
            return None
        found = _beside(folder, str(path))
        if not found.is_file():
            raise self.error(f"{name}: {found} does not exist")
        return found

    def exec_plugin(self, spec: Json, folder: Path, cluster: Json, ca: Pem | None) -> ExecPlugin:
        version, command = str(spec.get("apiVersion") or ""), str(spec.get("command") or "")
        if version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
            raise self.error(f"exec apiVersion {version!r} is not supported; use client.authentication.k8s.io/v1")
        if not command:
            raise self.error("exec has no command")
        if spec.get("interactiveMode") == "Always":
            raise self.error(f"exec {command!r} wants a terminal (interactiveMode: Always), and there is none here")
        info: Json | None = None
        if spec.get("provideClusterInfo"):
            info = {
                name: cluster[name]
                for name in ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
                if cluster.get(name)
            }
            if ca is not None:
                pem = ca if isinstance(ca, bytes) else ca.read_bytes()
                info["certificate-authority-data"] = base64.b64encode(pem).decode()
            for extension in cluster.get("extensions") or []:
                if extension.get("name") == EXEC_EXTENSION:
                    info["config"] = extension.get("extension")
        return ExecPlugin(
            # A bare name is looked up in PATH; anything with a slash is relative to the kubeconfig.
            command=str(_beside(folder, command)) if os.sep in command else command,
            api_version=version,
            args=tuple(str(arg) for arg in spec.get("args") or ()),
            env=tuple((str(pair["name"]), str(pair.get("value", ""))) for pair in spec.get("env") or ()),
            install_hint=str(spec.get("installHint") or ""),
            cluster_info=info,
        )

    def impersonation(self, user: Json) -> Impersonation | None:
        extra = user.get("as-user-extra") or {}
        asked = Impersonation(
            user=str(user.get("as") or ""),
            uid=str(user.get("as-uid") or ""),
            groups=tuple(str(group) for group in user.get("as-groups") or ()),
            extra=tuple((str(name), tuple(map(str, values))) for name, values in extra.items()),
        )
        if asked == Impersonation():
            return None
        if not asked.user:
            raise self.error("as-uid, as-groups and as-user-extra need `as` to be set too")
        return asked


def _read_yaml(path: Path) -> Json:
    try:
        document: Any = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"{path} is not YAML{f' (line {mark.line + 1})' if mark else ''}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a kubeconfig: a mapping was expected")
    return document


def _beside(folder: Path, path: str) -> Path:
    return Path(os.path.normpath(folder / path))


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """What HTTPS_PROXY and NO_PROXY say, with loopback never proxied."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    lower = {name.lower(): value for name, value in environ.items() if name.lower().endswith("_proxy") and value}
    if urllib.request.proxy_bypass_environment(  # type: ignore[attr-defined]  # missing in typeshed for Linux
        parts.netloc.rpartition("@")[2], {"no": lower.get("no_proxy", "")}
    ):
        return None
    return lower.get(f"{parts.scheme}_proxy")
