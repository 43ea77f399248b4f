"""Which objects a list, a watch or a deletecollection is about.

A selector is parsed once per request and tested on every object, so parsing does all the thinking: what it
leaves behind is a tuple of small tests. The language and its refusals are Kubernetes': `a in (b, c), !d, e>3`
for labels, `spec.nodeName=x,metadata.name!=y` for fields. A text that Kubernetes accepts oddly (`!a=b` is an
error but `a in ()` means "a is empty") is accepted as oddly here.

An unparsable selector is a 400. A selector must never be ignored: a deletecollection would then delete everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kubeserver.wire.goformat import quote
from kubeserver.wire.names import label_key, label_value
from kubeserver.wire.status import FieldError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeserver.resources import Resource

Json = dict[str, Any]

_OPERATORS: Final = ("in", "notin", "=", "==", "!=", "gt", "lt")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_SPECIAL: Final = frozenset("=!(),><")
_BLANK: Final = frozenset(" \t\r\n")
_ENDS_WORD: Final = _SPECIAL | _BLANK | {"\0"}


class _RefusedError(Exception):
    """What is wrong with a selector; becomes a 400 at the edge of this module."""


@dataclass(slots=True, frozen=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str  # one of _OPERATORS, "exists" or "!"
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator in {"exists", "!"}:
            return f"!{self.key}" if self.operator == "!" else self.key
        listed = ",".join(sorted(self.values))
        if self.operator in {"in", "notin"}:
            return f"{self.key} {self.operator} ({listed})"
        return f"{self.key}{ {'gt': '>', 'lt': '<'}.get(self.operator, self.operator) }{listed}"

    def test(self) -> Callable[[Mapping[str, str]], bool]:
        """The condition as a function of an object's labels."""
        key, values = self.key, frozenset(self.values)
        first = self.values[0] if self.values else ""
        match self.operator:
            case "exists":
                return lambda labels: key in labels
            case "!":
                return lambda labels: key not in labels
            case "=" | "==":
                return lambda labels: labels.get(key) == first
            case "!=":
                return lambda labels: labels.get(key) != first
            case "in":
                return lambda labels: labels.get(key) in values
            case "notin":
                return lambda labels: labels.get(key) not in values
            case "gt":
                bound = int(first)
                return lambda labels: (number := _integer(labels.get(key, ""))) is not None and number > bound
            case _:
                bound = int(first)
                return lambda labels: (number := _integer(labels.get(key, ""))) is not None and number < bound


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@dataclass(slots=True, frozen=True)
class LabelSelector:
    """All of `requirements` together. `nothing` is the selector that was never given: it matches no object."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    _tests: tuple[Callable[[Mapping[str, str]], bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tests", tuple(requirement.test() for requirement in self.requirements))

    @property
    def everything(self) -> bool:
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        for test in self._tests:  # noqa: SIM110 - a generator expression costs more than the tests
            if not test(labels):
                return False
        return True

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)


def _requirement(key: str, operator: str, values: list[str]) -> Requirement:
    """A checked requirement; texts of all that is wrong with it otherwise."""
    errors = []
    if wrong := label_key(key):
        errors.append(_invalid("key", key, "; ".join(wrong)))
    if operator in {"in", "notin"} and not values:
        errors.append(_invalid("values", values, "for 'in', 'notin' operators, values set can't be empty"))
    if operator in {"exists", "!"} and values:
        errors.append(_invalid("values", values, "values set must be empty for exists and does not exist"))
    if operator in {"gt", "lt"}:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors += [
            _invalid(f"values[{index}]", value, detail) for index, value in enumerate(values) if _integer(value) is None
        ]
    for index, value in enumerate(values):
        if wrong := label_value(value):
            errors.append(_invalid(f"values[{index}][{key}]", value, "; ".join(wrong)))
    if errors:
        unique = list(dict.fromkeys(errors))
        raise _RefusedError(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
    return Requirement(key, operator, tuple(values))


def _invalid(path: str, value: Any, detail: str) -> str:
    return FieldError("FieldValueInvalid", path, detail, value).text()


_REMEMBERED: Final = 1024  # the longest text whose selector is remembered: one of 60 kB takes 10 MB


def parse_label_selector(text: str) -> LabelSelector:
    """The selector of a `labelSelector` query parameter; ApiError 400 if it is none."""
    return _remembered(text) if len(text) <= _REMEMBERED else _parsed(text)


def _parsed(text: str) -> LabelSelector:
    try:
        requirements = _Parser(text).parse()
    except _RefusedError as refused:
        raise bad_request(str(refused)) from None
    requirements.sort(key=lambda requirement: requirement.key)
    return LabelSelector(tuple(requirements))


_remembered: Final = lru_cache(maxsize=256)(_parsed)

_JSON_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def label_selector_from_json(selector: Json | None) -> LabelSelector:
    """The selector of a `metav1.LabelSelector`: absent selects nothing, empty selects everything."""
    if selector is None:
        return NOTHING
    try:
        requirements = [_requirement(key, "=", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
        for expression in selector.get("matchExpressions") or []:
            operator = expression.get("operator", "")
            if operator not in _JSON_OPERATORS:
                raise _RefusedError(f"{quote(operator)} is not a valid label selector operator")
            values = list(expression.get("values") or [])
            requirements.append(_requirement(expression.get("key", ""), _JSON_OPERATORS[operator], values))
    except _RefusedError as refused:
        raise bad_request(str(refused)) from None
    requirements.sort(key=lambda requirement: requirement.key)
    return LabelSelector(tuple(requirements))


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, literal) pairs, where kind is the operator itself, "word" or "end"."""
    found: list[tuple[str, str]] = []
    position = 0
    while True:
        while position < len(text) and text[position] in _BLANK:
            position += 1
        if position >= len(text) or text[position] == "\0":
            found.append(("end", ""))
            return found
        start = position
        if text[position] in _SPECIAL:
            position += 2 if text[position : position + 2] in {"==", "!="} else 1
            found.append((text[start:position], text[start:position]))
        else:
            while position < len(text) and text[position] not in _ENDS_WORD:
                position += 1
            word = text[start:position]
            found.append((word if word in {"in", "notin"} else "word", word))
        if text[position : position + 1] == "\0":
            position += 1  # as Kubernetes reads it: this ends a token, and the text only where one could begin


class _Parser:
    """Recursive descent over the tokens. `in` and `notin` are operators only where one is due."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, literal = self._peek()
            if kind == "end":
                return requirements
            if kind not in {"word", "!"}:
                raise _RefusedError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except _RefusedError as refused:
                raise _RefusedError(f"unable to parse requirement: {refused}") from None
            kind, literal = self._take()
            if kind == "end":
                return requirements
            if kind != ",":
                raise _RefusedError(f"found '{literal}', expected: ',' or 'end of string'")
            kind, literal = self._peek()
            if kind not in {"word", "!"}:
                raise _RefusedError(f"found '{literal}', expected: identifier after ','")

    def _peek(self, *, operator: bool = False) -> tuple[str, str]:
        kind, literal = self._tokens[self._next]
        return ("word" if kind in {"in", "notin"} and not operator else kind), literal

    def _take(self, *, operator: bool = False) -> tuple[str, str]:
        found = self._peek(operator=operator)
        self._next += 1
        return found

    def _requirement(self) -> Requirement:
        kind, literal = self._take()
        negated = kind == "!"
        if negated:
            kind, literal = self._take()
        if kind != "word":
            raise _RefusedError(f"found '{literal}', expected: identifier")
        if wrong := label_key(literal):
            raise _RefusedError(_invalid("<nil>", literal, "; ".join(wrong)))
        if negated:
            return _requirement(literal, "!", [])
        if self._peek()[0] in {"end", ","}:
            return _requirement(literal, "exists", [])
        operator = self._operator()
        values = self._values() if operator in {"in", "notin"} else {self._exact_value()}
        return _requirement(literal, operator, sorted(values))

    def _operator(self) -> str:
        kind, literal = self._take(operator=True)
        operator = {">": "gt", "<": "lt"}.get(kind, kind)
        if kind not in {"in", "notin", "=", "==", "!=", ">", "<"}:
            raise _RefusedError(f"found '{literal}', expected: {', '.join(_OPERATORS)}")
        return operator

    def _exact_value(self) -> str:
        if self._peek()[0] in {"end", ","}:
            return ""
        kind, literal = self._take()
        if kind != "word":
            raise _RefusedError(f"found '{literal}', expected: identifier")
        return literal

    def _values(self) -> set[str]:
        kind, literal = self._take()
        if kind != "(":
            raise _RefusedError(f"found '{literal}' expected: '('")
        kind, literal = self._peek()
        if kind == ")":
            self._take()
            return {""}
        if kind not in {"word", ","}:
            raise _RefusedError(f"found '{literal}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            kind, literal = self._take()
            following, next_literal = self._peek() if kind != "end" else ("end", "")
            if kind == "word":
                values.add(literal)
                if following not in {",", ")"}:
                    raise _RefusedError(f"found '{next_literal}', expected: ',' or ')'")
            elif kind == ",":
                if not values or following in {",", ")"}:
                    values.add("")
            else:
                raise _RefusedError(f"found '{literal}', expected: ',', or identifier")
            if following == ")":
                self._take()
                return values


@dataclass(slots=True, frozen=True)
class FieldTerm:
    field: str
    value: str
    equal: bool


@dataclass(slots=True, frozen=True)
class FieldSelector:
    """All of `terms` together, with how to read each field from an object."""

    terms: tuple[FieldTerm, ...] = ()
    _readers: tuple[Callable[[Json], str], ...] = ()

    @property
    def everything(self) -> bool:
        return not self.terms

    def matches(self, obj: Json) -> bool:
        for term, read in zip(self.terms, self._readers, strict=True):
            if (read(obj) == term.value) is not term.equal:
                return False
        return True

    def exact(self, name: str) -> str | None:
        """The one value a field must have, for a lookup instead of a scan; None if there is no such value."""
        return next((term.value for term in self.terms if term.equal and term.field == name), None)

    def __str__(self) -> str:
        return ",".join(f"{term.field}{'=' if term.equal else '!='}{_escaped(term.value)}" for term in self.terms)


def _escaped(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _metadata_reader(name: str) -> Callable[[Json], str]:
    return lambda obj: str(obj["metadata"].get(name) or "")


_NAME_READERS: Final = {
    "metadata.name": _metadata_reader("name"),
    "metadata.namespace": _metadata_reader("namespace"),
}


def parse_field_selector(text: str, resource: Resource) -> FieldSelector:
    """The selector of a `fieldSelector` query parameter; ApiError 400 if it is none or names an unknown field."""
    try:
        terms = [_field_term(text, part) for part in sorted(_split_terms(text))]
        terms = [term for term in terms if term.field or term.value]  # Kubernetes drops a bare "=" as well
        readers = [_reader(term.field, resource) for term in terms]
    except _RefusedError as refused:
        raise bad_request(str(refused)) from None
    return FieldSelector(tuple(terms), tuple(readers))


def _reader(name: str, resource: Resource) -> Callable[[Json], str]:
    selectable = resource.strategy.selectable
    # Kinds that name their own fields are strict about metadata.namespace too; the others take it always.
    names_its_own = resource.custom or bool(selectable)
    if name == "metadata.name" or (name == "metadata.namespace" and (resource.namespaced or not names_its_own)):
        return _NAME_READERS[name]
    if name in selectable:
        return selectable[name]
    if names_its_own:
        raise _RefusedError(f"field label not supported: {name}")
    raise _RefusedError(f'{quote(name)} is not a known field selector: only "metadata.name", "metadata.namespace"')


def _split_terms(text: str) -> list[str]:
    return [match.group(0) for match in re.finditer(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)]


def _field_term(text: str, part: str) -> FieldTerm:
    found = re.search(r"!=|==|=", part)
    if not found:
        raise _RefusedError(f"invalid selector: '{text}'; can't understand '{part}'")
    return FieldTerm(part[: found.start()], _unescaped(part[found.end() :]), found.group(0) != "!=")


def _unescaped(value: str) -> str:
    characters = iter(value)
    result = []
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in {"\\", ",", "="}:
                raise _RefusedError(f"invalid field selector: invalid escape sequence: \\{following}")
            result.append(following)
        elif character in ",=":
            raise _RefusedError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            result.append(character)
    return "".join(result)
