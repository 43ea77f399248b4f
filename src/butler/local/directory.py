"""The data directory on disk: what a control plane puts into it, and that nobody but its owner looks into it.

It holds keys, kubeconfigs of administrators and every Secret. A directory that holds anything else is somebody's for
other purposes, and its mode is left alone.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from butler.local.apiserver.storage.journal import FILE, LOCK

if TYPE_CHECKING:
    from pathlib import Path

AUDIT_FILE: Final = "audit.log"
"""What people did in the console, a line of JSON each."""
AUDIT_FILES_KEPT: Final = 4  # older ones, of ten megabytes each
OURS: Final = (
    *(FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", LOCK, "kubeconfig", "clusters", "pki", AUDIT_FILE),
    *(f"{AUDIT_FILE}.{number}" for number in range(1, AUDIT_FILES_KEPT + 1)),
)
"""All that a control plane puts into its directory."""
_PRIVATE: Final = 0o700


def make_private(directory: Path) -> None:
    """Make the data directory if there is none, for its owner alone, and mend one of an earlier version."""
    directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    if all(path.name in OURS for path in directory.iterdir()):
        _mend(directory)


def make_private_below(directory: Path, below: Path) -> None:
    """The same for a directory inside of it, and all in between."""
    for part in [*reversed(below.relative_to(directory).parents[:-1]), below.relative_to(directory)]:
        (directory / part).mkdir(mode=_PRIVATE, exist_ok=True)
        _mend(directory / part)


def _mend(directory: Path) -> None:
    if stat.S_IMODE(directory.stat().st_mode) & 0o077:
        directory.chmod(_PRIVATE)
