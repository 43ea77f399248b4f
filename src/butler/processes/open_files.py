"""How many files, connections above all, a process may have open."""

from __future__ import annotations

import contextlib
import resource

OPEN_FILES = 65536


def allow_many_connections() -> None:
    """A process that speaks to hundreds of tenants needs more open files than most shells allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # not allowed: a few tenants work all the same
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
