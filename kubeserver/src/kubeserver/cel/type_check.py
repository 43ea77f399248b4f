"""Finding out, before any object comes, whether an expression can work.

`check` gives every node of a tree its type, from the variables up, and collects what is wrong in the words of
cel-go: undeclared names, undefined fields, calls that match no overload. A node that is wrong becomes dynamic, so
that one mistake is reported once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeserver.cel import types as t
from kubeserver.cel.library import TYPE_NAMES, Overload, declarations
from kubeserver.cel.syntax import (
    Call,
    Fold,
    ListLiteral,
    Literal,
    MapLiteral,
    Name,
    Node,
    ParseError,
    Select,
    UInt,
    dotted_name,
    parse,
)
from kubeserver.cel.values import parse_duration, parse_timestamp
from kubeserver.schemas.regex import PatternError, compile_go

if TYPE_CHECKING:
    from collections.abc import Mapping


class CompileError(Exception):
    """An expression that cannot work; the text shows where, as cel-go does."""


def compile_tree(text: str, variables: Mapping[str, t.Type]) -> tuple[Node, set[str]]:
    """The typed tree of an expression and the variables it uses; raises CompileError."""
    checker = _Checker(dict(variables))
    try:
        tree = parse(text)
        checker.check(tree)
    except ExceptionGroup as group:
        found = [exception for exception in group.exceptions if isinstance(exception, ParseError)]
        raise CompileError(
            "\n".join(_displayed(text, parse_error.at, parse_error.message) for parse_error in found)
        ) from None
    except RecursionError:
        raise CompileError(_displayed(text, 0, "expression recursion limit exceeded: 250")) from None
    if checker.problems:
        shown = dict.fromkeys(_displayed(text, at, message) for at, message in sorted(checker.problems))
        raise CompileError("\n".join(shown))
    return tree, checker.used


def _displayed(text: str, at: int, message: str) -> str:
    before = text[:at]
    line = before.count("\n")
    column = at - (before.rfind("\n") + 1)
    source = text.split("\n")[line].replace("\t", " ")
    pointer = "".join("." if character.isascii() else "\uff0e" for character in source[:column])
    mark = "\uff3e" if source[column : column + 1] and not source[column].isascii() else "^"
    return f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {source}\n | {pointer}{mark}"


_LITERALS = {bool: t.BOOL, UInt: t.UINT, int: t.INT, float: t.DOUBLE, str: t.STRING, bytes: t.BYTES}


_CONDITIONAL = frozenset({"filter", "exists_one", "existsOne"})


class _Checker:
    def __init__(self, variables: dict[str, t.Type]) -> None:
        self._variables = variables
        self._declared = set(variables)
        self.problems: list[tuple[int, str]] = []
        self.used: set[str] = set()

    def _wrong(self, at: int, message: str) -> t.Type:
        self.problems.append((at, message))
        return t.DYN

    def check(self, node: Node) -> t.Type:
        node.type = self._type(node)
        found: t.Type = node.type
        return found

    def _type(self, node: Node) -> t.Type:
        if isinstance(node, Literal):
            return t.NULL if node.value is None else _LITERALS[node.value.__class__]
        if isinstance(node, Name):
            return self._name(node.at, node.name)
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

    def _name(self, at: int, name: str) -> t.Type:
        if name in self._variables:
            if name in self._declared:
                self.used.add(name)
            return self._variables[name]
        if name in TYPE_NAMES:
            return t.type_of(TYPE_NAMES[name])
        return self._wrong(at, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> t.Type:
        dotted = dotted_name(node)
        if dotted is not None and dotted in TYPE_NAMES and dotted.partition(".")[0] not in self._variables:
            return t.type_of(TYPE_NAMES[dotted])
        operand = self.check(node.operand)
        inner = operand.parameters[0] if operand.kind == "optional_type" else operand
        if inner.kind == "object":
            found = inner.fields.get(node.name)
            if found is None:
                return self._wrong(node.at, f"undefined field '{node.name}'")
        elif inner.kind == "map":
            found = inner.parameters[1]
        elif inner.kind in ("dyn", "A", "B"):
            found = t.DYN
        else:
            return self._wrong(node.at, f"type '{inner}' does not support field selection")
        if node.test:
            return t.BOOL
        if node.optional or operand.kind == "optional_type":
            return found if found.kind == "optional_type" else t.optional_of(found)
        return found

    def _call(self, node: Call) -> t.Type:
        known = declarations()
        if node.target is not None:
            namespace = dotted_name(node.target)
            if namespace is not None and f"{namespace}.{node.name}" in known and namespace not in self._variables:
                # `sets.contains(a, b)` is a function with a dot in its name.
                node.name, node.target = f"{namespace}.{node.name}", None
        overloads = known.get(node.name)
        if overloads is None:
            # As cel-go: what an unknown function is given is not looked at.
            return self._wrong(node.at, f"undeclared reference to '{node.name}' (in container '')")
        given = [] if node.target is None else [self.check(node.target)]
        given += [self._argument(node, argument) for argument in node.arguments]
        if node.name in ("_&&_", "_||_"):
            for argument, kind in zip(node.arguments, given, strict=True):
                self._boolean(argument, kind)
            return t.BOOL
        node.signatures, found = self._resolve(overloads, given, member=node.target is not None)
        if found is None:
            return self._wrong(
                node.at, f"found no matching overload for '{node.name}' applied to '{_signature(node, given)}'"
            )
        self._look_at_literals(node)
        return found

    def _boolean(self, node: Node, found: t.Type) -> None:
        if found.kind not in ("bool", "dyn"):
            self._wrong(node.at, f"expected type 'bool' but found '{found}'")

    def _argument(self, call: Call, argument: Node) -> t.Type:
        if call.name == "format" and isinstance(argument, ListLiteral):
            # What is formatted may be of many kinds, unlike the items of any other list that is written out.
            for node in argument.items:
                self.check(node)
            argument.type = anything = t.list_of(t.DYN)
            return anything
        return self.check(argument)

    @staticmethod
    def _resolve(
        overloads: tuple[Overload, ...], given: list[t.Type], *, member: bool
    ) -> tuple[tuple[tuple[t.Type, ...], ...], t.Type | None]:
        """The parameters of the overloads that fit, and what a call of them gives."""
        signatures: list[tuple[t.Type, ...]] = []
        results: list[t.Type] = []
        for overload in overloads:
            if overload.member != member or len(overload.parameters) != len(given):
                continue
            bindings = t.Bindings()
            if all(bindings.assignable(one, other) for one, other in zip(overload.parameters, given, strict=True)):
                signatures.append(overload.parameters)
                results.append(bindings.resolved(overload.result))
        if not results:
            return (), None
        # With dynamic arguments several overloads may fit; what they disagree about is dynamic, too.
        first = results[0]
        return tuple(signatures), first if all(str(result) == str(first) for result in results) else t.DYN

    def _look_at_literals(self, node: Call) -> None:
        """Texts that are converted at once are checked at once."""
        arguments = node.arguments
        if not arguments or not isinstance(arguments[-1], Literal) or not isinstance(arguments[-1].value, str):
            return
        text, at = arguments[-1].value, arguments[-1].at
        if node.name == "duration" and parse_duration(text) is None:
            self._wrong(at, "invalid duration argument")
        elif node.name == "timestamp" and parse_timestamp(text) is None:
            self._wrong(at, "invalid timestamp argument")
        elif node.name == "matches":
            try:
                compile_go(text)
            except PatternError:
                self._wrong(at, "invalid matches argument")

    def _list(self, node: ListLiteral) -> t.Type:
        item: t.Type | None = None
        for each, optional in zip(node.items, node.optional, strict=True):
            found = self.check(each)
            if optional:
                found = self._unwrapped(each, found)
            item = self._alike(each.at, item, found)
        return t.list_of(item if item is not None else t.A)

    def _map(self, node: MapLiteral) -> t.Type:
        key: t.Type | None = None
        value: t.Type | None = None
        for key_node, value_node, optional in node.entries:
            key = self._alike(key_node.at, key, self.check(key_node))
            found = self.check(value_node)
            value = self._alike(value_node.at, value, self._unwrapped(value_node, found) if optional else found)
        return t.map_of(key or t.A, value or t.B)

    def _unwrapped(self, node: Node, found: t.Type) -> t.Type:
        if found.kind == "optional_type":
            return found.parameters[0]
        if found.kind != "dyn":
            self._wrong(node.at, f"expected type 'optional_type({found})' but found '{found}'")
        return found

    def _alike(self, at: int, before: t.Type | None, found: t.Type) -> t.Type:
        if before is None:
            return found
        both = t.joined(before, found)
        if both is None:
            return self._wrong(at, f"expected type '{before}' but found '{found}'")
        return both

    def _fold(self, node: Fold) -> t.Type:
        target = self.check(node.target)
        macro = node.macro
        if macro in ("optMap", "optFlatMap"):
            inner = target.parameters[0] if target.kind == "optional_type" else t.DYN
            if target.kind not in ("optional_type", "dyn"):
                return self._wrong(node.at, f"found no matching overload for 'hasValue' applied to '{target}.()'")
            return self._optional_fold(node, inner)
        kinds = self._variable_types(node, target)
        with _Scope(self._variables, self._declared, node.variables, kinds):
            steps = [self.check(step) for step in node.steps]
        result = self._fold_result(macro, target, kinds, steps)
        if macro in ("all", "exists"):
            self._boolean(node.steps[0], steps[0])
        elif steps[0].kind not in ("bool", "dyn") and (len(steps) == 2 or macro in _CONDITIONAL):
            branch = "int" if macro in ("exists_one", "existsOne") else str(result)
            signature = f"({steps[0]}, {branch}, {branch})"
            self._wrong(node.at, f"found no matching overload for '_?_:_' applied to '{signature}'")
        return result

    @staticmethod
    def _fold_result(macro: str, target: t.Type, kinds: list[t.Type], steps: list[t.Type]) -> t.Type:
        if macro == "filter":
            return t.list_of(kinds[0])
        if macro == "sortBy":
            return target
        if macro in ("map", "transformList"):
            return t.list_of(steps[-1])
        if macro == "transformMap":
            return t.map_of(kinds[0], steps[-1])
        if macro == "transformMapEntry":
            return steps[-1] if steps[-1].kind == "map" else t.DYN
        return t.BOOL

    def _optional_fold(self, node: Fold, inner: t.Type) -> t.Type:
        with _Scope(self._variables, self._declared, node.variables, [inner]):
            found = self.check(node.steps[0])
        return found if node.macro == "optFlatMap" else t.optional_of(found)

    def _variable_types(self, node: Fold, target: t.Type) -> list[t.Type]:
        two = len(node.variables) == 2
        if target.kind == "list":
            return [t.INT, target.parameters[0]] if two else [target.parameters[0]]
        if target.kind == "map":
            return [target.parameters[0], target.parameters[1]] if two else [target.parameters[0]]
        if target.kind not in ("dyn", "A", "B"):
            self._wrong(
                node.target.at,
                f"expression of type '{target}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        return [t.DYN] * len(node.variables)


class _Scope:
    """Variables that exist inside a macro; they may hide others."""

    def __init__(
        self, variables: dict[str, t.Type], declared: set[str], names: list[Name], kinds: list[t.Type]
    ) -> None:
        self._variables = variables
        self._declared = declared
        self._new = {name.name: kind for name, kind in zip(names, kinds, strict=True)}

    def __enter__(self) -> None:
        self._before = dict(self._variables)
        self._hidden = self._declared & self._new.keys()
        self._variables.update(self._new)
        self._declared -= self._hidden

    def __exit__(self, *_: object) -> None:
        self._variables.clear()
        self._variables.update(self._before)
        self._declared |= self._hidden


def _signature(node: Call, given: list[t.Type]) -> str:
    if node.target is None:
        return f"({', '.join(str(item) for item in given)})"
    return f"{given[0]}.({', '.join(str(item) for item in given[1:])})"
