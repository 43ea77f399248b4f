"""The two control planes that Butler's tests run on: `butleradm local up`, and a real Kubernetes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import api_servers
from api_servers import BIN, ControlPlane, kubernetes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["BIN", "ControlPlane", "embedded", "kubernetes"]


@contextmanager
def embedded(data_dir: Path, *, controllers: bool = False, arguments: Sequence[str] = ()) -> Iterator[ControlPlane]:
    """The embedded control plane, started by the command that users type."""
    # Tests bring the controllers that they are about; others would answer to what they write.
    options = ["--no-console", *(() if controllers else ("--no-controllers",)), *arguments]
    with api_servers.embedded(data_dir, ["butleradm", "local", "up", *options]) as server:
        yield server
