"""How many machines each MachineSet of a MachineDeployment should have now. Pure.

The rules of a rolling update as Cluster API has them. Machines of the newest template are added as long as there are
no more than `replicas + maxSurge` in all; machines of older templates are taken away as long as `replicas -
maxUnavailable` are available, those first that are not available anyway. Numbers are what the sets were told, not
what they have by now: machines that are still going away may coexist with their successors for a moment.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from butler.api.objects import Json

_CHANGED_IN_PLACE: Final = (
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "nodeDeletionTimeout",
    "readinessGates",
    "minReadySeconds",
)


@dataclass(frozen=True, slots=True)
class MachineSet:
    """One set: how many machines it was told to have, and how many of them are available."""

    name: str
    replicas: int
    available: int
    age: str = ""
    """When it was made; the oldest sets shrink first."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far an update may stray from the wanted number."""

    surge: int
    unavailable: int


def limits(strategy: Json, replicas: int) -> Limits:
    """maxSurge (default 1, rounded up) and maxUnavailable (default 0, rounded down); both 0 would stand still."""
    rolling = strategy.get("rollingUpdate") or {}
    surge = _amount(rolling.get("maxSurge", 1), replicas, math.ceil)
    unavailable = _amount(rolling.get("maxUnavailable", 0), replicas, math.floor)
    return Limits(surge, unavailable if surge or unavailable else 1)


def _amount(value: int | str, replicas: int, rounded: Callable[[float], int]) -> int:
    if isinstance(value, str):
        return int(rounded(int(value.removesuffix("%")) * replicas / 100)) if value.endswith("%") else int(value)
    return value


def plan(replicas: int, allowed: Limits, newest: MachineSet, older: Sequence[MachineSet]) -> dict[str, int]:
    """What sets should be told, by name, where that differs from what they were told."""
    told = {newest.name: _grown(replicas, allowed, newest, older)}
    told |= _shrunk(replicas, allowed, newest, older)
    before = {machine_set.name: machine_set.replicas for machine_set in (newest, *older)}
    return {name: count for name, count in told.items() if count != before[name]}


def _grown(replicas: int, allowed: Limits, newest: MachineSet, older: Sequence[MachineSet]) -> int:
    if newest.replicas >= replicas or not older:
        return replicas
    total = newest.replicas + sum(machine_set.replicas for machine_set in older)
    room = max(0, replicas + allowed.surge - total)
    return newest.replicas + min(room, replicas - newest.replicas)


def _shrunk(replicas: int, allowed: Limits, newest: MachineSet, older: Sequence[MachineSet]) -> dict[str, int]:
    told = {machine_set.name: machine_set.replicas for machine_set in older}
    total = newest.replicas + sum(told.values())
    needed = replicas - allowed.unavailable
    coming = max(0, newest.replicas - newest.available)
    may_go = total - needed - coming
    for machine_set in sorted(older, key=lambda machine_set: machine_set.age):
        useless = min(max(0, told[machine_set.name] - machine_set.available), max(0, may_go))
        told[machine_set.name] -= useless
        may_go -= useless
    # What is left of the older sets is available, all of it or as much as counts.
    available = newest.available + sum(min(told[machine_set.name], machine_set.available) for machine_set in older)
    may_go = min(max(0, may_go), max(0, available - needed))
    for machine_set in sorted(older, key=lambda machine_set: machine_set.age):
        going = min(told[machine_set.name], may_go)
        told[machine_set.name] -= going
        may_go -= going
    return told


def template_hash(template: Json) -> str:
    """The same for templates whose machines need not be replaced."""
    said = {key: value for key, value in (template.get("spec") or {}).items() if key not in _CHANGED_IN_PLACE}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:10]
