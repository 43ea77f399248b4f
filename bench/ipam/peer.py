"""The peer: Cluster API's in-cluster IPAM provider, its own program with its own settings, on our server.

The program and the CRDs come from its Go module (tools/peers). Its webhooks are off, which spares it work: they
check pools, not claims. Everything else is as shipped; its client has no rate limit. It hands out one address to a
claim, so it solves a smaller problem than a range, and it is given a fresh namespace and a pool that cannot run out.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import build_kubernetes
from build_kubernetes import IN_CLUSTER_IPAM
from run_kubernetes import end_with_parent, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

MODULE = "sigs.k8s.io/cluster-api-ipam-provider-in-cluster"
GROUP = "ipam.cluster.x-k8s.io"
CLAIMS = f"/apis/{GROUP}/v1beta2/namespaces/{{namespace}}/ipaddressclaims"
POOLS = f"/apis/{GROUP}/v1alpha2/namespaces/{{namespace}}/inclusterippools"
BOUND = b'"addressRef":{'
"""What a claim's status shows once it has an address."""


def version() -> str:
    return build_kubernetes.pinned_version("in-cluster-ipam", MODULE)


def crds() -> list[Path]:
    """Its own CRDs, and Cluster API's as it ships them for its own tests; asked from Go's module cache."""
    go = shutil.which("go")
    if go is None:
        raise build_kubernetes.UnavailableError("there is no `go` on the PATH")
    answer = subprocess.run(
        [go, "mod", "download", "-json", f"{MODULE}@{version()}"],
        cwd=build_kubernetes.recipe("in-cluster-ipam"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if answer.returncode != 0:
        raise build_kubernetes.UnavailableError(f"{MODULE} cannot be fetched: {answer.stdout}{answer.stderr}")
    folder = Path(json.loads(answer.stdout)["Dir"]) / "config/crd"
    return [folder / "bases", folder / "test"]


def prepare(plane: ControlPlane) -> None:
    """Give the server the kinds that the peer works with."""
    for folder in crds():
        plane.kubectl("apply", "--server-side", "-f", str(folder))
    plane.kubectl("wait", "--for=condition=Established", "--all", "crd", "--timeout=60s")


def pool() -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "InClusterIPPool",
        "metadata": {"name": "peer-pool"},
        "spec": {"addresses": ["10.128.0.0/16"], "prefix": 16, "gateway": "10.128.0.1"},
    }


def claim(number: int) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "IPAddressClaim",
        "metadata": {"name": f"claim-{number:05}"},
        "spec": {"poolRef": {"apiGroup": GROUP, "kind": "InClusterIPPool", "name": "peer-pool"}},
    }


@contextmanager
def running(kubeconfig: Path, namespace: str, log_file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The provider as a process, for one namespace, ended with the block."""
    program = build_kubernetes.build(IN_CLUSTER_IPAM) / "in-cluster-ipam"
    diagnostics, probes = free_ports(2)
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            [
                program, f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", "--webhook-port=0",
                "--insecure-diagnostics", f"--diagnostics-address=127.0.0.1:{diagnostics}",
                f"--health-probe-bind-address=127.0.0.1:{probes}",
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=dict(os.environ),
            preexec_fn=end_with_parent,  # noqa: PLW1509 (one call)
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def tail(log_file: Path, lines: int = 10) -> str:
    return "\n".join(log_file.read_text(errors="replace").splitlines()[-lines:])
