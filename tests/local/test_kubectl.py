"""The real kubectl, making, changing and deleting things on both servers.

Every expectation here is what kubectl prints against a real kube-apiserver; the embedded one has to lead it to the
same words. No controllers for workloads run, so nothing here waits for one. How kubectl shows things is in
`test_kubectl_reading.py`, what it says when it is refused in `test_kubectl_refusals.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from local.terminal import config_map, network_pool

if TYPE_CHECKING:
    from pathlib import Path

    from local.terminal import Kubectl


def value(kubectl: Kubectl, name: str = "a", key: str = "x") -> str:
    return kubectl("get", "configmap", name, "-o", f"jsonpath={{.data.{key}}}")


# create: its generators send protobuf


CREATED = [
    ("configmap a --from-literal=x=1", "configmap/a"),
    ("secret generic a --from-literal=x=1", "secret/a"),
    ("secret docker-registry a --docker-username=u --docker-password=p --docker-server=s", "secret/a"),
    ("deployment a --image=i --replicas=2 --port=80", "deployment.apps/a"),
    ("service clusterip a --tcp=80:8080", "service/a"),
    ("service clusterip a --clusterip=None --tcp=80", "service/a"),
    ("service nodeport a --tcp=80:8080", "service/a"),
    ("service loadbalancer a --tcp=80:8080", "service/a"),
    ("service externalname a --external-name=example.com", "service/a"),
    ("role a --verb=get,list --resource=pods,deployments.apps", "role.rbac.authorization.k8s.io/a"),
    ("rolebinding a --clusterrole=view --user=u --group=g", "rolebinding.rbac.authorization.k8s.io/a"),
    ("serviceaccount a", "serviceaccount/a"),
    ("job a --image=i -- true", "job.batch/a"),
    ("cronjob a --image=i --schedule=*/5.*.*.*.* -- true", "cronjob.batch/a"),
    ("ingress a --rule=example.com/*=svc:80", "ingress.networking.k8s.io/a"),
    ("poddisruptionbudget a --selector=x=y --min-available=1", "poddisruptionbudget.policy/a"),
]


@pytest.mark.parametrize(("words", "name"), CREATED, ids=[words.split(" a ")[0] for words, _ in CREATED])
def test_create_makes(kubectl: Kubectl, words: str, name: str) -> None:
    arguments = [word.replace(".*", " *") for word in words.split()]
    name_at = arguments.index("a")
    rehearsal = [*arguments[:name_at], "--dry-run=server", *arguments[name_at:]]
    assert kubectl("create", *rehearsal) == f"{name} created (server dry run)\n"
    assert kubectl("create", *arguments) == f"{name} created\n"
    assert kubectl.names(name.partition("/")[0], "--field-selector", "metadata.name=a") == [name]
    assert "already exists" in kubectl.refused("create", *arguments)


def test_create_makes_what_has_no_namespace(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    kubectl("create", "clusterrole", name, "--verb=get", "--resource=nodes")
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", "--group=g")
    kubectl("create", "priorityclass", name, "--value=10")
    assert kubectl("create", "namespace", f"{name}-b") == f"namespace/{name}-b created\n"
    for kind in ("clusterrolebinding", "clusterrole", "priorityclass"):
        assert "deleted" in kubectl("delete", kind, name)
    assert kubectl("delete", "namespace", f"{name}-b") == f'namespace "{name}-b" deleted\n'


def test_what_create_sent_in_protobuf_is_there_in_full(kubectl: Kubectl) -> None:
    kubectl("create", "ingress", "a", "--rule=example.com/x*=svc:80,tls=cert")
    [rule] = kubectl.json("get", "ingress", "a")["spec"]["rules"]
    backend = {"service": {"name": "svc", "port": {"number": 80}}}
    assert rule == {
        "host": "example.com",
        "http": {"paths": [{"path": "/x", "pathType": "Prefix", "backend": backend}]},
    }
    kubectl("create", "role", "a", "--verb=get,list", "--resource=pods,deployments.apps", "--resource-name=x")
    assert kubectl.json("get", "role", "a")["rules"] == [
        {"apiGroups": [group], "resources": [resource], "verbs": ["get", "list"], "resourceNames": ["x"]}
        for group, resource in (("", "pods"), ("apps", "deployments"))
    ]


def test_a_token_is_issued_and_good_for_its_account(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "a")
    token = kubectl("create", "token", "a").strip()
    assert token.count(".") == 2
    refusal = kubectl.refused("create", "token", "unknown")
    assert refusal == 'error: failed to create token: serviceaccounts "unknown" not found'


def test_run_and_expose_make_a_pod_and_a_service(kubectl: Kubectl) -> None:
    wait_for_service_account(kubectl)
    printed = kubectl("run", "a", "--image=i", "--port=80", "--expose")
    assert sorted(printed.splitlines()) == ["pod/a created", "service/a created"]
    assert kubectl.json("get", "service", "a")["spec"]["selector"] == {"run": "a"}
    assert kubectl.json("get", "pod", "a")["status"]["phase"] == "Pending"


def wait_for_service_account(kubectl: Kubectl) -> None:
    deadline = time.monotonic() + 30
    while not kubectl("get", "serviceaccount", "default", "--ignore-not-found"):
        assert time.monotonic() < deadline, "the namespace got no service account"
        time.sleep(0.1)


# apply


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=config_map("a", {"x": "1", "y": "1"})) == "configmap/a created\n"
    assert kubectl("apply", "-f", "-", stdin=config_map("a", {"x": "1", "y": "1"})) == "configmap/a unchanged\n"
    kubectl("patch", "configmap", "a", "-p", '{"data":{"z":"mine"}}')
    assert kubectl("apply", "-f", "-", stdin=config_map("a", {"x": "2"})) == "configmap/a configured\n"
    assert kubectl.json("get", "configmap", "a")["data"] == {"x": "2", "z": "mine"}
    assert '"x":"2"' in kubectl("apply", "view-last-applied", "configmap/a", "-o", "json").replace(" ", "")


def test_apply_warns_about_what_was_not_applied_before(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    result = kubectl.run("apply", "-f", "-", stdin=config_map("a", {"x": "1"}))
    assert result.stdout == "configmap/a configured\n"
    assert "is missing the kubectl.kubernetes.io/last-applied-configuration annotation" in result.stderr


def test_apply_takes_custom_resources(kubectl: Kubectl) -> None:
    name = "networkpool.butler.butlerlabs.dev/a"
    assert kubectl("apply", "-f", "-", stdin=network_pool("a")) == f"{name} created\n"
    assert kubectl("apply", "-f", "-", stdin=network_pool("a")) == f"{name} unchanged\n"
    assert kubectl("apply", "-f", "-", stdin=network_pool("a", "10.40.0.0/20")) == f"{name} configured\n"


def test_apply_takes_a_list(kubectl: Kubectl) -> None:
    items = [config_map("a"), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "b"}}]
    printed = kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    assert printed == "configmap/a created\nserviceaccount/b created\n"


def test_apply_prunes_by_label_what_is_not_named_any_more(kubectl: Kubectl) -> None:
    prune = ("apply", "--prune", "-l", "set=one", "--prune-allowlist=core/v1/ConfigMap", "-f", "-")
    for name in ("a", "b"):
        kubectl("apply", "-f", "-", stdin=config_map(name, labels={"set": "one"}))
    kubectl("apply", "-f", "-", stdin=config_map("c", labels={"set": "two"}))
    printed = kubectl(*prune, stdin=config_map("a", labels={"set": "one"}))
    assert printed == "configmap/a unchanged\nconfigmap/b pruned\n"
    assert kubectl.names("configmaps") == ["configmap/a", "configmap/c"]


def test_apply_prunes_by_label_across_all_usual_kinds(kubectl: Kubectl) -> None:
    """Without a list of kinds kubectl looks through every kind it knows, and a server must have them all."""
    kubectl("apply", "-f", "-", stdin=config_map("a", labels={"set": kubectl.namespace}))
    prune = ("apply", "--prune", "-l", f"set={kubectl.namespace}", "-f", "-")
    printed = kubectl(*prune, stdin=config_map("b", labels={"set": kubectl.namespace}))
    assert printed == "configmap/b created\nconfigmap/a pruned\n"


def test_apply_prunes_by_set(kubectl: Kubectl) -> None:
    prune = ("apply", "--server-side", "--prune", "--applyset=ours", "-f", "-")
    kubectl(*prune, stdin=config_map("a"), KUBECTL_APPLYSET="true")
    assert "configmap/a pruned\n" in kubectl(*prune, stdin=config_map("b"), KUBECTL_APPLYSET="true")
    assert kubectl.names("configmaps") == ["configmap/b"]


CONFLICT = 'error: Apply failed with 1 conflict: conflict with "first": .data.x\n'


def test_server_side_apply_tells_conflicts_and_can_be_forced(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-", "--field-manager")
    assert kubectl(*apply, "first", stdin=config_map("a", {"x": "1"})) == "configmap/a serverside-applied\n"
    refusal = kubectl.refused(*apply, "second", stdin=config_map("a", {"x": "2"}))
    assert refusal.startswith(CONFLICT)
    assert "re-run the apply\n  command with the `--force-conflicts` flag" in refusal
    kubectl(*apply, "second", "--force-conflicts", stdin=config_map("a", {"x": "2"}))
    found = kubectl.json("get", "configmap", "a", "--show-managed-fields")
    assert found["data"] == {"x": "2"}
    assert {
        managed_field["manager"]: list(managed_field["fieldsV1"]["f:data"])
        for managed_field in found["metadata"]["managedFields"]
    } == {"second": ["f:x"]}


def test_server_side_apply_takes_over_from_client_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=config_map("a", {"x": "1", "y": "1"}))
    kubectl("apply", "--server-side", "-f", "-", stdin=config_map("a", {"x": "2"}))
    assert kubectl.json("get", "configmap", "a")["data"] == {"x": "2"}


def test_server_side_apply_gives_fields_up(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-", "--field-manager")
    kubectl(*apply, "first", stdin=config_map("a", {"x": "1"}))
    kubectl(*apply, "second", stdin=config_map("a", {"y": "2"}))
    kubectl(*apply, "first", stdin=config_map("a", {}))
    assert kubectl.json("get", "configmap", "a")["data"] == {"y": "2"}


def test_a_replication_controller_selects_by_the_labels_of_its_template(kubectl: Kubectl) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    controller: dict[str, Any] = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}}
    kubectl("apply", "-f", "-", stdin={**controller, "spec": {"replicas": 0, "template": template}})
    assert kubectl.table("get", "rc", "-o", "wide")[1][-3:] == ["c", "i", "a=b"]
    assert kubectl.json("get", "rc", "a", "--subresource=scale")["status"]["selector"] == "a=b"
    wrong = {**controller, "spec": {"replicas": -1, "selector": {"x": "y"}, "template": template}}
    assert kubectl.refused("replace", "-f", "-", stdin=wrong) == (
        'The ReplicationController "a" is invalid: \n'
        '* spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`\n'
        "* spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    )


# diff


def test_diff_says_what_apply_would_change(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=config_map("a", {"x": "1"}))
    assert kubectl("diff", "-f", "-", stdin=config_map("a", {"x": "1"})) == ""
    for how in ((), ("--server-side", "--force-conflicts")):
        result = kubectl.run("diff", *how, "-f", "-", stdin=config_map("a", {"x": "2"}))
        assert result.returncode == 1, result.stderr
        assert '\n-  x: "1"\n+  x: "2"\n' in result.stdout
    assert value(kubectl) == "1"


def test_diff_shows_what_would_be_new(kubectl: Kubectl) -> None:
    result = kubectl.run("diff", "-f", "-", stdin=network_pool("a"))
    assert result.returncode == 1
    assert "\n+  cidr: 10.40.0.0/21\n" in result.stdout
    assert kubectl.names("networkpools") == []


# edit


def test_edit_saves_what_the_editor_wrote(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    assert kubectl("edit", "configmap", "a", KUBE_EDITOR="sed -i s/x:.*/x:\\ two/") == "configmap/a edited\n"
    assert value(kubectl) == "two"
    unchanged = kubectl.run("edit", "configmap", "a", KUBE_EDITOR="true")
    assert (unchanged.returncode, unchanged.stderr) == (0, "Edit cancelled, no changes made.\n")


def test_edit_of_a_custom_resource(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=network_pool("a"))
    printed = kubectl("edit", "networkpool", "a", EDITOR="sed -i s,/21$,/20,", KUBE_EDITOR="")
    assert printed == "networkpool.butler.butlerlabs.dev/a edited\n"
    assert kubectl("get", "np", "a", "-o", "jsonpath={.spec.cidr}") == "10.40.0.0/20"


@pytest.mark.parametrize("change", ["s/x:.*/x:\\ [1]/", "s/x:/x\\ y:/"], ids=["type", "key"])
def test_edit_keeps_what_cannot_be_saved(kubectl: Kubectl, change: str, tmp_path: Path) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    refusal = kubectl.refused("edit", "configmap", "a", KUBE_EDITOR=f"sed -i {change}", TMPDIR=str(tmp_path))
    assert refusal.startswith('error: configmaps "a" is invalid')
    assert "A copy of your changes has been stored to" in refusal
    assert refusal.endswith("error: Edit cancelled, no valid changes were saved.")
    kept = [path.read_text() for path in tmp_path.glob("kubectl-edit-*.yaml")]
    assert any('# configmaps "a" was not valid:\n# * ' in text for text in kept), "the editor shows what was wrong"
    assert value(kubectl) == "1"


# patch, label, annotate, scale, replace


def test_each_sort_of_patch(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "a", "--image=i", "--replicas=0")
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"j"}]}}}}'
    assert kubectl("patch", "deployment", "a", "-p", strategic) == "deployment.apps/a patched\n"
    images = "jsonpath={.spec.template.spec.containers[*].image}"
    assert kubectl("get", "deployment", "a", "-o", images) == "j i"
    kubectl("patch", "deployment", "a", "--type=merge", "-p", '{"metadata":{"labels":{"app":null,"x":"y"}}}')
    assert kubectl.json("get", "deployment", "a")["metadata"]["labels"] == {"x": "y"}
    steps = '[{"op":"test","path":"/spec/replicas","value":0},{"op":"replace","path":"/spec/replicas","value":4}]'
    kubectl("patch", "deployment", "a", "--type=json", "-p", steps)
    assert kubectl.json("get", "deployment", "a")["spec"]["replicas"] == 4
    assert kubectl("patch", "deployment", "a", "-p", '{"spec":{"replicas":4}}') == (
        "deployment.apps/a patched (no change)\n"
    )


def test_a_status_is_patched_on_its_own(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=network_pool("a"))
    patch = '{"spec":{"cidr":"10.0.0.0/8"},"status":{"totalIPs":5}}'
    kubectl("patch", "networkpool", "a", "--subresource=status", "--type=merge", "-p", patch)
    found = kubectl.json("get", "networkpool", "a")
    assert (found["spec"]["cidr"], found["status"]["totalIPs"]) == ("10.40.0.0/21", 5)


@pytest.mark.parametrize(
    ("how", "patch", "complaint"),
    [
        ("json", '[{"op":"remove","path":"/data/no"}]', "The request is invalid: the server rejected our request"),
        ("json", '[{"op":"test","path":"/data/x","value":"2"}]', "The request is invalid: the server rejected our"),
        ("strategic", '{"data":', "Error from server (BadRequest): invalid JSON patch"),
        (
            "strategic",
            '{"data":{"x":5}}',
            'The request is invalid: patch: Invalid value: "map[data:map[x:5]]": cannot convert int64 to string',
        ),
        (
            "strategic",
            '{"data":{"x":[1,"b"]}}',
            'The request is invalid: patch: Invalid value: "map[data:map[x:[1 b]]]": unrecognized type: string',
        ),
        (
            "strategic",
            '{"data":"x"}',
            'The request is invalid: patch: Invalid value: "map[data:x]": cannot restore map',
        ),
        ("merge", '{"data":{"a b":"c"}}', 'The ConfigMap "a" is invalid: data[a b]: Invalid value: "a b": a valid'),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(kubectl: Kubectl, how: str, patch: str, complaint: str) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    assert kubectl.refused("patch", "configmap", "a", "--type", how, "-p", patch).startswith(complaint)
    assert kubectl.json("get", "configmap", "a")["data"] == {"x": "1"}


@pytest.mark.parametrize("how", ["merge", "json"])
def test_a_patch_that_leads_to_a_wrong_type_is_refused(kubectl: Kubectl, how: str) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    patch = '{"data":{"x":5}}' if how == "merge" else '[{"op":"add","path":"/data/x","value":5}]'
    refusal = kubectl.refused("patch", "configmap", "a", "--type", how, "-p", patch)
    assert refusal.startswith('The request is invalid: patch: Invalid value: "{')
    assert refusal.endswith("json: cannot unmarshal number into Go struct field ConfigMap.data of type string")


def test_labels_and_annotations_are_set_and_taken_away(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    assert kubectl("label", "configmap", "a", "x=y") == "configmap/a labeled\n"
    refusal = kubectl.refused("label", "configmap", "a", "x=z")
    assert refusal == "error: 'x' already has a value (y), and --overwrite is false"
    kubectl("label", "configmap", "a", "x=z", "--overwrite")
    assert kubectl("label", "configmap", "a", "x=z") == "configmap/a not labeled\n"
    assert kubectl("annotate", "configmap", "a", "note=two words") == "configmap/a annotated\n"
    metadata = kubectl.json("get", "configmap", "a")["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"x": "z"}, {"note": "two words"})
    assert kubectl("label", "configmap", "--all", "x-") == "configmap/a unlabeled\n"


def test_scale_changes_the_number_of_replicas(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "a", "--image=i", "--replicas=0")
    assert kubectl("scale", "deployment", "a", "--replicas=3") == "deployment.apps/a scaled\n"
    assert kubectl.json("get", "deployment", "a")["spec"]["replicas"] == 3
    refusal = kubectl.refused("scale", "deployment", "a", "--replicas=1", "--current-replicas=7")
    assert refusal == "error: Expected replicas to be 7, was 3"
    scale = kubectl.json("get", "deployment", "a", "--subresource=scale")
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 3}, "app=a")


def test_set_and_rollout_change_the_template(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "a", "--image=i", "--replicas=0")
    assert kubectl("set", "image", "deployment/a", "i=j:2") == "deployment.apps/a image updated\n"
    assert kubectl("set", "env", "deployment/a", "A=B") == "deployment.apps/a env updated\n"
    assert kubectl("set", "resources", "deployment/a", "--limits=cpu=100m").endswith("resource requirements updated\n")
    assert kubectl("rollout", "pause", "deployment/a") == "deployment.apps/a paused\n"
    assert kubectl("rollout", "resume", "deployment/a") == "deployment.apps/a resumed\n"
    assert kubectl("rollout", "restart", "deployment/a") == "deployment.apps/a restarted\n"
    template = kubectl.json("get", "deployment", "a")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    [container] = template["spec"]["containers"]
    assert (container["image"], container["env"]) == ("j:2", [{"name": "A", "value": "B"}])
    assert container["resources"] == {"limits": {"cpu": "100m"}}


def test_replace_puts_the_whole_object(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1", "--from-literal=y=1")
    old = kubectl.json("get", "configmap", "a")["metadata"]
    assert kubectl("replace", "-f", "-", stdin=config_map("a", {"x": "2"})) == "configmap/a replaced\n"
    assert kubectl.json("get", "configmap", "a")["data"] == {"x": "2"}
    stale = config_map("a", {"x": "3"}, resourceVersion=old["resourceVersion"])
    assert kubectl.refused("replace", "-f", "-", stdin=stale) == (
        'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "a": '
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    printed = kubectl("replace", "--force", "-f", "-", stdin=config_map("a", {"x": "4"}))
    assert printed.endswith("configmap/a replaced\n")
    assert kubectl.json("get", "configmap", "a")["metadata"]["uid"] != old["uid"]


# delete


def test_delete_by_name_selector_and_all(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c", "d"):
        kubectl("apply", "-f", "-", stdin=config_map(name, labels={"half": "first" if name < "c" else "second"}))
    where = f"deleted from {kubectl.namespace} namespace"
    assert kubectl("delete", "configmap", "a", "--dry-run=server") == f'configmap "a" {where} (server dry run)\n'
    assert kubectl("delete", "configmap", "a", "--wait") == f'configmap "a" {where}\n'
    assert kubectl("delete", "configmaps", "-l", "half=first") == f'configmap "b" {where}\n'
    assert kubectl("delete", "configmaps", "--field-selector", "metadata.name=c") == f'configmap "c" {where}\n'
    assert f'configmap "d" {where}' in kubectl("delete", "configmaps", "--all")
    assert kubectl.refused("delete", "configmap", "a") == 'Error from server (NotFound): configmaps "a" not found'
    assert kubectl("delete", "configmap", "a", "--ignore-not-found") == ""


def test_deleting_a_pod_is_gentle_unless_told_otherwise(kubectl: Kubectl) -> None:
    wait_for_service_account(kubectl)
    kubectl("create", "-f", "-", stdin=pod("a"))
    kubectl("delete", "pod", "a", "--grace-period=30", "--wait=false")
    metadata = kubectl.json("get", "pod", "a")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"]
    kubectl("delete", "pod", "a", "--grace-period=0", "--force")
    assert kubectl.names("pods") == []


def pod(name: str) -> dict[str, Any]:
    """A pod on a node without a kubelet: only force ends it."""
    containers = [{"name": "c", "image": "i"}]
    spec = {"nodeName": "nowhere", "terminationGracePeriodSeconds": 30, "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(("cascade", "left"), [("foreground", False), ("background", False), ("orphan", True)])
def test_what_becomes_of_dependents(kubectl: Kubectl, cascade: str, left: bool) -> None:
    kubectl("create", "configmap", "owner")
    uid = kubectl("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    kubectl("create", "-f", "-", stdin=config_map("owned", ownerReferences=[owner]))
    kubectl("delete", "configmap", "owner", f"--cascade={cascade}")
    if cascade == "background":
        kubectl("wait", "--for=delete", "configmap/owned", "--timeout=30s")
    assert kubectl.names("configmaps") == (["configmap/owned"] if left else [])
    if left:
        assert "ownerReferences" not in kubectl.json("get", "configmap", "owned")["metadata"]


def test_a_finalizer_holds_a_namespace_until_it_is_taken_away(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config_map("held", finalizers=["example.com/hold"]))
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    assert kubectl("get", "namespace", kubectl.namespace, "-o", "jsonpath={.status.phase}") == "Terminating"
    refusal = kubectl.refused("create", "configmap", "late")
    assert f"unable to create new content in namespace {kubectl.namespace} because it is being terminated" in refusal
    kubectl("patch", "configmap", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    kubectl("wait", "--for=delete", f"namespace/{kubectl.namespace}", "--timeout=60s")
