"""Running the rules of a schema over an object.

The rules of a schema are compiled once, at first use, into a tree that follows the schema only to where rules are.
A rule that mentions `oldSelf` runs only if there is an old value (or its author asked for an optional one); a rule
that fails on a value an update did not change only warns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubeserver import patience
from kubeserver.cel import types as t
from kubeserver.cel.costs import head_start, least_cost
from kubeserver.cel.estimates import estimated_cost
from kubeserver.cel.evaluation import adapted, compile_closure
from kubeserver.cel.paths import PathError, field_path
from kubeserver.cel.type_check import CompileError, compile_tree
from kubeserver.cel.values import NO_OVERLOAD, NONE, CelError, CostError, Optional
from kubeserver.schemas.correlation import Correlated, keyed_items, map_key
from kubeserver.schemas.traits import RULES, traits_of
from kubeserver.wire.goformat import quote
from kubeserver.wire.status import OMITTED, FieldError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.cel.extents import Extent
    from kubeserver.schemas.schema import Schema, ValidationRule

BUDGET: Final = 10_000_000  # of all rules together, on one object
_LONGEST_MESSAGE: Final = 5 * 1024
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_NO_BUDGET_FOR_MESSAGE: Final = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)


@dataclass(slots=True)
class CompiledRule:
    """A rule ready to run, or the words for why it never will."""

    rule: ValidationRule
    program: Callable[[list[Any]], Any] | None = None
    message: Callable[[list[Any]], Any] | None = None
    uses_old: bool = False
    path: str = ""  # below the value, where the author wants the failure shown
    problem: str = ""
    message_problem: str = ""
    # what one evaluation costs at least
    start: int = 0
    message_start: int = 0
    # what one evaluation may cost at worst, if that was asked for
    cost: int = 0
    message_cost: int = 0

    @property
    def words(self) -> str:
        return self.rule.message.strip() or self.rule.rule.strip()


@dataclass(slots=True)
class RuleNode:
    schema: Schema
    type: t.Type
    rules: tuple[CompiledRule, ...] = ()
    properties: dict[str, RuleNode] = field(default_factory=dict)
    additional: RuleNode | None = None
    items: RuleNode | None = None


def compile_rules(
    rules: tuple[ValidationRule, ...], kind: t.Type, schema: Schema, extent: Extent | None = None
) -> tuple[CompiledRule, ...]:
    """The rules of one node; what is wrong with one is kept with it, and with an extent, what it may cost."""
    return tuple(_compile(rule, kind, schema, extent) for rule in rules)


def _compile(rule: ValidationRule, kind: t.Type, schema: Schema, extent: Extent | None) -> CompiledRule:
    compiled = CompiledRule(rule)
    if not rule.rule.strip():
        return compiled
    variables = {"self": kind, "oldSelf": t.optional_of(kind) if rule.optional_old_self else kind}
    try:
        tree, used = compile_tree(rule.rule, variables)
    except CompileError as problem:
        compiled.problem = f"compilation failed: {problem}"
        return compiled
    if tree.type.kind != "bool":
        compiled.problem = "cel expression must evaluate to a bool"
        return compiled
    compiled.uses_old = "oldSelf" in used
    compiled.program = compile_closure(tree, ["self", "oldSelf"])
    compiled.start = least_cost(tree)
    if extent is not None:
        compiled.cost = estimated_cost(tree, extent)
    if rule.message_expression:
        _compile_message(compiled, variables, extent)
    if rule.field_path and not compiled.message_problem:
        try:
            compiled.path, _ = field_path(rule.field_path, schema)
        except PathError:
            compiled.path = ""
    return compiled


def _compile_message(compiled: CompiledRule, variables: dict[str, t.Type], extent: Extent | None) -> None:
    try:
        tree, _ = compile_tree(compiled.rule.message_expression, variables)
    except CompileError as problem:
        compiled.message_problem = f"messageExpression compilation failed: {problem}"
        return
    if tree.type.kind != "string":
        compiled.message_problem = "messageExpression must evaluate to a string"
        return
    compiled.message = compile_closure(tree, ["self", "oldSelf"])
    compiled.message_start = least_cost(tree)
    if extent is not None:
        compiled.message_cost = estimated_cost(tree, extent)


def _node(schema: Schema, kind: t.Type | None) -> RuleNode | None:
    """The rules in and below a schema, if there are any."""
    if not traits_of(schema) & RULES or kind is None:
        return None
    node = RuleNode(schema, kind, compile_rules(schema.rules, kind, schema))
    for name, child in schema.properties.items():
        known_as = t.escaped(name)
        if known_as is not None:
            found = _node(child, kind.fields.get(known_as))
        else:
            found = _node(child, t.of_schema(child, root=child.embedded_resource))
        if found is not None:
            node.properties[name] = found
    inner = kind.parameters[-1] if kind.parameters else None
    if schema.additional is not None:
        node.additional = _node(schema.additional, inner)
    if schema.items is not None:
        node.items = _node(schema.items, inner)
    return node


def check_rules(schema: Schema, obj: Any, old: Any = None, warnings: list[str] | None = None) -> list[FieldError]:
    """What the rules of a schema have against an object."""
    if schema.program is None:
        schema.program = _node(schema, t.of_schema(schema, root=True))
    if schema.program is None:
        return []
    run = _Run(warnings)
    correlation = None if old is None else Correlated(schema, obj, old)
    run.node(schema.program, obj, _Place("", old, correlation, None))
    return run.errors


def check_value(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """What the rules of a schema have against a value that stands alone, such as a default: new, and unchanged."""
    node = _node(schema, t.of_schema(schema, root=schema.embedded_resource))
    if node is None:
        return []
    for old in (value, None):
        run = _Run(None)
        run.node(node, value, _Place(path, old, None, None))
        if run.errors:
            return run.errors
    return []


class _Place(NamedTuple):
    """Where a run stands: the path, the old value, and what tells whether the value here has changed."""

    path: str
    old: Any
    same: Correlated | None  # correlates the value here
    nearest: Correlated | None  # correlates the closest container around it that has an old value

    def key(self, name: str, path: str) -> _Place:
        old = self.old.get(name) if isinstance(self.old, dict) else None
        here = None if self.same is None else self.same.key(name)
        return _Place(path, old, here, self.same or self.nearest)

    def unchanged(self) -> bool:
        if self.same is not None:
            return self.same.equal()
        return self.nearest is not None and self.nearest.equal()


class _Run:
    def __init__(self, warnings: list[str] | None) -> None:
        self.errors: list[FieldError] = []
        self._warnings = warnings
        self._budget = BUDGET

    def node(self, node: RuleNode, value: Any, place: _Place) -> None:
        if value is None or self._budget < 0:
            return
        if node.rules:
            self._rules(node, value, place)
        if isinstance(value, list):
            if node.items is not None:
                self._list(node, node.items, value, place)
        elif isinstance(value, dict):
            path = place.path
            if node.additional is not None:
                for key, member in value.items():
                    self.node(node.additional, member, place.key(key, f"{path}[{key}]"))
            for key, child in node.properties.items():
                if key in value:
                    self.node(child, value[key], place.key(key, f"{path}.{key}" if path else key))

    def _list(self, node: RuleNode, item: RuleNode, value: list[Any], place: _Place) -> None:
        former = keyed_items(node.schema, place.old) if isinstance(place.old, list) else {}
        for index, each in enumerate(value):
            before = former.get(map_key(node.schema, each)) if former else None
            here = None if place.same is None else place.same.item(index)
            self.node(item, each, _Place(f"{place.path}[{index}]", before, here, place.same or place.nearest))

    def _rules(self, node: RuleNode, value: Any, place: _Place) -> None:
        kind, where, old = node.schema.type, place.path or "<nil>", place.old
        try:
            seen = adapted(node.type, value)
            seen_old = None if old is None else adapted(node.type, old)
        except CelError as problem:
            self.errors.append(FieldError("FieldValueInvalid", where, str(problem), kind))
            return
        for rule in node.rules:
            if rule.problem:
                detail = f"rule compile error: {rule.problem}"
                self.errors.append(FieldError("FieldValueInvalid", where, detail, kind))
                continue
            optional = bool(rule.rule.optional_old_self)
            if rule.program is None or (rule.uses_old and old is None and not optional):
                continue
            former: Any = seen_old
            if optional:
                former = NONE if old is None else Optional(seen_old, present=True)
            frame: list[Any] = [rule.start, seen, former]
            outcome = self._evaluate(rule, frame)
            if outcome:
                self.errors.append(FieldError("FieldValueInvalid", where, outcome, kind))
            elif outcome is not None:
                self._failed(rule, value, place, frame, kind)
            if self._budget < 0:
                return

    def _failed(self, rule: CompiledRule, value: Any, place: _Place, frame: list[Any], kind: str) -> None:
        path = place.path or "<nil>"
        if rule.path:
            path = f"{place.path}.{rule.path}" if place.path else rule.path
        detail = self._message(rule, frame)
        if self._budget < 0:
            error = FieldError("FieldValueInvalid", path, detail, kind)
        else:
            error = _failure(rule, path, OMITTED if isinstance(value, (dict, list)) else value, detail)
        if rule.uses_old or not place.unchanged():
            self.errors.append(error)
        elif self._warnings is not None:
            self._warnings.append(error.text())

    def _message(self, rule: CompiledRule, frame: list[Any]) -> str:
        """What to say about a value that a rule is against, or that there was not enough budget to find out."""
        if rule.message is not None:
            ahead = head_start()
            own = [rule.message_start + ahead, *frame[1:3]]
            try:
                text = rule.message(own)
            except CostError:
                if ahead:
                    raise patience.Costly from None
                self._budget = -1
                shown = quote(rule.rule.message_expression)
                return (
                    "no further validation rules will be run due to call cost exceeds limit "
                    f"for messageExpression: {shown}"
                )
            except (CelError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
                text = ""
            patience.spend(own[0] - ahead)
            self._budget -= own[0] - ahead
            if self._budget < 0:
                return _NO_BUDGET_FOR_MESSAGE
            if isinstance(text, str):
                text = text.strip()
                if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
                    return text
        return rule.rule.message.strip() or f"failed rule: {rule.words}"

    def _evaluate(self, rule: CompiledRule, frame: list[Any]) -> str | None:
        """None if the rule holds, empty if not, and otherwise why it could not be asked."""
        assert rule.program is not None
        outcome: str | None
        ahead = head_start()
        frame[0] += ahead
        try:
            outcome = None if rule.program(frame) is True else ""
        except CostError as problem:
            if ahead:
                raise patience.Costly from None
            self._budget = -1
            return (
                f"'{problem}': no further validation rules will be run due to call cost exceeds limit "
                f"for rule: {rule.words}"
            )
        except CelError as problem:
            outcome = f"{problem} evaluating rule: {rule.words}"
            if str(problem) == NO_OVERLOAD:
                outcome = _no_overload(rule)
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            # A dynamic value reached a function that is not made for it.
            outcome = _no_overload(rule)
        frame[0] -= ahead
        patience.spend(frame[0])
        self._budget -= frame[0]
        return _NO_BUDGET if self._budget < 0 else outcome


def _no_overload(rule: CompiledRule) -> str:
    return (
        f"'{NO_OVERLOAD}': call arguments did not match a supported operator, function or macro "
        f"signature for rule: {rule.words}"
    )


def _failure(rule: CompiledRule, path: str, value: Any, detail: str) -> FieldError:
    reason = rule.rule.reason
    if reason == "FieldValueForbidden":
        return FieldError("FieldValueForbidden", path, detail)
    if reason == "FieldValueRequired":
        return FieldError("FieldValueRequired", path, detail)
    if reason == "FieldValueDuplicate":
        return FieldError("FieldValueDuplicate", path, "", value)
    return FieldError("FieldValueInvalid", path, detail, value)
