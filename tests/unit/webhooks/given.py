"""Pools, allocations and questions as tests write them: short, with what matters spelled out."""

from __future__ import annotations

import json
from typing import Any

from butler.api.codec import from_json, to_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool

Json = dict[str, Any]
API = "butler.butlerlabs.dev/v1alpha1"


def pool(name: str = "rack", cidr: str = "10.40.0.0/24", *, status: Json | None = None, **spec: Any) -> NetworkPool:
    """A pool in namespace home, or where `name` says: `other/rack`."""
    namespace, _, short = name.rpartition("/")
    return from_json(
        NetworkPool,
        {
            "apiVersion": API,
            "kind": "NetworkPool",
            "metadata": {"name": short, "namespace": namespace or "home", "uid": f"uid-{name}"},
            "spec": {"cidr": cidr, **spec},
            "status": status or {},
        },
    )


def window(start: str, end: str) -> Json:
    return {"tenantAllocation": {"start": start, "end": end}}


def windows(*ends: tuple[str, str]) -> Json:
    return {"tenantAllocation": {"ranges": [{"start": start, "end": end} for start, end in ends]}}


def reserved(*cidrs: str) -> Json:
    return {"reserved": [{"cidr": cidr} for cidr in cidrs]}


def intents(*grants: tuple[str, str, str]) -> Json:
    return {
        "intents": [{"uid": f"uid-{name}", "name": name, "startAddress": a, "endAddress": b} for name, a, b in grants]
    }


def allocation(name: str = "web", of: str = "rack", *, namespace: str = "home", **spec: Any) -> IPAllocation:
    return from_json(
        IPAllocation,
        {
            "apiVersion": API,
            "kind": "IPAllocation",
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
            "spec": {
                "poolRef": {"name": of},
                "tenantClusterRef": {"name": "t", "namespace": "t"},
                "type": "nodes",
                **spec,
            },
        },
    )


def granted(
    name: str, start: str, end: str, *, of: str = "rack", namespace: str = "home", phase: str = "Allocated"
) -> IPAllocation:
    body = to_json(allocation(name, of, namespace=namespace))
    return from_json(IPAllocation, body | {"status": {"phase": phase, "startAddress": start, "endAddress": end}})


def question(operation: str, new: Any = None, old: Any = None, **more: Any) -> Json:
    """An AdmissionReview about a pool or an allocation."""
    obj = new if new is not None else old
    kind = obj["kind"] if isinstance(obj, dict) else obj.kind
    metadata = obj["metadata"] if isinstance(obj, dict) else to_json(obj)["metadata"]
    request = {
        "uid": "question-1",
        "kind": {"group": "butler.butlerlabs.dev", "version": "v1alpha1", "kind": kind},
        "resource": {"group": "butler.butlerlabs.dev", "version": "v1alpha1", "resource": f"{kind.lower()}s"},
        "operation": operation,
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "object": _plain(new),
        "oldObject": _plain(old),
        "userInfo": {"username": "user"},
        "options": None,
        "dryRun": False,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def body(review: Json) -> bytes:
    return json.dumps(review).encode()


def _plain(obj: Any) -> Any:
    return obj if obj is None or isinstance(obj, dict) else to_json(obj)
