"""Which Kubernetes each part of a cluster runs next. Pure.

Kubernetes allows workers to be older than the control plane, by up to three minor versions, and never newer. So the
control plane goes first, one minor version at a time, and the workers follow when it has arrived. What the control
plane runs may be unknown for a while (it comes up, or says something that is no version): then workers are not told
anything newer than what they were told before.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from butler.api.labels import ConditionType, TenantClusterReason
from butler.rules.blocked import Blocked
from butler.rules.tenant.blueprint import Versions

_VERSION = re.compile(r"v?([0-9]{1,5})\.([0-9]{1,5})\.([0-9]{1,5})(?:[-+]|$)")
WORKERS_BEHIND = 3
"""How many minor versions a kubelet may be older than its API server."""


class Version(NamedTuple):
    """A version of Kubernetes."""

    major: int
    minor: int
    patch: int

    @classmethod
    def read(cls, text: str | None) -> Version | None:
        """From v1.31.4; what follows a hyphen or a plus is a vendor's mark and does not count. None: no version."""
        found = _VERSION.match(text or "")
        return cls(*map(int, found.groups())) if found else None

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}"


def next_versions(
    wanted: str, control_plane: str | None, workers: str | None, oldest: str | None = None
) -> Versions | Blocked:
    """What to run next, given what runs now (None: nothing yet); or why the wanted version cannot be reached.

    `workers` is what the machines were told to run, `oldest` what the oldest of them runs, while they are replaced.
    """
    goal, now, told = Version.read(wanted), Version.read(control_plane), Version.read(workers)
    if goal is None:
        return _refused(f"{wanted!r} is no version; write it as in v1.31.4")
    if control_plane is None or now is None:
        return Versions(wanted, wanted if workers is None or told is None or told > goal else workers)
    if goal < now:
        return _refused(f"the control plane runs {control_plane} and cannot go back to {wanted}")
    if goal.major != now.major or goal.minor > now.minor + 1:
        step = Version(now.major, now.minor + 1, 0)
        return _refused(
            f"the control plane runs {control_plane} and can go up one minor version at a time, to v{step.major}"
            f".{step.minor}.x first, not to {wanted} at once"
        )
    if goal == now or workers is None or told is None:
        return Versions(wanted, wanted)
    if told > now:
        # Another writer asked for a newer version than the control plane runs: never newer than that.
        return Versions(wanted, str(now))
    behind = min(told, Version.read(oldest) or told)
    if goal.minor - behind.minor > WORKERS_BEHIND:
        # The machines come first, for once: they are replaced slowly, or the cluster was adopted as it is.
        return Versions(str(now), str(now))
    return Versions(wanted, workers)


def _refused(message: str) -> Blocked:
    return Blocked(
        ConditionType.CONTROL_PLANE_READY,
        TenantClusterReason.VERSION_NOT_ALLOWED,
        f"spec.kubernetesVersion: {message}",
    )
