"""What the embedded server does without being asked: collecting, emptying and removing, however much there is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]

MANY = 1000
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOYS: Json = {
    "metadata": {"name": "toys.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "toys", "kind": "Toy"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with LocalServer(tmp_path_factory.mktemp("background")) as running:
        yield running
        assert "Traceback" not in running.log()


def until(holds: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not after {seconds} s: {what}"
        time.sleep(0.05)


def owned(name: str, owner: Json) -> Json:
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
        key: owner["metadata"][key] for key in ("name", "uid")
    }
    return {"metadata": {"name": name, "labels": {"owned": "yes"}, "ownerReferences": [reference]}}


def left(server: LocalServer) -> int:
    return len(server.plane.request("GET", f"{MAPS}?labelSelector=owned")[1]["items"])


def test_dependents_of_custom_resources_go_also_when_their_definition_goes_first(server: LocalServer) -> None:
    assert server.plane.request("POST", DEFINITIONS, TOYS)[0] == 201
    path = "/apis/example.com/v1/namespaces/default/toys"
    until(lambda: server.plane.request("GET", path)[0] == 200, "toys are served")
    toy = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "one"}}
    owner = server.plane.request("POST", path, toy)[1]
    for number in range(100):
        assert server.plane.request("POST", MAPS, owned(f"toy-{number}", owner))[0] == 201
    assert server.plane.request("DELETE", f"{DEFINITIONS}/toys.example.com")[0] == 200
    until(lambda: left(server) == 0, "all dependents are collected")


def test_a_thousand_dependents_go_in_a_moment(server: LocalServer) -> None:
    owner = server.plane.request("POST", MAPS, {"metadata": {"name": "owner"}})[1]
    owner |= {"apiVersion": "v1", "kind": "ConfigMap"}
    for number in range(MANY):
        assert server.plane.request("POST", MAPS, owned(f"one-of-many-{number}", owner))[0] == 201
    assert server.plane.request("DELETE", f"{MAPS}/owner")[0] == 200
    until(lambda: left(server) == 0, "all dependents are collected", 15)


def test_a_definition_in_the_name_of_a_built_in_kind_leaves_it_alone(server: LocalServer) -> None:
    name = "leases.coordination.k8s.io"
    body = {
        **TOYS,
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {**TOYS["spec"], "group": "coordination.k8s.io", "names": {"plural": "leases", "kind": "Lease"}},
    }
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"metadata": {"name": "one"}, "spec": {"holderIdentity": "me"}}
    assert server.plane.request("POST", path, lease)[0] == 201
    assert server.plane.request("POST", DEFINITIONS, body)[0] == 201
    assert server.plane.request("DELETE", f"{DEFINITIONS}/{name}")[0] == 200
    until(lambda: server.plane.request("GET", f"{DEFINITIONS}/{name}")[0] == 404, "the definition goes")
    assert server.plane.request("GET", f"{path}/one")[1]["spec"] == {"holderIdentity": "me"}
    assert server.plane.request("POST", path, {"metadata": {"name": "two"}})[0] == 201
