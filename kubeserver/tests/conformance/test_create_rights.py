"""Creating through PATCH and PUT takes the right to create, as POST does."""

from __future__ import annotations

import pytest

from conformance.kinds import GROUP, configmap, service, widget
from conformance.test_access import allow
from conformance.wire import MERGE_PATCH, Api, Object, eventually, failure, not_found

RBAC_GROUP = "rbac.authorization.k8s.io"
COORDINATION = "coordination.k8s.io"


def rule(group: str, plural: str, *verbs: str) -> Object:
    return {"apiGroups": [group], "resources": [plural, f"{plural}/status"], "verbs": list(verbs)}


def path_of(group: str, namespace: str, plural: str) -> str:
    root = f"/apis/{group}/v1" if group else "/api/v1"
    return f"{root}/namespaces/{namespace}/{plural}"


def may_not_create(group: str, namespace: str, plural: str, name: str, subresource: str = "") -> Object:
    qualified = f"{plural}.{group}" if group else plural
    grouped = {"group": group} if group else {}
    return failure(
        403,
        "Forbidden",
        f'{qualified} "{name}" is forbidden: User "jane" cannot create resource "{plural}{subresource}" in API group '
        f'"{group}" in the namespace "{namespace}"',
        name=name,
        kind=plural,
        **grouped,
    )


APPLIED = [
    ("", "configmaps", configmap("new")),
    ("", "services", service("new")),
    (GROUP, "widgets", widget("new")),
    (
        COORDINATION,
        "leases",
        {"apiVersion": f"{COORDINATION}/v1", "kind": "Lease", "metadata": {"name": "new"}, "spec": {}},
    ),
    (RBAC_GROUP, "roles", {"apiVersion": f"{RBAC_GROUP}/v1", "kind": "Role", "metadata": {"name": "new"}, "rules": []}),
]
PUT = [pair for pair in APPLIED if pair[1] not in ("configmaps", "widgets")]


@pytest.mark.parametrize("query", [{}, {"dryRun": "All"}, {"force": "true"}], ids=["plain", "dry-run", "force"])
@pytest.mark.parametrize(("group", "plural", "body"), APPLIED, ids=[pair[1] for pair in APPLIED])
async def test_apply_does_not_create_for_one_who_may_only_patch(
    api: Api, namespace: str, widgets: str, group: str, plural: str, body: Object, query: Object
) -> None:
    del widgets
    await allow(api, namespace, "jane", rule(group, plural, "patch", "get", "update"))
    path = path_of(group, namespace, plural)
    answer = await api.acting_as("jane").apply(f"{path}/new", body, **query)
    assert (answer.status, answer.body) == (403, may_not_create(group, namespace, plural, "new"))
    assert (await api.get(f"{path}/new")).status == 404
    assert (await api.apply(f"{path}/new", body)).status == 201
    assert (await api.acting_as("jane").apply(f"{path}/new", body, force="true")).status == 200


@pytest.mark.parametrize("query", [{}, {"dryRun": "All"}], ids=["plain", "dry-run"])
@pytest.mark.parametrize(("group", "plural", "body"), PUT, ids=[pair[1] for pair in PUT])
async def test_put_does_not_create_for_one_who_may_only_update(
    api: Api, namespace: str, group: str, plural: str, body: Object, query: Object
) -> None:
    await allow(api, namespace, "jane", rule(group, plural, "update", "get", "patch"))
    path = path_of(group, namespace, plural)
    answer = await api.acting_as("jane").put(f"{path}/new", body, **query)
    assert (answer.status, answer.body) == (403, may_not_create(group, namespace, plural, "new"))
    assert (await api.get(f"{path}/new")).status == 404


@pytest.mark.parametrize(("group", "plural", "body"), [APPLIED[0], APPLIED[2]], ids=["configmaps", "widgets"])
async def test_put_creates_only_kinds_that_allow_it(
    api: Api, namespace: str, widgets: str, group: str, plural: str, body: Object
) -> None:
    del widgets
    path = path_of(group, namespace, plural)
    for user in (api, api.acting_as("jane")):
        if user is not api:
            await allow(api, namespace, "jane", rule(group, plural, "update"))
        answer = await user.put(f"{path}/new", body)
        assert (answer.status, answer.body) == (404, not_found(plural, "new", group)), answer.text


async def test_one_who_may_create_and_patch_applies_what_is_new(api: Api, namespace: str, widgets: str) -> None:
    del widgets
    await allow(api, namespace, "jane", rule(GROUP, "widgets", "create", "patch"))
    answer = await api.acting_as("jane").apply(f"{path_of(GROUP, namespace, 'widgets')}/new", widget("new"))
    assert answer.status == 201


async def test_the_right_to_create_one_name_does_for_that_name(api: Api, namespace: str) -> None:
    named = {**rule("", "configmaps", "create"), "resourceNames": ["one"]}
    await allow(api, namespace, "jane", rule("", "configmaps", "patch"), named)
    jane, path = api.acting_as("jane"), path_of("", namespace, "configmaps")

    async def made() -> bool:
        return (await jane.apply(f"{path}/one", configmap("one"))).status == 201

    await eventually(made, "the one is created")
    answer = await jane.apply(f"{path}/new", configmap("new"))
    assert (answer.status, answer.body) == (403, may_not_create("", namespace, "configmaps", "new"))


async def test_what_is_wrong_with_the_object_comes_first(api: Api, namespace: str) -> None:
    await allow(api, namespace, "jane", rule("", "configmaps", "patch"))
    body = configmap("new", {"not a key": "x"})
    answer = await api.acting_as("jane").apply(f"{path_of('', namespace, 'configmaps')}/new", body)
    assert answer.status == 422


async def test_a_subresource_of_nothing_is_not_created_by_apply(api: Api, namespace: str, widgets: str) -> None:
    del widgets
    await allow(api, namespace, "jane", rule(GROUP, "widgets", "patch"))
    path = f"{path_of(GROUP, namespace, 'widgets')}/new/status"
    for user in (api, api.acting_as("jane")):
        answer = await user.apply(path, {**widget("new"), "status": {}})
        assert (answer.status, answer.body) == (404, not_found("widgets", "new", GROUP))


async def test_a_subresource_of_nothing_is_not_created_by_put(api: Api, namespace: str) -> None:
    await allow(api, namespace, "jane", rule("", "services", "update"))
    path = path_of("", namespace, "services")
    answer = await api.acting_as("jane").put(f"{path}/new/status", service("new"))
    assert (answer.status, answer.body) == (403, may_not_create("", namespace, "services", "new", "/status"))
    assert (await api.get(f"{path}/new")).status == 404


async def test_other_patches_create_nothing(api: Api, namespace: str) -> None:
    path = f"{path_of('', namespace, 'configmaps')}/new"
    answer = await api.patch(path, configmap("new"), MERGE_PATCH)
    assert (answer.status, answer.body) == (404, not_found("configmaps", "new"))
