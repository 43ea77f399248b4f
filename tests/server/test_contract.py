"""The server answers as its OpenAPI document says, whatever is asked: Schemathesis asks.

Half of what it sends is what the document allows, half what it forbids. Nothing may end in an error of the server,
every status and every body has to be in the document, and what the document forbids has to be refused. Objects that
exist are put in the place of made-up names now and then, so that more is reached than 404.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from butler.server.openapi import document
from butler.server.problems import MEDIA_TYPE
from server.conftest import CSRF, ROLE
from server.follower import serving, tenant
from server.objects import HOME, allocation, create, pool
from server.rights import namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
TEAM = "team-contract"
THERE = {
    "pools": (HOME, "contract"),
    "allocations": (HOME, "contract-nodes"),
    "tenants": (TEAM, "contract"),
}
"""Objects that exist, by the first word of the paths to them."""


def _without_sessions(told: dict[str, Any]) -> dict[str, Any]:
    """In tests a header names the user; other tests cover a missing session."""
    for path in told["paths"].values():
        for operation in path.values():
            operation.pop("security", None)
    return {**told, "security": []}


schema = schemathesis.openapi.from_dict(_without_sessions(document()))
usual = settings(
    max_examples=4, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
at_length = settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def url(plane: ControlPlane) -> Iterator[str]:
    """A server in a thread of its own, as Schemathesis waits for answers."""
    create(plane, pool("contract", "10.77.0.0/24", reserved=[{"cidr": "10.77.0.0/28", "description": "switches"}]))
    create(plane, allocation("contract-nodes", "contract", 5))
    namespace(plane, TEAM)
    create(plane, tenant("contract", TEAM))
    up: list[str] = []
    ready, done = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(plane) as server:
            up.append(server.url)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield up[0]
    finally:
        done.set()
        thread.join(30)


def ask(case: schemathesis.Case, url: str) -> None:
    _name_what_is_there(case)
    headers = {ROLE: "admin", "X-CSRF-Token": CSRF, "Origin": url}
    response = case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)
    if response.status_code >= 400:
        assert response.headers["content-type"][0].startswith(MEDIA_TYPE), f"an error that is no problem: {response}"


def _name_what_is_there(case: schemathesis.Case) -> None:
    """Every other allowed request that reads or previews is about an object that exists."""
    names: dict[str, Any] = case.path_parameters or {}
    found = THERE.get(case.path.removeprefix("/api/v1/").split("/", 1)[0])
    if found is None or not {"namespace", "name"} <= names.keys() or case.method == "DELETE" or _is_forbidden(case):
        return
    if len(str(names["name"])) % 2:
        names["namespace"], names["name"] = found


def _is_forbidden(case: schemathesis.Case) -> bool:
    return case.meta is None or case.meta.generation.mode is not schemathesis.GenerationMode.POSITIVE


@schema.parametrize()
@usual
def test_every_answer_is_in_the_document(case: schemathesis.Case, url: str) -> None:
    ask(case, url)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@schema.parametrize()
@at_length
def test_every_answer_is_in_the_document_at_length(case: schemathesis.Case, url: str) -> None:
    ask(case, url)
