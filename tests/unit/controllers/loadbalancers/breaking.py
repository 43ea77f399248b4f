"""Breaking a chosen request of a household, or doing something just then.

Every request to the management cluster and to the tenant is counted. The chosen one fails before it is done, or is done
and not answered, or the process ends there, or something happens meanwhile. After each the invariants are checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butler.kube.errors import OutcomeUnknown, Unreachable
from unit.controllers.loadbalancers.household import Killed
from unit.controllers.tenantcluster.management import refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.controllers.loadbalancers.household import Household

WRITES = ("create", "apply", "patch", "delete")
REQUESTS = ("get", "list", *WRITES)
FAULTS: dict[str, tuple[str, Callable[[], BaseException]]] = {
    "is not reached": ("before", lambda: Unreachable("connection refused")),
    "does not answer, and did nothing": ("before", lambda: OutcomeUnknown("no answer")),
    "does not answer, and did it": ("after", lambda: OutcomeUnknown("no answer")),
    "fails": ("before", lambda: refusal(500, "InternalError", "etcd is away")),
    "takes too long": ("before", TimeoutError),
    "says that another writer was quicker": ("before", lambda: refusal(409, "Conflict", "modified")),
    "is the last that the process says": ("before", Killed),
    "is not heard by a process that ends": ("after", Killed),
}

_NONE: tuple[str, Callable[[], Exception] | None] = ("before", None)


class Breaking:
    """Hooks into a household; `seen` counts requests."""

    def __init__(self, house: Household, number: int, *, fault: str = "", do: Callable[[], Any] | None = None) -> None:
        self.seen = 0
        self.struck = ""
        self._house = house
        self._number = number
        self._when, self._error = FAULTS[fault] if fault else _NONE
        self._only_writes = "quicker" in fault
        self._do = do
        for side in (house.management, house.tenant):
            for verb in REQUESTS:
                setattr(side, verb, self._wrapped(verb, getattr(side, verb)))

    def _wrapped(self, verb: str, request: Any) -> Any:
        async def asked(resource: Any, *args: Any, **more: Any) -> Any:
            strikes = self._strikes(verb, resource.plural)
            if strikes and self._when == "before" and self._error is not None:
                raise self._error()
            try:
                answer = await request(resource, *args, **more)
            finally:
                self._house.check()
                if strikes and self._do is not None:
                    self._do()
            if strikes and self._error is not None:
                raise self._error()
            return answer

        return asked

    def _strikes(self, verb: str, plural: str) -> bool:
        if self._only_writes and verb not in WRITES:
            return False
        self.seen += 1
        if self.seen - 1 != self._number:
            return False
        self.struck = f"{verb} {plural}"
        return True
