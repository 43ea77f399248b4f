"""What calls of functions are estimated to cost, and how large what they give may be.

One function per family: it gets the operands (the target first) and gives a price. The prices are facts of the
Kubernetes API, kept stable there from release to release: most functions cost one unit, those that go through a text
a tenth of a unit per character, those that compare lists with lists the product of their lengths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kubeserver.cel.amounts import (
    MOST,
    UNKNOWN,
    Size,
    exactly,
    matching,
    plus,
    scaled,
    scanning,
    times,
    wrapped,
)
from kubeserver.cel.syntax import Literal, Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.cel import types as t

Signature = tuple["t.Type", ...]

_NEW_LIST: Final = 10
_LONGEST_PATTERN_OF_A_FORMAT: Final = 128
_LONGEST_FORMAT_NAME: Final = 64
_LONGEST_ADDRESS: Final = 16  # bytes


@dataclass(slots=True, frozen=True)
class Operand:
    node: Node
    kind: t.Type
    size: Size | None  # None: unknown
    item: Size | None  # of a list: the size of its items, as far as its schema or type tells

    @property
    def bounds(self) -> Size:
        return self.size or UNKNOWN


class Price(NamedTuple):
    cost: int
    size: Size | None = None  # of the result, where the call tells


Operands = list[Operand]
Pricing = "Callable[[Operands, Signature], Price | None]"
_ONE: Final = Price(1)


def price(name: str, signature: Signature, operands: Operands) -> Price:
    """The price of a call by one of the overloads it may mean, without what its operands cost."""
    found = _PRICES.get(name)
    return (found(operands, signature) if found is not None else None) or _ONE


# Texts


def _scan_first(operands: Operands, _: Signature) -> Price:
    return Price(scanning(operands[0].bounds.high))


def _scan_first_twice(operands: Operands, _: Signature) -> Price:
    return Price(scaled(operands[0].bounds.high, 0.2))


def _scan_last(operands: Operands, _: Signature) -> Price:
    return Price(scanning(operands[-1].bounds.high))


def _same_length(operands: Operands, _: Signature) -> Price:
    size = operands[0].bounds
    return Price(scanning(size.high), size)


def _contains(operands: Operands, _: Signature) -> Price:
    text, part = operands
    return Price(times(scanning(text.bounds.high), scanning(part.bounds.high)))


def _matches(operands: Operands, _: Signature) -> Price:
    return Price(matching(operands[0].bounds.high, operands[1].bounds.high))


def _find(operands: Operands, _: Signature) -> Price:
    text, pattern = operands[0].bounds, operands[1].bounds
    return Price(matching(text.high, pattern.high), Size(0, text.high))


def _quote(operands: Operands, _: Signature) -> Price:
    low, high = operands[0].bounds
    return Price(scanning(high), Size(wrapped(low + 2), wrapped(high * 2 + 2)))


def _to_bytes(operands: Operands, signature: Signature) -> Price | None:
    if signature[0].kind != "string":
        return None
    low, high = operands[0].bounds
    return Price(scanning(high), Size(low, wrapped(high * 4)))


def _to_string(operands: Operands, signature: Signature) -> Price | None:
    if signature[0].kind != "bytes":
        return None
    low, high = operands[0].bounds
    return Price(scanning(high), Size(low // 4, high))


def _split(operands: Operands, _: Signature) -> Price:
    most = operands[0].bounds.high
    if len(operands) > 2:
        limit = operands[2].node
        if isinstance(limit, Literal) and isinstance(limit.value, int):
            most = wrapped(limit.value)
    return Price(scaled(operands[0].bounds.high, 0.2), Size(0, most))


def _replace(operands: Operands, _: Signature) -> Price:
    text, old, new = (operand.bounds for operand in operands[:3])
    longest = _replaced(text.high, old.low, new.high, grows=new.high > old.low)
    shortest = _replaced(text.low, old.high, new.low, grows=old.high > new.low)
    return Price(scaled(text.high, 0.2), Size(shortest, longest))


def _replaced(length: int, old: int, new: int, *, grows: bool) -> int:
    if old == 0:
        # The new text goes before every character and after the last.
        return plus(times(plus(length, 1), new), length)
    if not grows:
        return length
    count = math.ceil(float(length) / float(old))
    return times(count if count < 2**64 else 2**63, new)


def _join(operands: Operands, _: Signature) -> Price:
    count = operands[0].bounds
    size = Size(0, 0)
    if operands[0].kind.parameters:
        size = count.times(operands[0].item or UNKNOWN)
    if len(operands) > 1:
        gaps = Size(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(operands[1].bounds.times(gaps))
    return Price(scanning(size.high), size)


def _validate(operands: Operands, _: Signature) -> Price:
    return Price(scaled(scanning(operands[1].bounds.high), _LONGEST_PATTERN_OF_A_FORMAT * 0.25))


# Lists


def _through(operands: Operands, _: Signature) -> Price:
    """A look at every item: texts are gone through, too."""
    target = operands[0]
    count = target.bounds.high
    if not target.kind.parameters:
        return Price(scanning(count))  # a text, to indexOf
    each = 1
    if target.kind.parameters[0].kind in ("string", "bytes"):
        each = plus(1, scanning((target.item or UNKNOWN).high))
    return Price(times(count, each))


def _in(operands: Operands, signature: Signature) -> Price | None:
    return Price(operands[1].bounds.high) if signature[1].kind == "list" else None


def _new_list(size: Size, factor: float = 1.0) -> Price:
    return Price(plus(scaled(size.high, factor), 1, _NEW_LIST), size)


def _slice(operands: Operands, _: Signature) -> Price:
    start = _written(operands[1], 0)
    end = _written(operands[2], operands[0].bounds.high)
    return _new_list(exactly(wrapped(end - start)))


def _written(operand: Operand, otherwise: int) -> int:
    """A number that stands in the expression itself."""
    node = operand.node
    if not isinstance(node, Literal) or node.value.__class__ is not int:
        return otherwise
    return max(int(node.value), 0)


def _range(operands: Operands, _: Signature) -> Price:
    return _new_list(exactly(_written(operands[0], MOST)))


def _as_long(operands: Operands, _: Signature) -> Price:
    return _new_list(operands[0].bounds)


def _distinct(operands: Operands, _: Signature) -> Price:
    size = operands[0].bounds
    return _new_list(size.times(size), 2.0)


def _sort(operands: Operands, signature: Signature) -> Price:
    return _sorted(operands[0], signature[0])


def _sort_by_keys(operands: Operands, signature: Signature) -> Price:
    return _sorted(operands[1], signature[1])


def _sorted(keys: Operand, kind: t.Type) -> Price:
    inner = kind.parameters[0].kind if kind.parameters else "dyn"
    texts = inner in ("string", "bytes", "dyn")
    return _new_list(keys.bounds.times(keys.bounds), 2.1 if texts else 2.0)


def _sets(factor: float) -> Callable[[Operands, Signature], Price]:
    def compared(operands: Operands, _: Signature) -> Price:
        product = operands[0].bounds.times(operands[1].bounds)
        return Price(plus(scaled(product.high, factor), 1))

    return compared


# Operators


def _add(operands: Operands, signature: Signature) -> Price | None:
    kind = signature[0].kind
    if kind not in ("string", "bytes", "list"):
        return None
    size = operands[0].bounds.plus(operands[1].bounds)
    return Price(1 if kind == "list" else scanning(size.high), size)


def _shorter(operands: Operands) -> Price:
    return Price(scanning(min(operands[0].bounds.high, operands[1].bounds.high)))


def _order(operands: Operands, signature: Signature) -> Price | None:
    return _shorter(operands) if signature[0].kind in ("string", "bytes") else None


def _equal(operands: Operands, _: Signature) -> Price:
    kinds = {operand.kind.kind for operand in operands}
    kind = kinds.pop()
    if not kinds:
        if kind in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
            return _ONE
        if kind == "kubernetes.NamedFormat":
            return Price(scanning(_LONGEST_FORMAT_NAME))
        if kind == "kubernetes.URL":
            size = operands[1].size
            return Price(scanning(1 if size is None else size.high))
    return _shorter(operands)


def _unequal(operands: Operands, _: Signature) -> Price:
    return _shorter(operands)


# Addresses


def _ip(operands: Operands, signature: Signature) -> Price:
    return _ONE if signature[0].kind == "net.CIDR" else _scan_first(operands, signature)


def _contains_ip(operands: Operands, signature: Signature) -> Price:
    return Price(plus(scanning(2 * _LONGEST_ADDRESS), _parsing(operands, signature)))


def _contains_cidr(operands: Operands, signature: Signature) -> Price:
    compared = scanning(2 * _LONGEST_ADDRESS) + scanning(_LONGEST_ADDRESS) + 1
    return Price(plus(compared, _parsing(operands, signature)))


def _parsing(operands: Operands, signature: Signature) -> int:
    return scanning(operands[1].bounds.high) if signature[1].kind == "string" else 0


_PRICES: Final[dict[str, Callable[[Operands, Signature], Price | None]]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _through),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url"), _same_length),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _scan_first),
    **dict.fromkeys(("startsWith", "endsWith"), _scan_last),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _sets(1.0)),
    **dict.fromkeys(("reverse", "flatten"), _as_long),
    "sets.equivalent": _sets(2.0),
    "format": _scan_first,
    "strings.quote": _quote,
    "bytes": _to_bytes,
    "string": _to_string,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "matches": _matches,
    "contains": _contains,
    "validate": _validate,
    "@in": _in,
    "slice": _slice,
    "lists.range": _range,
    "distinct": _distinct,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort_by_keys,
    "_+_": _add,
    "_==_": _equal,
    "_!=_": _unequal,
    "ip": _ip,
    "ip.isCanonical": _scan_first_twice,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
}
