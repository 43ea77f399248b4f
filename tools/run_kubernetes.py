"""Run a real Kubernetes control plane on this machine: etcd, kube-apiserver and kube-controller-manager.

    python tools/run_kubernetes.py --data-dir DIR         prints the kubeconfig's path; Ctrl-C stops it

The tests, the benchmark and people who want to compare behaviours all start it through `Kubernetes` below. It
listens on the loopback interface only, on free ports, and keeps everything (certificates, keys, logs, etcd's
data) under one folder. The administrator's client certificate (group system:masters) is in `DIR/kubeconfig`,
mode 0600.

Only those controllers run that are part of what an API server promises: garbage collection, the life of
namespaces and their service accounts, the roles that are made of others. The controllers of workloads would need
nodes, so a Deployment stays as it was written; add them with `--controllers`.

It must never leave a process behind: the programs get their own process group, so that Ctrl-C reaches us first
and they stop in order (etcd last), and on Linux the kernel ends them if we are killed.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import ctypes
import datetime
import ipaddress
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Self

import build_kubernetes
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",  # without it the roles admin, edit and view allow nothing
)
START_SECONDS = 90.0
STOP_SECONDS = 10.0


class DidNotStartError(Exception):
    """A program ended or stayed silent; the message has the end of its log."""


def find_binaries(progress: build_kubernetes.Progress = print) -> Path:
    """The folder with the three programs: KUBEBUILDER_ASSETS if set, else built from Go modules."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if not given:
        return build_kubernetes.build(build_kubernetes.KUBERNETES, progress)
    missing = [p.name for p in build_kubernetes.KUBERNETES.programs if not (Path(given) / p.name).is_file()]
    if missing:
        raise DidNotStartError(f"KUBEBUILDER_ASSETS={given} lacks {', '.join(missing)}")
    return Path(given)


class Kubernetes:
    """One control plane with its data under `data_dir`, between `start` and `stop`.

    `fsync=False` lets etcd acknowledge writes before they are on disk, and all programs collect garbage more seldom:
    right for tests, wrong for benchmarks.
    """

    def __init__(
        self,
        data_dir: Path,
        binaries: Path,
        *,
        fsync: bool = False,
        controllers: Sequence[str] = CONTROLLERS,
        apiserver_flags: Sequence[str] = (),
    ) -> None:
        self.data_dir = data_dir.resolve()
        self.kubeconfig = self.data_dir / "kubeconfig"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._binaries = binaries
        self._fsync = fsync
        self._controllers = controllers
        self._apiserver_flags = apiserver_flags
        self._ports: list[int] = []
        """Chosen at the first start and kept: clients that live through a restart find the server again."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Return when the API server is ready and the controllers have done their first work."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.kubeconfig.unlink(missing_ok=True)
        keys = self.data_dir / "pki"
        write_certificates(keys)
        self._ports = self._ports or free_ports(3)
        store, peers, port = self._ports
        self.url = f"https://127.0.0.1:{port}"
        self.ca_file = keys / "ca.crt"
        kubeconfig = kubeconfig_text(self.url, keys)
        (self.data_dir / "controller-manager.kubeconfig").touch(mode=0o600)
        (self.data_dir / "controller-manager.kubeconfig").write_text(kubeconfig)
        self._launch("etcd", self._etcd_flags(store, peers))
        self._launch("kube-apiserver", self._server_flags(keys, store, port))
        self._wait("/readyz")
        self._launch("kube-controller-manager", self._controller_flags(keys))
        if "serviceaccount-controller" in self._controllers:
            self._wait("/api/v1/namespaces/default/serviceaccounts/default")
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(kubeconfig)

    def _etcd_flags(self, store: int, peers: int) -> list[str]:
        flags = [
            f"--data-dir={self.data_dir / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{store}",
            f"--advertise-client-urls=http://127.0.0.1:{store}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-cluster=default=http://127.0.0.1:{peers}",
            "--log-level=warn",
        ]
        return flags if self._fsync else [*flags, "--unsafe-no-fsync"]

    def _server_flags(self, keys: Path, store: int, port: int) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{store}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            # The address of the `kubernetes` Service may not be a loopback one, so it is not published.
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={keys / 'server.crt'}",
            f"--tls-private-key-file={keys / 'server.key'}",
            f"--client-ca-file={keys / 'ca.crt'}",
            f"--service-account-key-file={keys / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={keys / 'service-accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            *self._apiserver_flags,
        ]

    def _controller_flags(self, keys: Path) -> list[str]:
        return [
            f"--kubeconfig={self.data_dir / 'controller-manager.kubeconfig'}",
            f"--controllers={','.join(self._controllers)}",
            f"--service-account-private-key-file={keys / 'service-accounts.key'}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]

    def _launch(self, name: str, flags: list[str]) -> None:
        with (self.data_dir / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(self._binaries / name), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=None if self._fsync else {"GOGC": "400", **os.environ},  # tests: a fifth less work, for 100 MB
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one call)
            )

    def _wait(self, path: str, *, without: str = "") -> None:
        """`without`: a program that may have ended meanwhile."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(self.data_dir / "pki" / "admin.crt", self.data_dir / "pki" / "admin.key")
        deadline = time.monotonic() + START_SECONDS
        while True:
            with (
                contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
                urllib.request.urlopen(self.url + path, context=context, timeout=5),
            ):
                return
            for name, process in self.processes.items():
                if name != without and process.poll() is not None:
                    raise DidNotStartError(f"{name} ended with code {process.returncode}:\n{self.log_tail(name)}")
            if time.monotonic() > deadline:
                raise DidNotStartError(f"no answer at {path}:\n{self.log_tail('kube-apiserver')}")
            time.sleep(0.1)

    def log_tail(self, name: str, lines: int = 15) -> str:
        text = (self.data_dir / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def kill(self, name: str) -> None:
        """`kill -9` one of the programs."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def restart_apiserver(self) -> None:
        """Kill kube-apiserver and start it again on the same port; returns when it is ready."""
        store, _, port = self._ports
        self.kill("kube-apiserver")
        keys = self.data_dir / "pki"
        self._launch("kube-apiserver", self._server_flags(keys, store, port))
        self._wait("/readyz", without="kube-controller-manager")
        # It gives up on a server that does not answer within ten seconds of its own start.
        if self.processes["kube-controller-manager"].poll() is not None:
            self._launch("kube-controller-manager", self._controller_flags(keys))

    def snapshot(self, folder: Path) -> None:
        """Copy etcd's data as it is at this moment, as a snapshot of its disk would."""
        etcd = self.processes["etcd"]
        etcd.send_signal(signal.SIGSTOP)
        try:
            shutil.copytree(self.data_dir / "etcd", folder)
        finally:
            etcd.send_signal(signal.SIGCONT)

    def restore(self, folder: Path) -> None:
        """Go back to a snapshot, with the same certificates and ports, and without a higher revision."""
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            self.kill(name)
        shutil.rmtree(self.data_dir / "etcd")
        shutil.copytree(folder, self.data_dir / "etcd")
        self.start()

    def stop(self) -> None:
        """End everything that was started, those who use others first."""
        for name in reversed(self.processes):
            process = self.processes[name]
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()


def end_with_parent() -> None:
    """In the child, before exec: ask the kernel for SIGKILL when the parent dies (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Ports that no process listens on now; all are kept open until the last is found, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


def write_certificates(folder: Path) -> None:
    """A CA, the server's and the administrator's certificates, and the key pair of service accounts."""
    if (folder / "service-accounts.pub").exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_key = _new_key(folder / "ca.key")
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-kubernetes-ca")])
    ca = (
        _certificate(ca_name, ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    names = [
        x509.DNSName("localhost"),
        x509.DNSName("kubernetes.default.svc"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    for file, subject, usage in (
        ("server", [(NameOID.COMMON_NAME, "kube-apiserver")], ExtendedKeyUsageOID.SERVER_AUTH),
        (
            "admin",
            [(NameOID.ORGANIZATION_NAME, "system:masters"), (NameOID.COMMON_NAME, "kubernetes-admin")],
            ExtendedKeyUsageOID.CLIENT_AUTH,
        ),
    ):
        key = _new_key(folder / f"{file}.key")
        name = x509.Name([x509.NameAttribute(oid, text) for oid, text in subject])
        signed = (
            _certificate(name, ca_name, key)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        (folder / f"{file}.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    accounts = _new_key(folder / "service-accounts.key").public_key()
    (folder / "service-accounts.pub").write_bytes(
        accounts.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _new_key(path: Path) -> rsa.RSAPrivateKey:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return key


def _certificate(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=365))
    )


def kubeconfig_text(url: str, keys: Path) -> str:
    def data(name: str) -> str:
        return base64.b64encode((keys / name).read_bytes()).decode()

    admin = {"client-certificate-data": data("admin.crt"), "client-key-data": data("admin.key")}
    # JSON is YAML; this keeps a dependency out of a script.
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": data("ca.crt")}}],
            "users": [{"name": "admin", "user": admin}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        },
        indent=1,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a real Kubernetes control plane until Ctrl-C.")
    parser.add_argument("--data-dir", type=Path, required=True, help="certificates, logs, etcd's data")
    parser.add_argument("--fsync", action="store_true", help="let etcd write durably, as in production")
    parser.add_argument("--controllers", default=",".join(CONTROLLERS), help="for kube-controller-manager")
    options = parser.parse_args()

    def to_stderr(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        control_plane = Kubernetes(
            options.data_dir,
            find_binaries(to_stderr),
            fsync=options.fsync,
            controllers=options.controllers.split(","),
        )
        with control_plane:
            print(control_plane.kubeconfig, flush=True)
            to_stderr("ready; Ctrl-C stops it")
            while all(process.poll() is None for process in control_plane.processes.values()):
                time.sleep(0.5)
            to_stderr(f"a program ended by itself; see the logs in {control_plane.data_dir}")
            return 1
    except (DidNotStartError, build_kubernetes.UnavailableError, build_kubernetes.BuildFailedError) as error:
        to_stderr(str(error))
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
