"""Python's garbage collector in a process with thousands of connections.

A full collection looks at every object of the process and stops all clients for that: 0.7 s where ten thousand clients
watch. So whatever outlives one is left out of the next (frozen), and each looks only at what came since. Freed it is as
before, when the last reference goes; connections and requests leave no circles behind. Should anything else that was
frozen end in a circle, an hour later it is looked at again, if that takes little time.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY: Final = 3600.0  # seconds
_FEW: Final = 300_000  # objects: a tenth of a second


class _Freezer:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looked = clock()  # when all objects were looked at

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] < 2:
            return
        if phase == "stop":
            gc.freeze()
        elif self._clock() - self._looked >= _EVERY and gc.get_freeze_count() <= _FEW:
            self._looked = self._clock()
            gc.unfreeze()


def keep_collections_short(clock: Callable[[], float] = time.monotonic) -> None:
    """From now on a full collection takes as long as there are new objects, not as there are objects."""
    gc.callbacks.append(_Freezer(clock))
    gc.freeze()
