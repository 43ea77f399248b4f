"""console/openapi.json, and the types that the console has from it, are what the server would write today."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from typing import TYPE_CHECKING, cast

import pytest
from build_console import CONSOLE, UnavailableError, node
from litestar.testing import TestClient

from butler.server.app import build
from butler.server.models.stream import Frame
from butler.server.openapi import document

if TYPE_CHECKING:
    from pathlib import Path

    from butler.server.services import Services

DOCUMENT = CONSOLE / "openapi.json"
TYPES = CONSOLE / "src" / "api" / "schema.d.ts"
GENERATOR = CONSOLE / "node_modules" / ".bin" / "openapi-typescript"
STALE = "`make generate` writes it anew"


def test_the_document_that_is_kept_is_the_one_that_the_server_serves() -> None:
    assert json.loads(DOCUMENT.read_text()) == json.loads(json.dumps(document())), STALE
    with TestClient(build(cast("Services", None))) as client:
        assert client.get("/api/v1/openapi.json").json() == json.loads(DOCUMENT.read_text()), STALE


def test_every_frame_of_the_live_stream_is_in_the_document_with_the_items_it_carries() -> None:
    schemas = document()["components"]["schemas"]
    frames = [frame["$ref"].rpartition("/")[2] for frame in schemas["Frame"]["oneOf"]]
    assert set(frames) == {frame.__name__ for frame in Frame.__subclasses__()}
    for frame in Frame.__subclasses__():
        assert schemas[frame.__name__]["properties"]["type"] == {"const": frame.__struct_config__.tag}
    items = [item["$ref"].rpartition("/")[2] for item in schemas["Changed"]["properties"]["item"]["oneOf"][:-1]]
    assert set(items) == {"PoolItem", "AllocationItem", "TenantItem", "ProviderItem", "ActivityItem"} <= set(schemas)


def test_every_route_and_parameter_says_what_it_is_for_and_every_error_is_a_problem() -> None:
    operations = [(path, way, told) for path, ways in document()["paths"].items() for way, told in ways.items()]
    assert len({told["operationId"] for _, _, told in operations}) == len(operations) > 40
    for path, way, told in operations:
        assert " " in told["summary"], f"{way} {path} needs a docstring"
        assert all(parameter.get("description") for parameter in told.get("parameters", [])), (way, path)
        for status, answer in told["responses"].items():
            assert answer["description"], (way, path, status)
            if int(status) >= 400:
                [(media_type, content)] = answer["content"].items()
                assert media_type == "application/problem+json", (way, path, status)
                assert content["schema"]["$ref"].endswith("/Problem"), (way, path, status)


@pytest.mark.skipif(not GENERATOR.exists(), reason="the console's packages are not there: `make console` fetches them")
def test_the_console_has_the_types_of_this_document(tmp_path: Path) -> None:
    try:
        _, folder = node()
    except UnavailableError as error:
        pytest.skip(str(error))
    script = json.loads((CONSOLE / "package.json").read_text())["scripts"]["generate"]
    options = shlex.split(script.partition("openapi-typescript")[2])
    options[options.index("--output") + 1] = str(tmp_path / "schema.d.ts")
    options = [option for option in options if not option.endswith(".json")]
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([GENERATOR, DOCUMENT, *options], check=True, capture_output=True, cwd=CONSOLE, env=environment)
    assert (tmp_path / "schema.d.ts").read_text() == TYPES.read_text(), STALE
