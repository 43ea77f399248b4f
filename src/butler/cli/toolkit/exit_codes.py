"""What a command's exit code means. Scripts rely on these: docs/commands/ lists them, and they never change."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    FAILED = 1
    """Refused by the server or impossible; nothing was changed unless the message says so."""
    USAGE = 2
    """The command line makes no sense; nothing was asked."""
    NOT_FOUND = 3
    FORBIDDEN = 4
    """Not logged in, or not allowed."""
    UNREACHABLE = 5
    """No API server is known, or it does not answer."""
    CONFLICT = 6
    """The name is taken, or another client changed the object meanwhile."""
    TIMED_OUT = 7
    """What was asked for was accepted, and has not happened within `--timeout`."""
    FINDINGS = 8
    """The question was answered, and the answer is bad: fsck found something, a plan does not fit, pools overlap."""
    INTERRUPTED = 130
    """Ctrl-C."""
