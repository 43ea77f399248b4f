"""`butleradm local up` as a process that a test may starve, kill, stop and start again on the same port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class LocalServer(ServerProcess):
    """One data directory and, most of the time, one process that serves it."""

    def __init__(
        self, directory: Path, *, controllers: bool = False, console: bool = False, options: Sequence[str] = ()
    ) -> None:
        left_out = [*(() if controllers else ("--no-controllers",)), *(() if console else ("--no-console",))]
        super().__init__(directory, ["butleradm", "local", "up", *left_out, *options])
