"""Objects as people write them into files: reading a TenantCluster, and the change between two. Pure.

Of an object people write its labels, annotations and spec; the rest belongs to the server and the controllers. A change
is sent as a patch of what people write, never as the whole object: an editor does not show finalizers, and an object
that came back without them would lose them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from butler.api.codec import json_merge_patch
from butler.api.objects import Json, Key
from butler.api.tenantcluster import NAME_LENGTH, TenantCluster
from butler.kube.kinds import CLUSTERS
from butler.server.actions.forms import need_name, wrong
from butler.server.models.common import FieldError
from butler.server.presenters.manifest import THEIRS, written_metadata

_FIXED: Final = ("finalizers", "ownerReferences")


def key_in(manifest: Json) -> Key:
    """Which object a manifest is about; 422 where it is no TenantCluster or does not say."""
    for field, wanted in (("apiVersion", CLUSTERS.api_version), ("kind", CLUSTERS.kind)):
        if manifest.get(field) != wanted:
            raise wrong(field, f"write {wanted}")
    meta = manifest.get("metadata")
    if not isinstance(meta, dict):
        raise wrong("metadata", "give it a name and a namespace")
    if not isinstance(manifest.get("spec"), dict):
        raise wrong("spec", "say what the cluster is to be")
    name, namespace = (str(meta.get(field) or "") for field in ("name", "namespace"))
    need_name(name, "metadata.name", NAME_LENGTH)
    need_name(namespace, "metadata.namespace", 63)
    for field in THEIRS:
        found = meta.get(field) or {}
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise wrong(f"metadata.{field}", "write names with texts")
    return Key(namespace, name)


def read(manifest: Json) -> tuple[TenantCluster | None, list[FieldError]]:
    """The cluster that a manifest describes, or which field is of the wrong type."""
    try:
        return msgspec.convert({**manifest, "status": {}}, TenantCluster), []
    except msgspec.ValidationError as error:
        said, _, path = str(error).partition(" - at `$.")
        return None, [FieldError(field=path.rstrip("`"), message=said)]


def change(current: Json, manifest: Json) -> Json:
    """The merge patch that makes what people write of an object into what the manifest says, and fences itself."""
    before, meta = _theirs(current), manifest["metadata"]
    for field in _FIXED:
        if field in meta and (meta[field] or []) != (current["metadata"].get(field) or []):
            raise wrong(f"metadata.{field}", "this belongs to the controllers: leave it as it is, or leave it out")
    patch = json_merge_patch(before, _theirs(manifest))
    version = {field: current["metadata"][field] for field in ("uid", "resourceVersion")}
    return {**patch, "metadata": {**patch.get("metadata", {}), **version}}


def summary(manifest: Json) -> str:
    """What is asked for, for the record: nothing of what a user may have put a secret into."""
    spec = manifest["spec"]
    workers = spec.get("workers")
    replicas = workers.get("replicas") if isinstance(workers, dict) else None
    shown = [str(spec.get("kubernetesVersion"))[:40], f"{replicas} workers" if isinstance(replicas, int) else ""]
    return ", ".join(part for part in shown if part)


def changed_fields(patch: Json) -> str:
    """Which fields a patch changes, for the record; never what is in them."""
    paths = [*_paths(patch.get("spec") or {}, "spec"), *_paths(_without_version(patch), "metadata")]
    shown = ", ".join(sorted(paths)[:12])
    return f"{shown} and {len(paths) - 12} more" if len(paths) > 12 else shown


def _without_version(patch: Json) -> Json:
    return {field: value for field, value in patch["metadata"].items() if field in THEIRS}


def _paths(patch: Json, at: str) -> list[str]:
    found = []
    for field, value in patch.items():
        found += _paths(value, f"{at}.{field}") if isinstance(value, dict) and value else [f"{at}.{field}"]
    return found


def _theirs(raw: Json) -> Json:
    return {"metadata": written_metadata(raw["metadata"]), "spec": raw["spec"]}
