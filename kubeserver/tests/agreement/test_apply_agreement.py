"""The same writes on a real kube-apiserver and in our functions, step by step.

Random but repeatable sequences of creates, updates, patches, status writes and applies by several managers, and
the stories that random writes would not tell. A failure prints the step that differed; the seed in the test's name
replays the run.
"""

from __future__ import annotations

import copy
import json
import secrets
import time
from typing import TYPE_CHECKING, Any

import pytest
from agreement_run import APPLY, MERGE, Run, Wire

from agreement import CUSTOM, DEFINITION, KINDS, SCHEMA
from kubeserver.patching.apply import apply
from kubeserver.patching.managed_fields import keep_times_if_unchanged, track_scale, track_write
from kubeserver.schemas.schema import Schema, parse, parse_named
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from api_servers import ControlPlane

Json = dict[str, Any]

pytestmark = pytest.mark.parametrize("control_plane", ["kubernetes"], indirect=True)

STEPS = 30


@pytest.fixture(name="wire")
def _wire(control_plane: ControlPlane) -> Iterator[Wire]:
    wire = Wire(control_plane)
    yield wire
    wire.close()


@pytest.fixture(name="schemas")
def _schemas(wire: Wire) -> dict[str, Schema]:
    """The schema of each kind: ours for the custom one, the published ones for the built-in ones."""
    wire.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    for _ in range(100):
        if wire.send("GET", CUSTOM.path("default"))[0] == 200:
            break
        time.sleep(0.1)
    core = parse_named(wire.send("GET", "/openapi/v3/api/v1")[1]["components"]["schemas"])
    apps = parse_named(wire.send("GET", "/openapi/v3/apis/apps/v1")[1]["components"]["schemas"])
    return {
        "custom": parse(SCHEMA),
        "configmap": core["io.k8s.api.core.v1.ConfigMap"],
        "service": core["io.k8s.api.core.v1.Service"],
        "deployment": apps["io.k8s.api.apps.v1.Deployment"],
    }


@pytest.fixture(name="namespace")
def _namespace(control_plane: ControlPlane, wire: Wire) -> Iterator[str]:
    name = f"agree-{secrets.token_hex(4)}"
    assert wire.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    yield name
    if not control_plane.disposable:
        for kind in KINDS.values():
            _, listed = wire.send("GET", kind.path(name))
            for item in listed["items"]:
                freed = {"metadata": {"finalizers": None}}
                wire.send("PATCH", kind.path(name, item["metadata"]["name"]), freed, MERGE)
        wire.send("DELETE", f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_random_writes_are_owned_and_merged_as_kubernetes_does(
    wire: Wire, schemas: dict[str, Schema], namespace: str, kind: str, seed: int
) -> None:
    run = Run(wire, KINDS[kind], schemas[kind], namespace, f"o{seed}")
    happened = [run.step() for _ in range(STEPS)]
    assert happened.count("ok") > STEPS / 4, happened


def custom(run: Run, spec: Json, **metadata: Any) -> Json:
    metadata = {"name": run.name, "namespace": run.namespace, **metadata}
    return {"apiVersion": run.version, "kind": "Everything", "metadata": metadata, "spec": spec}


def test_applying_the_same_again_changes_neither_time_nor_revision(
    wire: Wire, schemas: dict[str, Schema], namespace: str
) -> None:
    run = Run(wire, CUSTOM, schemas["custom"], namespace, "still")
    body = custom(run, {"text": "x", "ports": [{"port": 80}]})
    assert run.apply_as("alpha", body) == "ok"
    first = run.live
    time.sleep(1.1)
    assert run.apply_as("alpha", body) == "ok"
    assert run.live == first
    assert run.apply_as("beta", body) == "ok", "a second owner of the same values"


def test_the_eleventh_updater_makes_the_oldest_two_share_an_entry(
    wire: Wire, schemas: dict[str, Schema], namespace: str
) -> None:
    run = Run(wire, CUSTOM, schemas["custom"], namespace, "many")
    assert run.create_as("first", custom(run, {"text": "x"})) == "ok"
    for number in range(13):
        assert run.live is not None
        body = copy.deepcopy(run.live)
        body["spec"].setdefault("map", {})[f"k{number}"] = "x"
        assert run.update_as(f"u{number:02}", body) == "ok"
    assert run.live is not None
    managers = [managed_field["manager"] for managed_field in run.live["metadata"]["managedFields"]]
    assert "ancient-changes" in managers
    assert len(managers) == 10


def test_emptied_ownership_ends_tracking_until_the_next_apply(
    wire: Wire, schemas: dict[str, Schema], namespace: str
) -> None:
    run = Run(wire, CUSTOM, schemas["custom"], namespace, "reset")
    assert run.create_as("first", custom(run, {"text": "x", "names": ["a"]})) == "ok"
    body = copy.deepcopy(run.live) or {}
    body["metadata"]["managedFields"] = [{}]
    assert run.update_as("second", body) == "ok"
    assert run.live is not None
    assert "managedFields" not in run.live["metadata"]
    body = copy.deepcopy(run.live)
    body["spec"]["text"] = "y"
    assert run.update_as("second", body) == "ok"
    assert run.apply_as("alpha", custom(run, {"number": 1})) == "ok"
    assert run.live is not None
    managers = [managed_field["manager"] for managed_field in run.live["metadata"]["managedFields"]]
    assert managers == ["alpha", "before-first-apply"]


def test_kubectl_takes_over_what_client_side_apply_set(wire: Wire, schemas: dict[str, Schema], namespace: str) -> None:
    run = Run(wire, CUSTOM, schemas["custom"], namespace, "taken")
    body = custom(run, {"text": "x", "map": {"k<1": "x"}})
    last = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(body)}
    assert run.create_as("kubectl-client-side-apply", custom(run, body["spec"], annotations=last)) == "ok"
    changed = custom(run, {"text": "y", "map": {"k<1": "x"}})
    assert run.apply_as("other", changed).startswith("refused: Apply failed with 1 conflict")
    assert run.apply_as("kubectl", changed) == "ok"
    assert run.apply_as("other", custom(run, {"text": "z"}), force=True) == "ok"
    assert run.apply_as("kubectl", changed).startswith("refused: Apply failed with 1 conflict")


@pytest.mark.parametrize("created_by", ["update", "apply"])
def test_a_scaled_number_belongs_to_who_scaled_it(
    wire: Wire, schemas: dict[str, Schema], namespace: str, created_by: str
) -> None:
    kind = KINDS["deployment"]
    run = Run(wire, kind, schemas["deployment"], namespace, "scaled")
    body = kind.request(run.rng, namespace, run.name)
    body["spec"]["replicas"] = 1
    assert (run.apply_as if created_by == "apply" else run.create_as)("alpha", body) == "ok"
    for manager, replicas in (("a", 1), ("a", 3), ("a", 3), ("a", 4), ("b", 5), ("main", 6), ("a", 6), ("main", 7)):
        assert run.live is not None
        before = run.live
        changed = before["spec"]["replicas"] != replicas
        through = "" if replicas == 6 and manager == "main" else "scale"
        assert run.send("PATCH", run.path(through), {"spec": {"replicas": replicas}}, MERGE, manager)[0] == 200
        run.live = wire.send("GET", run.path())[1]
        if not through:
            continue
        ours = track_scale(
            before["metadata"]["managedFields"], ("spec", "replicas"), run.writer(manager)[0], changed=changed
        )
        new = {**run.live, "metadata": {**run.live["metadata"], "managedFields": ours}}
        for key in ("generation", "resourceVersion"):
            new["metadata"][key] = before["metadata"][key]
        new = keep_times_if_unchanged(before, new)
        assert run.live["metadata"]["managedFields"] == new["metadata"]["managedFields"]


def definition(wire: Wire, change: Json) -> str:
    """Another kind like the first, changed by a merge patch; its group."""
    group = f"g{secrets.token_hex(4)}.example.com"
    body = copy.deepcopy(DEFINITION)
    body["metadata"]["name"] = f"everythings.{group}"
    body["spec"] |= {"group": group, **change}
    wire.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    await_kind(wire, f"/apis/{group}/v1/everythings", 200)
    return group


def await_kind(wire: Wire, path: str, status: int) -> None:
    deadline = time.monotonic() + 20
    while wire.send("GET", path)[0] != status:
        assert time.monotonic() < deadline, path
        time.sleep(0.1)


def await_ownership(run: Run, body: Json, settled: Callable[[list[Json]], bool]) -> None:
    """Wait until the server works with a changed definition, which it does some time after it has taken it."""
    deadline = time.monotonic() + 20
    while True:
        _, answer = run.send("PUT", run.path(), body, "application/json", "u1", dryRun="All")
        if settled(answer.get("metadata", {}).get("managedFields", [])):
            return
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def test_a_list_that_becomes_atomic_is_owned_as_a_whole(wire: Wire, namespace: str) -> None:
    group = definition(wire, {})
    run = Run(wire, CUSTOM.in_version(f"{group}/v1"), parse(SCHEMA), namespace, "atomic")
    assert run.apply_as("alpha", custom(run, {"names": ["a"], "text": "x", "ports": [{"port": 80}]})) == "ok"
    assert run.apply_as("beta", custom(run, {"names": ["b"], "map": {"a": "b"}})) == "ok"
    changed = copy.deepcopy(SCHEMA)
    spec = changed["properties"]["spec"]["properties"]
    spec["names"]["x-kubernetes-list-type"] = "atomic"
    spec["map"]["x-kubernetes-map-type"] = "atomic"
    versions = [
        {**item, "schema": {"openAPIV3Schema": changed}} for item in copy.deepcopy(DEFINITION["spec"]["versions"])
    ]
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/everythings.{group}"
    assert wire.send("PATCH", path, {"spec": {"versions": versions}}, MERGE)[0] == 200
    run.schema = parse(changed)
    body = copy.deepcopy(run.live) or {}
    body["spec"]["text"] = "y"
    await_ownership(
        run, body, lambda entries: all(entry["fieldsV1"]["f:spec"].get("f:names") == {} for entry in entries[:2])
    )
    assert run.update_as("u1", body) == "ok"
    assert run.apply_as("beta", custom(run, {"names": ["b"]})).startswith("refused: Apply failed")


def test_ownership_in_a_version_that_is_gone_stops_tracking(wire: Wire, namespace: str) -> None:
    group = definition(wire, {})
    schema = parse(SCHEMA)
    run = Run(wire, CUSTOM.in_version(f"{group}/v1beta1"), schema, namespace, "gone")
    assert run.create_as("old", custom(run, {"text": "x"})) == "ok"
    run.use_version(f"{group}/v1")
    assert run.apply_as("alpha", custom(run, {"number": 1})) == "ok"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/everythings.{group}"
    only = [item for item in copy.deepcopy(DEFINITION["spec"]["versions"]) if item["name"] == "v1"]
    assert wire.send("PATCH", f"{path}/status", {"status": {"storedVersions": ["v1"]}}, MERGE)[0] == 200
    assert wire.send("PATCH", path, {"spec": {"versions": only}}, MERGE)[0] == 200
    await_kind(wire, f"/apis/{group}/v1beta1/everythings", 404)
    body = copy.deepcopy(run.live) or {}
    body["spec"]["flag"] = True
    await_ownership(run, body, lambda entries: "u1" not in [entry["manager"] for entry in entries])
    status, answer = run.send("PUT", run.path(), body, "application/json", "u1")
    assert status == 200, answer
    expected = [
        track_write(schema, run.live, body, writer, reset_fields=("status",), schemas={f"{group}/v1": schema})
        for writer in run.writer("u1")
    ]
    assert answer["metadata"]["managedFields"] in expected
    config = custom(run, {"number": 2})
    status, answer = run.send("PATCH", run.path(), config, APPLY, "alpha")
    with pytest.raises(ApiError) as refused:
        apply(schema, run.live, config, run.writer("alpha")[0], force=False, schemas={f"{group}/v1": schema})
    assert (status, answer) == (500, refused.value.status())
