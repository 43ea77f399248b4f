"""The scale subresource: an autoscaling/v1 Scale as a window on three fields of another object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeserver.verbs.bodies import part
from kubeserver.wire.selectors import label_selector_from_json
from kubeserver.wire.status import FieldError, invalid

if TYPE_CHECKING:
    from kubeserver.resources import Resource

Json = dict[str, Any]

_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(resource: Resource, obj: Json) -> Json:
    """The Scale that an object shows."""
    assert resource.scale is not None
    metadata = {field: obj["metadata"][field] for field in _COPIED if obj["metadata"].get(field)}
    selector = read(obj, resource.scale.selector_path) if resource.scale.selector_path else None
    if isinstance(selector, dict):
        plain = resource.plural == "replicationcontrollers"  # labels, and no rules about them
        selector = str(label_selector_from_json({"matchLabels": selector} if plain else selector))
    status: Json = {"replicas": read(obj, resource.scale.status_path) or 0}
    if selector:
        status["selector"] = selector
    spec = {"replicas": read(obj, resource.scale.spec_path) or 0}
    if not spec["replicas"]:
        spec = {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def scaled(resource: Resource, obj: Json, scale: Json) -> Json:
    """The object after a Scale was written to it: only the wanted number changes."""
    assert resource.scale is not None
    replicas = part(scale, "spec.replicas", int, "Scale") or 0
    if replicas < 0:
        error = FieldError("FieldValueInvalid", "spec.replicas", "must be greater than or equal to 0", replicas)
        raise invalid("autoscaling", "Scale", obj["metadata"]["name"], [error])
    *parents, last = resource.scale.spec_path.strip(".").split(".")
    target = obj
    for name in parents:
        target = target.setdefault(name, {})
    target[last] = replicas
    obj["metadata"]["resourceVersion"] = (
        part(scale, "metadata.resourceVersion", str, "Scale") or obj["metadata"]["resourceVersion"]
    )
    return obj


def read(obj: Json, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    found: Any = obj
    for name in path.strip(".").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
