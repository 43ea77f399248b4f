"""Butler's own custom resource definitions, as a real Kubernetes sees them.

The embedded server shares its schemas with the generator's author, so only a foreign server can say whether the
committed files are what Kubernetes takes: without a warning, structural, established, and cheap enough in their
CEL rules. Each is tried under a group of its own, so that other tests may use the real one meanwhile.
"""

from __future__ import annotations

import json
import secrets
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from control_planes import ControlPlane

FOLDER = Path(__file__).parents[2] / "charts" / "butler" / "crds"
FILES = sorted(FOLDER.glob("*.yaml"))
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

pytestmark = pytest.mark.parametrize("control_plane", ["kubernetes"], indirect=True)


def post(control_plane: ControlPlane, body: object, query: str = "") -> tuple[Any, list[str]]:
    """Create a definition; the answer and its warnings."""
    request = urllib.request.Request(
        f"{control_plane.url}{PATH}{query}",
        json.dumps(body).encode(),
        {**control_plane.headers, "Content-Type": "application/json"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, context=control_plane.tls, timeout=30) as answer:
            return json.load(answer), answer.headers.get_all("Warning") or []
    except urllib.error.HTTPError as error:
        with error:
            pytest.fail(f"refused: {error.read().decode()}")


def test_there_are_definitions(control_plane: ControlPlane) -> None:
    assert FILES, f"no definitions in {FOLDER}: run the generator"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_definition_is_established_without_a_warning(control_plane: ControlPlane, file: Path) -> None:
    (body,) = yaml.safe_load_all(file.read_text())
    body["spec"]["group"] = f"tried-{secrets.token_hex(4)}.example.com"
    name = body["metadata"]["name"] = f"{body['spec']['names']['plural']}.{body['spec']['group']}"
    _, warnings = post(control_plane, body, "?fieldValidation=Strict")
    assert warnings == []
    try:
        conditions = wait_for_establishment(control_plane, name)
        assert conditions["NamesAccepted"]["status"] == "True"
        # A schema that is not structural, and an approval that is missing, are conditions too.
        assert set(conditions) == {"NamesAccepted", "Established"}
        wait_until_served(control_plane, body)
    finally:
        control_plane.request("DELETE", f"{PATH}/{name}")


def wait_for_establishment(control_plane: ControlPlane, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    while True:
        _, answer = control_plane.request("GET", f"{PATH}/{name}")
        conditions = {condition["type"]: condition for condition in answer["status"].get("conditions") or []}
        if conditions.get("Established", {}).get("status") == "True":
            return conditions
        assert time.monotonic() < deadline, f"{name} is not established: {conditions}"
        time.sleep(0.05)


def wait_until_served(control_plane: ControlPlane, body: Any) -> None:
    """Every served version answers a list, and its columns can be computed."""
    spec = body["spec"]
    for version in spec["versions"]:
        if not version["served"]:
            continue
        path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        deadline = time.monotonic() + 30
        while control_plane.request("GET", path)[0] != 200:
            assert time.monotonic() < deadline, f"{path} is not served"
            time.sleep(0.05)
