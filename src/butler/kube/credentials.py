"""Proving who we are, request by request: TLS contexts, tokens that rotate, exec plugins.

Credentials go stale while a controller runs: the kubelet rotates token files, plugins return certificates that
expire. So the client asks before every request, answers come from memory while they are fresh, and a 401 makes the
next answer be fetched anew, once however many requests were refused together. What a plugin prints on standard
output is secret and never leaves this module.
"""

import asyncio
import base64
import contextlib
import json
import os
import ssl
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from butler.kube.config import Connection, ExecPlugin, Pem
from butler.kube.errors import ConfigError

TOKEN_FILE_FRESH = 10.0  # seconds; the kubelet replaces tokens long before they expire
EXEC_TIMEOUT = 60.0


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class ConnectionCredentials:
    """The living side of a Connection. `clock` and `wall` are monotonic and Unix seconds."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._wall = wall
        self._fixed_headers = _fixed_headers(connection)
        self._context: ssl.SSLContext | None = None
        self._file_token: str | None = None
        self._file_read_at = float("-inf")
        self._granted: _ExecStatus | None = None
        self._plugin_running = asyncio.Lock()
        self.generation = 0  # grows whenever what was remembered is replaced or forgotten
        # Whether asking again can bring anything else than what was refused.
        self.renewable = (
            connection.exec_plugin is not None
            or connection.token_file is not None
            or isinstance(connection.client_cert, Path)
        )

    async def headers(self) -> list[tuple[str, str]]:
        """The headers that identify us now."""
        connection = self._connection
        token = connection.token
        if connection.exec_plugin is not None:
            granted = await self._from_plugin(connection.exec_plugin)
            token = granted.token or token
        elif connection.token_file is not None:
            token = self._from_file(connection.token_file) or token
        if token:
            return [*self._fixed_headers, ("Authorization", f"Bearer {token}")]
        return self._fixed_headers

    def tls(self) -> ssl.SSLContext | None:
        """The context for new connections; call `headers` first, a plugin may bring a certificate."""
        if self._context is None and self._connection.server.startswith("https:"):
            self._context = _context(self._connection, self._granted)
        return self._context

    def forget(self, generation: int) -> None:
        """After a 401: fetch anew what was refused, unless another request that was refused has seen to it."""
        if self.renewable and generation == self.generation:
            self.generation += 1
            self._granted = None
            self._file_read_at = float("-inf")
            self._context = None

    def forget_tls(self) -> None:
        """After a failed handshake: read certificates in files again, as one may have been replaced."""
        if isinstance(self._connection.ca, Path) or isinstance(self._connection.client_cert, Path):
            self._context = None

    def _from_file(self, path: Path) -> str | None:
        # Not by RecentResults: headers are made without waiting, and an empty file must not lose the last good token.
        if self._clock() - self._file_read_at >= TOKEN_FILE_FRESH:
            try:
                # A few hundred bytes from a memory file system: not worth a thread.
                found, problem = path.read_text().strip(), "it is empty"
            except OSError as error:
                found, problem = "", str(error.strerror)
            # Halfway through a rotation the last good token beats none, which would make us anonymous.
            self._file_token = found or self._file_token
            if not self._file_token and self._connection.token is None:
                raise ConfigError(f"{self._connection.source}: token file {path} cannot be read: {problem}")
            self._file_read_at = self._clock()
        return self._file_token

    async def _from_plugin(self, plugin: ExecPlugin) -> _ExecStatus:
        async with self._plugin_running:
            if self._granted is None or self._expired(self._granted):
                before, self._granted = self._granted, await run_plugin(plugin, self._connection.source)
                self.generation += 1
                if before is None or before.client_certificate_data != self._granted.client_certificate_data:
                    self._context = None
            return self._granted

    def _expired(self, granted: _ExecStatus) -> bool:
        expiry = granted.expiration_timestamp
        return expiry is not None and self._wall() >= expiry.timestamp()


async def run_plugin(plugin: ExecPlugin, source: str) -> _ExecStatus:
    """Run an exec plugin once and read the credentials it prints."""
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster_info is not None:
        spec["cluster"] = plugin.cluster_info
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    env = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}
    what = f"{source}: exec plugin {plugin.command!r}"
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise ConfigError(f"{what} cannot be run: {error.strerror}{hint}") from None
    try:
        out, err = await asyncio.wait_for(process.communicate(), EXEC_TIMEOUT)
    except TimeoutError:
        raise ConfigError(f"{what} did not answer in {EXEC_TIMEOUT:.0f} seconds") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it ended at this very moment
                process.kill()
            await process.wait()
    if process.returncode != 0:
        said = err.decode("utf-8", "replace").strip()[-500:]
        raise ConfigError(f"{what} failed with code {process.returncode}: {said or 'it said nothing'}")
    return _read_grant(out, plugin, what)


def _read_grant(out: bytes, plugin: ExecPlugin, what: str) -> _ExecStatus:
    try:
        answer = msgspec.json.decode(out, type=_ExecCredential)
    except msgspec.MsgspecError:
        raise ConfigError(f"{what} did not print an ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise ConfigError(
            f"{what} printed {answer.kind or 'no kind'} of {answer.api_version or 'no version'}; "
            f"ExecCredential of {plugin.api_version} was expected"
        )
    granted = answer.status
    if granted is None or not (granted.token or granted.client_certificate_data):
        raise ConfigError(f"{what} printed neither a token nor a client certificate")
    if bool(granted.client_certificate_data) != bool(granted.client_key_data):
        raise ConfigError(f"{what} printed only one of client certificate and key")
    return granted


def _fixed_headers(connection: Connection) -> list[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    if connection.username is not None:
        pair = f"{connection.username}:{connection.password or ''}".encode()
        headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
    if (whom := connection.impersonate) is not None:
        headers.append(("Impersonate-User", whom.user))
        if whom.uid:
            headers.append(("Impersonate-Uid", whom.uid))
        headers += [("Impersonate-Group", group) for group in whom.groups]
        for name, values in whom.extra:
            # Header names are case-insensitive and limited in letters, so the key travels percent-encoded.
            headers += [(f"Impersonate-Extra-{quote(name.lower(), safe='')}", value) for value in values]
    return headers


def _context(connection: Connection, granted: _ExecStatus | None) -> ssl.SSLContext:
    if connection.insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.ca is not None:
        context = ssl.create_default_context(cadata=_ca_text(connection))
    else:
        context = ssl.create_default_context()
    # Python 3.13 turned on strict checks that the CAs of kubeadm, k3s and others do not pass; Go never had them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    cert, key = connection.client_cert, connection.client_key
    if granted is not None and granted.client_certificate_data:
        cert, key = granted.client_certificate_data.encode(), granted.client_key_data.encode()
    if cert is not None and key is not None:
        _load_pair(context, cert, key, connection.source)
    return context


def _ca_text(connection: Connection) -> str:
    try:
        pem = connection.ca if isinstance(connection.ca, bytes) else Path(connection.ca or "").read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{connection.source}: certificate authority {connection.ca!s} cannot be read: {error.strerror}"
        ) from None
    if b"-----BEGIN" not in pem:
        raise ConfigError(f"{connection.source}: the certificate authority is not PEM")
    return pem.decode("ascii", "ignore")


def _load_pair(context: ssl.SSLContext, cert: Pem, key: Pem, source: str) -> None:
    def refuse_password() -> str:
        raise ConfigError(f"{source}: the client key is encrypted; only unencrypted keys can be used")

    # OpenSSL reads key pairs only from files; inline ones exist for a moment in a folder that only we can open.
    with tempfile.TemporaryDirectory(prefix="butler-") as folder:
        paths = []
        for name, pem in (("cert", cert), ("key", key)):
            path = pem if isinstance(pem, Path) else Path(folder) / name
            if isinstance(pem, bytes):
                path.touch(mode=0o600)
                path.write_bytes(pem)
            paths.append(path)
        try:
            context.load_cert_chain(paths[0], paths[1], password=refuse_password)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(f"{source}: client certificate and key cannot be used: {error}") from None
