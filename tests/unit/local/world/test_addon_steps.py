"""The life of a TenantAddon, step by step, and what its status says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.api.meta import LocalObjectReference, ObjectMeta
from butler.api.tenantaddon import TenantAddon, TenantAddonSpec, TenantAddonStatus
from butler.api.tenantaddon import TenantAddonPhase as Phase
from butler.local.world.addon_steps import AddonAction, Situation, decide, told

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = Situation()


def addon(phase: Phase = Phase.PENDING, *, generation: int = 1, seen: int | None = 1, **status: Any) -> TenantAddon:
    return TenantAddon(
        metadata=ObjectMeta(name="payments-traefik", namespace="team", generation=generation),
        spec=TenantAddonSpec(cluster_ref=LocalObjectReference(name="payments"), addon="traefik"),
        status=TenantAddonStatus(phase=phase, observed_generation=seen, **status),
    )


@pytest.mark.parametrize(
    ("before", "situation", "act", "phase"),
    [
        (addon(seen=None), READY, AddonAction.WORK, Phase.INSTALLING),
        (addon(seen=None), Situation(waits_for="nodes"), AddonAction.REST, Phase.PENDING),
        (addon(seen=None), Situation(fails_with="no"), AddonAction.REST, Phase.FAILED),
        (addon(seen=None), Situation(waits_for="nodes", fails_with="no"), AddonAction.REST, Phase.PENDING),
        (addon(Phase.INSTALLING), Situation(seconds_left=0.2), AddonAction.WORK, Phase.INSTALLING),
        (addon(Phase.INSTALLING), READY, AddonAction.INSTALL, Phase.INSTALLED),
        (addon(Phase.INSTALLING), Situation(fails_with="no"), AddonAction.REST, Phase.FAILED),
        (addon(Phase.INSTALLING, generation=2), READY, AddonAction.WORK, Phase.INSTALLING),
        (addon(Phase.FAILED), READY, AddonAction.INSTALL, Phase.INSTALLED),
        (addon(Phase.FAILED, generation=2), READY, AddonAction.WORK, Phase.INSTALLING),
        (addon(Phase.INSTALLED, installed_version="1"), READY, AddonAction.REST, Phase.INSTALLED),
        (
            addon(Phase.INSTALLED, installed_version="1"),
            Situation(waits_for="nodes"),
            AddonAction.REST,
            Phase.INSTALLED,
        ),
        (addon(Phase.INSTALLED, installed_version="1", generation=2), READY, AddonAction.WORK, Phase.UPGRADING),
        (addon(Phase.UPGRADING, installed_version="1"), READY, AddonAction.INSTALL, Phase.INSTALLED),
        (addon(Phase.UPGRADING, installed_version="1"), Situation(waits_for="API"), AddonAction.REST, Phase.UPGRADING),
    ],
)
def test_what_comes_next(before: TenantAddon, situation: Situation, act: AddonAction, phase: Phase) -> None:
    step = decide(before, situation)
    assert (step.act, step.phase) == (act, phase)


def test_a_phase_keeps_its_time_until_it_changes() -> None:
    first = told(addon(), Phase.PENDING, "waits", NOW)
    before = msgspec.structs.replace(addon(), status=first)
    later = NOW + timedelta(minutes=1)
    assert told(before, Phase.PENDING, "waits", later) == first
    assert told(before, Phase.INSTALLING, None, later).last_transition_time == later


def test_installed_says_so_with_its_version_and_keeps_it_through_an_upgrade() -> None:
    installed = told(addon(Phase.INSTALLING), Phase.INSTALLED, None, NOW, "34.3.0")
    condition = find_condition(installed.conditions, ConditionType.INSTALLED)
    assert condition is not None
    assert (condition.status, condition.reason, installed.installed_version) == ("True", "Installed", "34.3.0")
    before = msgspec.structs.replace(addon(generation=2), status=installed)
    upgrading = told(before, Phase.UPGRADING, None, NOW)
    assert (upgrading.installed_version, upgrading.observed_generation) == ("34.3.0", 2)
    condition = find_condition(upgrading.conditions, ConditionType.INSTALLED)
    assert condition is not None
    assert condition.status == "False"


def test_a_long_message_fits_the_status() -> None:
    assert len(told(addon(), Phase.FAILED, "x" * 5000, NOW).message or "") == 1024
