"""Addresses first: who may go on to the expensive part of being built.

A cluster is some twenty writes, of which two ask for its addresses. When hundreds come at once, the API server is
what they all wait for, and those that are being built would keep the others from even asking. So a cluster is let
through when no other has just asked for addresses and waits for the answer, nor as long as answers come one after the
other, and only a few are built at a time; one that waits for addresses that do not come, or asks for them time and
again, does not delay the others for long.

A cluster that is not let through stands in line and is called when it is its turn: were each to ask time and again,
hundreds would keep the controller busy with nothing else. Those that are begun go before those that are not. One that
does not come when called, because it is gone or waits for something else by now, delays no other; and one that was not
called, because something was overlooked, comes by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from butler.api.objects import key_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster

AT_ONCE: Final = 8
MOMENT: Final = 1.0
"""Seconds that an unanswered request is waited for by those who have theirs."""
WHILE_OTHERS_ARE_ANSWERED: Final = 10.0
"""The same as long as others are answered: so many asked that it takes a while."""
ANY_MOMENT: Final = 3.0
"""Seconds in which an answer is expected when many ask at once."""
FORGOTTEN: Final = 600.0
"""Seconds after which one who never was answered may be waited for again."""
AT_THE_HEAD: Final = 0.3
"""Seconds after which those whose turn is next come again where nothing but time lets them through."""
NEXT: Final = 3.0
"""The same where all places are taken: whoever leaves calls them, unless one that was called does not come."""
IN_LINE: Final = 15.0
"""The same for all others, who are called."""
CALLED_IN_VAIN: Final = 1.0
"""Seconds in which one who is called has to come, or others go before it."""
PLACE_LOST: Final = 2 * IN_LINE
"""Seconds after which one who was not seen again has no place in the line."""


@dataclass(slots=True, eq=False)
class _Place:
    """One in line."""

    uid: str
    key: Key
    seen: float
    """When it last came."""
    called: float | None = None
    """When it was called after that."""
    comes: bool = False
    """Whether it comes by itself in a moment."""


class Turnstile:
    """Counts who waits and who is being built. `clock` is monotonic; `call` has a cluster looked at again."""

    def __init__(self, clock: Callable[[], float], call: Callable[[Key], None], at_once: int = AT_ONCE) -> None:
        self._clock = clock
        self._call = call
        self._at_once = at_once
        self._asked: dict[str, float] = {}
        """Since when, by UID, the earliest first."""
        self._answered_at = float("-inf")
        """When the last one was answered."""
        self._inside = 0
        self._begun: dict[str, _Place] = {}
        self._new: dict[str, _Place] = {}
        """Who stands in line, by UID and in order."""

    def asked(self, uid: str) -> None:
        """A cluster has asked for addresses. Asking again changes nothing: it had its moment."""
        self._asked.setdefault(uid, self._clock())

    def has_just_asked(self, uid: str) -> bool:
        """Whether an answer may come any moment, so that to speak of waiting would be a write for nothing."""
        since = self._asked.get(uid)
        return since is not None and self._clock() - since < ANY_MOMENT

    def answered(self, uid: str) -> None:
        """It has them, or was refused, or is gone."""
        if self._asked.pop(uid, None) is not None:
            self._answered_at = self._clock()
            self._call_next()

    def enter(self, cluster: TenantCluster) -> float:
        """0: go on now, and `leave` has to follow. Else it stands in line, and comes again after so many seconds."""
        uid, now = uid_of(cluster), self._clock()
        line, other = (self._begun, self._new) if cluster.status.tenant_namespace else (self._new, self._begun)
        other.pop(uid, None)
        place = line.setdefault(uid, _Place(uid, key_of(cluster), now))
        place.seen, place.called = now, None
        head = self._head()
        if place in head[: self._places()]:
            del line[uid]
            self._inside += 1
            self._call_next()  # time may have let others through as well
            return 0.0
        place.comes = place in head and self._addresses_go_first()
        self._call_next(but=place)
        return AT_THE_HEAD if place.comes else NEXT if place in head else IN_LINE

    def leave(self) -> None:
        """One is through."""
        self._inside -= 1
        self._call_next()

    def _places(self) -> int:
        """How many may go on now."""
        return 0 if self._addresses_go_first() else self._at_once - self._inside

    def _addresses_go_first(self) -> bool:
        """Whether an answer is waited for, so that none may go on."""
        now = self._clock()
        while self._asked and now - (first := next(iter(self._asked.items())))[1] >= FORGOTTEN:
            del self._asked[first[0]]
        newest = next(reversed(self._asked.values()), None)
        if newest is None:
            return False
        are_answered = now - self._answered_at < MOMENT
        return now - newest < (WHILE_OTHERS_ARE_ANSWERED if are_answered else MOMENT)

    def _head(self) -> list[_Place]:
        """The first in line, without those who were called in vain."""
        now, found, lost = self._clock(), list[_Place](), list[_Place]()
        for place in chain(self._begun.values(), self._new.values()):
            if now - place.seen >= PLACE_LOST:
                lost.append(place)
            elif place.called is None or now - place.called < CALLED_IN_VAIN:
                found.append(place)
            if len(found) == self._at_once:
                break
        for place in lost:
            self._begun.pop(place.uid, None)
            self._new.pop(place.uid, None)
        return found

    def _call_next(self, but: _Place | None = None) -> None:
        """Call those whose turn it is. Where it is not time yet, see to it that one comes again and again from now."""
        head = self._head()
        # Where all places are taken, the next who leaves calls.
        called = (
            [place for place in head[:1] if not place.comes] if self._addresses_go_first() else head[: self._places()]
        )
        for place in called:
            if place is not but and place.called is None:
                place.called = self._clock()
                self._call(place.key)
