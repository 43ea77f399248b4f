"""Roles that are small to write and endless to read: other clients do not wait for them.

A rule stands for every combination of its verbs, groups and resources, and ClusterRoles may collect each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

from hostile.talking import NOT_FROZEN, Busy, Json, call

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def cube(side: int) -> Json:
    """A rule with so many verbs, groups and resources: 3 kB have a million combinations."""
    verbs, groups, resources = ([f"{letter}{number}" for number in range(side)] for letter in "vgr")
    return {"verbs": verbs, "apiGroups": groups, "resources": resources}


def bound(role: str, user: str) -> Json:
    return {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


async def made(client: aiohttp.ClientSession, path: str, body: Json) -> None:
    code, answer = await call(client, "POST", path, body)
    assert code == 201, answer


async def may(client: aiohttp.ClientSession, user: str, **wanted: str) -> bool:
    code, answer = await call(client, "POST", REVIEWS, {"spec": {"user": user, "resourceAttributes": wanted}})
    assert code == 201, answer
    return bool(answer["status"]["allowed"])


async def test_the_administrator_of_a_namespace_cannot_stop_the_server_with_a_role(
    client: aiohttp.ClientSession,
) -> None:
    await made(client, f"{RBAC}/namespaces/default/rolebindings", bound("admin", "ann"))
    new = {"metadata": {"name": "cube"}, "rules": [cube(80)]}
    async with Busy(client) as others:
        path = f"{RBAC}/namespaces/default/roles"
        code, answer = await call(client, "POST", path, new, **{"Impersonate-User": "ann"})
    assert code == 403, answer
    assert "split it, or use *" in answer["message"]
    print(f"while a role was compared with its author's, others waited at most {others.worst:.2f} s")
    assert others.worst < NOT_FROZEN
    small = {"metadata": {"name": "small"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
    code, answer = await call(client, "POST", path, small, **{"Impersonate-User": "ann"})
    assert code == 201, answer
    more = {"metadata": {"name": "more"}, "rules": [cube(10)]}
    code, answer = await call(client, "POST", path, more, **{"Impersonate-User": "ann"})
    assert code == 403, answer
    assert 'Resources:["r9"], Verbs:["v0" "v1"' in answer["message"]


async def test_many_rules_on_one_resource_are_not_compared_with_many_verbs(client: aiohttp.ClientSession) -> None:
    pods = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    held = {"metadata": {"name": "held"}, "rules": [{**pods, "resourceNames": [f"n{at}"]} for at in range(19_000)]}
    await made(client, f"{RBAC}/namespaces/default/roles", held)
    everything = bound("admin", "hank")
    await made(client, f"{RBAC}/namespaces/default/rolebindings", everything)
    of_held = {**everything, "metadata": {"name": "hank-held"}, "roleRef": {**everything["roleRef"], "kind": "Role"}}
    of_held["roleRef"]["name"] = "held"
    await made(client, f"{RBAC}/namespaces/default/rolebindings", of_held)
    new = {"metadata": {"name": "wide"}, "rules": [{**pods, "verbs": [f"v{at}" for at in range(19_000)]}]}
    async with Busy(client) as others:
        path = f"{RBAC}/namespaces/default/roles"
        code, answer = await call(client, "POST", path, new, **{"Impersonate-User": "hank"})
    assert code == 403, answer
    assert "too many rules to compare" in answer["message"]
    print(f"while many rules were compared with many, others waited at most {others.worst:.2f} s")
    assert others.worst < NOT_FROZEN


async def test_a_rule_is_not_laid_out_in_all_its_combinations(client: aiohttp.ClientSession) -> None:
    await made(client, f"{RBAC}/clusterroles", {"metadata": {"name": "cube"}, "rules": [cube(200)]})
    await made(client, f"{RBAC}/clusterrolebindings", bound("cube", "carl"))
    async with Busy(client) as others:
        assert await may(client, "carl", verb="v7", group="g199", resource="r0")
        assert not await may(client, "carl", verb="v200", group="g0", resource="r0")
    print(f"while a large rule was read, others waited at most {others.worst:.2f} s")
    assert others.worst < NOT_FROZEN


async def test_roles_that_collect_each_other_are_looked_into_once(client: aiohttp.ClientSession) -> None:
    everyone = {"clusterRoleSelectors": [{"matchLabels": {"circle": "yes"}}]}
    for number in range(10):
        meta = {"name": f"circle{number}", "labels": {"circle": "yes"}}
        await made(client, f"{RBAC}/clusterroles", {"metadata": meta, "aggregationRule": everyone, "rules": []})
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["circles"]}
    inside = {"metadata": {"name": "inside", "labels": {"circle": "yes"}}, "rules": [rule]}
    await made(client, f"{RBAC}/clusterroles", inside)
    await made(client, f"{RBAC}/clusterrolebindings", bound("circle0", "bob"))
    async with Busy(client) as others:
        assert await may(client, "bob", verb="get", resource="circles")
        assert not await may(client, "bob", verb="get", resource="pods")
    print(f"while roles were collected, others waited at most {others.worst:.2f} s")
    assert others.worst < NOT_FROZEN
