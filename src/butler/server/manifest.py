"""An object as somebody would write it into a file: without its status, and without what the server adds. Pure."""

from __future__ import annotations

from typing import Any, Final

import yaml

from butler.kube.objects import to_json
from butler.kube.resource import Json, Resource

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def written(obj: object, resource: Resource[Any]) -> Json:
    """What `kubectl apply` would take."""
    found = to_json(obj, resource)
    meta = found.get("metadata") or {}
    annotations = {name: text for name, text in (meta.get("annotations") or {}).items() if name != LAST_APPLIED}
    kept = {"name": meta.get("name"), "namespace": meta.get("namespace"), "labels": meta.get("labels")}
    kept["annotations"] = annotations
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {name: value for name, value in kept.items() if value},
        "spec": found.get("spec") or {},
    }


def as_yaml(obj: object, resource: Resource[Any]) -> str:
    return yaml.safe_dump(written(obj, resource), sort_keys=False, allow_unicode=True, width=120)
