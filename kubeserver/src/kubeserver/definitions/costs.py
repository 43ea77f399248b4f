"""What the rules of a definition may cost, alone and together.

A rule below lists and maps runs once per item, so its cost counts as often as it may run: as the limits of the lists
and maps around it say, or where there are none, as often as its value fits into the largest request. One rule may
cost ten million, the rules of a schema a hundred million together; if that is too much, the dearest four are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.cel.amounts import plus, times
from kubeserver.definitions.structure import forbidden

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

RULE_LIMIT: Final = 10_000_000
SCHEMA_LIMIT: Final = 100_000_000
_WORTH_NAMING: Final = SCHEMA_LIMIT // 100
_NAMED: Final = 4


def occurrences_within(schema: Json, around: int | None) -> int | None:
    """How often what is directly below a schema may apply, if the schema applies that often; None: no limit."""
    if around is None:
        return None
    kind = schema.get("type")
    if kind == "array":
        limit = schema.get("maxItems")
    elif kind == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    else:
        return around
    return None if limit is None else times(around, max(limit, 0))


class RuleCosts:
    """The sum of what the rules of one schema may cost."""

    def __init__(self, *, unchanged: bool) -> None:
        self._unchanged = unchanged
        self._total = 0
        self._dearest: list[tuple[str, int]] = []

    def observed(self, path: str, cost: int, name: str) -> list[FieldError]:
        """Add an expression; it may be too dear all by itself."""
        self._total = plus(self._total, cost)
        if cost >= _WORTH_NAMING:
            self._dearest.append((path, cost))
            self._dearest.sort(key=lambda pair: pair[1], reverse=True)
            del self._dearest[_NAMED:]
        if cost <= RULE_LIMIT or self._unchanged:
            return []
        return [forbidden(path, _over(name, cost, RULE_LIMIT))]

    def errors(self, path: str) -> list[FieldError]:
        """What is wrong with the sum; `path` is where the schema stands."""
        if self._total <= SCHEMA_LIMIT:
            return []
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        total = forbidden(path, _over(name, self._total, SCHEMA_LIMIT))
        return [*(forbidden(where, detail) for where, _ in self._dearest), total]


def _over(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"  # so that it never says 1.0
    else:
        shown = f"{factor:.1f}x"
    advice = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings"
    )
    return f"{name} exceeds budget by factor of {shown} ({advice} are declared)"
