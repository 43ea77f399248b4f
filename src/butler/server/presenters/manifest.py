"""An object as people write it into a file: without its status, and without what the server adds. Pure."""

from __future__ import annotations

from typing import Any, Final

import yaml

from butler.api.labels import Annotation
from butler.api.objects import Json
from butler.kube.objects import to_json
from butler.kube.resource import Resource

APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KEPT_FOR_OTHERS: Final = (APPLIED, Annotation.BUILT_AS.value, Annotation.GRANTED.value)
"""Annotations that kubectl and Butler keep for themselves. In a file they would say of a new object that it was there
before."""
THEIRS: Final = ("labels", "annotations")


def written(obj: object, resource: Resource[Any]) -> Json:
    """What `kubectl apply` would take: without its status, and without what the server adds."""
    found = to_json(obj, resource)
    meta = found.get("metadata") or {}
    shown = {"name": meta.get("name"), "namespace": meta.get("namespace"), **written_metadata(meta)}
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {name: value for name, value in shown.items() if value},
        "spec": found.get("spec") or {},
    }


def as_yaml(manifest: Json) -> str:
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=120)


def written_metadata(meta: Json) -> dict[str, dict[str, str]]:
    """Of the metadata what people write, without what kubectl and Butler keep for themselves."""
    kept = {field: dict(meta.get(field) or {}) for field in THEIRS}
    for name in _KEPT_FOR_OTHERS:
        kept["annotations"].pop(name, None)
    return kept
