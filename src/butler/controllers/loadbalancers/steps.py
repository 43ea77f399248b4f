"""The steps of one look at a tenant: each is tried, whatever came of the others.

What goes wrong is kept and told in the status. If an error ended the look instead, the status would go on saying what
it said before, and a drain that is under way would wait for an error that has nothing to do with it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from butler.controllers.loadbalancers.allocations import LedgerTrouble
from butler.controllers.loadbalancers.next_look import NextLook
from butler.kube.errors import ApiError, Conflict, KubeError, ServerError, TooManyRequests
from butler.rules.loadbalancer.status import AllocationTrouble

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

LONGEST: Final = 500
ERROR_PAUSE: Final = NextLook(5.0)

log = logging.getLogger(__name__)


class Steps:
    """When there is more to do, and what went wrong; `otherwise` is the longest wait."""

    def __init__(self, otherwise: NextLook) -> None:
        self.again = otherwise
        self.errors: list[Exception] = []

    def no_later_than(self, again: NextLook) -> None:
        """Look again by then."""
        self.again = min(self.again, again)

    async def do(self, step: Awaitable[NextLook | None]) -> None:
        """Try a step; one that depends on the clock says when it has more to do."""
        try:
            again = await step
        except LedgerTrouble as trouble:
            self.errors.append(trouble.error)
        except Exception as error:
            log.warning("a step of looking after load balancers failed: %s", error, exc_info=not _is_usual(error))
            self.errors.append(error)
            self.no_later_than(ERROR_PAUSE)
        else:
            if again is not None:
                self.no_later_than(again)


def _is_usual(error: Exception) -> bool:
    return isinstance(error, KubeError | TimeoutError)


def trouble_of(errors: Sequence[Exception], before: AllocationTrouble | None) -> AllocationTrouble | None:
    """What there is to say about errors, the first that does not pass by itself before the others. Pure."""
    found = [_trouble(error, 1 if before is None else before.tries + 1) for error in errors]
    return min(found, key=lambda trouble: trouble.passes, default=None)


def _trouble(error: Exception, tries: int) -> AllocationTrouble:
    refused = isinstance(error, ApiError) and not isinstance(error, Conflict | ServerError | TooManyRequests)
    return AllocationTrouble(
        " ".join(str(error).split())[:LONGEST] or type(error).__name__, passes=not refused, tries=tries
    )
