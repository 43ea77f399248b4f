"""How quick the world is. Real machines take minutes; here everything is short, but long enough to be seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """Seconds that things take; 0: no time at all."""

    machine_seconds: float = 1.0
    """From a machine that was asked for to its Node. A MachineDeployment may say otherwise by annotation."""
    machine_deletion_seconds: float = 0.3
    """From a machine that is to go to its end."""
    control_plane_seconds: float = 0.5
    """From a control plane, or a new version of it, that was asked for to one that answers."""
    addon_seconds: float = 0.3
    """From an addon that was asked for to one that is installed."""
    workers: int = 8
    """How many objects of a kind are looked after at the same time."""
