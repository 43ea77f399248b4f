"""Owners and dependents: what a deletion takes with it, in which order, and what it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import configmap
from conformance.wire import eventually

if TYPE_CHECKING:
    from conformance.wire import Api, Object


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def owner_and_dependent(api: Api, namespace: str, *, block: bool = False) -> Object:
    owner: Object = (await api.post(maps(namespace), configmap("owner"))).made
    await api.post(maps(namespace), configmap("dependent", ownerReferences=[reference(owner, block)]))
    return owner


def reference(owner: Object, block: bool = False) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **({"blockOwnerDeletion": True} if block else {}),
    }


async def gone(api: Api, namespace: str, name: str) -> bool:
    return (await api.get(f"{maps(namespace)}/{name}")).status == 404


@pytest.mark.parametrize("options", [{}, {"propagationPolicy": "Background"}], ids=str)
async def test_dependents_follow_in_the_background(api: Api, namespace: str, options: Object) -> None:
    await owner_and_dependent(api, namespace)
    answer = await api.delete(f"{maps(namespace)}/owner", options or None)
    assert answer.body["status"] == "Success"
    assert await gone(api, namespace, "owner")
    await eventually(lambda: gone(api, namespace, "dependent"), "the dependent is collected")


async def test_a_foreground_deletion_waits_for_dependents(api: Api, namespace: str) -> None:
    owner: Object = (await api.post(maps(namespace), configmap("owner"))).made
    await api.post(
        maps(namespace),
        configmap("dependent", ownerReferences=[reference(owner, True)], finalizers=["example.com/hold"]),
    )
    answer = await api.delete(f"{maps(namespace)}/owner", {"propagationPolicy": "Foreground"})
    assert answer.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert answer.body["metadata"]["deletionTimestamp"]

    async def dependent_is_being_deleted() -> bool:
        body = (await api.get(f"{maps(namespace)}/dependent")).body
        return "deletionTimestamp" in body["metadata"]

    await eventually(dependent_is_being_deleted, "the dependent is asked to go")
    assert not await gone(api, namespace, "owner")
    await api.merge(f"{maps(namespace)}/dependent", {"metadata": {"finalizers": None}})
    await eventually(lambda: gone(api, namespace, "owner"), "the owner goes last")
    assert await gone(api, namespace, "dependent")


async def test_orphans_stay_without_their_owner(api: Api, namespace: str) -> None:
    await owner_and_dependent(api, namespace)
    answer = await api.delete(f"{maps(namespace)}/owner", {"propagationPolicy": "Orphan"})
    assert answer.status == 200
    await eventually(lambda: gone(api, namespace, "owner"), "the owner goes")
    dependent = (await api.get(f"{maps(namespace)}/dependent")).made
    assert "ownerReferences" not in dependent["metadata"]


async def test_a_dependent_with_another_owner_stays(api: Api, namespace: str) -> None:
    first: Object = (await api.post(maps(namespace), configmap("first"))).made
    second: Object = (await api.post(maps(namespace), configmap("second"))).made
    references = [reference(first), reference(second)]
    await api.post(maps(namespace), configmap("dependent", ownerReferences=references))
    await api.delete(f"{maps(namespace)}/first")

    async def one_owner_left() -> bool:
        body = (await api.get(f"{maps(namespace)}/dependent")).made
        return bool(body["metadata"].get("ownerReferences") == [reference(second)])

    await eventually(one_owner_left, "the reference to the first owner goes")


async def test_an_owner_that_never_was_takes_its_dependent(api: Api, namespace: str) -> None:
    missing = {"metadata": {"name": "missing", "uid": "00000000-0000-0000-0000-000000000000"}}
    await api.post(maps(namespace), configmap("dependent", ownerReferences=[reference(missing)]))
    await eventually(lambda: gone(api, namespace, "dependent"), "a dependent of a missing owner goes")


async def test_an_owner_of_that_name_with_another_uid_is_another(api: Api, namespace: str) -> None:
    owner: Object = (await api.post(maps(namespace), configmap("owner"))).made
    other = {"metadata": owner["metadata"] | {"uid": "11111111-0000-0000-0000-000000000000"}}
    await api.post(maps(namespace), configmap("dependent", ownerReferences=[reference(other)]))
    await eventually(lambda: gone(api, namespace, "dependent"), "the dependent of an earlier owner goes")
    assert not await gone(api, namespace, "owner")


async def test_there_is_one_controlling_owner(api: Api, namespace: str) -> None:
    first: Object = (await api.post(maps(namespace), configmap("first"))).made
    second: Object = (await api.post(maps(namespace), configmap("second"))).made
    references = [reference(obj) | {"controller": True} for obj in (first, second)]
    answer = await api.post(maps(namespace), configmap("dependent", ownerReferences=references))
    assert answer.status == 422
    ((reason, field, message),) = answer.causes
    assert (reason, field) == ("FieldValueInvalid", "metadata.ownerReferences")
    assert message.endswith(
        ": Only one reference can have Controller set to true. "
        'Found "true" in references for ConfigMap/first and ConfigMap/second'
    )


async def test_grandchildren_go_too(api: Api, namespace: str) -> None:
    top: Object = (await api.post(maps(namespace), configmap("top"))).made
    middle: Object = (await api.post(maps(namespace), configmap("middle", ownerReferences=[reference(top)]))).made
    await api.post(maps(namespace), configmap("bottom", ownerReferences=[reference(middle)]))
    await api.delete(f"{maps(namespace)}/top")
    await eventually(lambda: gone(api, namespace, "bottom"), "the grandchild is collected")
    assert await gone(api, namespace, "middle")


async def test_objects_that_own_each_other_can_be_deleted_in_the_foreground(api: Api, namespace: str) -> None:
    one: Object = (await api.post(maps(namespace), configmap("one"))).made
    two: Object = (await api.post(maps(namespace), configmap("two", ownerReferences=[reference(one, True)]))).made
    assert (await api.merge(f"{maps(namespace)}/one", {"metadata": {"ownerReferences": [reference(two, True)]}})).made
    await api.delete(f"{maps(namespace)}/one", {"propagationPolicy": "Foreground"})
    await eventually(lambda: gone(api, namespace, "one"), "the one that was deleted goes")
    await eventually(lambda: gone(api, namespace, "two"), "the other goes")


async def test_an_object_that_orphans_its_dependents_does_so_when_it_is_collected(api: Api, namespace: str) -> None:
    top: Object = (await api.post(maps(namespace), configmap("top"))).made
    owned: dict[str, Any] = {"ownerReferences": [reference(top)], "finalizers": ["orphan"]}
    middle: Object = (await api.post(maps(namespace), configmap("middle", **owned))).made
    await api.post(maps(namespace), configmap("bottom", ownerReferences=[reference(middle)]))
    await api.delete(f"{maps(namespace)}/top")
    await eventually(lambda: gone(api, namespace, "middle"), "the dependent is collected")
    assert "ownerReferences" not in (await api.get(f"{maps(namespace)}/bottom")).made["metadata"]
