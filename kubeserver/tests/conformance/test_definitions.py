"""The life of a custom resource definition: established, served, changed, in several versions, gone."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import INTEGER, STRING, definition
from conformance.wire import JSON_PATCH, eventually, failure, not_found

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from conformance.wire import Api, Object

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPEC: Object = {"spec": {"type": "object", "properties": {"size": INTEGER}}}


class Definitions:
    """Makes definitions in groups of their own, and removes them after the case."""

    def __init__(self, api: Api, group: str) -> None:
        self.api = api
        self.group = group
        self.made: list[str] = []

    async def create(self, body: Object) -> Object:
        created: Object = (await self.api.post(PATH, body)).made
        self.made.append(created["metadata"]["name"])
        return created

    async def establish(self, body: Object, version: str = "v1") -> str:
        """Create and wait until objects can be listed; the path of the namespaced collection, unfilled."""
        await self.create(body)
        plural = body["spec"]["names"]["plural"]

        async def served() -> bool:
            return (await self.api.get(f"/apis/{self.group}/{version}/{plural}")).status == 200

        await eventually(served, f"{plural} are served")
        return f"/apis/{self.group}/{{version}}/namespaces/{{namespace}}/{plural}"

    async def gone(self, name: str) -> bool:
        return (await self.api.get(f"{PATH}/{name}")).status == 404

    async def conditions(self, name: str) -> dict[str, Any]:
        found = (await self.api.get(f"{PATH}/{name}")).made["status"].get("conditions") or []
        return {item["type"]: (item["status"], item["reason"], item["message"]) for item in found}


@pytest.fixture
async def definitions(api: Api, unique: str) -> AsyncIterator[Definitions]:
    made = Definitions(api, f"g{unique}.example.com")
    yield made
    for name in made.made:
        await api.delete(f"{PATH}/{name}")


async def test_a_definition_is_filled_in(definitions: Definitions) -> None:
    body = definition("Toy", SPEC, group=definitions.group)
    del body["spec"]["names"]["singular"]
    created = await definitions.create(body)
    assert created["metadata"]["generation"] == 1
    assert created["spec"]["names"] == {
        "plural": "toys",
        "singular": "toy",
        "kind": "Toy",
        "listKind": "ToyList",
    }
    assert created["spec"]["conversion"] == {"strategy": "None"}
    assert created["status"]["storedVersions"] == ["v1"]


async def test_a_definition_is_established(definitions: Definitions) -> None:
    await definitions.establish(definition("Toy", SPEC, group=definitions.group))
    assert await definitions.conditions(f"toys.{definitions.group}") == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    body = (await definitions.api.get(f"{PATH}/toys.{definitions.group}")).body
    assert body["status"]["acceptedNames"] == body["spec"]["names"]


async def test_a_name_that_is_taken_is_not_accepted(definitions: Definitions) -> None:
    await definitions.establish(definition("Toy", SPEC, group=definitions.group, names={"shortNames": ["ty"]}))
    other = definition("Joy", SPEC, group=definitions.group, names={"shortNames": ["ty"]})
    await definitions.create(other)

    async def refused() -> bool:
        return "NamesAccepted" in await definitions.conditions(f"joys.{definitions.group}")

    await eventually(refused, "the names are looked at")
    assert await definitions.conditions(f"joys.{definitions.group}") == {
        "NamesAccepted": ("False", "ShortNamesConflict", '"ty" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    answer = await definitions.api.get(f"/apis/{definitions.group}/v1/joys")
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_a_cluster_scoped_kind_has_no_namespaces(definitions: Definitions, namespace: str) -> None:
    body = definition("Toy", SPEC, group=definitions.group)
    body["spec"]["scope"] = "Cluster"
    await definitions.establish(body)
    toy = {"apiVersion": f"{definitions.group}/v1", "kind": "Toy", "metadata": {"name": "one"}}
    created = (await definitions.api.post(f"/apis/{definitions.group}/v1/toys", toy)).made
    assert "namespace" not in created["metadata"]
    answer = await definitions.api.get(f"/apis/{definitions.group}/v1/namespaces/{namespace}/toys")
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_a_changed_schema_holds_for_the_next_write(definitions: Definitions, namespace: str) -> None:
    path = await definitions.establish(definition("Toy", SPEC, group=definitions.group))
    path = path.format(version="v1", namespace=namespace)
    toy = {"apiVersion": f"{definitions.group}/v1", "kind": "Toy", "metadata": {"name": "one"}}
    await definitions.api.post(path, toy | {"spec": {"size": 500}})
    schema = copy.deepcopy(SPEC)
    schema["spec"]["properties"]["size"]["maximum"] = 100
    operations = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties", "value": schema}]
    changed = await definitions.api.patch(f"{PATH}/toys.{definitions.group}", operations, "application/json-patch+json")
    assert changed.made["metadata"]["generation"] == 2

    async def refused() -> bool:
        answer = await definitions.api.post(path, toy | {"metadata": {"generateName": "x-"}, "spec": {"size": 500}})
        return answer.status == 422

    await eventually(refused, "the new schema holds")
    # What was written before stays readable, and a write that does not touch it is let through.
    assert (await definitions.api.get(f"{path}/one")).made["spec"]["size"] == 500
    relabelled = await definitions.api.merge(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})
    assert relabelled.status == 200


async def test_a_default_added_later_shows_on_read(definitions: Definitions, namespace: str) -> None:
    path = await definitions.establish(definition("Toy", SPEC, group=definitions.group))
    path = path.format(version="v1", namespace=namespace)
    toy = {"apiVersion": f"{definitions.group}/v1", "kind": "Toy", "metadata": {"name": "one"}}
    created = (await definitions.api.post(path, toy | {"spec": {}})).made
    operations = [
        {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color",
            "value": {"type": "string", "default": "red"},
        }
    ]
    await definitions.api.patch(f"{PATH}/toys.{definitions.group}", operations, "application/json-patch+json")

    async def defaulted() -> bool:
        return bool((await definitions.api.get(f"{path}/one")).made["spec"] == {"color": "red"})

    await eventually(defaulted, "the default shows")
    body = (await definitions.api.get(f"{path}/one")).body
    assert body["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_a_scope_cannot_be_changed(definitions: Definitions) -> None:
    await definitions.establish(definition("Toy", SPEC, group=definitions.group))
    answer = await definitions.api.merge(f"{PATH}/toys.{definitions.group}", {"spec": {"scope": "Cluster"}})
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.scope", 'Invalid value: "Cluster": field is immutable')]


async def test_deleting_a_definition_removes_its_objects_and_its_paths(
    definitions: Definitions, namespace: str
) -> None:
    body = definition("Toy", SPEC, group=definitions.group)
    path = (await definitions.establish(body)).format(version="v1", namespace=namespace)
    toy = {"apiVersion": f"{definitions.group}/v1", "kind": "Toy", "metadata": {"name": "one"}}
    await definitions.api.post(path, toy)
    name = f"toys.{definitions.group}"
    deleted = await definitions.api.delete(f"{PATH}/{name}")
    assert deleted.status == 200

    async def gone() -> bool:
        return (await definitions.api.get(f"{PATH}/{name}")).status == 404

    await eventually(gone, "the definition goes")
    assert (await definitions.api.get(f"{PATH}/{name}")).body == not_found(
        "customresourcedefinitions", name, "apiextensions.k8s.io"
    )

    async def unserved() -> bool:
        answer = await definitions.api.get(f"/apis/{definitions.group}/v1")
        return (answer.status, answer.text) == (404, "404 page not found\n")

    await eventually(unserved, "the group is no longer served")
    path = (await definitions.establish(body)).format(version="v1", namespace=namespace)
    assert (await definitions.api.get(path)).made["items"] == []


async def test_nothing_is_created_while_a_definition_goes(definitions: Definitions, api: Api, namespace: str) -> None:
    path = (await definitions.establish(definition("Toy", SPEC, group=definitions.group))).format(
        version="v1", namespace=namespace
    )
    toy = {"apiVersion": f"{definitions.group}/v1", "kind": "Toy"}
    assert (await api.post(path, {**toy, "metadata": {"name": "one", "finalizers": ["example.com/hold"]}})).made
    name = f"toys.{definitions.group}"
    marked = (await api.delete(f"{PATH}/{name}")).made
    assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    last = {key: value for key, value in marked["status"]["conditions"][-1].items() if key != "lastTransitionTime"}
    assert last == {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }

    async def refused() -> bool:
        return (await api.post(path, {**toy, "metadata": {"name": "two"}}, dryRun="All")).status == 403

    await eventually(refused, "new objects are refused")
    resource = f"toys.{definitions.group}"
    why = f'{resource} "two" is forbidden: create not allowed while custom resource definition is terminating'
    assert (await api.post(path, {**toy, "metadata": {"name": "two"}})).body == failure(
        403, "Forbidden", why, name="two", group=definitions.group, kind="toys"
    )

    async def told() -> bool:
        found = (await definitions.conditions(name))["Terminating"]
        return bool(found == ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"))

    await eventually(told, "the definition says that its objects are being deleted")
    assert (await api.merge(f"{path}/one", {"metadata": {"finalizers": None}})).made
    await eventually(lambda: definitions.gone(name), "the definition goes")


async def test_a_definition_that_serves_nothing_takes_its_objects_along(
    definitions: Definitions, api: Api, namespace: str
) -> None:
    body = definition("Toy", SPEC, group=definitions.group)
    path = (await definitions.establish(body)).format(version="v1", namespace=namespace)
    toy = {"apiVersion": f"{definitions.group}/v1", "kind": "Toy", "metadata": {"name": "one"}}
    assert (await api.post(path, toy)).made
    name = f"toys.{definitions.group}"
    unserved = [{"op": "replace", "path": "/spec/versions/0/served", "value": False}]
    assert (await api.patch(f"{PATH}/{name}", unserved, JSON_PATCH)).made
    await api.delete(f"{PATH}/{name}")
    await eventually(lambda: definitions.gone(name), "the definition goes")
    await definitions.establish(body)
    assert (await api.get(path)).made["items"] == []


async def test_a_watch_ends_with_its_definition(definitions: Definitions, api: Api, namespace: str) -> None:
    path = (await definitions.establish(definition("Toy", SPEC, group=definitions.group))).format(
        version="v1", namespace=namespace
    )
    async with api.watch(path) as watch:
        await api.delete(f"{PATH}/toys.{definitions.group}")
        await watch.end()


async def test_watches_of_two_versions_do_not_disturb_each_other(
    definitions: Definitions, api: Api, namespace: str
) -> None:
    path = await definitions.establish(two_versions(definitions.group), "v2")
    first, second = (path.format(version=name, namespace=namespace) for name in ("v1", "v2"))
    chosen = {"labelSelector": "watched=yes"}
    async with api.watch(second, **chosen) as new, api.watch(first, **chosen) as old:
        toy = {
            "apiVersion": f"{definitions.group}/v1",
            "kind": "Toy",
            "metadata": {"name": "one", "labels": {"watched": "yes"}},
            "spec": {"size": 1, "old": "x"},
        }
        assert (await api.post(first, toy)).made
        assert (await new.next_change())["object"]["spec"] == {"size": 1}
        assert (await old.next_change())["object"]["spec"] == {"size": 1, "old": "x"}


async def test_a_watch_never_shows_another_version(definitions: Definitions, api: Api, namespace: str) -> None:
    """When objects come to be kept in another version, a watch goes on in its own or ends, to be opened again."""
    path = await definitions.establish(two_versions(definitions.group), "v2")
    first, second = (path.format(version=name, namespace=namespace) for name in ("v1", "v2"))
    toy = {"apiVersion": f"{definitions.group}/v1", "kind": "Toy", "metadata": {"name": "one"}, "spec": {"size": 1}}
    assert (await api.post(first, toy)).made
    async with api.watch(first, timeoutSeconds=3) as watch:
        changes = [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ]
        assert (await api.patch(f"{PATH}/toys.{definitions.group}", changes, JSON_PATCH)).made
        for size in range(2, 6):
            assert (await api.merge(f"{second}/one", {"spec": {"size": size}})).made
        shown = {event["object"]["apiVersion"] for event in await watch.end()}
    assert shown == {f"{definitions.group}/v1"}


def two_versions(group: str, **second: Any) -> Object:
    body = definition("Toy", {"spec": {"type": "object", "properties": {"size": INTEGER, "old": STRING}}}, group=group)
    body["spec"]["versions"].append(
        {
            "name": "v2",
            "served": True,
            "storage": False,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {"size": INTEGER, "color": {"type": "string", "default": "red"}},
                        }
                    },
                }
            },
            **second,
        }
    )
    return body


async def test_an_object_reads_in_every_version(definitions: Definitions, namespace: str) -> None:
    path = await definitions.establish(two_versions(definitions.group), "v2")
    first, second = (path.format(version=name, namespace=namespace) for name in ("v1", "v2"))
    toy = {
        "apiVersion": f"{definitions.group}/v1",
        "kind": "Toy",
        "metadata": {"name": "one"},
        "spec": {"size": 1, "old": "x"},
    }
    created = (await definitions.api.post(first, toy)).made
    read = (await definitions.api.get(f"{second}/one")).made
    assert read["apiVersion"] == f"{definitions.group}/v2"
    # What is read is pruned to the version asked for; defaults are those of the version stored.
    assert read["spec"] == {"size": 1}
    for field in ("uid", "resourceVersion", "generation"):
        assert read["metadata"][field] == created["metadata"][field]


async def test_an_object_written_in_one_version_is_listed_in_another(definitions: Definitions, namespace: str) -> None:
    path = await definitions.establish(two_versions(definitions.group), "v2")
    first, second = (path.format(version=name, namespace=namespace) for name in ("v1", "v2"))
    toy = {
        "apiVersion": f"{definitions.group}/v2",
        "kind": "Toy",
        "metadata": {"name": "one"},
        "spec": {"size": 1, "color": "blue"},
    }
    assert (await definitions.api.post(second, toy)).made["apiVersion"] == f"{definitions.group}/v2"
    listed = (await definitions.api.get(first)).made
    assert listed["apiVersion"] == f"{definitions.group}/v1"
    assert [item["apiVersion"] for item in listed["items"]] == [f"{definitions.group}/v1"]
    changed = (await definitions.api.merge(f"{first}/one", {"spec": {"size": 2}})).made
    assert changed["metadata"]["generation"] == 2


async def test_a_version_that_is_not_served_is_not_found(definitions: Definitions, namespace: str) -> None:
    path = await definitions.establish(two_versions(definitions.group, served=False))
    answer = await definitions.api.get(path.format(version="v2", namespace=namespace))
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_discovery_prefers_the_most_stable_version(definitions: Definitions) -> None:
    body = two_versions(definitions.group)
    body["spec"]["versions"].append(copy.deepcopy(body["spec"]["versions"][1]) | {"name": "v3beta1"})
    await definitions.establish(body, "v3beta1")

    async def found() -> bool:
        answer = await definitions.api.get(f"/apis/{definitions.group}")
        return answer.status == 200 and len(answer.body["versions"]) == 3

    await eventually(found, "all versions are discovered")
    group = (await definitions.api.get(f"/apis/{definitions.group}")).body
    assert [version["version"] for version in group["versions"]] == ["v2", "v1", "v3beta1"]
    assert group["preferredVersion"]["version"] == "v2"


async def test_a_deprecated_version_warns(definitions: Definitions, namespace: str) -> None:
    path = await definitions.establish(two_versions(definitions.group, deprecated=True), "v2")
    answer = await definitions.api.get(path.format(version="v2", namespace=namespace))
    assert answer.warnings == [f"{definitions.group}/v2 Toy is deprecated"]
    assert (await definitions.api.get(path.format(version="v1", namespace=namespace))).warnings == []
