"""The two API servers that tests run on, started for real and seen through one small class.

`embedded()` starts kubeserver by a command, as a user would; `kubernetes()` starts etcd, kube-apiserver and
kube-controller-manager (tools/run_kubernetes.py), or takes the server that BUTLER_TEST_KUBECONFIG names. Both are
context managers that give a `ControlPlane` and stop what they started. A test that runs on both must not be able
to tell which one it got, so nothing here offers a short cut into either server.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from run_kubernetes import Kubernetes, end_with_parent, find_binaries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BIN = Path(sys.executable).parent
EMBEDDED_START_SECONDS = 60.0
EMBEDDED_STOP_SECONDS = 20.0


@dataclass(frozen=True)
class ControlPlane:
    """An API server and the administrator's way in."""

    name: str
    kubeconfig: Path
    url: str
    ca_file: Path
    tls: ssl.SSLContext = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    disposable: bool = True  # ours: it goes away with its data, so tests need not clean up

    @classmethod
    def from_kubeconfig(cls, name: str, kubeconfig: Path, scratch: Path, *, disposable: bool = True) -> ControlPlane:
        """Read the current context: a token or a client certificate, inline or in files."""
        config = yaml.safe_load(kubeconfig.read_text())
        contexts = {item["name"]: item["context"] for item in config["contexts"]}
        context = contexts[config["current-context"]]
        cluster = {item["name"]: item["cluster"] for item in config["clusters"]}[context["cluster"]]
        user = {item["name"]: item.get("user") or {} for item in config["users"]}[context["user"]]
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        ca_file = _file(cluster, "certificate-authority", scratch, kubeconfig)
        tls = _trusting(ca_file)
        if "client-certificate-data" in user or "client-certificate" in user:
            tls.load_cert_chain(
                _file(user, "client-certificate", scratch, kubeconfig),
                _file(user, "client-key", scratch, kubeconfig),
            )
        headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        return cls(name, kubeconfig, cluster["server"], ca_file, tls, headers, disposable)

    def anonymous_tls(self) -> ssl.SSLContext:
        """Trust the server without showing a client certificate."""
        return _trusting(self.ca_file)

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """One blocking request as the administrator; the JSON answer, or text where it is not JSON."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, dict(self.headers), method=method)
        if data is not None:
            request.add_header("Content-Type", content_type)
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:
                return answer.status, _json_or_text(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _json_or_text(error.read())

    def fresh_namespace(self, prefix: str = "test") -> str:
        """Create a namespace that no other test uses."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        status, answer = self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert status == 201, answer
        return name

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl as the administrator."""
        result = subprocess.run(
            [BIN / "kubectl", *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            input=stdin, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert not check or result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}"
        return result


def _trusting(ca_file: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca_file))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # a server that was lent may have a plain CA
    return context


def _file(entry: dict[str, str], key: str, scratch: Path, kubeconfig: Path) -> Path:
    if key in entry:
        return kubeconfig.parent / entry[key]
    path = scratch / key
    path.touch(mode=0o600)
    path.write_bytes(base64.b64decode(entry[f"{key}-data"]))
    return path


def _json_or_text(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


@contextmanager
def kubernetes(data_dir: Path, *, fsync: bool = False) -> Iterator[ControlPlane]:
    """A real Kubernetes; raises `build_kubernetes.UnavailableError` where none can be had."""
    given = os.environ.get("BUTLER_TEST_KUBECONFIG")
    if given:
        yield ControlPlane.from_kubeconfig("kubernetes", Path(given), data_dir / "client", disposable=False)
        return
    with Kubernetes(data_dir / "server", find_binaries(), fsync=fsync) as server:
        yield ControlPlane.from_kubeconfig("kubernetes", server.kubeconfig, data_dir / "client")


@contextmanager
def embedded(data_dir: Path, command: Sequence[str] = ("kubeserver",)) -> Iterator[ControlPlane]:
    """kubeserver, started by a command of this environment that takes `--data-dir` and `--port`."""
    server_dir = data_dir / "server"
    log_file = data_dir / "server.log"
    program, *options = command
    started = [f"{BIN}/{program}", *options, "--data-dir", f"{server_dir}"]
    if "--port" not in options:
        started += ["--port", "0"]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            started,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
        )
    try:
        kubeconfig = server_dir / "kubeconfig"
        _wait_for_embedded(process, kubeconfig, log_file)
        control_plane = ControlPlane.from_kubeconfig("embedded", kubeconfig, data_dir / "client")
        status, answer = control_plane.request("GET", "/readyz")
        assert status == 200, f"the kubeconfig was there before the server was ready: {answer}"
        yield control_plane
    finally:
        _stop(process)


def _wait_for_embedded(process: subprocess.Popen[bytes], kubeconfig: Path, log_file: Path) -> None:
    deadline = time.monotonic() + EMBEDDED_START_SECONDS
    while not kubeconfig.exists():
        ended = process.poll()
        assert ended is None, f"the server ended with code {ended}: {_tail(log_file)}"
        assert time.monotonic() < deadline, f"the server wrote no kubeconfig: {_tail(log_file)}"
        time.sleep(0.05)
    mode = kubeconfig.stat().st_mode & 0o777
    assert mode == 0o600, f"{kubeconfig} can be read by others (mode {mode:o})"


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(EMBEDDED_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log_file: Path) -> str:
    return "\n".join(log_file.read_text(errors="replace").splitlines()[-15:])
