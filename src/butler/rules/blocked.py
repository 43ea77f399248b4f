"""Blocked: why a cluster does not go on, said once and shown in its conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from butler.api.labels import ConditionType


@dataclass(frozen=True, slots=True)
class Blocked:
    """The condition that does not hold, and why."""

    condition: ConditionType
    reason: str
    message: str
    waits: bool = False
    """Whether it goes on by itself, as when addresses are on their way; else a user has to change something."""
