"""What Cluster API and Steward say, whatever they say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.codec import from_json, to_json
from butler.api.tenantcluster import TenantCluster
from butler.rules.tenant.blueprint import Endpoint
from butler.rules.tenant.observed import ObservedCluster, in_short, see
from butler.rules.tenant.status import Facts, new_status
from unit.controllers.tenantcluster.values import NOW, cluster, with_status

Json = dict[str, Any]
CLUSTER: Json = {
    "spec": {"controlPlaneEndpoint": {"host": "10.1.1.1", "port": 6443}},
    "status": {"infrastructureReady": True, "controlPlaneReady": True},
}
CONTROL_PLANE: Json = {"status": {"ready": True, "version": "v1.33.2"}}


def deployment(replicas: int = 2, generation: int = 3, **status: int) -> Json:
    counted = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, "observedGeneration": 3}
    return {
        "metadata": {"generation": generation},
        "spec": {"replicas": replicas, "template": {"spec": {"version": "v1.33.2"}}},
        "status": {**counted, **status},
    }


def machine(name: str, *, version: str = "v1.33.2", going: bool = False, **status: Any) -> Json:
    metadata = {"name": name} | ({"deletionTimestamp": "2027-01-15T08:00:00Z"} if going else {})
    return {"metadata": metadata, "spec": {"version": version}, "status": {"nodeRef": {"name": f"n-{name}"}, **status}}


def test_a_running_cluster_as_it_is_seen() -> None:
    found = see(CLUSTER, CONTROL_PLANE, deployment(), [machine("b"), machine("a")])
    assert found.exists
    assert found.infrastructure_ready
    assert found.endpoint == Endpoint("10.1.1.1", 6443)
    assert found.control_plane.ready
    assert found.control_plane.version == "v1.33.2"
    assert found.workers.settled
    assert (found.workers.desired, found.workers.ready, found.workers.machines) == (2, 2, 2)
    assert found.workers.nodes == ("n-a", "n-b")
    assert found.workers.version == found.workers.oldest == "v1.33.2"


def test_nothing_seen_is_nothing_said() -> None:
    assert see(None, None, None, []) == ObservedCluster()


@pytest.mark.parametrize(
    ("workers", "machines"),
    [
        (deployment(readyReplicas=1), [machine("a"), machine("b")]),
        (deployment(updatedReplicas=1), [machine("a"), machine("b")]),
        (deployment(generation=4), [machine("a"), machine("b")]),
        (deployment(), [machine("a"), machine("b"), machine("c", going=True)]),
        (deployment(), [machine("a")]),
        (None, []),
    ],
)
def test_workers_are_not_settled_while_anything_moves(workers: Json | None, machines: list[Json]) -> None:
    assert not see(CLUSTER, CONTROL_PLANE, workers, machines).workers.settled


def test_the_control_plane_is_ready_when_both_sides_say_so() -> None:
    assert not see({"status": {}}, CONTROL_PLANE, None, []).control_plane.ready
    assert not see(CLUSTER, {"status": {"version": "v1.33.2"}}, None, []).control_plane.ready
    assert not see(CLUSTER, {"status": {"ready": "false"}}, None, []).control_plane.ready, "text is no truth"


def test_machines_that_failed_are_named_and_those_that_go_are_not() -> None:
    machines = [
        machine("c", phase="Failed"),
        machine("b", failureMessage="no quota"),
        machine("a"),
        machine("d", going=True, phase="Failed"),
    ]
    assert see(CLUSTER, CONTROL_PLANE, deployment(), machines).workers.failures == ("b: no quota", "c: failed")


def test_what_keeps_a_machine_from_coming_up_is_told_and_waiting_is_not() -> None:
    def says(severity: str, message: str) -> Json:
        return {"type": "InfrastructureReady", "status": "False", "severity": severity, "message": message}

    machines = [
        machine("a", conditions=[says("Error", "no image")]),
        machine("b", conditions=[says("Info", "waits for bootstrap data")]),
        machine("c", phase="Failed", conditions=[says("Error", "no disk")]),
    ]
    workers = see(CLUSTER, CONTROL_PLANE, deployment(3), machines).workers
    assert workers.obstacles == ("a: no image",)
    assert workers.failures == ("c: no disk",)


def test_the_oldest_machine_is_found_by_number_also_among_those_that_go() -> None:
    machines = [machine("a", version="v1.10.0"), machine("b", version="v1.9.1", going=True), machine("c", version="?")]
    assert see(CLUSTER, CONTROL_PLANE, deployment(), machines).workers.oldest == "v1.9.1"


def test_the_infrastructures_own_words_are_kept() -> None:
    condition = {"type": "InfrastructureReady", "status": "False", "message": "no such network"}
    assert see({"status": {"conditions": [condition]}}, None, None, []).infrastructure_message == "no such network"
    assert see({"status": {"failureMessage": "broken"}}, None, None, []).infrastructure_message == "broken"


def test_conditions_that_are_false_when_all_is_well_are_no_problem() -> None:
    conditions = [
        {"type": "Paused", "status": "False", "message": "not paused"},
        {"type": "Available", "status": "False", "message": "no address"},
    ]
    assert see(None, {"status": {"conditions": conditions}}, None, []).control_plane.message == "no address"


@pytest.mark.parametrize(
    "endpoint",
    [{}, {"host": "", "port": 1}, {"host": "x", "port": True}, {"host": "x", "port": 70000}, {"host": 5}, "x"],
)
def test_half_an_endpoint_is_none(endpoint: Any) -> None:
    assert see({"spec": {"controlPlaneEndpoint": endpoint}}, None, None, []).endpoint is None


def test_a_long_list_is_cut_and_counted() -> None:
    assert in_short(("a", "b", "c")) == "a; b; c"
    assert in_short(("a", "b", "c", "d", "e")) == "a; b; c; and 2 more"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "spec",
                    "status",
                    "conditions",
                    "type",
                    "message",
                    "severity",
                    "name",
                    "host",
                    "port",
                    "controlPlaneEndpoint",
                    "nodeRef",
                    "version",
                    "template",
                    "replicas",
                    "readyReplicas",
                    "generation",
                    "failureMessage",
                    "phase",
                    "ready",
                ]
            ),
            inner | st.sampled_from(["False", "Failed", "Error", "v1.2.3"]),
            max_size=6,
        )
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON, max_size=3)


@given(st.none() | OBJECTS, st.none() | OBJECTS, st.none() | OBJECTS, st.lists(OBJECTS, max_size=3))
def test_whatever_is_there_is_read_and_the_status_made_of_it_can_be_stored(
    one: Json | None, two: Json | None, three: Json | None, machines: list[Json]
) -> None:
    subject = cluster()
    status = new_status(subject, Facts(seen=see(one, two, three, machines)), NOW)
    assert from_json(TenantCluster, to_json(with_status(subject, status))).status == status
    assert status.worker_nodes_ready is not None
    assert 0 <= status.worker_nodes_ready < 2**31
    for condition in status.conditions:
        assert len(condition.message) <= 32768


def test_absurd_values_do_not_reach_the_status() -> None:
    huge: Json = {"status": {"ready": True, "version": "v1.2.3-" + "x" * 100, "failureMessage": "y" * 10**6}}
    found = see(huge, huge, deployment(-4, readyReplicas=2**40), [machine("z" * 300, failureMessage="f" * 10**6)] * 2)
    assert found.control_plane.version is None
    assert len(found.control_plane.message) == 1024
    assert (found.workers.desired, found.workers.ready) == (0, 0)
    assert found.workers.nodes == ()
    assert len(found.workers.failures[0]) < 1100
