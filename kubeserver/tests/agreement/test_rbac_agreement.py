"""Our RBAC decides, and says so, as a real kube-apiserver does.

The roles and bindings are created on the real server; requests are made there as other users (the administrator
impersonates them). Our authorizer reads the same objects and must give the same answers.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kubeserver.access.authentication import User
from kubeserver.access.authorization import Attributes, Authorizer, RbacObjects, forbidden
from kubeserver.access.impersonation import impersonated
from kubeserver.builtin.default_roles import default_cluster_role_bindings, default_cluster_roles
from kubeserver.builtin.escalation import refuse_escalation
from kubeserver.builtin.reviews import review
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_servers import ControlPlane

Json = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
API = f"/apis/{RBAC}/v1"
ALICE = User("alice", groups=("system:authenticated",))  # one group: urllib sends a header once

pytestmark = pytest.mark.parametrize("control_plane", ["kubernetes"], indirect=True)


def ask(
    server: ControlPlane, method: str, path: str, body: Json | None = None, user: User = ALICE, **headers: str
) -> tuple[int, Json]:
    """One request as another user."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, dict(server.headers), method=method)
    request.add_header("Content-Type", "application/json")
    request.add_header("Impersonate-User", user.name)
    for group in user.groups:
        request.add_header("Impersonate-Group", group)
    for name, value in headers.items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, context=server.tls, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> Json:
    found = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return {**found, "resourceNames": names.split()} if names else found


def binding(name: str, kind: str, role: str, user: str) -> Json:
    subject = {"kind": "User", "apiGroup": RBAC, "name": user}
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [subject],
    }


class Cluster:
    """The real server with some roles, and our authorizer over the same objects."""

    def __init__(self, server: ControlPlane) -> None:
        self.server = server
        self.namespace = server.fresh_namespace("rbac")
        here = f"{API}/namespaces/{self.namespace}"
        nameless = {**rule("get list", "configmaps"), "resourceNames": [""]}
        self.create(f"{here}/roles", {"metadata": {"name": "reader"}, "rules": [rule("get list", "pods"), nameless]})
        roles = rule("create update get", "roles rolebindings", RBAC)
        self.create(f"{here}/roles", {"metadata": {"name": "granter"}, "rules": [roles]})
        self.create(f"{here}/rolebindings", binding("read", "Role", "reader", "alice"))
        self.create(f"{here}/rolebindings", binding("grant", "Role", "granter", "alice"))
        self.create(f"{here}/rolebindings", binding("broken", "Role", "gone", "carol"))
        self.create(f"{here}/rolebindings", binding("admin", "ClusterRole", "admin", "dave"))
        self.authorizer = Authorizer(self._objects, lambda: 1)
        self._wait()

    def create(self, path: str, item: Json) -> None:
        status, answer = self.server.request("POST", path, item)
        assert status == 201, answer

    def _objects(self) -> RbacObjects:
        def items(plural: str) -> list[Json]:
            found: list[Json] = self.server.request("GET", f"{API}/{plural}")[1]["items"]
            return found

        return RbacObjects(items("roles"), items("rolebindings"), items("clusterroles"), items("clusterrolebindings"))

    def _wait(self) -> None:
        """The real authorizer learns of objects a moment after they are there."""
        dave = User("dave", groups=("system:authenticated",))
        for _ in range(100):
            if ask(self.server, "GET", f"/api/v1/namespaces/{self.namespace}/secrets", user=dave)[0] == 200:
                return
            time.sleep(0.1)
        raise AssertionError("the real server did not honour a binding within 10 s")


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    return Cluster(control_plane)


def status_of(decide: Callable[[], Any]) -> Json:
    with pytest.raises(ApiError) as refused:
        decide()
    return refused.value.status()


def same(ours: Json, theirs: Json) -> None:
    assert ours["message"] == theirs["message"]
    assert (ours["code"], ours["reason"]) == (theirs["code"], theirs["reason"])
    assert ours.get("details", {}) == theirs.get("details", {})


def test_the_default_roles_grant_the_same(cluster: Cluster) -> None:
    theirs = {
        cluster_role["metadata"]["name"]: cluster_role for cluster_role in cluster.authorizer._objects().cluster_roles
    }
    for ours in default_cluster_roles():
        name = ours["metadata"]["name"]
        real = theirs[name]
        assert ours["metadata"]["labels"] == real["metadata"]["labels"], name
        assert ours.get("aggregationRule") == real.get("aggregationRule"), name
        assert _granted(ours) == _granted(real), name


def _granted(role: Json) -> set[str]:
    """Every single permission, without those of API groups of alpha features."""
    found = set()
    for item in role["rules"]:
        for verb in item["verbs"]:
            found |= {f"{verb} {url}" for url in item.get("nonResourceURLs", ())}
            for group in item.get("apiGroups", ()):
                found |= {f"{verb} {resource}.{group}" for resource in item.get("resources", ())}
    return found


def test_the_default_bindings_are_the_same(cluster: Cluster) -> None:
    theirs = {
        cluster_role_binding["metadata"]["name"]: cluster_role_binding
        for cluster_role_binding in cluster.authorizer._objects().cluster_role_bindings
    }
    for ours in default_cluster_role_bindings():
        real = theirs[ours["metadata"]["name"]]
        assert ours["roleRef"] == real["roleRef"]
        assert ours["subjects"] == real["subjects"]


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("GET", "/api/v1/namespaces/$NS/pods", {"verb": "list", "resource": "pods"}),
        ("GET", "/api/v1/namespaces/$NS/secrets", {"verb": "list", "resource": "secrets"}),
        ("GET", "/api/v1/namespaces/$NS/secrets/x", {"verb": "get", "resource": "secrets", "name": "x"}),
        ("GET", "/api/v1/namespaces/$NS/configmaps", {"verb": "list", "resource": "configmaps"}),
        ("GET", "/api/v1/namespaces/$NS/configmaps/x", {"verb": "get", "resource": "configmaps", "name": "x"}),
        ("GET", "/api/v1/nodes", {"verb": "list", "resource": "nodes", "namespace": ""}),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/$NS/deployments/d",
            {"verb": "delete", "group": "apps", "resource": "deployments", "name": "d"},
        ),
        (
            "GET",
            "/apis/apps/v1/namespaces/$NS/deployments/d/scale",
            {"verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "name": "d"},
        ),
        ("GET", "/metrics", {"verb": "get", "path": "/metrics", "namespace": ""}),
        ("GET", "/version", {"verb": "get", "path": "/version", "namespace": ""}),
    ],
)
def test_a_request_is_allowed_or_refused_alike(cluster: Cluster, method: str, path: str, wanted: Json) -> None:
    code, theirs = ask(cluster.server, method, path.replace("$NS", cluster.namespace))
    attributes = Attributes(ALICE, **{"namespace": cluster.namespace, **wanted})
    decision = cluster.authorizer.authorize(attributes)
    assert decision.allowed is (code < 400)
    if not decision.allowed:
        same(forbidden(attributes, decision.reason).status(), theirs)


def test_a_missing_role_is_named(cluster: Cluster) -> None:
    carol = User("carol", groups=("system:authenticated",))
    _, theirs = ask(cluster.server, "GET", f"/api/v1/namespaces/{cluster.namespace}/pods", user=carol)
    attributes = Attributes(carol, "list", resource="pods", namespace=cluster.namespace)
    same(forbidden(attributes, cluster.authorizer.authorize(attributes).reason).status(), theirs)


@pytest.mark.parametrize(
    ("plural", "item"),
    [
        ("roles", {"metadata": {"name": "r"}, "rules": [rule("get delete watch", "pods"), rule("get", "secrets")]}),
        ("roles", {"metadata": {"name": "r"}, "rules": [rule("*", "*", "*"), rule("get", "pods/log", names="a b")]}),
        ("roles", {"metadata": {"name": "r"}, "rules": [rule("get", "configmaps")]}),
        ("rolebindings", binding("b", "ClusterRole", "view", "x")),
        ("rolebindings", binding("b", "Role", "nope", "x")),
    ],
)
def test_no_user_grants_more_than_they_have(cluster: Cluster, plural: str, item: Json) -> None:
    path = f"{API}/namespaces/{cluster.namespace}/{plural}"
    code, theirs = ask(cluster.server, "POST", path, item)
    assert code >= 400
    decide = partial(refuse_escalation, cluster.authorizer, ALICE, plural=plural, namespace=cluster.namespace, new=item)
    same(status_of(decide), theirs)


@pytest.mark.parametrize(
    ("kind", "group", "spec"),
    [
        (
            "SelfSubjectAccessReview",
            "authorization.k8s.io",
            {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "$NS"}},
        ),
        (
            "SelfSubjectAccessReview",
            "authorization.k8s.io",
            {"resourceAttributes": {"verb": "list", "resource": "nodes"}},
        ),
        ("SelfSubjectAccessReview", "authorization.k8s.io", {"nonResourceAttributes": {"verb": "get", "path": "/api"}}),
        ("SelfSubjectAccessReview", "authorization.k8s.io", {}),
        ("SelfSubjectReview", "authentication.k8s.io", None),
        ("SelfSubjectRulesReview", "authorization.k8s.io", {}),
    ],
)
def test_a_question_gets_the_same_answer(cluster: Cluster, kind: str, group: str, spec: Json | None) -> None:
    body: Json = {"apiVersion": f"{group}/v1", "kind": kind}
    if spec is not None:
        body["spec"] = json.loads(json.dumps(spec).replace("$NS", cluster.namespace))
    plural = kind.lower() + "s"
    code, theirs = ask(cluster.server, "POST", f"/apis/{group}/v1/{plural}", body)
    if code >= 400:
        same(status_of(partial(review, kind, ALICE, body, cluster.authorizer)), theirs)
        return
    ours = review(kind, ALICE, body, cluster.authorizer)
    assert ours["status"] == theirs["status"]


def test_the_rules_of_a_user_are_the_same(cluster: Cluster) -> None:
    body: Json = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    body["spec"] = {"namespace": cluster.namespace}
    _, theirs = ask(cluster.server, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)
    ours = review("SelfSubjectRulesReview", ALICE, body, cluster.authorizer)["status"]
    for field in ("resourceRules", "nonResourceRules"):
        assert _sorted(ours[field]) == _sorted(theirs["status"][field])
    assert ours["incomplete"] is theirs["status"]["incomplete"]


def _sorted(rules: list[Json]) -> list[str]:
    return sorted(json.dumps(obj, sort_keys=True) for obj in rules)


@pytest.mark.parametrize(
    "wanted",
    [User("jane"), User("system:serviceaccount:a:b"), User("system:node:n1"), User("jane", uid="7")],
    ids=lambda user: user.name,
)
def test_impersonation_is_refused_alike(cluster: Cluster, wanted: User, token: str) -> None:
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    request = urllib.request.Request(cluster.server.url + path, headers={"Authorization": f"Bearer {token}"})
    request.add_header("Impersonate-User", wanted.name)
    if wanted.uid:
        request.add_header("Impersonate-Uid", wanted.uid)
    tls = cluster.server.anonymous_tls()
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request, context=tls, timeout=30)
    with error.value:
        theirs = json.loads(error.value.read())
    account = f"system:serviceaccount:{cluster.namespace}:default"
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{cluster.namespace}", "system:authenticated")
    asking = Attributes(User(account, groups=groups), "list", resource="pods", namespace=cluster.namespace)
    same(status_of(partial(impersonated, asking, wanted, cluster.authorizer.authorize)), theirs)


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> str:
    """A token of a user without any permission."""
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/default"
    for _ in range(100):
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        status, answer = cluster.server.request("POST", f"{path}/token", body)
        if status == 201:
            found: str = answer["status"]["token"]
            return found
        time.sleep(0.1)
    raise AssertionError(f"no token within 10 s: {answer}")
