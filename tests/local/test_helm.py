"""The real helm, with a small chart of one object of every common sort, on both servers.

Helm is the first program that people point at a new cluster, and it leans on much of the API at once: discovery,
server-side apply and three-way merges, secrets of its own as memory, watches to wait with. No controller runs here,
so where helm waits for a Deployment, the test itself says that it is ready.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

CHART = str(Path(__file__).parent / "chart")
KINDS = "configmaps,secrets,services,deployments,serviceaccounts,roles,rolebindings,greetings"


class Helm:
    """Helm in one namespace."""

    def __init__(self, control_plane: ControlPlane, namespace: str, home: Path) -> None:
        self.control_plane = control_plane
        self.namespace = namespace
        self._program = tools.helm()
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(control_plane.kubeconfig),
            **{f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")},
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, "--namespace", self.namespace, *arguments],
            env=self._environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def __call__(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.returncode == 0, f"helm {' '.join(arguments)}: {result.stderr}"
        return result.stdout

    def refused(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.returncode != 0, f"helm {' '.join(arguments)} succeeded: {result.stdout}"
        return result.stderr

    def history(self, release: str) -> list[tuple[int, str, str]]:
        found = json.loads(self("history", release, "-o", "json"))
        return [(item["revision"], item["status"], item["description"]) for item in found]

    def kubectl(self, *arguments: str) -> str:
        return self.control_plane.kubectl("--namespace", self.namespace, *arguments).stdout

    def objects(self) -> set[str]:
        """What is in the namespace, without what Kubernetes and helm keep there for themselves."""
        names = self.kubectl("get", KINDS, "-o", "name").split()
        return {
            name for name in names
            if not name.startswith("secret/sh.helm.release") and name not in ("serviceaccount/default", *ROOT_CA)
        }  # fmt: skip

    def greeting(self) -> str:
        """What the installed chart says, in four places that must agree."""
        said = {
            self.kubectl("get", "configmap", "hi", "-o", "jsonpath={.data.greeting}"),
            self.kubectl("get", "greeting", "hi", "-o", "jsonpath={.spec.text}"),
            self.kubectl("get", "secret", "hi", "-o", 'go-template={{index .data "greeting" | base64decode}}'),
            self.kubectl("get", "deployment", "hi", "-o", "jsonpath={..env[0].value}"),
        }
        [agreed] = said
        return agreed


ROOT_CA = ("configmap/kube-root-ca.crt",)
EVERYTHING = {
    "configmap/hi",
    "configmap/hi-before",
    "secret/hi",
    "service/hi",
    "deployment.apps/hi",
    "serviceaccount/hi",
    "role.rbac.authorization.k8s.io/hi",
    "rolebinding.rbac.authorization.k8s.io/hi",
    "greeting.tests.butlerlabs.dev/hi",
}


@pytest.fixture
def helm(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Helm]:
    namespace = control_plane.fresh_namespace("helm")
    yield Helm(control_plane, namespace, tmp_path)
    if not control_plane.disposable:
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}")


def test_a_chart_is_installed_with_everything_in_it(helm: Helm) -> None:
    printed = helm("install", "hi", CHART)
    assert "STATUS: deployed" in printed
    assert "REVISION: 1" in printed
    assert f"hi says hello in {helm.namespace}." in printed
    assert helm.objects() == EVERYTHING
    assert helm.greeting() == "hello"


def test_what_was_installed_is_listed_and_told(helm: Helm) -> None:
    helm("install", "hi", CHART, "--set", "greeting=moin")
    [listed] = json.loads(helm("list", "-o", "json"))
    assert (listed["name"], listed["revision"], listed["status"]) == ("hi", "1", "deployed")
    assert listed["chart"] == "greeter-0.1.0"
    assert "STATUS: deployed" in helm("status", "hi")
    assert json.loads(helm("get", "values", "hi", "-o", "json")) == {"greeting": "moin"}
    assert json.loads(helm("get", "values", "hi", "--all", "-o", "json"))["replicas"] == 2
    assert "kind: RoleBinding" in helm("get", "manifest", "hi")
    assert "helm.sh/hook: pre-install" in helm("get", "hooks", "hi")
    assert helm("list", "--short") == "hi\n"


def test_a_status_shows_the_objects_as_tables(helm: Helm) -> None:
    helm("install", "hi", CHART)
    printed = helm("status", "hi")
    for table in ("v1/ServiceAccount", "v1/Service", "v1/Deployment", "v1/Greeting", "v1/Role"):
        assert f"==> {table}\nNAME " in printed
    assert "0/2" in printed, "the Deployment's pods are counted"


def test_an_upgrade_changes_and_a_rollback_restores(helm: Helm) -> None:
    helm("install", "hi", CHART)
    printed = helm("upgrade", "hi", CHART, "--set", "greeting=hej", "--set", "replicas=3")
    assert 'Release "hi" has been upgraded. Happy Helming!' in printed
    assert helm.greeting() == "hej"
    assert helm.kubectl("get", "deployment", "hi", "-o", "jsonpath={.spec.replicas}") == "3"
    assert helm.kubectl("get", "configmap", "hi-before", "-o", "jsonpath={.data.revision}") == "2", "the hook ran again"
    assert helm("rollback", "hi", "1") == "Rollback was a success! Happy Helming!\n"
    assert helm.greeting() == "hello"
    assert helm.kubectl("get", "deployment", "hi", "-o", "jsonpath={.spec.replicas}") == "2"
    assert helm.history("hi") == [
        (1, "superseded", "Install complete"),
        (2, "superseded", "Upgrade complete"),
        (3, "deployed", "Rollback to 1"),
    ]


def test_an_upgrade_removes_what_left_the_chart(helm: Helm) -> None:
    helm("install", "hi", CHART)
    helm("upgrade", "hi", CHART, "--set", "workload=false")
    assert helm.objects() == EVERYTHING - {"deployment.apps/hi"}


def test_upgrade_with_install_installs_what_is_not_there(helm: Helm) -> None:
    printed = helm("upgrade", "--install", "hi", CHART)
    assert 'Release "hi" does not exist. Installing it now.' in printed
    helm("upgrade", "--install", "hi", CHART, "--set", "greeting=servus")
    assert [status for _, status, _ in helm.history("hi")] == ["superseded", "deployed"]
    assert helm.greeting() == "servus"


def test_an_uninstall_leaves_nothing_but_hooks_and_definitions(helm: Helm) -> None:
    helm("install", "hi", CHART)
    assert helm("uninstall", "hi", "--wait") == 'release "hi" uninstalled\n'
    assert helm.objects() == {"configmap/hi-before"}
    assert helm("list", "--short") == ""
    assert "greetings.tests.butlerlabs.dev" in helm.kubectl("get", "crd", "-o", "name")
    assert "release: not found" in helm.refused("status", "hi")


def test_an_uninstall_can_keep_the_history(helm: Helm) -> None:
    helm("install", "hi", CHART)
    helm("uninstall", "hi", "--keep-history")
    assert [status for _, status, _ in helm.history("hi")] == ["uninstalled"]


def test_a_name_is_taken_once(helm: Helm) -> None:
    helm("install", "hi", CHART)
    assert "cannot reuse a name that is still in use" in helm.refused("install", "hi", CHART)


def test_an_object_of_someone_else_is_not_taken_over(helm: Helm) -> None:
    helm.kubectl("create", "configmap", "hi")
    refusal = helm.refused("install", "hi", CHART)
    assert 'ConfigMap "hi" in namespace' in refusal
    assert "exists and cannot be imported into the current release: invalid ownership metadata" in refusal
    assert helm.objects() == {"configmap/hi"}


BAD_PORT = "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive"


def test_an_upgrade_that_the_server_refuses_is_marked_as_failed_and_can_be_rolled_back(helm: Helm) -> None:
    helm("install", "hi", CHART)
    assert BAD_PORT in helm.refused("upgrade", "hi", CHART, "--set", "badManifest=true,greeting=broken")
    [first, second] = helm.history("hi")
    assert first[:2] == (1, "deployed")
    assert second[:2] == (2, "failed")
    assert BAD_PORT in second[2]
    helm("rollback", "hi", "1")
    assert helm.greeting() == "hello"
    assert helm.objects() == EVERYTHING


def test_an_upgrade_that_fails_rolls_itself_back_if_told_so(helm: Helm) -> None:
    helm("install", "hi", CHART, "--set", "workload=false")
    refusal = helm.refused(
        "upgrade", "hi", CHART, "--set", "workload=false,badManifest=true", "--rollback-on-failure", "--timeout", "20s"
    )
    assert BAD_PORT in refusal
    assert "has been rolled back due to rollback-on-failure being set" in refusal
    assert [status for _, status, _ in helm.history("hi")] == ["superseded", "failed", "deployed"]
    assert helm.history("hi")[-1][2] == "Rollback to 1"


def test_an_install_that_a_schema_refuses_is_marked_as_failed(helm: Helm) -> None:
    refusal = helm.refused("install", "hi", CHART, "--set", "greeting=a-greeting-that-never-ends")
    assert "spec.text: Too long: may not be more than 20 bytes" in refusal
    [release] = helm.history("hi")
    assert release[1] == "failed"
    helm("upgrade", "hi", CHART, "--set", "greeting=short")
    assert helm.greeting() == "short"


def test_a_manifest_of_an_unknown_kind_is_refused_before_anything_is_made(helm: Helm, tmp_path: Path) -> None:
    chart = tmp_path / "odd"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: odd, version: 0.1.0}")
    (chart / "templates" / "odd.yaml").write_text("{apiVersion: no.such/v1, kind: Odd, metadata: {name: odd}}")
    refusal = helm.refused("install", "odd", str(chart))
    assert 'no matches for kind "Odd" in version "no.such/v1"' in refusal
    assert "ensure CRDs are installed first" in refusal
    assert helm.objects() == set()


def test_a_dry_run_asks_the_server_and_changes_nothing(helm: Helm) -> None:
    printed = helm("install", "hi", CHART, "--dry-run=server")
    assert "STATUS: pending-install" in printed
    assert "kind: Deployment" in printed
    assert helm.objects() == set()
    assert helm("list", "--short") == ""


def test_three_way_merges_leave_alone_what_others_changed(helm: Helm) -> None:
    helm("install", "hi", CHART, "--server-side=false")
    helm.kubectl("label", "configmap", "hi", "kept=yes")
    helm.kubectl("patch", "configmap", "hi", "-p", '{"data":{"extra":"kept"}}')
    helm("upgrade", "hi", CHART, "--set", "greeting=ahoj", "--server-side=false")
    found = json.loads(helm.kubectl("get", "configmap", "hi", "-o", "json"))
    assert found["data"]["extra"] == "kept"
    assert found["metadata"]["labels"]["kept"] == "yes"
    assert helm.greeting() == "ahoj"


def test_server_side_apply_does_not_overrule_others_unless_forced(helm: Helm) -> None:
    helm("install", "hi", CHART)
    helm.kubectl("patch", "configmap", "hi", "-p", '{"data":{"greeting":"mine"}}')
    refusal = helm.refused("upgrade", "hi", CHART, "--set", "greeting=theirs")
    assert 'conflict with "kubectl-patch" using v1: .data.greeting' in refusal
    helm("upgrade", "hi", CHART, "--set", "greeting=theirs", "--force-conflicts")
    assert helm.greeting() == "theirs"


def test_an_install_waits_until_objects_are_current(helm: Helm) -> None:
    helm("install", "hi", CHART, "--set", "workload=false", "--wait", "--timeout", "20s")
    assert [status for _, status, _ in helm.history("hi")] == ["deployed"]


def test_an_install_waits_until_the_deployment_is_ready(helm: Helm) -> None:
    controller = Controller(helm)
    controller.start()
    try:
        helm("install", "hi", CHART, "--wait", "--timeout", "40s")
    finally:
        controller.join()
    assert controller.done, "helm waited for what was never said"
    assert [status for _, status, _ in helm.history("hi")] == ["deployed"]


def test_an_install_gives_up_waiting_for_what_never_gets_ready(helm: Helm) -> None:
    refusal = helm.refused("install", "hi", CHART, "--wait", "--timeout", "2s")
    assert "context deadline exceeded" in refusal
    assert [status for _, status, _ in helm.history("hi")] == ["failed"]


class Controller(threading.Thread):
    """Says once that the chart's Deployment is ready, as soon as there is one."""

    def __init__(self, helm: Helm) -> None:
        super().__init__(daemon=True)
        self.done = False
        self._request = helm.control_plane.request
        self._path = f"/apis/apps/v1/namespaces/{helm.namespace}/deployments/hi"

    def run(self) -> None:
        deadline = time.monotonic() + 30
        while not self.done and time.monotonic() < deadline:
            code, deployment = self._request("GET", self._path)
            if code == 200:
                self.done = self._request("PUT", f"{self._path}/status", ready(deployment))[0] == 200
            time.sleep(0.2)


def ready(deployment: dict[str, Any]) -> dict[str, Any]:
    wanted = deployment["spec"]["replicas"]
    deployment["status"] = {
        "observedGeneration": deployment["metadata"]["generation"],
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "ready"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "done"},
        ],
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted),
    }
    return deployment
