"""What happens to an object's own metadata in its life: born, changed, asked to go, gone.

Pure functions over plain objects, with the rules of Kubernetes: who may set which field, when the generation
moves, when an object that was asked to go may really go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from kubeserver.builtin.catalog import generation_parts
from kubeserver.schemas.defaults import apply_defaults, fill
from kubeserver.wire.names import generated_name

if TYPE_CHECKING:
    from kubeserver.resources import Resource

Json = dict[str, Any]

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"

_SYSTEM_FIELDS: Final = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def default(resource: Resource, obj: Json, *, keep_nulls: bool = False) -> None:
    """Fill in what the writer left out. An apply keeps its nulls, for validation to see."""
    if resource.custom and keep_nulls:
        fill(resource.schema, obj)
    elif resource.custom:
        apply_defaults(resource.schema, obj)
    else:
        resource.strategy.default(obj)


def born(resource: Resource, obj: Json, namespace: str, now: str) -> None:
    """Fill what the server owns of a new object's metadata; the client's wishes for it are ignored."""
    metadata = obj["metadata"]
    for field in ("selfLink", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(field, None)
    metadata["uid"] = str(uuid4())
    metadata["creationTimestamp"] = now
    if resource.namespaced:
        metadata["namespace"] = namespace
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"])


def prepare_create(resource: Resource, obj: Json) -> None:
    """Drop what only the status subresource may say and start counting generations."""
    if resource.status and resource.custom:
        obj.pop("status", None)
    if _generation_parts(resource) is not None:
        obj["metadata"]["generation"] = 1


def prepare_update(resource: Resource, new: Json, old: Json, subresource: str) -> Json:
    """The object that a write leads to: what the writer may not touch comes from the stored one."""
    if subresource == "status":
        new = _only_status(resource, new, old)
    elif resource.status:
        _put(new, "status", old.get("status"))
    metadata, before = new["metadata"], old["metadata"]
    metadata.pop("selfLink", None)
    _put(metadata, "creationTimestamp", before.get("creationTimestamp"))
    for field in _SYSTEM_FIELDS:
        if not metadata.get(field):
            _put(metadata, field, before.get(field))
    _put(metadata, "generation", before.get("generation"))
    return new


def reset_fields(resource: Resource, subresource: str) -> tuple[str, ...]:
    """What a write through this door does not touch, so that its writer cannot come to own it."""
    if subresource == "status":
        return ("metadata", "spec") if resource.custom else ("spec",)
    return ("status",) if resource.status else ()


def count_generation(resource: Resource, new: Json, old: Json) -> None:
    """Move the generation when what was asked for changed; status and most metadata are no wishes."""
    parts = _generation_parts(resource)
    if parts is None:
        return
    if resource.custom:
        changed = any(new.get(part) != old.get(part) for part in (new.keys() | old.keys()) - set(parts))
    else:
        changed = any(_dig(new, part) != _dig(old, part) for part in parts)
    if changed:
        new["metadata"]["generation"] = int(old["metadata"].get("generation", 0)) + 1


def _generation_parts(resource: Resource) -> tuple[str, ...] | None:
    """For built-ins the parts that count; for custom resources the ones that do not."""
    if not resource.custom:
        return generation_parts(resource.group, resource.plural)
    return _NO_WISHES if resource.status else _NO_WISHES[:-1]


_NO_WISHES: Final = ("metadata", "apiVersion", "kind", "status")


def _dig(obj: Json, path: str) -> Any:
    found: Any = obj
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _only_status(resource: Resource, new: Json, old: Json) -> Json:
    kept = dict(old)
    _put(kept, "status", new.get("status"))
    if resource.custom:
        kept["metadata"] = dict(old["metadata"])
        _put(kept["metadata"], "managedFields", new["metadata"].get("managedFields"))
        kept["metadata"]["resourceVersion"] = new["metadata"].get("resourceVersion", "")
    else:
        kept["metadata"] = new["metadata"]
    return kept


def _put(target: Json, field: str, value: Any) -> None:
    """Set a field, or take it away where there is nothing to set."""
    if value is None:
        target.pop(field, None)
    else:
        target[field] = value


def may_go(resource: Resource, obj: Json) -> bool:
    """Whether an object that was asked to go has nothing left that holds it."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if (resource.group, resource.plural) == ("", "namespaces") and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def deletion_finalizers(metadata: Json, propagation: str) -> list[str]:
    """The finalizers after a deletion request: how dependents are treated is kept as a finalizer."""
    kept = [finalizer for finalizer in metadata.get("finalizers") or [] if finalizer not in (FOREGROUND, ORPHAN)]
    if propagation == "Foreground":
        return [*kept, FOREGROUND]
    if propagation == "Orphan":
        return [*kept, ORPHAN]
    if propagation:
        return kept
    return list(metadata.get("finalizers") or [])


def grace_period(resource: Resource, obj: Json, asked: int | None) -> int:
    """How long an object may take to go: only a pod that a node runs needs any time."""
    if (resource.group, resource.plural) != ("", "pods") or not obj["spec"].get("nodeName"):
        return 0
    return int(obj["spec"].get("terminationGracePeriodSeconds") or 0) if asked is None else asked


def ask_to_go(resource: Resource, obj: Json, now: str, grace: int, finalizers: list[str]) -> None:
    """Mark an object as on its way out; asking twice changes nothing but the finalizers."""
    metadata = obj["metadata"]
    _put(metadata, "finalizers", finalizers or None)
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = now
        if (resource.group, resource.plural) != ("", "namespaces"):
            metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionGracePeriodSeconds"] = grace
    if (resource.group, resource.plural) == ("", "namespaces"):
        obj.setdefault("status", {})["phase"] = "Terminating"
