"""Which Kubernetes each part of a cluster runs next. Pure.

Kubernetes allows workers to be older than the control plane, by up to three minor versions, and never newer. So the
control plane goes first, one minor version at a time, and the workers follow when it has arrived.
"""

from __future__ import annotations

from typing import NamedTuple

from butler.api.labels import ConditionType, TenantClusterReason
from butler.capi.blueprint import Versions
from butler.controllers.tenantcluster.blocked import Blocked

WORKERS_BEHIND = 3
"""How many minor versions a kubelet may be older than its API server."""


class Version(NamedTuple):
    """A version of Kubernetes."""

    major: int
    minor: int
    patch: int

    @classmethod
    def read(cls, text: str) -> Version:
        """From v1.31.4; what follows a hyphen or a plus is a vendor's mark and does not count."""
        major, minor, patch = text.removeprefix("v").split("+")[0].split("-")[0].split(".")
        return cls(int(major), int(minor), int(patch))

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}"


def next_versions(wanted: str, control_plane: str | None, workers: str | None) -> Versions | Blocked:
    """What to run next, given what runs now (None: nothing yet); or why the wanted version cannot be reached."""
    if control_plane is None:
        return Versions(wanted, wanted)
    goal, now = Version.read(wanted), Version.read(control_plane)
    if goal < now:
        return _refused(f"the control plane runs {control_plane} and cannot go back to {wanted}")
    if goal.major != now.major or goal.minor > now.minor + 1:
        step = Version(now.major, now.minor + 1, 0)
        return _refused(
            f"the control plane runs {control_plane} and can go up one minor version at a time, to v{step.major}"
            f".{step.minor}.x first, not to {wanted} at once"
        )
    if goal == now or workers is None:
        return Versions(wanted, wanted)
    behind = Version.read(workers)
    if goal.minor - behind.minor > WORKERS_BEHIND:
        # Should not happen to clusters that always went through here; an adopted one may be that far behind.
        return Versions(control_plane, control_plane)
    return Versions(wanted, workers)


def _refused(message: str) -> Blocked:
    return Blocked(
        ConditionType.CONTROL_PLANE_READY,
        TenantClusterReason.VERSION_NOT_ALLOWED,
        f"spec.kubernetesVersion: {message}",
    )
