"""RBAC: who may do what, and what the refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from kubeserver.access.authentication import Authenticator, User, service_account, token_digest
from kubeserver.access.authorization import Attributes, Authorizer, RbacObjects, forbidden
from kubeserver.access.impersonation import impersonated, wanted_user
from kubeserver.builtin.default_roles import default_cluster_role_bindings, default_cluster_roles
from kubeserver.builtin.escalation import refuse_escalation
from kubeserver.builtin.reviews import review
from kubeserver.wire.status import ApiError

Json = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"


def role(name: str, *rules: Json, namespace: str = "", labels: Json | None = None, gathers: Json | None = None) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels or {}}
    found: Json = {"metadata": metadata, "rules": list(rules)}
    if gathers:
        found["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": gathers}]}
    return found


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> Json:
    found = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return {**found, "resourceNames": names.split()} if names else found


def binding(name: str, kind: str, role_name: str, *subjects: Json, namespace: str = "") -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"apiGroup": RBAC, "kind": kind, "name": role_name}
    return {"metadata": metadata, "roleRef": reference, "subjects": list(subjects)}


def user_subject(name: str) -> Json:
    return {"kind": "User", "apiGroup": RBAC, "name": name}


ALICE = User("alice", groups=("devs", "system:authenticated"))
BOT = service_account("tools", "bot")
ROOT = User("root", groups=("system:masters", "system:authenticated"))

OBJECTS = RbacObjects(
    roles=[role("pod-reader", rule("get list", "pods pods/log"), namespace="team")],
    role_bindings=[
        binding("read-pods", "Role", "pod-reader", user_subject("alice"), namespace="team"),
        binding("bot-edits", "ClusterRole", "editor", {"kind": "ServiceAccount", "name": "bot"}, namespace="tools"),
        binding("broken", "Role", "gone", user_subject("carol"), namespace="team"),
    ],
    cluster_roles=[
        role("nodes", rule("get", "nodes", names="n1 n2")),
        role("editor", rule("*", "configmaps")),
        role("statuses", rule("update", "*/status", "*")),
        role("metrics", {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]}),
        role("sum", gathers={"part": "yes"}),
        role("part", rule("get", "secrets"), labels={"part": "yes"}),
        role("sum-of-sums", gathers={"top": "yes"}),
        role("middle", labels={"top": "yes"}, gathers={"part": "yes"}),
    ],
    cluster_role_bindings=[
        binding("nodes", "ClusterRole", "nodes", {"kind": "Group", "apiGroup": RBAC, "name": "devs"}),
        binding("statuses", "ClusterRole", "statuses", user_subject("alice")),
        binding("metrics", "ClusterRole", "metrics", user_subject("alice")),
        binding("sum", "ClusterRole", "sum", user_subject("dave")),
        binding("sums", "ClusterRole", "sum-of-sums", user_subject("erin")),
    ],
)


def authorizer(objects: RbacObjects = OBJECTS) -> Authorizer:
    return Authorizer(lambda: objects, lambda: 1)


@pytest.mark.parametrize(
    ("fact", "wanted", "allowed"),
    [
        ("a role counts in its namespace", Attributes(ALICE, "list", resource="pods", namespace="team"), True),
        ("and not in another", Attributes(ALICE, "list", resource="pods", namespace="other"), False),
        ("nor for all namespaces at once", Attributes(ALICE, "list", resource="pods"), False),
        ("a verb must be listed", Attributes(ALICE, "delete", resource="pods", namespace="team"), False),
        (
            "a subresource is a resource of its own",
            Attributes(ALICE, "get", resource="pods", subresource="log", namespace="team"),
            True,
        ),
        (
            "and is not included",
            Attributes(ALICE, "get", resource="pods", subresource="status", namespace="team"),
            False,
        ),
        (
            "a status of anything",
            Attributes(ALICE, "update", group="apps", resource="deployments", subresource="status", namespace="x"),
            True,
        ),
        ("a group brings its names", Attributes(ALICE, "get", resource="nodes", name="n2"), True),
        ("and only those", Attributes(ALICE, "get", resource="nodes", name="n3"), False),
        ("a path", Attributes(ALICE, "get", path="/metrics"), True),
        ("a path by prefix", Attributes(ALICE, "get", path="/debug/pprof"), True),
        ("not another path", Attributes(ALICE, "get", path="/healthz"), False),
        (
            "an account is bound in its own namespace by name alone",
            Attributes(BOT, "patch", resource="configmaps", namespace="tools"),
            True,
        ),
        ("an aggregate has what its parts have", Attributes(User("dave"), "get", resource="secrets"), True),
        ("also through an aggregate", Attributes(User("erin"), "get", resource="secrets"), True),
        ("masters may all", Attributes(ROOT, "shave", group="x", resource="yaks"), True),
        ("no other user does", Attributes(User("mallory"), "get", resource="pods", namespace="team"), False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_check(fact: str, wanted: Attributes, allowed: bool) -> None:
    assert authorizer().authorize(wanted).allowed is allowed


def test_the_reason_names_the_binding() -> None:
    decision = authorizer().authorize(Attributes(ALICE, "list", resource="pods", namespace="team"))
    assert decision.reason == 'RBAC: allowed by RoleBinding "read-pods/team" of Role "pod-reader" to User "alice"'


def test_a_missing_role_is_named_in_the_refusal() -> None:
    wanted = Attributes(User("carol"), "get", resource="pods", namespace="team", name="p")
    decision = authorizer().authorize(wanted)
    error = forbidden(wanted, decision.reason)
    assert error.message == (
        'pods "p" is forbidden: User "carol" cannot get resource "pods" in API group "" in the namespace "team": '
        'rbac: RBAC: role.rbac.authorization.k8s.io "gone" not found'
    )


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            Attributes(User("x"), "list", resource="pods", namespace="y"),
            'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "y"',
        ),
        (
            Attributes(User("x"), "update", group="apps", resource="deployments", subresource="status", name="d"),
            (
                'deployments.apps "d" is forbidden: User "x" cannot update resource "deployments/status" '
                'in API group "apps" at the cluster scope'
            ),
        ),
        (Attributes(User("x"), "get", path="/metrics"), 'forbidden: User "x" cannot get path "/metrics"'),
        (
            Attributes(User("<b>"), "get", path="/a&b"),
            'forbidden: User "&lt;b&gt;" cannot get path "/a&amp;b"',
        ),
    ],
)
def test_a_refusal_in_the_words_of_kubernetes(wanted: Attributes, message: str) -> None:
    error = forbidden(wanted)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", message)


def test_rules_are_read_again_when_the_version_changes() -> None:
    objects, version = [RbacObjects()], [1]
    subject = Authorizer(lambda: objects[0], lambda: version[0])
    wanted = Attributes(ALICE, "list", resource="pods", namespace="team")
    assert not subject.authorize(wanted).allowed
    objects[0] = OBJECTS
    assert not subject.authorize(wanted).allowed
    version[0] = 2
    assert subject.authorize(wanted).allowed


class TestDefaultRoles:
    objects = RbacObjects(
        cluster_roles=default_cluster_roles(),
        cluster_role_bindings=default_cluster_role_bindings(),
        role_bindings=[binding("a", "ClusterRole", "admin", user_subject("alice"), namespace="team")],
    )

    def test_every_user_may_discover_and_ask_about_themselves(self) -> None:
        subject = authorizer(self.objects)
        user = User("x", groups=("system:authenticated",))
        assert subject.authorize(Attributes(user, "get", path="/apis/apps/v1")).allowed
        review_rule = Attributes(user, "create", group="authorization.k8s.io", resource="selfsubjectaccessreviews")
        assert subject.authorize(review_rule).allowed
        assert not subject.authorize(Attributes(user, "get", path="/metrics")).allowed

    def test_admin_has_what_view_and_edit_have_and_may_write_roles(self) -> None:
        subject = authorizer(self.objects)
        for verb, group, resource in (
            ("list", "", "pods"),
            ("delete", "", "secrets"),
            ("create", RBAC, "roles"),
            ("patch", "apps", "deployments"),
        ):
            wanted = Attributes(ALICE, verb, group=group, resource=resource, namespace="team")
            assert subject.authorize(wanted).allowed, wanted
        assert not subject.authorize(Attributes(ALICE, "list", resource="nodes")).allowed


class TestEscalation:
    def refuse(self, user: User, plural: str, new: Json, namespace: str = "team") -> None:
        refuse_escalation(authorizer(), user, plural=plural, namespace=namespace, new=new)

    def test_no_user_grants_what_they_do_not_have(self) -> None:
        wanted = role("more", rule("get delete watch", "pods"), rule("get", "secrets"), namespace="team")
        with pytest.raises(ApiError) as refused:
            self.refuse(ALICE, "roles", wanted)
        assert refused.value.code == 403
        assert refused.value.message == (
            'roles.rbac.authorization.k8s.io "more" is forbidden: user "alice" '
            '(groups=["devs" "system:authenticated"])'
            " is attempting to grant RBAC permissions not currently held:\n"
            '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}\n'
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        )

    def test_a_right_to_what_has_no_name_is_none_to_everything(self) -> None:
        nameless = {**rule("get list", "secrets"), "resourceNames": [""]}
        objects = RbacObjects(
            roles=[role("lists", nameless, namespace="team")],
            role_bindings=[binding("b", "Role", "lists", user_subject("alice"), namespace="team")],
        )
        new = role("all", rule("get", "secrets"), namespace="team")
        with pytest.raises(ApiError, match="not currently held"):
            refuse_escalation(authorizer(objects), ALICE, plural="roles", namespace="team", new=new)
        same = role("same", nameless, namespace="team")
        refuse_escalation(authorizer(objects), ALICE, plural="roles", namespace="team", new=same)

    def test_what_one_has_may_be_granted(self) -> None:
        self.refuse(ALICE, "roles", role("same", rule("get", "pods"), namespace="team"))

    def test_masters_may_grant_all(self) -> None:
        self.refuse(ROOT, "clusterroles", role("all", rule("*", "*", "*")))

    def test_a_binding_needs_the_rights_of_its_role(self) -> None:
        self.refuse(ALICE, "rolebindings", binding("b", "Role", "pod-reader", namespace="team"))
        with pytest.raises(ApiError, match="not currently held"):
            self.refuse(ALICE, "rolebindings", binding("b", "ClusterRole", "editor", namespace="team"))

    def test_a_binding_to_a_role_that_is_not_there_is_not_found(self) -> None:
        with pytest.raises(ApiError) as refused:
            self.refuse(ALICE, "rolebindings", binding("b", "Role", "nope", namespace="team"))
        assert refused.value.message == 'rolebindings.rbac.authorization.k8s.io "nope" not found'

    def test_the_verb_bind_is_enough(self) -> None:
        objects = RbacObjects(
            cluster_roles=[
                role("big", rule("*", "*", "*")),
                role("binder", rule("bind", "clusterroles", RBAC, "big")),
            ],
            cluster_role_bindings=[binding("x", "ClusterRole", "binder", user_subject("alice"))],
        )
        new = binding("b", "ClusterRole", "big", namespace="team")
        refuse_escalation(authorizer(objects), ALICE, plural="rolebindings", namespace="team", new=new)

    def test_aggregation_needs_everything(self) -> None:
        with pytest.raises(ApiError, match="must have cluster-admin privileges to use the aggregationRule"):
            self.refuse(ALICE, "clusterroles", role("sum", gathers={"a": "b"}), namespace="")


class TestReviews:
    def ask(self, kind: str, body: Json, user: User = ALICE, **more: Any) -> Json:
        return review(kind, user, body, authorizer(), **more)

    def test_may_i(self) -> None:
        body = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "team"}}}
        assert self.ask("SelfSubjectAccessReview", body)["status"]["allowed"] is True
        assert self.ask("SelfSubjectAccessReview", body, User("x"))["status"] == {"allowed": False}

    def test_may_they(self) -> None:
        spec = {"user": "alice", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
        assert self.ask("SubjectAccessReview", {"spec": spec})["status"]["allowed"] is True

    def test_a_question_about_nothing_is_invalid(self) -> None:
        with pytest.raises(ApiError) as refused:
            self.ask("SelfSubjectAccessReview", {"spec": {}})
        assert refused.value.code == 422
        assert "exactly one of nonResourceAttributes or resourceAttributes must be specified" in refused.value.message

    def test_what_may_i(self) -> None:
        status = self.ask("SelfSubjectRulesReview", {"spec": {"namespace": "team"}})["status"]
        assert {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]} in status[
            "resourceRules"
        ]
        assert status["nonResourceRules"] == [{"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]}]
        assert status["incomplete"] is False

    def test_who_am_i(self) -> None:
        status = self.ask("SelfSubjectReview", {})["status"]
        assert status == {"userInfo": {"username": "alice", "groups": ["devs", "system:authenticated"]}}

    def test_whose_token_is_this(self) -> None:
        known = Authenticator(tokens={token_digest("t0"): ALICE})
        good = self.ask("TokenReview", {"spec": {"token": "t0"}}, by_token=known.by_token)["status"]
        assert good["authenticated"] is True
        assert good["user"]["username"] == "alice"
        assert (
            "authenticated" not in self.ask("TokenReview", {"spec": {"token": "t1"}}, by_token=known.by_token)["status"]
        )


class TestAuthentication:
    def test_a_certificate_names_user_and_groups(self) -> None:
        user = Authenticator().user(certificate=("admin", ("system:masters",)))
        assert user == User("admin", groups=("system:masters", "system:authenticated"))

    def test_a_token_is_known_by_its_digest(self) -> None:
        subject = Authenticator(tokens={token_digest("secret"): User("alice")})
        assert subject.user(authorization="Bearer secret") == User("alice", groups=("system:authenticated",))
        assert subject.user(authorization="bearer  secret") is not None
        for wrong in ("Bearer other", "Basic secret", "secret", "", "Bearer"):
            assert subject.user(authorization=wrong) is None

    def test_only_what_looks_like_a_jwt_is_verified_as_one(self) -> None:
        asked: list[str] = []

        def verify(token: str) -> User | None:
            asked.append(token)
            return BOT if token == "a.b.c" else None

        subject = Authenticator(verify_token=verify)
        found = subject.user(authorization="Bearer a.b.c")
        assert found is not None
        assert found.name == "system:serviceaccount:tools:bot"
        assert "system:serviceaccounts:tools" in found.groups
        assert subject.user(authorization="Bearer plain") is None
        assert asked == ["a.b.c"]


class TestImpersonation:
    request = Attributes(User("boss"), "list", resource="pods", namespace="team")

    def allowed(self, *rules: Json) -> Any:
        objects = RbacObjects(
            cluster_roles=[role("r", *rules)],
            cluster_role_bindings=[binding("b", "ClusterRole", "r", user_subject("boss"))],
        )
        return authorizer(objects).authorize

    def test_headers_name_a_user(self) -> None:
        headers = [
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "devs"),
            ("impersonate-group", "ops"),
            ("Impersonate-Extra-Example.com%2fScopes", "a"),
        ]
        user = wanted_user(headers)
        assert user == User("jane", groups=("devs", "ops"))
        assert user is not None
        assert user.extra == {"example.com/scopes": ("a",)}
        assert wanted_user([("Accept", "*/*")]) is None
        with pytest.raises(ApiError):
            wanted_user([("Impersonate-Group", "devs")])

    def test_the_old_verb_is_enough(self) -> None:
        authorize = self.allowed(rule("impersonate", "users groups"))
        user = impersonated(self.request, User("jane", groups=("devs",)), authorize)
        assert user.groups == ("devs", "system:authenticated")

    def test_every_group_needs_the_right(self) -> None:
        authorize = self.allowed(rule("impersonate", "users"), rule("impersonate", "groups", names="devs"))
        with pytest.raises(ApiError) as refused:
            impersonated(self.request, User("jane", groups=("devs", "ops")), authorize)
        assert refused.value.code == 403

    def test_an_account_has_its_groups(self) -> None:
        authorize = self.allowed(rule("impersonate", "serviceaccounts"))
        user = impersonated(self.request, User("system:serviceaccount:tools:bot"), authorize)
        assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:tools", "system:authenticated")

    def test_the_constrained_way_needs_both_rights(self) -> None:
        first = rule("impersonate:user-info", "users", "authentication.k8s.io")
        second = rule("impersonate-on:user-info:list", "pods")
        assert impersonated(self.request, User("jane"), self.allowed(first, second)).name == "jane"
        with pytest.raises(ApiError) as refused:
            impersonated(self.request, User("jane"), self.allowed(first))
        assert refused.value.message == (
            'pods is forbidden: User "boss" cannot impersonate-on:user-info:list resource "pods" '
            'in API group "" in the namespace "team"'
        )
