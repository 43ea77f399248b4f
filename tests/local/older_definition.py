"""The definition of IPAllocations as it was before its status had rules, for tests of what can be stored since then."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from butler.api.crd import custom_resource_definition
from butler.api.ipallocation import IPAllocation
from ipam_operator import ALLOCATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipam_operator import Desk

DEFINITION = custom_resource_definition(IPAllocation)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def without_rules(schema: Any) -> Any:
    """As the definition was before its status had rules, and times a pattern."""
    if isinstance(schema, dict):
        dropped = {"x-kubernetes-validations"} | ({"pattern"} if schema.get("format") == "date-time" else set())
        return {name: without_rules(part) for name, part in schema.items() if name not in dropped}
    return schema


@contextmanager
def older_definition(desk: Desk) -> Iterator[None]:
    """The status without rules, for as long as the block lasts."""
    path = f"{DEFINITIONS}/{DEFINITION['metadata']['name']}"

    def put(status_schema: Any) -> None:
        code, stored = desk.send("GET", path)
        assert code == 200, stored
        stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status_schema
        code, answer = desk.send("PUT", path, stored)
        assert code == 200, answer

    schema = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    put(without_rules(schema))
    try:
        yield
    finally:
        put(schema)


def write(desk: Desk, name: str, status: dict[str, Any]) -> None:
    """Edit a status; a definition that was changed takes effect a moment later."""
    path = desk.path(ALLOCATIONS, name, "status")
    patch = {"status": status}
    desk.until(
        lambda: desk.send("PATCH", path, patch, "application/merge-patch+json")[0] == 200, f"{name} takes {status}"
    )
