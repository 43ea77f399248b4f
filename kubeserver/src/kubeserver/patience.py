"""How much work a thread may still do before it has to be done elsewhere.

While the event loop computes for one client, all others wait. Work that may take long in proportion to nothing that is
known beforehand (rules and patterns of definitions that users bring) counts its steps here, and is stopped with
`Costly` when there were too many: then it is done again in the lane (`lane.py`), where only its own caller waits.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS_ON_THE_LOOP: Final = 20_000  # about 20 ms


class Costly(Exception):
    """What was begun takes too many steps for here."""


class _Patience(threading.local):
    left: int | None = None  # None: as many as it takes


_patience: Final = _Patience()


@contextmanager
def limited(steps: int = STEPS_ON_THE_LOOP) -> Iterator[None]:
    """Stop what runs inside with `Costly` when it has taken so many steps."""
    before, _patience.left = _patience.left, steps
    try:
        yield
    finally:
        _patience.left = before


def left() -> int | None:
    """How many steps may still be taken; None: any number."""
    return _patience.left


def spend(steps: int) -> None:
    if _patience.left is not None:
        _patience.left -= steps
        if _patience.left < 0:
            raise Costly
