"""Macros written out as the definition of CEL has them.

`list.all(x, p)` is, to the letter, a fold with an accumulator, a condition and a step. `evaluation` has quicker ways,
but what a rule is estimated to cost (`estimates.py`) is what that fold would cost, step by step, so it must be there
to be counted. Nothing else should need this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubeserver.cel import types as t
from kubeserver.cel.syntax import Call, Fold, ListLiteral, Literal, MapLiteral, Name, Node, Select, dotted_name

ACCUMULATOR: Final = "@result"
_SORTED: Final = "@__sortBy_input__"


@dataclass(slots=True)
class Comprehension(Node):
    """For each item of `over`: stop unless `condition`, then accumulate `step`; in the end, give `result`."""

    over: Node
    variables: tuple[str, ...]
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


@dataclass(slots=True)
class Binding(Node):
    """One value under a name, for the sake of one expression."""

    name: str
    value: Node
    result: Node


def expanded(node: Node) -> Node:
    """A checked tree without macros."""
    if isinstance(node, Select):
        return _select(node)
    if isinstance(node, Call):
        target = None if node.target is None else expanded(node.target)
        call = Call(node.at, node.name, target, [expanded(argument) for argument in node.arguments])
        call.signatures = node.signatures
        return _typed(call, node.type)
    if isinstance(node, ListLiteral):
        return _typed(ListLiteral(node.at, [expanded(item) for item in node.items], node.optional), node.type)
    if isinstance(node, MapLiteral):
        entries = [(expanded(key), expanded(value), optional) for key, value, optional in node.entries]
        return _typed(MapLiteral(node.at, entries), node.type)
    if isinstance(node, Fold):
        return _fold(node)
    return node


def _typed(node: Node, kind: t.Type) -> Node:
    node.type = kind
    return node


def _select(node: Select) -> Node:
    if node.operand.type is None:
        return _typed(Name(node.at, dotted_name(node) or ""), node.type)  # the name of a type, such as net.IP
    operand = expanded(node.operand)
    if node.optional and not node.test:
        return _call("_?._", node.type, operand, _literal(node.name))
    return _typed(Select(node.at, operand, node.name, test=node.test), node.type)


def _literal(value: object) -> Node:
    kinds = {bool: t.BOOL, int: t.INT, str: t.STRING}
    return _typed(Literal(0, value), kinds[value.__class__])


def _call(name: str, kind: t.Type, *arguments: Node, target: Node | None = None) -> Node:
    call = Call(0, name, target, list(arguments))
    operands = [*([] if target is None else [target]), *arguments]
    call.signatures = (tuple(operand.type for operand in operands),)
    return _typed(call, kind)


def _list(kind: t.Type, *items: Node) -> Node:
    return _typed(ListLiteral(0, list(items), [False] * len(items)), kind)


def _fold(node: Fold) -> Node:
    target = expanded(node.target)
    steps = [expanded(step) for step in node.steps]
    if node.macro in ("optMap", "optFlatMap"):
        return _optional(node, target, steps[0])
    if node.macro == "sortBy":
        return _sort_by(node, target, steps[0])
    return _comprehension(node, target, steps)


def _comprehension(node: Fold, over: Node, steps: list[Node]) -> Node:
    macro, kind = node.macro, node.type
    yes = _literal(True)
    if macro in ("all", "exists"):
        so_far = _accumulator(t.BOOL)
        going = so_far if macro == "all" else _call("!_", t.BOOL, so_far)
        step = _call("_&&_" if macro == "all" else "_||_", t.BOOL, so_far, steps[0])
        condition = _call("@not_strictly_false", t.BOOL, going)
        return _over(node, over, _literal(macro == "all"), condition, step, so_far)
    if macro in ("exists_one", "existsOne"):
        so_far, one = _accumulator(t.INT), _literal(1)
        counted = _call("_+_", t.INT, so_far, one)
        step = _call("_?_:_", t.INT, steps[0], counted, so_far)
        return _over(node, over, _literal(0), yes, step, _call("_==_", t.BOOL, so_far, one))
    so_far = _accumulator(kind)
    initial: Node = _list(kind)
    if macro in ("transformMap", "transformMapEntry"):
        initial = _typed(MapLiteral(0, []), kind)
        keys = [_name(node.variables[0].name, t.DYN)] if macro == "transformMap" else []
        step = _call("cel.@mapInsert", kind, so_far, *keys, steps[-1])
    else:
        added = _name(node.variables[0].name, kind.parameters[0]) if macro == "filter" else steps[-1]
        step = _call("_+_", kind, so_far, _list(kind, added))
    if macro == "filter" or len(steps) == 2:
        step = _call("_?_:_", kind, steps[0], step, so_far)
    return _over(node, over, initial, yes, step, so_far)


def _over(node: Fold, over: Node, initial: Node, condition: Node, step: Node, result: Node) -> Node:
    names = tuple(variable.name for variable in node.variables)
    return _typed(Comprehension(node.at, over, names, ACCUMULATOR, initial, condition, step, result), node.type)


def _name(name: str, kind: t.Type) -> Node:
    return _typed(Name(0, name), kind)


def _accumulator(kind: t.Type) -> Node:
    return _name(ACCUMULATOR, kind)


def _optional(node: Fold, target: Node, step: Node) -> Node:
    held = target.type.parameters[0] if target.type.parameters else t.DYN
    value = _call("value", held, target=target)
    made = _typed(Binding(node.at, node.variables[0].name, value, step), step.type)
    if node.macro == "optMap":
        made = _call("optional.of", node.type, made)
    present = _call("hasValue", t.BOOL, target=target)
    return _call("_?_:_", node.type, present, made, _call("optional.none", node.type))


def _sort_by(node: Fold, target: Node, key: Node) -> Node:
    given = _name(_SORTED, target.type)
    keys = t.list_of(key.type)
    so_far = _accumulator(keys)
    step = _call("_+_", keys, so_far, _list(keys, key))
    mapped = _over(node, given, _list(keys), _literal(True), step, so_far)
    mapped.type = keys
    ordered = _call("@sortByAssociatedKeys", node.type, mapped, target=given)
    return _typed(Binding(node.at, _SORTED, target, ordered), node.type)
