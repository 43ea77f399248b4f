"""Conditions and status as Cluster API's v1beta1 contract has them. Pure: the time comes in as an argument.

A status is written only when it says something new, and a condition keeps the time of its last change, so a world
at rest writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.objects import condition_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.objects import Json


def true(kind: str) -> Json:
    return {"type": kind, "status": "True"}


def false(kind: str, reason: str, message: str = "", severity: str = "Info") -> Json:
    told: Json = {"type": kind, "status": "False", "reason": reason, "severity": severity}
    return told | ({"message": message} if message else {})


def judged(kind: str, ok: bool, reason: str, message: str = "", severity: str = "Info") -> Json:
    return true(kind) if ok else false(kind, reason, message, severity)


def is_true(obj: Json, kind: str) -> bool:
    found = condition_of(obj, kind)
    return found is not None and found.get("status") == "True"


def merged(obj: Json, wanted: Iterable[Json], now: str) -> list[Json]:
    """All conditions of an object with the wanted ones among them; what has not changed keeps its time."""
    found = {condition["type"]: condition for condition in (obj.get("status") or {}).get("conditions") or ()}
    for condition in wanted:
        before = found.get(condition["type"])
        said = {key: value for key, value in (before or {}).items() if key != "lastTransitionTime"}
        if before is None or said != condition:
            found[condition["type"]] = {**condition, "lastTransitionTime": now}
    return list(found.values())


def status_change(obj: Json, wanted: Json) -> Json | None:
    """The merge patch that makes a status say what is wanted (None: the field goes), or None when it does already."""
    present = obj.get("status") or {}
    changed = {key: value for key, value in wanted.items() if present.get(key) != value}
    return {"status": changed} if changed else None
