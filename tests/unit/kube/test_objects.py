"""The pure functions about objects, on structs and on dicts."""

import pytest

from butler.api import objects
from butler.api.meta import ObjectMeta, OwnerReference
from butler.api.objects import Key
from butler.kube.objects import owner_reference
from butler.kube.resource import CONFIGMAPS


class Thing:
    """As our kinds are: attributes in snake_case."""

    def __init__(self, **metadata: object) -> None:
        self.metadata = ObjectMeta(**metadata)  # type: ignore[arg-type]


def both(**metadata: object) -> list[object]:
    camel = {
        "resource_version": "resourceVersion",
        "deletion_timestamp": "deletionTimestamp",
        "owner_references": "ownerReferences",
    }
    return [Thing(**metadata), {"metadata": {camel.get(name, name): value for name, value in metadata.items()}}]


def test_metadata_reads_the_same_from_both_shapes() -> None:
    for obj in both(name="a", namespace="ns", uid="u", resource_version="7", labels={"x": "y"}, finalizers=("f",)):
        assert objects.key_of(obj) == Key("ns", "a")
        assert (objects.uid_of(obj), objects.version_of(obj)) == ("u", "7")
        assert objects.labels_of(obj) == {"x": "y"}
        assert objects.finalizers_of(obj) == ["f"]
        assert not objects.is_being_deleted(obj)


def test_finalizers_are_only_written_when_that_changes_something() -> None:
    for obj in both(name="a", uid="u", resource_version="7", finalizers=("mine", "other")):
        assert objects.with_finalizer(obj, "mine") is None
        assert objects.with_finalizer(obj, "new") == ["mine", "other", "new"]
        assert objects.without_finalizer(obj, "gone") is None
        assert objects.without_finalizer(obj, "mine") == ["other"]
        assert objects.finalizers_patch(obj, ["other"]) == {
            "metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["other"]}
        }
    for obj in both(name="a", deletion_timestamp="2026-01-01T00:00:00Z"):
        assert objects.with_finalizer(obj, "new") is None, "an object that is going away takes no new finalizer"


def test_owners_are_found_and_made() -> None:
    reference = owner_reference({"metadata": {"name": "a", "uid": "u"}}, CONFIGMAPS)
    assert reference == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "a",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    owner = OwnerReference(
        api_version="v1", kind="ConfigMap", name="a", uid="u", controller=True, block_owner_deletion=True
    )
    assert objects.controller_of(Thing(owner_references=(owner,))) == reference
    assert objects.controller_of({"metadata": {"ownerReferences": [reference]}}) == reference
    assert objects.controller_of({"metadata": {}}) is None
    with pytest.raises(ValueError, match="no uid yet"):
        owner_reference({"metadata": {"name": "a"}}, CONFIGMAPS)


@pytest.mark.parametrize(
    ("version", "than", "newer"), [("10", "9", True), ("9", "10", False), ("9", "9", False), ("x", "y", True)]
)
def test_versions_are_compared_as_numbers(version: str, than: str, newer: bool) -> None:
    assert objects.is_newer(version, than) is newer


def test_a_condition_of_a_foreign_object_is_found() -> None:
    ready = {"type": "Ready", "status": "True"}
    assert objects.condition_of({"status": {"conditions": [ready]}}, "Ready") == ready
    assert objects.condition_of({}, "Ready") is None
