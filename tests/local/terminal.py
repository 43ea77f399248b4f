"""kubectl in one namespace, as tests use it: what it prints when it succeeds, what it says when it does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

ANYTHING = str | dict[str, Any]


class Kubectl:
    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane = control_plane
        self.namespace = namespace
        self._environment = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}

    def run(
        self, *arguments: str, stdin: ANYTHING | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        text = json.dumps(stdin) if isinstance(stdin, dict) else stdin
        return subprocess.run(
            [BIN / "kubectl", "--namespace", self.namespace, *arguments],
            env=self._environment | environment, input=text, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def __call__(self, *arguments: str, stdin: ANYTHING | None = None, **environment: str) -> str:
        """What a command prints; it must succeed."""
        result = self.run(*arguments, stdin=stdin, **environment)
        assert result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}"
        return result.stdout

    def refused(self, *arguments: str, stdin: ANYTHING | None = None, **environment: str) -> str:
        """What a command complains about; it must fail."""
        result = self.run(*arguments, stdin=stdin, **environment)
        assert result.returncode != 0, f"kubectl {' '.join(arguments)} succeeded: {result.stdout}"
        return result.stderr.rstrip("\n")

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def table(self, *arguments: str) -> list[list[str]]:
        """The cells of a table; columns are at least two spaces apart."""
        return [re.split(r" {2,}", line.rstrip()) for line in self(*arguments).splitlines()]

    def names(self, kinds: str, *arguments: str) -> list[str]:
        found = self("get", kinds, "-o", "name", *arguments).split()
        return [name for name in found if name not in ("serviceaccount/default", "configmap/kube-root-ca.crt")]

    @contextmanager
    def going_on(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs until the block ends, such as a watch."""
        process = subprocess.Popen(
            [BIN / "kubectl", "--namespace", self.namespace, *arguments],
            env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a command prints; the time limit of the test is the limit."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def config_map(name: str, data: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return found if data is None else {**found, "data": data}


def network_pool(name: str, cidr: object = "10.40.0.0/21", **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "NetworkPool",
        "metadata": {"name": name},
        "spec": {"cidr": cidr, **spec},
    }
