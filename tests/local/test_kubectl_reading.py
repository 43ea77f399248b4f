"""The real kubectl, showing things on both servers: tables, watches, descriptions, explanations, waits.

Tables come from the server, descriptions are put together by kubectl from several requests, explanations are read
out of OpenAPI: each is a different way to find out that a server is not what it claims to be.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from local.terminal import config_map, line, network_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane
    from local.terminal import Kubectl

DEFAULT_NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"]


# get


@pytest.fixture
def three(kubectl: Kubectl) -> Kubectl:
    """A namespace with three ConfigMaps."""
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        kubectl("create", "-f", "-", stdin=config_map(name, {"n": name}, labels={"l": label}))
    return kubectl


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("-l=l=x", "ac"),
        ("-l=l!=x", "b"),
        ("-l=l in (x, y)", "abc"),
        ("-l=l notin (x),l", "b"),
        ("-l=!l", ""),
        ("--field-selector=metadata.name=b", "b"),
        ("--field-selector=metadata.name!=b", "ac"),
    ],
)
def test_selectors_choose(three: Kubectl, selector: str, found: str) -> None:
    assert three.names("configmaps", selector) == [f"configmap/{name}" for name in found]


def test_lists_in_pieces_are_whole(three: Kubectl) -> None:
    assert three.names("configmaps", "--chunk-size=1") == ["configmap/a", "configmap/b", "configmap/c"]


def test_output_forms(three: Kubectl) -> None:
    get = ("get", "configmaps", "-l", "l")
    assert three.table(*get, "--show-labels")[0] == ["NAME", "DATA", "AGE", "LABELS"]
    assert [row[-1] for row in three.table(*get, "-L", "l")] == ["L", "x", "y", "x"]
    assert three(*get, "--no-headers").count("\n") == 3
    assert three(*get, "--sort-by={.data.n}", "-o", "name").split()[-1] == "configmap/c"
    assert three(*get, "-o", "jsonpath={range .items[*]}{.data.n}-{end}") == "a-b-c-"
    assert three(*get, "-o", "go-template={{range .items}}{{.data.n}}{{end}}") == "abc"
    assert three.table(*get, "-o", "custom-columns=N:.data.n,M:.data.m")[:2] == [["N", "M"], ["a", "<none>"]]
    assert three("get", "configmap", "a", "-o", "yaml").startswith('apiVersion: v1\ndata:\n  "n": a\nkind: ConfigMap\n')
    assert three.json("get", "configmaps", "-l", "l")["kind"] == "List"
    managed = three.json("get", "configmap", "a", "--show-managed-fields")["metadata"]["managedFields"]
    assert [item["manager"] for item in managed] == ["kubectl-create"]


def test_wide_tables_have_more_columns(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "a", "--image=i", "--replicas=0")
    table = kubectl.table("get", "deployments", "-o", "wide")
    assert table[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert (table[1][:4], table[1][5:]) == (["a", "0/0", "0", "0"], ["i", "i", "app=a"])


def test_all_shows_the_kinds_of_a_workload(kubectl: Kubectl) -> None:
    assert kubectl.run("get", "all").stderr == f"No resources found in {kubectl.namespace} namespace.\n"
    kubectl("create", "deployment", "a", "--image=i", "--replicas=0")
    kubectl("create", "service", "clusterip", "a", "--tcp=80")
    kubectl("create", "configmap", "a")
    assert kubectl.names("all") == ["service/a", "deployment.apps/a"]


def test_several_kinds_come_in_several_tables(three: Kubectl) -> None:
    three("create", "serviceaccount", "robot")
    printed = three("get", "configmap/a", "serviceaccount/robot")
    assert [text.split()[0] for text in printed.splitlines() if text] == [
        "NAME", "configmap/a", "NAME", "serviceaccount/robot",
    ]  # fmt: skip


def test_a_category_and_a_short_name_of_ours(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=network_pool("a"))
    assert kubectl.names("butler") == kubectl.names("np") == ["networkpool.butler.butlerlabs.dev/a"]
    assert kubectl.names("networkpools.v1alpha1.butler.butlerlabs.dev") == kubectl.names("np")


def test_a_reader_of_endpoints_is_told_what_to_read_instead(kubectl: Kubectl) -> None:
    warning = "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\n"
    nothing = f"No resources found in {kubectl.namespace} namespace.\n"
    assert kubectl.run("get", "endpoints").stderr == warning + nothing
    assert kubectl.run("get", "endpointslices").stderr == nothing


# watch


def test_a_watch_shows_changes_as_they_happen(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    form = 'jsonpath={.data.x}{"\\n"}'
    with kubectl.going_on("get", "configmap", "a", "--watch", "-o", form) as watch:
        assert line(watch) == "1"
        kubectl("patch", "configmap", "a", "-p", '{"data":{"x":"2"}}')
        assert line(watch) == "2"


def test_a_watch_shows_tables_and_kinds_of_events(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=network_pool("a"))
    with kubectl.going_on("get", "networkpools", "--watch", "--output-watch-events") as watch:
        assert line(watch).split() == ["EVENT", "NAME", "CIDR", "AVAILABLE", "ALLOCATED", "TOTAL", "AGE"]
        assert line(watch).split()[:3] == ["ADDED", "a", "10.40.0.0/21"]
        kubectl("apply", "-f", "-", stdin=network_pool("a", "10.40.0.0/20"))
        assert line(watch).split()[:3] == ["MODIFIED", "a", "10.40.0.0/20"]
        kubectl("delete", "networkpool", "a")
        assert line(watch).split()[:2] == ["DELETED", "a"]


# wait


def test_wait_for_a_field(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    wait = ("wait", "configmap/a", "--timeout=30s")
    assert kubectl(*wait, "--for=jsonpath={.data.x}=1") == "configmap/a condition met\n"
    assert kubectl(*wait, "--for=create") == "configmap/a condition met\n"
    refusal = kubectl.refused("wait", "configmap/a", "--for=jsonpath={.data.x}=2", "--timeout=200ms")
    assert refusal == "error: timed out waiting for the condition on configmaps/a"


def test_wait_for_a_condition_that_comes(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=network_pool("a"))
    condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": WHEN}
    with kubectl.going_on("wait", "networkpool/a", "--for=condition=Ready", "--timeout=30s") as waiting:
        patch = json.dumps({"status": {"conditions": [condition]}})
        kubectl("patch", "networkpool", "a", "--subresource=status", "--type=merge", "-p", patch)
        assert line(waiting) == "networkpool.butler.butlerlabs.dev/a condition met"
        assert waiting.wait(30) == 0


WHEN = "2026-02-15T10:00:30Z"


def test_wait_for_an_end(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    with kubectl.going_on("wait", "configmap/a", "--for=delete", "--timeout=30s") as waiting:
        kubectl("delete", "configmap", "a")
        assert waiting.wait(30) == 0


# describe


@pytest.fixture
def node(control_plane: ControlPlane, kubectl: Kubectl) -> Iterator[str]:
    """The name of a node that says it is ready."""
    name = f"node-{kubectl.namespace}"
    kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "posting ready status"}
    status: dict[str, Any] = {
        "conditions": [condition],
        "capacity": {"cpu": "4", "memory": "8Gi"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.5"}],
        "nodeInfo": {"kubeletVersion": "v1.37.1", "osImage": "Talos", "kernelVersion": "6.12"},
    }
    kubectl("patch", "node", name, "--subresource=status", "-p", json.dumps({"status": status}))
    yield name
    kubectl("delete", "node", name)


def test_describe_a_node_and_take_it_out_of_use(kubectl: Kubectl, node: str) -> None:
    described = fields(kubectl("describe", "node", node))
    assert described["Name"] == node
    assert described["Unschedulable"] == "false"
    assert described["  InternalIP"] == "10.0.0.5"
    assert described["  memory"] == "8Gi"
    assert described["  Kubelet Version"] == "v1.37.1"
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    row = dict(zip(*kubectl.table("get", "node", node, "-o", "wide"), strict=True))
    assert (row["STATUS"], row["VERSION"], row["INTERNAL-IP"]) == ("Ready,SchedulingDisabled", "v1.37.1", "10.0.0.5")
    assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"
    assert kubectl("taint", "node", node, "a=b:NoSchedule") == f"node/{node} tainted\n"
    assert kubectl("taint", "node", node, "a-") == f"node/{node} untainted\n"


def fields(description: str) -> dict[str, str]:
    """The `name: value` lines of a description."""
    pairs = (text.partition(":") for text in description.splitlines())
    return {name: rest.strip() for name, colon, rest in pairs if colon}


def test_describe_a_pod_with_its_events(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=POD)
    uid = kubectl("get", "pod", "a", "-o", "jsonpath={.metadata.uid}")
    kubectl("create", "-f", "-", stdin=event(kubectl.namespace, "v1", "Pod", "a", uid))
    printed = kubectl("describe", "pod", "a")
    described = fields(printed)
    assert (described["Status"], described["Node"], described["    Image"]) == ("Pending", "<none>", "i")
    assert described["QoS Class"] == "BestEffort"
    assert printed.splitlines()[-1].split()[:2] == ["Warning", "Unhappy"]
    assert printed.splitlines()[-1].endswith("tests  it hurts")


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {
        "automountServiceAccountToken": False,
        "serviceAccountName": "default",
        "containers": [{"name": "c", "image": "i"}],
    },
}


def event(namespace: str, version: str, kind: str, name: str, uid: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1"},
        "involvedObject": {
            "apiVersion": version, "kind": kind, "name": name, "namespace": namespace, "uid": uid,
        },
        "type": "Warning",
        "reason": "Unhappy",
        "message": "it hurts",
        "source": {"component": "tests"},
        "firstTimestamp": WHEN,
        "lastTimestamp": WHEN,
        "count": 3,
    }  # fmt: skip


def test_describe_a_service_and_its_namespace(kubectl: Kubectl) -> None:
    kubectl("create", "service", "loadbalancer", "a", "--tcp=80:8080")
    described = fields(kubectl("describe", "service", "a"))
    assert (described["Type"], described["TargetPort"], described["Selector"]) == ("LoadBalancer", "8080/TCP", "app=a")
    assert described["IP Families"] == "IPv4"
    assert fields(kubectl("describe", "namespace", kubectl.namespace))["Status"] == "Active"


def test_describe_a_custom_resource(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=network_pool("a", tenantAllocation={"start": "10.40.1.0", "end": "10.40.7.254"}))
    described = fields(kubectl("describe", "networkpool", "a"))
    assert described["API Version"] == "butler.butlerlabs.dev/v1alpha1"
    assert described["  Cidr"] == "10.40.0.0/21"
    assert described["    Start"] == "10.40.1.0"
    assert described["Events"] == "<none>"


def test_events_are_listed_and_chosen(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=event(kubectl.namespace, "v1", "Pod", "a"))
    pool = network_pool("b")
    kubectl("create", "-f", "-", stdin=event(kubectl.namespace, pool["apiVersion"], pool["kind"], "b"))
    assert kubectl.table("get", "events")[0] == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    for command in (
        ("events", "--for=networkpool/b"),
        ("get", "events", "--field-selector=involvedObject.kind=NetworkPool"),
        ("get", "events.events.k8s.io", "--field-selector=regarding.name=b"),
    ):
        [_, row] = kubectl.table(*command)
        assert [cell.lower() for cell in row[1:]] == ["warning", "unhappy", "networkpool/b", "it hurts"], command
    assert kubectl.run("events", "--types=Normal").stderr == f"No events found in {kubectl.namespace} namespace.\n"


def test_logs_of_what_never_ran(kubectl: Kubectl) -> None:
    assert kubectl.refused("logs", "a").startswith('error: error from server (NotFound): pods "a" not found in')
    kubectl("create", "-f", "-", stdin=POD)
    assert kubectl("logs", "a") == ""
    assert kubectl.refused("logs", "a", "-c", "other") == "error: container other is not valid for pod a out of: c"


# explain


def test_explain_our_kinds(kubectl: Kubectl) -> None:
    printed = kubectl("explain", "networkpool.spec.tenantAllocation.defaults")
    assert printed.startswith("GROUP:      butler.butlerlabs.dev\nKIND:       NetworkPool\nVERSION:    v1alpha1\n")
    assert "FIELD: defaults <Object>" in printed
    assert "  nodesPerTenant\t<integer>\n    Addresses for a request of type nodes without a count.\n" in printed
    assert "  cidr\t<string> -required-\n" in kubectl("explain", "np.spec")


def test_explain_goes_all_the_way_down(kubectl: Kubectl) -> None:
    printed = kubectl("explain", "networkpool", "--recursive")
    assert "\n      defaults\t<Object>\n        lbPoolPerTenant\t<integer>\n" in printed
    assert "\n    finalizers\t<[]string>\n" in printed


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("pod.spec.containers", "image\t<string>"),
        ("service.spec.ports", "port\t<integer> -required-"),
        ("deployment.spec", "selector\t<LabelSelector> -required-"),
        ("crd.spec.versions", "storage\t<boolean> -required-"),
        ("rolebinding", "roleRef\t<RoleRef> -required-"),
        ("secret", "stringData\t<map[string]string>"),
    ],
)
def test_explain_built_in_kinds(kubectl: Kubectl, path: str, field: str) -> None:
    assert f"\n  {field}\n" in kubectl("explain", path)


def test_explain_what_there_is_not(kubectl: Kubectl) -> None:
    assert kubectl.refused("explain", "pod.spec.nothing") == 'error: field "nothing" does not exist'
    assert kubectl.refused("explain", "nothing") == 'the server doesn\'t have a resource type "nothing"'


# The server itself


def test_what_the_server_is(kubectl: Kubectl) -> None:
    version = kubectl.json("version")["serverVersion"]
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")
    assert "WARNING" not in kubectl.run("version").stderr, "client and server are of one age"
    assert f"Kubernetes control plane is running at {kubectl.control_plane.url}\n" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/healthz") == "ok"
    assert kubectl("get", "--raw", "/readyz?verbose").endswith("readyz check passed\n")
    assert json.loads(kubectl("get", "--raw", "/version")) == version
    namespaces = kubectl("get", "namespaces", "-o", "name").split()
    assert {f"namespace/{name}" for name in DEFAULT_NAMESPACES} <= set(namespaces)


def test_what_the_server_serves(kubectl: Kubectl) -> None:
    assert {"v1", "apps/v1", "batch/v1", "butler.butlerlabs.dev/v1alpha1"} <= set(kubectl("api-versions").split())
    rows = kubectl.table("api-resources", "--api-group=butler.butlerlabs.dev")
    assert rows[1:3] == [
        ["ipallocations", "ipa", "butler.butlerlabs.dev/v1alpha1", "true", "IPAllocation"],
        ["networkpools", "np", "butler.butlerlabs.dev/v1alpha1", "true", "NetworkPool"],
    ]
    wide = kubectl.table("api-resources", "--api-group=apps", "-o", "wide")
    verbs = "create,delete,deletecollection,get,list,patch,update,watch"
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment", verbs, "all"] in wide
    assert "nodes" in kubectl("api-resources", "--namespaced=false", "--verbs=list", "-o", "name").split()


def test_who_we_are_and_what_we_may(kubectl: Kubectl) -> None:
    identity = kubectl.json("auth", "whoami")["status"]["userInfo"]
    assert "system:masters" in identity["groups"]
    jane = kubectl.json("auth", "whoami", "--as=jane", "--as-group=team")["status"]["userInfo"]
    assert (jane["username"], jane["groups"]) == ("jane", ["team", "system:authenticated"])
    assert kubectl("auth", "can-i", "*", "*") == "yes\n"
    assert kubectl("auth", "can-i", "get", "/healthz", "--as=jane") == "yes\n"
    assert kubectl.run("auth", "can-i", "get", "/metrics", "--as=jane").stdout == "no\n"
