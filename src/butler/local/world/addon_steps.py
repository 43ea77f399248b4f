"""What comes next in the life of a TenantAddon, and how its status says so. Pure: time comes in as an argument.

Pending      something is missing: the cluster's API, its pod network, its nodes
Installing   it takes its time; an addon that is there already, in another version or shape, is Upgrading
Installed    nothing more is done until its spec changes
Failed       it is tried again, later and later
Deleting     what it put on the cluster is taken away
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import with_condition
from butler.api.labels import ConditionType
from butler.api.tenantaddon import TenantAddon, TenantAddonPhase, TenantAddonStatus

if TYPE_CHECKING:
    from datetime import datetime

Phase = TenantAddonPhase
MESSAGE_LIMIT = 1024


class AddonAction(StrEnum):
    """What to do besides telling."""

    REST = "rest"
    """Nothing, until something changes."""
    WORK = "work"
    """Let the time pass that an installation takes."""
    INSTALL = "install"
    """Put the objects onto the cluster."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that matters beside the TenantAddon itself."""

    waits_for: str = ""
    """What has to be there first, as a sentence."""
    fails_with: str = ""
    """What it was told to fail with."""
    seconds_left: float = 0.0
    """How long an installation that is under way still takes."""


@dataclass(frozen=True, slots=True)
class Step:
    """Tell this, then do that."""

    act: AddonAction
    phase: TenantAddonPhase
    message: str | None = None


def decide(addon: TenantAddon, situation: Situation) -> Step:
    """The next step of an addon that is wanted."""
    status = addon.status
    current = status.observed_generation == addon.metadata.generation
    if status.phase is Phase.INSTALLED and current:
        return Step(AddonAction.REST, Phase.INSTALLED, status.message)
    busy = Phase.UPGRADING if status.installed_version is not None else Phase.INSTALLING
    if situation.waits_for:
        return Step(AddonAction.REST, busy if busy is Phase.UPGRADING else Phase.PENDING, situation.waits_for)
    if situation.fails_with:
        return Step(AddonAction.REST, Phase.FAILED, situation.fails_with)
    if status.phase is Phase.FAILED and current:
        return Step(AddonAction.INSTALL, Phase.INSTALLED)  # its time has passed already
    if status.phase is busy and current and situation.seconds_left <= 0 and not status.message:
        return Step(AddonAction.INSTALL, Phase.INSTALLED)
    return Step(AddonAction.WORK, busy)


def told(
    addon: TenantAddon, phase: TenantAddonPhase, message: str | None, now: datetime, installed: str | None = None
) -> TenantAddonStatus:
    """The status that says so; the very same when it says so already."""
    before = addon.status
    message = None if message is None else message[:MESSAGE_LIMIT]
    return msgspec.structs.replace(
        before,
        phase=phase,
        message=message,
        installed_version=installed or before.installed_version,
        observed_generation=addon.metadata.generation,
        last_transition_time=before.last_transition_time if before.phase is phase else now,
        conditions=with_condition(
            before.conditions,
            type=ConditionType.INSTALLED,
            status=phase is Phase.INSTALLED,
            reason=phase.value,
            message=message or _SAID[phase],
            now=now,
            observed_generation=addon.metadata.generation,
        ),
    )


_SAID = {
    Phase.PENDING: "The addon waits.",
    Phase.INSTALLING: "The addon is being installed.",
    Phase.UPGRADING: "The addon is being upgraded.",
    Phase.INSTALLED: "The addon is on the cluster.",
    Phase.DEGRADED: "The addon is not well.",
    Phase.FAILED: "The addon could not be installed.",
    Phase.DELETING: "The addon is being removed.",
}
