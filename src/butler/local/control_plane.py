"""The embedded control plane of `butleradm local`: kubeserver with Butler's kinds and home namespace in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.crd import custom_resource_definition
from butler.api.kinds import KINDS
from butler.local.directory import AUDIT_FILES
from kubeserver.control_plane import HOST, ControlPlane, NotStarted

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HOME_NAMESPACE", "HOST", "ControlPlane", "NotStarted", "start"]

HOME_NAMESPACE: Final = "butler-system"


async def start(directory: Path, *, port: int = 0) -> ControlPlane:
    """Start on `port`, or on the port of last time, or on any free one; return when it is ready."""
    return await ControlPlane.start(
        directory,
        port=port,
        definitions=[custom_resource_definition(kind) for kind in KINDS],
        namespaces=[HOME_NAMESPACE],
        name="butler",
        field_manager="butleradm",
        other_files=AUDIT_FILES,
    )
