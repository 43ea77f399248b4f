"""What an expression pays for its work, so that none runs for long.

`frame[0]` counts the work done. An expression starts with what it costs in any case (`least_cost`); what may be left
out (the other side of `&&`, a branch) is added when it is reached, loops pay for their rounds, and functions that go
through a text or a list pay for its length, a tenth of a unit for a character as in Kubernetes; where two lengths
multiply, so does the price. Everything pays in advance: an expression that would run for minutes, or make a text of
gigabytes, stops at once with the error Kubernetes gives.

The units are those of Kubernetes (a name, a field, a call: one), but the count is not exact: it need not be, because
both limits are so high that only an object made to reach them will. What a rule may cost *at worst* is another matter:
`estimates.py` must be right about that to the unit, because it decides over definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver import patience
from kubeserver.cel.syntax import Call, Fold, ListLiteral, Literal, MapLiteral, Name, Node, Select
from kubeserver.cel.values import CostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.cel import types as t

Frame = list[Any]

COST_LIMIT: Final = 1_000_000  # of one expression
_CHARACTERS: Final = 10  # for one unit
_LONG: Final = frozenset({"string", "bytes", "list", "map", "dyn", "any", "object"})
_QUICK: Final = frozenset(
    {"_[_]", "_[?_]", "type", "dyn", "hasValue", "value", "orValue", "or", "optional.of", "optional.none", "charAt"}
)
_NEW_LIST: Final = 10
_NEW_MAP: Final = 30
# What a round of a loop costs besides its steps: looking at what was accumulated, and adding to it.
ROUND: Final = {
    "all": 3,
    "exists": 4,
    "exists_one": 2,
    "existsOne": 2,
    "filter": 1,
    "map": _NEW_LIST + 2,
    "transformList": _NEW_LIST + 2,
    "transformMap": 3,
    "transformMapEntry": 2,
    "sortBy": _NEW_LIST + 2,
    "optMap": 0,
    "optFlatMap": 0,
}


def least_cost(node: Node) -> int:
    """What evaluating a tree costs in any case, without its loops and long values."""
    if isinstance(node, Name):
        return 1
    if isinstance(node, Select):
        return least_cost(node.operand) + (not node.test)
    if isinstance(node, Call):
        operands = [*([] if node.target is None else [node.target]), *node.arguments]
        if node.name in ("_&&_", "_||_", "_?_:_"):
            return least_cost(operands[0])
        return 1 + sum(map(least_cost, operands))
    if isinstance(node, ListLiteral):
        return _NEW_LIST + sum(map(least_cost, node.items))
    if isinstance(node, MapLiteral):
        return _NEW_MAP + sum(least_cost(item) for key, value, _ in node.entries for item in (key, value))
    return least_cost(node.target) if isinstance(node, Fold) else 0


def pay(frame: Frame, amount: int) -> None:
    frame[0] += amount
    if frame[0] > COST_LIMIT:
        raise CostError("operation cancelled: actual cost limit exceeded")


def head_start() -> int:
    """How far a count starts ahead of nothing, so that it meets the limit when the patience here is at its end."""
    left = patience.left()
    return 0 if left is None else max(COST_LIMIT - left, 0)


def bulk(value: Any) -> int:
    """The price of going through a value once."""
    if isinstance(value, (str, bytes)):
        return len(value) // _CHARACTERS
    if isinstance(value, list):
        return len(value) + sum(bulk(item) for item in value if item.__class__ not in (int, bool, float))
    if isinstance(value, dict):
        return len(value) + sum(bulk(item) for item in value.values() if item.__class__ not in (int, bool, float))
    return 0


def price_of(name: str, nodes: list[Node]) -> Callable[..., int] | None:
    """How the price of a call follows from its arguments; None if it is always small."""
    if name in _PRICES:
        return _PRICES[name]
    if name in _QUICK or not any(_is_long(node.type) for node in nodes):
        return None
    return _each_with_each if name == "_+_" and _is_set(nodes[0].type) else _once


def price_of_comparing(nodes: list[Node]) -> Callable[..., int] | None:
    """As `price_of`, for two values; against something that stands in the expression it is always small."""
    if any(isinstance(node, Literal) for node in nodes) or not any(_is_long(node.type) for node in nodes):
        return None
    return _each_with_each if any(_is_set(node.type) for node in nodes) else _once


def _is_long(kind: t.Type) -> bool:
    return kind.kind in _LONG or bool(kind.fields)


def _is_set(kind: t.Type) -> bool:
    return kind.kind == "list" and kind.schema is not None and kind.schema.list_type == "set"


def _once(*arguments: Any) -> int:
    return sum(map(bulk, arguments))


def _each_with_each(*arguments: Any) -> int:
    lengths = [len(argument) for argument in arguments if isinstance(argument, list)]
    return _once(*arguments) + (lengths[0] * lengths[1] if len(lengths) > 1 else 0)


def _with_itself(items: Any, *_: Any) -> int:
    return _once(items) + (len(items) * len(items) if isinstance(items, list) else 0)


def _looking(_: Any, among: Any) -> int:
    return bulk(among) if isinstance(among, list) else 0


def _counting(count: Any) -> int:
    return count if isinstance(count, int) and count > 0 else 0


def _replacing(text: Any, old: Any, new: Any, *_: Any) -> int:
    if not all(isinstance(item, str) for item in (text, old, new)):
        return 0
    made: int = len(text) + text.count(old) * len(new)
    return made // _CHARACTERS


def _joining(items: Any, separator: Any = "", *_: Any) -> int:
    between = len(separator) if isinstance(separator, str) and isinstance(items, list) else 0
    return _once(items) + (len(items) * between // _CHARACTERS if between else 0)


_PRICES: Final[dict[str, Callable[..., int]]] = {
    "sets.contains": _each_with_each,
    "sets.equivalent": _each_with_each,
    "sets.intersects": _each_with_each,
    "@in": _looking,
    "distinct": _with_itself,
    "lists.range": _counting,
    "replace": _replacing,
    "join": _joining,
}
