"""`butleradm server`: the server as a process, links and passwords from a terminal, and https."""

from __future__ import annotations

import asyncio
import base64
import re
import signal
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING

import aiohttp
import pytest
from tls_files import certificate_for_loopback

from butler.kube import config
from butler.server import certificate as certificate_module
from butler.server.process import Settings, running
from control_planes import BIN
from server.browser import Browser
from server.eventually import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Server:
    """`butleradm server run` as a process."""

    def __init__(self, plane: ControlPlane, *options: str) -> None:
        self._command = [f"{BIN}/butleradm", "server", "run", "--kubeconfig", str(plane.kubeconfig), *options]

    async def __aenter__(self) -> Server:
        self.process = await asyncio.create_subprocess_exec(
            *self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()

    async def told(self, pattern: str) -> str:
        """The first thing on its terminal that looks like this."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            async for line in self.process.stdout:
                if found := re.search(pattern, line.decode()):
                    return found[0]
        raise AssertionError(f"{pattern} was never said")


def command(plane: ControlPlane, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [f"{BIN}/butleradm", "server", *words, "--kubeconfig", str(plane.kubeconfig)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


async def test_a_server_prints_a_link_and_ends_when_told(plane: ControlPlane, tmp_path: Path) -> None:
    trail = tmp_path / "audit" / "lines.json"
    async with Server(plane, "--local", "--port", "0", "--audit-file", str(trail)) as server:
        link = await server.told(r"http://127\.0\.0\.1:\d+/link\?token=\S+")
        url = link.partition("/link")[0]
        async with Browser(url) as browser:
            me = await browser.come_in(link)
            assert me["via"] == "link"
            again = await asyncio.to_thread(command, plane, "link")
            assert again.returncode == 0, again.stderr
            assert again.stdout.startswith(f"{url}/link?token=")
            async with Browser(url) as other:
                assert (await other.come_in(again.stdout.strip()))["user"] == me["user"]
        assert trail.stat().st_mode & 0o777 == 0o600
        assert trail.read_text().count('"verb":"log in"') == 2
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            _, log = await server.process.communicate()
        assert server.process.returncode == 0, log.decode()[-2000:]
        assert link.partition("token=")[2] not in log.decode()


async def test_a_password_is_printed_once_and_opens_the_console(plane: ControlPlane) -> None:
    made = await asyncio.to_thread(command, plane, "password", "--login", "root", "--group", "ops", "--group", "dev")
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"([a-z2-9]{5}-){4}[a-z2-9]{5}\n", made.stdout)
    assert made.stdout.strip() not in made.stderr
    async with (
        running(config.load(plane.kubeconfig), Settings(local_admin=True)) as up,
        Browser(up.url) as browser,
    ):
        login = {"user": "root", "password": made.stdout.strip()}
        came = await browser.call("POST", "/api/v1/login/password", json=login)
        assert (came.status, came.body["user"]) == (200, "butler:admin")
        assert came.body["groups"] == ["ops", "dev", "system:authenticated"]
    reset = await asyncio.to_thread(command, plane, "password")
    assert reset.stdout != made.stdout
    assert "root" in reset.stderr  # the account stays what it was
    for word in ("--group=system:masters", "--user=system:admin"):
        refused = await asyncio.to_thread(command, plane, "password", word)
        assert refused.returncode == 2
        assert "keeps for itself" in refused.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "there is no way to log in"),
        (("--local", "--host", "0.0.0.0"), "others could read along"),
        (("--local-admin", "--host", "0.0.0.0", "--behind-proxy"), "give --url"),
        (("--oidc-issuer", "http://sso.example.com", "--oidc-client-id", "x"), "not https"),
        (("--oidc-issuer", "https://sso.example.com"), "--oidc-client-id"),
        (("--local", "--oidc-client-id", "x"), "need --oidc-issuer"),
    ],
)
async def test_a_server_that_would_be_unsafe_does_not_start(
    plane: ControlPlane, options: tuple[str, ...], why: str
) -> None:
    said = await asyncio.to_thread(command, plane, "run", *options)
    assert said.returncode == 2
    assert why in said.stderr


async def test_over_https_cookies_are_for_this_host_alone_and_new_certificates_are_taken_up(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate_module, "LOOK_EVERY", 0.1)
    both, authority = certificate_for_loopback(tmp_path)
    settings = Settings(local=True, tls_certificate=both, tls_key=both)
    async with running(config.load(plane.kubeconfig), settings) as up:
        assert up.url.startswith("https://127.0.0.1:")
        trusting = _trusting(authority)
        async with Browser(up.url) as browser:
            shown = await browser.get("/link", ssl=trusting)
            assert shown.headers["Strict-Transport-Security"].startswith("max-age=")
            token = (await up.one_time_link()).partition("token=")[2]
            opened = await browser.call("POST", "/link", data={"token": token}, ssl=trusting)
            assert opened.status == 303
            assert opened.set_cookies[0].startswith("__Host-butler-session=")
            assert {"secure", "httponly", "path=/"} <= {
                part.strip().lower() for part in opened.set_cookies[0].split(";")
            }
            assert "domain" not in opened.set_cookies[0].lower()
        _, other = certificate_for_loopback(tmp_path)
        trusting = _trusting(other)

        async def changed() -> None:
            async with Browser(up.url) as fresh:
                try:
                    assert (await fresh.get("/link", ssl=trusting)).status == 200
                except aiohttp.ClientSSLError as error:
                    raise AssertionError("the old certificate is still served") from error

        await eventually(changed)


def _trusting(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=base64.b64decode(authority).decode())


async def test_behind_a_proxy_only_https_is_taken(plane: ControlPlane) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = Settings(local_admin=True, behind_proxy=True, url="https://butler.example.com", port=port)
    async with running(config.load(plane.kubeconfig), settings) as up, aiohttp.ClientSession() as proxy:
        assert up.url == "https://butler.example.com"
        here = f"http://127.0.0.1:{port}"
        sent = {"Host": "butler.example.com", "X-Forwarded-Proto": "http"}
        async with proxy.get(f"{here}/pools", headers=sent, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (308, "https://butler.example.com")
        async with proxy.get(f"{here}/", headers={**sent, "X-Forwarded-Proto": "https"}) as answer:
            assert answer.headers["Strict-Transport-Security"]
            assert answer.status in (200, 503)
        async with proxy.get(f"{here}/", headers={"X-Forwarded-Proto": "https"}) as answer:
            assert answer.status == 421
