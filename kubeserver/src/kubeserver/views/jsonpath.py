r"""Kubernetes' dialect of JSONPath, compiled: the language of printer columns, selectable fields, scale paths.

    .spec.replicas                              a field of a field
    .metadata.labels['app\.kubernetes\.io/name']     a backslash takes the meaning from a dot, inside brackets too
    .status.conditions[?(@.type=="Ready")].status    a filter
    .spec.ports[*].port   .spec.ports[0]   ..name    all of a list, one of it, any depth

A path is parsed once, when its CustomResourceDefinition is accepted, and run on every object that is shown. A step
that does not fit an object (a field of a number, an index past the end) finds nothing: showing a table must never
fail because one object is odd. Only a text that is no path at all is an error, and only while compiling.

Paths that look at any depth several times find each value on many ways, so many that a short path on a small object
takes hours. A path that has looked at more values than any sensible one finds nothing, either.
"""

from __future__ import annotations

import operator
import re
import threading
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kubeserver import patience
from kubeserver.wire.goformat import marshal, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Step = Callable[[list[Any]], list[Any]]

_TERMINATORS: Final = frozenset(" \t\r\n.,[]$@{}")
_PLAIN: Final = re.compile(r"(?:\.[A-Za-z0-9_-]+)+")
_QUOTED_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_NUMBER: Final = re.compile(r"[+-]?[0-9.]+")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JsonPathError(ValueError):
    """The text is not a path."""


class _DoesNotFitError(Exception):
    """A step met a value it cannot be applied to."""


class _Work(threading.local):
    left: int | None = None  # values that may still be looked at; None: no path is being followed


_work: Final = _Work()
_MOST_VALUES: Final = 20_000  # about 10 ms


@contextmanager
def bounded(values: int = _MOST_VALUES) -> Iterator[None]:
    """Let all paths that are followed inside look at so many values together."""
    before, _work.left = _work.left, values
    try:
        yield
    finally:
        _work.left = before


def _look_at(values: int) -> None:
    patience.spend(values)
    assert _work.left is not None
    _work.left -= values
    if _work.left < 0:
        raise _DoesNotFitError


class JsonPath:
    """A compiled path."""

    __slots__ = ("_keys", "_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Nearly all paths are plain fields; they need no machinery.
        self._keys = tuple(text[1:].split(".")) if _PLAIN.fullmatch(text) else ()
        self._steps = () if self._keys else tuple(_Parser(text).steps())

    def find(self, obj: Any) -> list[Any]:
        """All values the path leads to; an empty list if there are none."""
        if self._keys:
            for key in self._keys:
                if not isinstance(obj, dict) or key not in obj:
                    return []
                obj = obj[key]
            return [obj]
        try:
            if _work.left is not None:
                return _run(self._steps, obj)
            with bounded():
                return _run(self._steps, obj)
        except _DoesNotFitError:
            return []

    def first(self, obj: Any) -> Any:
        """The first value found, or None."""
        found = self.find(obj)
        return found[0] if found else None


@lru_cache(maxsize=1024)
def compile_path(text: str) -> JsonPath:
    """The path that `text` describes; JsonPathError if it describes none."""
    return JsonPath(text)


def printed(value: Any) -> str:
    """A found value as text, the way Kubernetes fills a column of type string."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    return marshal(value)


def selectable_text(path: str) -> Callable[[Any], str]:
    """How a field selector reads a `selectableFields` path of a CustomResourceDefinition."""
    compiled = compile_path(path)

    def read(obj: Any) -> str:
        value = compiled.first(obj)
        return "" if value is None else printed(value)

    return read


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> list[Step]:
        found: list[Step] = []
        while self._at < len(self._text):
            found += self._step()
        return found

    def _step(self) -> list[Step]:
        text, here = self._text, self._at
        if text.startswith("[?(", here):
            return [self._filter()]
        if text.startswith("..", here):
            self._at += 2
            following = text[self._at : self._at + 1]
            field = [self._field()] if following.isalnum() or following == "_" else []
            return [_descend, *field]
        character = text[here]
        if character in " @$":  # the current object: nothing to do
            self._at += 1
            return []
        if character == ".":
            self._at += 1
            return [self._field()]
        if character == "[":
            return self._brackets()
        if character in "\"'":
            return [_constant(self._quoted(character))]
        if character in "+-" or character.isdigit():
            return [_constant(self._number())]
        if character.isalpha() or character == "_":
            return [_identifier(self._word())]
        raise JsonPathError(f"unrecognized character in action: U+{ord(character):04X} '{character}'")

    def _word(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _TERMINATORS:
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._at = min(self._at, len(self._text))
        return self._text[start : self._at]

    def _field(self) -> Step:
        word = self._word()
        return _every if word == "*" else _member(word.replace("\\", ""))

    def _number(self) -> float:
        found = _NUMBER.match(self._text, self._at)
        text = found.group(0) if found else self._text[self._at]
        self._at += len(text)
        try:
            return int(text) if "." not in text else float(text)
        except ValueError:
            raise JsonPathError(f"cannot parse number {text}") from None

    def _quoted(self, quote: str) -> str:
        end = self._at + 1
        while end < len(self._text) and (self._text[end] != quote or self._text[end - 1] == "\\"):
            end += 1
        if end >= len(self._text):
            raise JsonPathError("unterminated quoted string")
        inner = self._text[self._at + 1 : end]
        self._at = end + 1
        return re.sub(r"\\(.)", r"\1", inner)

    def _brackets(self) -> list[Step]:
        end = self._text.find("]", self._at)
        if end < 0:
            raise JsonPathError("unterminated array")
        inner = self._text[self._at + 1 : end]
        self._at = end + 1
        parts = inner.split(",")
        if len(parts) > 1:
            return [_union([_Parser(f"[{part.strip()}]").steps() for part in parts])]
        if key := _QUOTED_KEY.fullmatch(inner):
            return _Parser(f".{key.group(1)}").steps()  # so a dot inside the quotes still separates, as in Kubernetes
        if inner == "*":
            inner = ":"
        if not (bounds := _SLICE.fullmatch(inner)):
            raise JsonPathError(f"invalid array index {inner}")
        return [_slice(*bounds.groups())]

    def _filter(self) -> Step:
        start = self._at + 3
        end = start
        quote = ""
        while end < len(self._text) and (quote or self._text[end] != ")"):
            character = self._text[end]
            if quote:
                quote = "" if character == quote and self._text[end - 1] != "\\" else quote
            elif character in "\"'":
                quote = character
            end += 1
        if end >= len(self._text):
            raise JsonPathError("unterminated filter")
        if self._text[end + 1 : end + 2] != "]":
            raise JsonPathError("unclosed array expect ]")
        self._at = end + 2
        inner = self._text[start:end]
        comparison = _COMPARISON.fullmatch(inner)
        if not comparison:
            return _existing(_Parser(inner).steps())
        left, compare, right = comparison.groups()
        if compare not in _COMPARE:
            raise JsonPathError(f"unrecognized filter operator {compare}")
        return _compared(_Parser(left).steps(), _COMPARE[compare], _Parser(right.strip()).steps())


def _run(steps: Sequence[Step], value: Any) -> list[Any]:
    values = [value]
    for step in steps:
        _look_at(1 + len(values))
        values = step(values)
    return values


def _member(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _every(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        children = _children(value)
        _look_at(len(children))
        found += children
    return found


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _descend(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    _look_at(len(values))
    for value in values:
        if children := _children(value):
            found.append(value)
            found += _descend(children)
    return found


def _constant(value: Any) -> Step:
    return lambda values: [value] * len(values)


def _identifier(word: str) -> Step:
    if word in {"true", "false"}:
        return _constant(word == "true")

    def refuse(_: list[Any]) -> list[Any]:
        raise _DoesNotFitError(word)

    return refuse


def _union(branches: list[list[Step]]) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [item for branch in branches for value in values for item in _run(branch, value)]

    return step


def _bound(text: str | None) -> int | None:
    digits = (text or "").removeprefix(":")
    return int(digits) if digits not in {"", "-"} else None


def _slice(first: str, second: str | None, third: str | None) -> Step:
    start, stride = _bound(first), _bound(third)
    single = second is None
    end = _bound(second)

    def step(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list) or (stride is not None and stride <= 0):
                raise _DoesNotFitError
            size = len(value)
            low = (start or 0) + (size if (start or 0) < 0 else 0)
            high = low + 1 if single else (size if end is None else end + (size if end < 0 else 0))
            if low == high:
                return found
            if not (0 <= low < size and 0 <= high <= size and low <= high):
                raise _DoesNotFitError
            _look_at(high - low)
            found += value[low:high:stride]
        return found

    return step


def _elements(values: list[Any]) -> list[Any]:
    if not all(isinstance(value, list) for value in values):
        raise _DoesNotFitError
    _look_at(sum(map(len, values)))
    return [element for value in values for element in value]


def _existing(steps: list[Step]) -> Step:
    return lambda values: [element for element in _elements(values) if _run(steps, element)]


def _compared(left: list[Step], compare: Callable[[Any, Any], bool], right: list[Step]) -> Step:
    def step(values: list[Any]) -> list[Any]:
        found = []
        for element in _elements(values):
            ours, theirs = _run(left, element), _run(right, element)
            if not ours or not theirs:
                continue
            if len(ours) > 1 or len(theirs) > 1 or type(ours[0]) is not type(theirs[0]):
                raise _DoesNotFitError
            if not isinstance(ours[0], str | int | float):
                raise _DoesNotFitError
            if compare(ours[0], theirs[0]):
                found.append(element)
        return found

    return step
