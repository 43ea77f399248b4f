"""What the strategies of built-in kinds make of an object is what a real kube-apiserver makes of it.

`objects/accepted.yaml` holds objects that are accepted: each is created with dryRun on the real server and given to
our decoder and strategy, and the results must be equal field by field. `objects/refused.yaml` holds objects
(and changes) that are refused: code, reason, causes and message must be equal.

What differs on purpose is listed in `_without_what_no_controller_here_would_undo`.
"""

from __future__ import annotations

import json
import re
import time
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kubeserver.builtin.catalog import builtin_resources
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.schemas.decode import take
from kubeserver.wire.names import validate_metadata, validate_metadata_update
from kubeserver.wire.status import ApiError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api_servers import ControlPlane

    from kubeserver.resources import Resource

Json = dict[str, Any]

OBJECTS = Path(__file__).parent / "objects"
ACCEPTED: list[Json] = yaml.safe_load((OBJECTS / "accepted.yaml").read_text())
REFUSED: list[Json] = yaml.safe_load((OBJECTS / "refused.yaml").read_text())
RESOURCES = {
    (builtin_resource.api_version, builtin_resource.kind): builtin_resource
    for builtin_resource in builtin_resources(builtin_types().__getitem__)
}
SERVER_OWNED = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "namespace")

pytestmark = pytest.mark.parametrize("control_plane", ["kubernetes"], indirect=True)


class RealWorld:
    """The objects of the real server, as a strategy sees them: both sides decide in the same world."""

    def __init__(self, server: ControlPlane, namespace: str) -> None:
        self.server = server
        self.namespace = namespace

    def objects(self, group: str, plural: str, namespace: str | None = None) -> Iterator[Json]:
        path = f"/apis/{group}/v1" if group else "/api/v1"
        if namespace:
            path += f"/namespaces/{namespace}"
        status, answer = self.server.request("GET", f"{path}/{plural}")
        assert status == 200, answer
        yield from answer["items"]

    def now(self) -> str:
        return "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane) -> RealWorld:
    namespace = control_plane.fresh_namespace("agreement")
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    for _ in range(100):
        if control_plane.request("GET", path)[0] == 200:
            return RealWorld(control_plane, namespace)
        time.sleep(0.1)
    raise AssertionError("the namespace got no default service account within 10 s")


def in_namespace(case: Json, namespace: str) -> Json:
    found: Json = json.loads(json.dumps(case).replace("$NAMESPACE", namespace))
    return found


def path_of(resource: Resource, namespace: str, name: str = "") -> str:
    path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced:
        path += f"/namespaces/{namespace}"
    return f"{path}/{resource.plural}" + (f"/{name}" if name else "")


def created(world: RealWorld, resource: Resource, item: Json) -> Json:
    """What we make of a new object."""
    item = take(deepcopy(item), resource).obj
    metadata = item["metadata"]
    if resource.namespaced:
        metadata["namespace"] = world.namespace
    metadata["uid"] = "our-uid"
    resource.strategy.default(item)
    resource.strategy.prepare_create(world, item)
    resource.strategy.default(item)
    errors = validate_metadata(resource, metadata) + resource.strategy.validate(item)
    if errors:
        raise invalid(resource.table[0], resource.kind, metadata["name"], errors)
    return item


def changed(world: RealWorld, resource: Resource, item: Json, old: Json) -> Json:
    """What we make of an object put on top of another."""
    item = take(deepcopy(item), resource).obj
    metadata = item["metadata"]
    metadata.update({key: old["metadata"][key] for key in SERVER_OWNED if key in old["metadata"]})
    resource.strategy.default(item)
    if resource.status and "status" in old:
        item["status"] = deepcopy(old["status"])
    resource.strategy.prepare_update(world, item, old)
    errors = [
        *validate_metadata_update(metadata, old["metadata"]),
        *resource.strategy.validate(item),
        *resource.strategy.validate_update(item, old),
    ]
    if errors:
        raise invalid(resource.table[0], resource.kind, metadata["name"], errors)
    return item


def comparable(item: Json) -> Json:
    """The object without what the server chooses: identity, time, free addresses and ports, random suffixes."""
    uid = item["metadata"].get("uid", "")
    text = json.dumps(item).replace(json.dumps(uid), '"UID"')
    found: Json = json.loads(re.sub("kube-api-access-[a-z0-9]{5}", "kube-api-access", text))
    for key in SERVER_OWNED:
        found["metadata"].pop(key, None)
    if "lastPhaseTransitionTime" in found.get("status", {}):
        found["status"]["lastPhaseTransitionTime"] = "TIME"
    if found["kind"] == "Service":
        _hide_addresses(found["spec"])
    _without_what_no_controller_here_would_undo(found)
    return found


def _hide_addresses(spec: Json) -> None:
    if spec.get("clusterIP", "None") != "None":
        spec["clusterIP"] = "ADDRESS"
        spec["clusterIPs"] = ["ADDRESS" for _ in spec["clusterIPs"]]
    for port in spec.get("ports", ()):
        if port.get("nodePort", 0) != 30005:
            port["nodePort"] = "PORT" if port.get("nodePort") else 0
    if spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = "PORT"


def _without_what_no_controller_here_would_undo(item: Json) -> None:
    """Kubernetes marks new nodes and volumes for controllers that remove the mark; the embedded server has none."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    protection = {"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"}
    kept = [finalizer for finalizer in metadata.get("finalizers", ()) if finalizer not in protection]
    metadata.pop("finalizers", None)
    if kept:
        metadata["finalizers"] = kept
    if item["kind"] == "Node":
        taints = [taint for taint in spec.get("taints", ()) if taint["key"] != "node.kubernetes.io/not-ready"]
        spec.pop("taints", None)
        if taints:
            spec["taints"] = taints


def differences(theirs: Any, ours: Any, path: str = "") -> list[str]:
    """Where two objects differ, one line per place."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        lines = []
        for key in sorted(theirs.keys() | ours.keys()):
            if key not in ours:
                lines.append(f"{path}.{key}: we lack {theirs[key]!r}")
            elif key not in theirs:
                lines.append(f"{path}.{key}: only we have {ours[key]!r}")
            else:
                lines += differences(theirs[key], ours[key], f"{path}.{key}")
        return lines
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = enumerate(zip(theirs, ours, strict=True))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{path}[{index}]")]
    return [] if theirs == ours else [f"{path}: theirs {theirs!r}, ours {ours!r}"]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case["name"].replace(" ", "-"))
def test_an_accepted_object_becomes_the_same(control_plane: ControlPlane, world: RealWorld, case: Json) -> None:
    item = in_namespace(case["object"], world.namespace)
    resource = RESOURCES[item["apiVersion"], item["kind"]]
    path, name = path_of(resource, world.namespace), item["metadata"]["name"]
    if "after" not in case:
        status, theirs = control_plane.request("POST", f"{path}?dryRun=All", item)
        assert status == 201, theirs
        ours = created(world, resource, item)
    else:
        status, old = control_plane.request("POST", path, item)
        assert status == 201, old
        item = in_namespace(case["after"], world.namespace)
        status, theirs = control_plane.request("PUT", f"{path}/{name}?dryRun=All", item)
        assert status == 200, theirs
        ours = changed(world, resource, item, old)
        control_plane.request("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
    assert differences(comparable(theirs), comparable(ours)) == []


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"].replace(" ", "-"))
def test_a_refused_object_is_refused_in_the_same_words(
    control_plane: ControlPlane, world: RealWorld, case: Json
) -> None:
    item = in_namespace(case["object"], world.namespace)
    resource = RESOURCES[item["apiVersion"], item["kind"]]
    path, name = path_of(resource, world.namespace), item["metadata"]["name"]
    old: Json | None = None
    if "after" in case:
        status, old = control_plane.request("POST", path, item)
        assert status == 201, old
        item = in_namespace(case["after"], world.namespace)
        _, theirs = control_plane.request("PUT", f"{path}/{name}?dryRun=All", item)
        control_plane.request("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
    else:
        _, theirs = control_plane.request("POST", path + ("" if case.get("really") else "?dryRun=All"), item)
    decide = partial(created, world, resource, item) if old is None else partial(changed, world, resource, item, old)
    with pytest.raises(ApiError) as refused:
        decide()
    ours = refused.value.status()
    assert (ours["code"], ours["reason"]) == (theirs["code"], theirs["reason"])
    if not case.get("loose"):
        assert ours["message"] == theirs["message"]
        assert ours["details"] == theirs["details"]
