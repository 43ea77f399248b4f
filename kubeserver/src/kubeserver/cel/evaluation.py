"""Turning a checked tree into Python closures.

Each node becomes a function of the frame, a list with a slot per variable. What the checker knows is used: a field
of a known string type is one dictionary lookup, a comparison of two strings is `==`. Numbers of `type: number`,
times, spans and bytes are read from their JSON form when a field of that type is read.

Macros are in `folds.py`.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from kubeserver.cel.costs import ROUND, Frame, least_cost, pay, price_of, price_of_comparing
from kubeserver.cel.folds import FOLDS, items_of, optional_fold
from kubeserver.cel.functions import size
from kubeserver.cel.library import FUNCTIONS
from kubeserver.cel.syntax import Call, Fold, ListLiteral, Literal, MapLiteral, Name, Node, Select, dotted_name
from kubeserver.cel.values import (
    NO_OVERLOAD,
    NONE,
    CelError,
    CostError,
    Optional,
    TypeValue,
    compare,
    equals,
    parse_timestamp,
    parse_wordy_duration,
    type_name,
)
from kubeserver.schemas.correlation import map_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.cel import types as t


def compile_closure(tree: Node, variables: list[str]) -> Callable[[Frame], Any]:
    """The function behind a checked tree; `variables` are those in the slots from 1 on.

    The frame's first slot starts with what evaluating costs in any case (`least_cost`), and counts from there.
    """
    return _Compiler({name: slot for slot, name in enumerate(variables, start=1)}).compile(tree)


# From JSON to what a type says.


def from_json(kind: t.Type) -> Callable[[Any], Any] | None:
    return _READERS.get(kind.kind)


def _double(value: Any) -> Any:
    return float(value) if value.__class__ is int else value


def _timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = parse_timestamp(value, strict=False)
    if found is None:
        raise CelError(f"Invalid date-time formatted string {value}")
    return found


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = parse_wordy_duration(value)
    if found is None:
        raise CelError(f"Invalid duration {value}: unable to parse {value} as duration")
    return found


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, altchars=b"-_" if "-" in value or "_" in value else None, validate=True)
    except binascii.Error as problem:
        raise CelError(f"Invalid byte formatted string {value}: {problem}") from None


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "double": _double,
    "timestamp": _timestamp,
    "duration": _duration,
    "bytes": _bytes,
}


def adapted(kind: t.Type, value: Any) -> Any:
    """A value as it is to an expression that sees it as `self`."""
    reader = from_json(kind)
    return value if reader is None else reader(value)


class _Compiler:
    def __init__(self, slots: dict[str, int]) -> None:
        self._slots = slots
        self._next = len(slots) + 1

    def compile(self, node: Node) -> Callable[[Frame], Any]:
        if isinstance(node, Literal):
            value = node.value
            return lambda _: value
        if isinstance(node, Name):
            return self._name(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        assert isinstance(node, Fold)
        return self._fold(node)

    def _name(self, node: Name) -> Callable[[Frame], Any]:
        slot = self._slots.get(node.name)
        if slot is None:
            value = TypeValue(node.name)
            return lambda _: value
        return lambda frame: frame[slot]

    def _select(self, node: Select) -> Callable[[Frame], Any]:
        if node.type.kind == "type" and node.operand.type is None:
            value = TypeValue(dotted_name(node) or "")
            return lambda _: value
        operand_type: t.Type = node.operand.type
        operand = self.compile(node.operand)
        inner = operand_type.parameters[0] if operand_type.kind == "optional_type" else operand_type
        key = inner.keys.get(node.name, node.name)
        if node.test:
            return self._test(operand, key)
        kind = node.type.parameters[0] if node.type.kind == "optional_type" else node.type
        read = from_json(kind)
        if node.optional or operand_type.kind == "optional_type":
            return _optional_select(operand, key, read)
        if read is None:

            def select(frame: Frame) -> Any:
                value = operand(frame)
                try:
                    return value[key]
                except KeyError:
                    raise CelError(f"no such key: {key}") from None
                except TypeError:
                    raise CelError(NO_OVERLOAD) from None

            return select

        def select_read(frame: Frame) -> Any:
            value = operand(frame)
            try:
                found = value[key]
            except KeyError:
                raise CelError(f"no such key: {key}") from None
            return read(found)

        return select_read

    @staticmethod
    def _test(operand: Callable[[Frame], Any], key: str) -> Callable[[Frame], Any]:
        def test(frame: Frame) -> Any:
            value = operand(frame)
            if isinstance(value, Optional):
                value = value.value if value.present else {}
            if not isinstance(value, dict):
                raise CelError(NO_OVERLOAD)
            return key in value

        return test

    def _call(self, node: Call) -> Callable[[Frame], Any]:
        nodes = [*([] if node.target is None else [node.target]), *node.arguments]
        arguments = [self.compile(item) for item in nodes]
        special = _SPECIAL.get(node.name)
        if special is not None:
            return special(nodes, arguments)
        function = _list_aware(node, nodes) or FUNCTIONS[node.name]
        if node.name in _FOLDABLE and all(isinstance(item, Literal) for item in nodes):
            return _folded(function, [item.value for item in nodes if isinstance(item, Literal)])
        price = price_of(node.name, nodes)
        if price is not None:
            return _paid(price, function, arguments)
        read = from_json(node.type) if node.name == "_[_]" else None
        if len(arguments) == 2 and read is None:
            first, second = arguments
            return lambda frame: function(first(frame), second(frame))
        if read is not None:
            first, second = arguments
            return lambda frame: read(function(first(frame), second(frame)))
        if len(arguments) == 1:
            only = arguments[0]
            return lambda frame: function(only(frame))
        return lambda frame: function(*[argument(frame) for argument in arguments])

    def _list(self, node: ListLiteral) -> Callable[[Frame], Any]:
        items = [self.compile(entry) for entry in node.items]
        if all(isinstance(entry, Literal) for entry in node.items):
            fixed = [entry.value for entry in node.items if isinstance(entry, Literal)]
            return lambda _: fixed
        if not any(node.optional):
            return lambda frame: [item(frame) for item in items]

        def build(frame: Frame) -> list[Any]:
            built: list[Any] = []
            for item, optional in zip(items, node.optional, strict=True):
                value = item(frame)
                if not optional:
                    built.append(value)
                elif value.present:
                    built.append(value.value)
            return built

        return build

    def _map(self, node: MapLiteral) -> Callable[[Frame], Any]:
        entries = [(self.compile(key), self.compile(value), optional) for key, value, optional in node.entries]

        def build(frame: Frame) -> dict[Any, Any]:
            built: dict[Any, Any] = {}
            for key, value, optional in entries:
                made, found = key(frame), value(frame)
                if isinstance(made, (list, dict)):
                    raise CelError(f"unsupported key type: {type_name(made)}")
                if optional and not found.present:
                    continue
                built[made] = found.value if optional else found
            return built

        return build

    # Macros

    def _fold(self, node: Fold) -> Callable[[Frame], Any]:
        target = self.compile(node.target)
        before = dict(self._slots)
        slots = []
        for variable in node.variables:
            slots.append(self._next)
            self._slots[variable.name] = self._next
            self._next += 1
        steps = [self.compile(step) for step in node.steps]
        self._slots = before
        cost = ROUND[node.macro] + sum(least_cost(step) for step in node.steps)
        if node.macro in ("optMap", "optFlatMap"):
            return optional_fold(target, slots[0], steps[0], flat=node.macro == "optFlatMap")
        kind: t.Type = node.target.type
        read = from_json(kind.parameters[-1]) if kind.kind in ("list", "map") else None
        items = items_of(target, read, cost, two=len(node.variables) == 2)
        return FOLDS[node.macro](items, slots, steps)


def _paid(
    price: Callable[..., int], function: Callable[..., Any], arguments: list[Callable[[Frame], Any]]
) -> Callable[[Frame], Any]:
    def call(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        pay(frame, price(*values))
        return function(*values)

    return call


# Conversions of texts that stand in the expression are done once.
_FOLDABLE: Final = frozenset({"timestamp", "duration", "ip", "cidr", "url", "quantity", "semver", "double", "int"})


def _folded(function: Callable[..., Any], values: list[Any]) -> Callable[[Frame], Any]:
    try:
        value = function(*values)
    except CelError as problem:
        text = str(problem)

        def fail(_: Frame) -> Any:
            raise CelError(text)

        return fail
    return lambda _: value


def _optional_select(
    operand: Callable[[Frame], Any], key: str, read: Callable[[Any], Any] | None
) -> Callable[[Frame], Any]:
    def select(frame: Frame) -> Optional:
        value = operand(frame)
        if isinstance(value, Optional):
            if not value.present:
                return NONE
            value = value.value
        if not isinstance(value, dict):
            raise CelError(NO_OVERLOAD)
        if key not in value:
            return NONE
        found = value[key]
        if isinstance(found, Optional):
            return found
        return Optional(found if read is None else read(found), present=True)

    return select


# Operators that do not just call a function.


def _and(nodes: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    left, right = arguments
    more = least_cost(nodes[1])

    def both(frame: Frame) -> Any:
        try:
            first = left(frame)
        except CostError:
            raise
        except CelError:
            # An error on one side does not matter if the other side decides.
            frame[0] += more
            if right(frame) is False:
                return False
            raise
        if first is False:
            return False
        frame[0] += more
        second = right(frame)
        if second is False:
            return False
        if first is True and second is True:
            return True
        raise CelError(NO_OVERLOAD)

    return both


def _or(nodes: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    left, right = arguments
    more = least_cost(nodes[1])

    def either(frame: Frame) -> Any:
        try:
            first = left(frame)
        except CostError:
            raise
        except CelError:
            frame[0] += more
            if right(frame) is True:
                return True
            raise
        if first is True:
            return True
        frame[0] += more
        second = right(frame)
        if second is True:
            return True
        if first is False and second is False:
            return False
        raise CelError(NO_OVERLOAD)

    return either


def _choose(nodes: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    condition, yes, no = arguments
    if_yes, if_no = least_cost(nodes[1]), least_cost(nodes[2])

    def choose(frame: Frame) -> Any:
        found = condition(frame)
        if found is True:
            frame[0] += if_yes
            return yes(frame)
        if found is False:
            frame[0] += if_no
            return no(frame)
        raise CelError(NO_OVERLOAD)

    return choose


def _not(_: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    operand = arguments[0]

    def negated(frame: Frame) -> Any:
        found = operand(frame)
        if found is True:
            return False
        if found is False:
            return True
        raise CelError(NO_OVERLOAD)

    return negated


def _equal(nodes: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    left, right = arguments
    price = price_of_comparing(nodes)
    alike = _list_equality(nodes)
    if price is not None:
        return _paid(price, alike, arguments)
    if {node.type.kind for node in nodes} in ({"string"}, {"int"}):
        return lambda frame: left(frame) == right(frame)
    return lambda frame: alike(left(frame), right(frame))


def _unequal(nodes: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    equal = _equal(nodes, arguments)
    return lambda frame: not equal(frame)


def _list_kind(nodes: list[Node]) -> t.Type | None:
    """The type of an operand that is a set or a map by its keys: order means nothing to those."""
    for node in nodes:
        kind: t.Type = node.type
        if kind.kind == "list" and kind.schema is not None and kind.schema.list_type in ("set", "map"):
            return kind
    return None


def _list_equality(nodes: list[Node]) -> Callable[[Any, Any], bool]:
    kind = _list_kind(nodes)
    if kind is None or kind.schema is None:
        return equals
    schema = kind.schema

    def alike(left: Any, right: Any) -> bool:
        if not isinstance(left, list) or not isinstance(right, list) or len(left) != len(right):
            return equals(left, right)
        if schema.list_type == "set":
            return all(any(equals(one, other) for other in right) for one in left)
        others = {map_key(schema, item): item for item in right}
        return all(equals(item, others.get(map_key(schema, item))) for item in left)

    return alike


def _list_aware(node: Call, nodes: list[Node]) -> Callable[..., Any] | None:
    """`+` of sets is their union; of lists that are maps, items of the right replace those with their key."""
    kind = _list_kind(nodes[:1]) if node.name == "_+_" else None
    if kind is None or kind.schema is None:
        return None
    schema = kind.schema

    def union(left: Any, right: Any) -> list[Any]:
        if not isinstance(left, list) or not isinstance(right, list):
            raise CelError(NO_OVERLOAD)
        if schema.list_type == "set":
            merged = list(left)
            merged += [item for item in right if not any(equals(item, other) for other in left)]
            return merged
        newer = {map_key(schema, item): item for item in right}
        merged = [newer.pop(map_key(schema, item), item) for item in left]
        return [*merged, *newer.values()]

    return union


def _ordering(test: Callable[[int], bool], plain: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def build(nodes: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
        left, right = arguments
        kinds = {node.type.kind for node in nodes}
        if kinds in ({"int"}, {"string"}):
            return lambda frame: plain(left(frame), right(frame))
        return lambda frame: test(compare(left(frame), right(frame)))

    return build


def _size(nodes: list[Node], arguments: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    operand = arguments[0]
    if nodes[0].type.kind in ("string", "list", "map"):
        return lambda frame: len(operand(frame))
    return lambda frame: size(operand(frame))


_SPECIAL: Final[dict[str, Callable[[list[Node], list[Callable[[Frame], Any]]], Callable[[Frame], Any]]]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _choose,
    "!_": _not,
    "_==_": _equal,
    "_!=_": _unequal,
    "_<_": _ordering(lambda order: order < 0, lambda one, other: bool(one < other)),
    "_<=_": _ordering(lambda order: order <= 0, lambda one, other: bool(one <= other)),
    "_>_": _ordering(lambda order: order > 0, lambda one, other: bool(one > other)),
    "_>=_": _ordering(lambda order: order >= 0, lambda one, other: bool(one >= other)),
    "size": _size,
}
