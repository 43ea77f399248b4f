"""Addresses first: who may go on to the expensive part of being built.

A cluster is some twenty writes, of which two ask for its addresses. When hundreds come at once, the API server is
what they all wait for, and those that are being built would keep the others from even asking. So a cluster is let
through when nobody has just asked for addresses and waits for the answer, and only a few are built at a time. Who is
not let through comes again in a moment; who waits for addresses that do not come, or asks for them time and again,
holds nobody up for long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE: Final = 8
MOMENT: Final = 1.0
"""Seconds that an unanswered request is waited for by those who have theirs."""
ANY_MOMENT: Final = 3.0
"""Seconds in which an answer is expected when many ask at once."""
FORGOTTEN: Final = 600.0
"""Seconds after which one who never was answered may be waited for again."""


class Turnstile:
    """Counts who waits and who is being built. `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float], at_once: int = AT_ONCE) -> None:
        self._clock = clock
        self._at_once = at_once
        self._asked: dict[str, float] = {}
        self._inside = 0

    def asked(self, uid: str) -> None:
        """A cluster has asked for addresses. Asking again changes nothing: it had its moment."""
        self._asked.setdefault(uid, self._clock())

    def has_just_asked(self, uid: str) -> bool:
        """Whether an answer may come any moment, so that to speak of waiting would be a write for nothing."""
        since = self._asked.get(uid)
        return since is not None and self._clock() - since < ANY_MOMENT

    def answered(self, uid: str) -> None:
        """It has them, or was refused, or is gone."""
        self._asked.pop(uid, None)

    def enter(self) -> bool:
        """Whether to go on now; if so, `leave` has to follow."""
        now = self._clock()
        self._asked = {uid: since for uid, since in self._asked.items() if now - since < FORGOTTEN}
        if self._inside >= self._at_once or any(now - since < MOMENT for since in self._asked.values()):
            return False
        self._inside += 1
        return True

    def leave(self) -> None:
        """One is through."""
        self._inside -= 1
