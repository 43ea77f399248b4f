"""Install the custom resource definitions of Cluster API, Steward and all providers on a control plane.

`definitions()` gives the real ones (tools/cluster_api_definitions.py) and, for the two projects that publish none, our
own (cluster_api_own.py). No server answers a conversion webhook here, so conversion is set to none; every version
that Butler writes is the stored one, or looks the same. `definitions()` raises `UnavailableError` where the modules
cannot be fetched.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import yaml
from cluster_api_definitions import fetch

from cluster_api_own import DEFINITIONS

if TYPE_CHECKING:
    from control_planes import ControlPlane

Json = dict[str, Any]

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ESTABLISHED_SECONDS = 60.0


def definitions() -> list[Json]:
    """Every definition that the objects of a cluster need."""
    found: list[Json] = []
    for file in sorted(fetch(lambda _: None).glob("*.yaml")):
        body: Json = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
        body["spec"]["conversion"] = {"strategy": "None"}
        found.append(body)
    return found + list(DEFINITIONS)


def install(control_plane: ControlPlane) -> list[str]:
    """Create those that are not there and wait until all are served; the names of the ones that were created."""
    made: list[str] = []
    wanted = definitions()
    for body in wanted:
        status, answer = control_plane.request("POST", PATH, body)
        assert status in (201, 409), f"{body['metadata']['name']} is refused: {answer}"
        if status == 201:
            made.append(body["metadata"]["name"])
    for body in wanted:
        _wait_until_served(control_plane, body)
    return made


def _wait_until_served(control_plane: ControlPlane, body: Json) -> None:
    spec = body["spec"]
    version = next(item["name"] for item in spec["versions"] if item["storage"])
    path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1"
    deadline = time.monotonic() + ESTABLISHED_SECONDS
    while control_plane.request("GET", path)[0] != 200:
        assert time.monotonic() < deadline, f"{body['metadata']['name']} is not served"
        time.sleep(0.1)
