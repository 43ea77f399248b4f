"""What an expression pays for its work, so that none runs for long.

`frame[0]` counts the work done. Loops pay for all their rounds before the first, and functions that go through a text
or a list pay for its length, a tenth of a unit for a character as in Kubernetes; where two lengths multiply, so does
the price. Everything pays in advance: an expression that would run for minutes, or make a text of gigabytes, stops at
once with the error Kubernetes gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from butler.local.apiserver.cel.syntax import Literal, Node
from butler.local.apiserver.cel.values import CostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.local.apiserver.cel import types as t

Frame = list[Any]

COST_LIMIT: Final = 1_000_000  # of one expression
_CHARACTERS: Final = 10  # for one unit
_LONG: Final = frozenset({"string", "bytes", "list", "map", "dyn", "any", "object"})
_QUICK: Final = frozenset(
    {"_[_]", "_[?_]", "type", "dyn", "hasValue", "value", "orValue", "or", "optional.of", "optional.none", "charAt"}
)


def pay(frame: Frame, amount: int) -> None:
    frame[0] += amount
    if frame[0] > COST_LIMIT:
        raise CostError("operation cancelled: actual cost limit exceeded")


def bulk(value: Any) -> int:
    """The price of going through a value once."""
    if isinstance(value, (str, bytes)):
        return len(value) // _CHARACTERS
    if isinstance(value, list):
        return len(value) + sum(bulk(each) for each in value if each.__class__ not in (int, bool, float))
    if isinstance(value, dict):
        return len(value) + sum(bulk(each) for each in value.values() if each.__class__ not in (int, bool, float))
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
    lengths = [len(each) for each in arguments if isinstance(each, list)]
    return _once(*arguments) + (lengths[0] * lengths[1] if len(lengths) > 1 else 0)


def _with_itself(items: Any, *_: Any) -> int:
    return _once(items) + (len(items) * len(items) if isinstance(items, list) else 0)


def _looking(_: Any, among: Any) -> int:
    return bulk(among) if isinstance(among, list) else 0


def _counting(count: Any) -> int:
    return count if isinstance(count, int) and count > 0 else 0


def _replacing(text: Any, old: Any, new: Any, *_: Any) -> int:
    if not all(isinstance(each, str) for each in (text, old, new)):
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
