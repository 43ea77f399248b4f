"""Objects with the kind that they are of: as JSON to be sent, and as references. Pure, no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from butler.api.objects import key_of, name_of, namespace_of, uid_of, version_of

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.kube.resource import Resource


def to_json(obj: object, resource: Resource[Any] | None = None) -> Json:
    """The object as a dict to be sent, with apiVersion and kind filled in where the struct leaves them out."""
    data = cast("Json", dict(obj) if isinstance(obj, Mapping) else msgspec.to_builtins(obj))
    if resource is not None:
        data = {"apiVersion": resource.api_version, "kind": resource.kind} | data
    return data


def owner_reference(
    owner: object, resource: Resource[Any], *, controller: bool = True, block_deletion: bool = True
) -> Json:
    """What a dependent writes into metadata.ownerReferences so that it goes when its owner goes."""
    if not uid_of(owner):
        raise ValueError(f"{resource.kind} {key_of(owner)} has no uid yet, so it cannot own anything")
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": controller,
        "blockOwnerDeletion": block_deletion,
    }


def object_reference(obj: object, resource: Resource[Any]) -> Json:
    """How an Event names what it is about."""
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(obj),
        "namespace": namespace_of(obj),
        "uid": uid_of(obj),
        "resourceVersion": version_of(obj),
    }
    return {field: value for field, value in reference.items() if value}
