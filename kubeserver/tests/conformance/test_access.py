"""Who may do what: authentication, RBAC, and the questions a user may ask about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import GROUP, configmap
from conformance.wire import Api, eventually, failure

if TYPE_CHECKING:
    from conformance.wire import Object

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def reading(*verbs: str, **more: Any) -> Object:
    return {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs), **more}


def subject(user: str) -> Object:
    return {"kind": "User", "name": user}


async def allow(api: Api, namespace: str, user: str, *rules: Object) -> None:
    """A role and its binding in one namespace, in force when this returns."""
    role = {"metadata": {"name": f"{user}-role"}, "rules": list(rules)}
    assert (await api.post(f"{RBAC}/namespaces/{namespace}/roles", role)).status == 201
    binding = {
        "metadata": {"name": f"{user}-binding"},
        "roleRef": {"kind": "Role", "name": f"{user}-role"},
        "subjects": [subject(user)],
    }
    assert (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)).status == 201
    first = rules[0]
    await can(api.acting_as(user), namespace, first["verbs"][0], first["resources"][0], group=first["apiGroups"][0])


async def can(api: Api, namespace: str, verb: str, resource: str, *, group: str = "") -> None:
    """Wait until the server's authorizer has seen what was written a moment ago."""

    async def allowed() -> bool:
        review = await ask(api, namespace=namespace, verb=verb, resource=resource, group=group)
        return bool(review["allowed"])

    await eventually(allowed, f"{verb} {resource} is allowed")


async def ask(api: Api, **attributes: str) -> Object:
    body = {"spec": {"resourceAttributes": attributes}}
    answer = await api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert answer.status == 201
    status: Object = answer.body["status"]
    return status


async def test_a_wrong_token_is_unauthorized(stranger: Api) -> None:
    bearer = Api(stranger.session, stranger.url, {"Authorization": "Bearer wrong"})
    answer = await bearer.get("/api/v1/namespaces")
    assert answer.body == failure(401, "Unauthorized", "Unauthorized")
    assert answer.status == 401


@pytest.mark.parametrize("header", ["Basic dXNlcjpwYXNz", "Bearer", "Nonsense x"])
async def test_other_credentials_are_anonymous(stranger: Api, header: str) -> None:
    someone = Api(stranger.session, stranger.url, {"Authorization": header})
    answer = await someone.get("/api/v1/namespaces")
    assert answer.status == 403
    assert answer.body["message"].startswith('namespaces is forbidden: User "system:anonymous" cannot list')


async def test_strangers_may_not_list(stranger: Api) -> None:
    answer = await stranger.get("/api/v1/namespaces")
    assert answer.body == failure(
        403,
        "Forbidden",
        'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" at the '
        "cluster scope",
        kind="namespaces",
    )


async def test_a_user_without_a_role_may_not_read(api: Api, namespace: str) -> None:
    answer = await api.acting_as("jane").get(f"{maps(namespace)}/one")
    assert answer.body == failure(
        403,
        "Forbidden",
        f'configmaps "one" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace '
        f'"{namespace}"',
        name="one",
        kind="configmaps",
    )


async def test_the_group_of_a_custom_resource_is_named(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.acting_as("jane").get(f"{widgets}/namespaces/{namespace}/widgets")
    assert answer.body == failure(
        403,
        "Forbidden",
        f'widgets.{GROUP} is forbidden: User "jane" cannot list resource "widgets" in API group "{GROUP}" in the '
        f'namespace "{namespace}"',
        group=GROUP,
        kind="widgets",
    )


@pytest.mark.parametrize(
    ("method", "suffix", "verb"),
    [
        ("GET", "", "list"),
        ("POST", "", "create"),
        ("DELETE", "", "deletecollection"),
        ("PUT", "/one", "update"),
        ("PATCH", "/one", "patch"),
        ("DELETE", "/one", "delete"),
    ],
)
async def test_every_verb_is_guarded(api: Api, namespace: str, method: str, suffix: str, verb: str) -> None:
    jane = api.acting_as("jane")
    answer = await jane.call(
        method,
        maps(namespace) + suffix,
        None if method == "GET" else configmap("one"),
        content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
    )
    assert answer.status == 403
    assert f'User "jane" cannot {verb} resource "configmaps"' in answer.body["message"]


async def test_watching_is_guarded(api: Api, namespace: str) -> None:
    answer = await api.acting_as("jane").get(maps(namespace), watch="true")
    assert answer.status == 403
    assert 'cannot watch resource "configmaps"' in answer.body["message"]


async def test_a_subresource_is_guarded_apart(api: Api, namespace: str, widgets: str) -> None:
    rule = {"apiGroups": [GROUP], "resources": ["widgets"], "verbs": ["*"]}
    await allow(api, namespace, "jane", reading("get"), rule)
    answer = await api.acting_as("jane").merge(f"{widgets}/namespaces/{namespace}/widgets/one/status", {"status": {}})
    assert answer.status == 403
    assert 'cannot patch resource "widgets/status"' in answer.body["message"]


async def test_a_role_allows_what_it_says(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one"))
    await allow(api, namespace, "jane", reading("get", "list"))
    jane = api.acting_as("jane")
    assert (await jane.get(f"{maps(namespace)}/one")).status == 200
    assert (await jane.get(maps(namespace))).status == 200
    assert (await jane.delete(f"{maps(namespace)}/one")).status == 403
    assert (await jane.get(maps("default"))).status == 403
    assert (await jane.get("/api/v1/configmaps")).status == 403


async def test_a_role_may_be_for_some_names(api: Api, namespace: str) -> None:
    for name in ("one", "two"):
        await api.post(maps(namespace), configmap(name))
    await allow(api, namespace, "jane", reading("watch"), reading("get", resourceNames=["one"]))
    jane = api.acting_as("jane")
    assert (await jane.get(f"{maps(namespace)}/one")).status == 200
    assert (await jane.get(f"{maps(namespace)}/two")).status == 403
    assert (await jane.get(maps(namespace))).status == 403


async def test_a_cluster_role_may_be_bound_in_one_namespace(api: Api, namespace: str) -> None:
    binding = {
        "metadata": {"name": "jane"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [subject("jane")],
    }
    await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    jane = api.acting_as("jane")
    await can(jane, namespace, "list", "configmaps")
    assert (await jane.get(maps(namespace))).status == 200
    assert (await jane.get(f"/api/v1/namespaces/{namespace}/secrets")).status == 403
    assert (await jane.get(maps("default"))).status == 403


async def test_a_group_can_be_bound(api: Api, namespace: str) -> None:
    binding = {
        "metadata": {"name": "readers"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "readers"}],
    }
    await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    await can(api.acting_as("jane", "readers"), namespace, "list", "configmaps")
    assert (await api.acting_as("jane").get(maps(namespace))).status == 403


async def test_paths_can_be_allowed(api: Api, unique: str) -> None:
    jane = api.acting_as("jane")
    answer = await jane.get(f"/{unique}/one")
    assert answer.body == failure(403, "Forbidden", f'forbidden: User "jane" cannot get path "/{unique}/one"') | {
        "details": {}
    }
    name = f"paths-{unique}"
    role = {"metadata": {"name": name}, "rules": [{"nonResourceURLs": [f"/{unique}/*"], "verbs": ["get"]}]}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"kind": "ClusterRole", "name": name},
        "subjects": [subject("jane")],
    }
    try:
        await api.post(f"{RBAC}/clusterroles", role)
        await api.post(f"{RBAC}/clusterrolebindings", binding)

        async def allowed() -> bool:
            return (await jane.get(f"/{unique}/one")).status == 404

        await eventually(allowed, "the path is allowed, though there is nothing")
        assert (await jane.get(f"/{unique}")).status == 403
        assert (await jane.call("POST", f"/{unique}/one", {})).status == 403
    finally:
        await api.delete(f"{RBAC}/clusterrolebindings/{name}")
        await api.delete(f"{RBAC}/clusterroles/{name}")


async def test_every_user_may_discover(api: Api) -> None:
    jane = api.acting_as("jane", "system:authenticated")
    for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version", "/healthz"):
        assert (await jane.get(path)).status == 200, path


async def test_no_user_gives_what_they_do_not_have(api: Api, namespace: str) -> None:
    roles = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}
    await allow(api, namespace, "jane", reading("get"), roles)
    jane = api.acting_as("jane")
    body = {"metadata": {"name": "more"}, "rules": [reading("get", "delete")]}
    answer = await jane.post(f"{RBAC}/namespaces/{namespace}/roles", body)
    assert answer.status == 403
    assert answer.body["message"] == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "jane" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}'
    )
    same = {"metadata": {"name": "same"}, "rules": [reading("get")]}
    assert (await jane.post(f"{RBAC}/namespaces/{namespace}/roles", same)).status == 201


async def test_no_user_binds_what_they_do_not_have(api: Api, namespace: str) -> None:
    bindings = {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["rolebindings"],
        "verbs": ["create"],
    }
    await allow(api, namespace, "jane", reading("get"), bindings)
    body = {
        "metadata": {"name": "more"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [subject("jane")],
    }
    answer = await api.acting_as("jane").post(f"{RBAC}/namespaces/{namespace}/rolebindings", body)
    assert answer.status == 403
    assert answer.body["message"].startswith(
        'rolebindings.rbac.authorization.k8s.io "more" is forbidden: user "jane" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
    )


async def test_the_masters_may_do_anything(api: Api) -> None:
    assert (await api.acting_as("jane", "system:masters").get("/api/v1/namespaces")).status == 200


async def test_impersonation_is_guarded(api: Api, stranger: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.post(path, {"metadata": {"name": "robot"}})
    token = (await api.post(f"{path}/robot/token", {})).made["status"]["token"]
    headers = {"Authorization": f"Bearer {token}", "Impersonate-User": "jane"}
    answer = await Api(stranger.session, stranger.url, headers).get(maps(namespace))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    # How the missing permission is called differs between versions of Kubernetes.
    assert f'User "system:serviceaccount:{namespace}:robot" cannot impersonate' in answer.body["message"]


async def test_a_group_alone_cannot_be_impersonated(api: Api) -> None:
    nameless = Api(api.session, api.url, {**api.headers, "Impersonate-Group": "g"})
    answer = await nameless.get("/api/v1/namespaces")
    assert answer.status == 400
    # Before it is a Go structure.
    assert answer.body["message"].endswith(" without impersonating a user name")


async def test_a_user_can_ask_what_is_allowed(api: Api, namespace: str) -> None:
    await allow(api, namespace, "jane", reading("get"))
    jane = api.acting_as("jane")
    yes = await ask(jane, namespace=namespace, verb="get", resource="configmaps")
    assert yes == {
        "allowed": True,
        "reason": f'RBAC: allowed by RoleBinding "jane-binding/{namespace}" of Role "jane-role" to User "jane"',
    }
    assert await ask(jane, namespace=namespace, verb="delete", resource="configmaps") == {"allowed": False}


async def test_an_access_review_needs_one_question(api: Api) -> None:
    answer = await api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}})
    assert answer.status == 422
    assert answer.causes == [
        (
            "FieldValueInvalid",
            "spec",
            "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
    ]


async def test_a_user_can_ask_for_all_rules(api: Api, namespace: str) -> None:
    await allow(api, namespace, "jane", reading("list"), reading("get", resourceNames=["one"]))
    body = {"spec": {"namespace": namespace}}
    answer = await api.acting_as("jane").post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)
    assert answer.status == 201
    status = answer.body["status"]
    assert status["incomplete"] is False
    assert {
        "verbs": ["get"],
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["one"],
    } in status["resourceRules"]
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]} in status["resourceRules"]


async def test_a_service_account_acts_under_its_own_name(api: Api, stranger: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.post(path, {"metadata": {"name": "robot"}})
    token = (await api.post(f"{path}/robot/token", {})).made["status"]["token"]
    robot = Api(stranger.session, stranger.url, {"Authorization": f"Bearer {token}"})
    answer = await robot.get(maps(namespace))
    assert answer.status == 403
    assert f'User "system:serviceaccount:{namespace}:robot" cannot list' in answer.body["message"]
    binding = {
        "metadata": {"name": "robot"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
    }
    await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    await can(robot, namespace, "list", "configmaps")
    assert (await robot.get(maps(namespace))).status == 200


async def test_a_user_can_ask_who_they_are(api: Api) -> None:
    answer = await api.acting_as("jane", "g").post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert answer.status == 201
    info = answer.body["status"]["userInfo"]
    assert info["username"] == "jane"
    assert sorted(info["groups"]) == ["g", "system:authenticated"]
