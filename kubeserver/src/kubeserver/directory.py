"""The data directory on disk: which files the server puts there, and that only its owner can read them.

It holds keys, administrators' kubeconfigs and every Secret. A directory that also holds other files is used for other
purposes too, and its mode is left alone.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from kubeserver.storage.journal import FILE, LOCK

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

FILES: Final = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", LOCK, "kubeconfig", "clusters", "pki")
"""All that the server puts into its directory."""
_PRIVATE: Final = 0o700


def make_private(directory: Path, also: Collection[str] = ()) -> None:
    """Make the data directory if there is none, for its owner alone, and mend one of an earlier version.

    `also`: the names of files that the program around the server keeps there.
    """
    directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    if all(path.name in FILES or path.name in also for path in directory.iterdir()):
        _mend(directory)


def make_private_below(directory: Path, below: Path) -> None:
    """The same for a directory inside of it, and all in between."""
    for part in [*reversed(below.relative_to(directory).parents[:-1]), below.relative_to(directory)]:
        (directory / part).mkdir(mode=_PRIVATE, exist_ok=True)
        _mend(directory / part)


def _mend(directory: Path) -> None:
    if stat.S_IMODE(directory.stat().st_mode) & 0o077:
        directory.chmod(_PRIVATE)
