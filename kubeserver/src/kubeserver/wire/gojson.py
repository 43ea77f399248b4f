"""JSON and YAML texts, read as Kubernetes reads them and refused in its words.

The quick way is msgspec. What it refuses is looked at a second time by a scanner that knows Go's messages, because
people see them, unless it is long: then C finds the place. What msgspec reads is taken as Go takes it: bytes that are
no UTF-8 become U+FFFD, integers beyond 64 bits become floats. Fields that appear twice are found by counting: only if
a text has more keys than the value read from it is it read again with care.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Hashable

_DEEPEST: Final = 10_000
_FOR_CARE: Final = 64 * 1024  # bytes of a wrong text that are read again, slowly, for the words people know
_KEY: Final = re.compile(rb'"\s*:')
_DIGITS_AS_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * 19


class TextError(ValueError):
    """A text that is no JSON, or no YAML; the message is Go's."""


class Repeated(dict[str, Any]):
    """A map some of whose keys, or of the keys below it, stand more than once in the text."""

    __slots__ = ("merged", "repeated")

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        given: dict[str, list[Any]] = {}
        for key, value in pairs:
            given.setdefault(key, []).append(value)
        several = {key: values for key, values in given.items() if len(values) > 1}
        self.repeated = dict.fromkeys(several)  # looked into for every key
        # repeated maps, put together as a Go struct would take them
        self.merged: dict[str, Any] = {
            key: {name: each for value in values for name, each in value.items()}
            for key, values in several.items()
            if all(isinstance(value, dict) for value in values)
        }


def read_json(text: bytes, *, find_repeated: bool = False) -> Any:
    """The value of a JSON text. With `find_repeated`, maps with repeated keys come as `Repeated`."""
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise TextError("exceeded max depth") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _read_again(text)
    if _LONG_NUMBER in text.translate(_DIGITS_AS_ZERO):
        value = _within_64_bits(value)
    if find_repeated and len(_KEY.findall(text)) > _keys(value):
        return _with_repeated(text)
    return value


def _with_repeated(text: bytes) -> Any:
    found = 0

    def pairs(each: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        plain = dict(each)
        if len(plain) == len(each):
            return plain
        found += 1
        return Repeated(each)

    value = json.loads(text.decode("utf-8", "replace"), object_pairs_hook=pairs, parse_int=_integer)
    # The whole is marked, too, so that readers need not search a value without repeated names.
    return Repeated(list(value.items())) if found and value.__class__ is dict else value


def _integer(text: str) -> float:
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else float(text)


def _keys(value: Any) -> int:
    """How many keys there are in all maps of a value."""
    count = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if each.__class__ is dict:
            count += len(each)
            waiting += each.values()
        elif each.__class__ is list:
            waiting += each
    return count


def _within_64_bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _within_64_bits(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_within_64_bits(item) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return float(value)
    return value


def _read_again(text: bytes) -> Any:
    """Read what msgspec refused: with replacement characters if that is all there is to it, or say what is wrong."""
    readable = text.decode("utf-8", "replace")
    if len(text) > _FOR_CARE:
        return _read_long(readable.encode())
    _Scanner(readable).whole()
    try:
        value = json.loads(readable, parse_int=_integer)
    except (ValueError, RecursionError) as problem:
        raise TextError(str(problem)) from None
    return _without_surrogates(value)


# Escapes of a text one by one, so that an escaped backslash is none of the next; the last group is half a pair.
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def _read_long(text: bytes) -> Any:
    """The same for a long text, which neither Python nor a single call of C may be busy with for seconds."""
    whole = _ESCAPES.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], text)
    try:
        return msgspec.json.decode(whole)
    except RecursionError:
        raise TextError("exceeded max depth") from None
    except msgspec.DecodeError as problem:
        raise _in_go(whole, str(problem)) from None


_MALFORMED: Final = re.compile(r"JSON is malformed: (.*) \(byte ([0-9]+)\)")
_IN_GO: Final = {
    "expected ',' or '}'": "after object key:value pair",
    "expected ',' or ']'": "after array element",
    "expected ':'": "after object key",
    "object keys must be strings": "looking for beginning of object key string",
    "trailing comma in object": "looking for beginning of object key string",
    "trailing characters": "after top-level value",
    "invalid number": "in numeric literal",
    "invalid escape character in string": "in string escape code",
    "invalid character in unicode escape": r"in \u hexadecimal character escape",
}


def _in_go(text: bytes, problem: str) -> TextError:
    """What is wrong with a long text in Go's words, from msgspec's, which tell the place."""
    found = _MALFORMED.match(problem)
    if found is None:
        return TextError("unexpected end of JSON input" if "truncated" in problem else problem)
    # Behind a whole value the place is that of the next character, and so it is inside some literals.
    at = int(found[2]) - (found[1] in ("trailing characters", "invalid escape character in string"))
    character = text[at : at + 4].decode("utf-8", "replace")[:1]
    if not character:
        return TextError("unexpected end of JSON input")
    return TextError(f"invalid character {_shown(character)} {_IN_GO.get(found[1], 'looking for beginning of value')}")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    return value


_SPACE: Final = " \t\r\n"
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class _Scanner:
    """Finds what is wrong with a JSON text, as Go's scanner puts it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> None:
        self._value(0)
        self._space()
        if self._at < len(self._text):
            raise self._unexpected("after top-level value")

    def _unexpected(self, where: str) -> TextError:
        if self._at >= len(self._text):
            return TextError("unexpected end of JSON input")
        return TextError(f"invalid character {_shown(self._text[self._at])} {where}")

    def _space(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> None:
        self._space()
        if depth > _DEEPEST or depth > 900:
            raise TextError("exceeded max depth")
        first = self._peek()
        if first == "{":
            self._object(depth)
        elif first == "[":
            self._array(depth)
        elif first == '"':
            self._string()
        elif first and first in "-0123456789":
            self._number()
        elif first and first in "tfn":
            self._literal({"t": "true", "f": "false", "n": "null"}[first])
        else:
            raise self._unexpected("looking for beginning of value")

    def _object(self, depth: int) -> None:
        self._at += 1
        self._space()
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            self._space()
            if self._peek() != '"':
                raise self._unexpected("looking for beginning of object key string")
            self._string()
            self._space()
            if self._peek() != ":":
                raise self._unexpected("after object key")
            self._at += 1
            self._value(depth + 1)
            self._space()
            if self._peek() == "}":
                self._at += 1
                return
            if self._peek() != ",":
                raise self._unexpected("after object key:value pair")
            self._at += 1

    def _array(self, depth: int) -> None:
        self._at += 1
        self._space()
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            self._value(depth + 1)
            self._space()
            if self._peek() == "]":
                self._at += 1
                return
            if self._peek() != ",":
                raise self._unexpected("after array element")
            self._at += 1

    def _string(self) -> None:
        found = _STRING.match(self._text, self._at)
        self._at = found.end() if found else self._at + 1
        if self._peek() == "\\":
            self._at += 1
            if self._peek() == "u":
                self._at += 1
                while self._peek() and self._peek() in "0123456789abcdefABCDEF":
                    self._at += 1
                raise self._unexpected(r"in \u hexadecimal character escape")
            raise self._unexpected("in string escape code")
        if self._peek() != '"':
            raise self._unexpected("in string literal")
        self._at += 1

    def _number(self) -> None:
        found = _NUMBER.match(self._text, self._at)
        if not found:
            self._at += 1
            raise self._unexpected("in numeric literal")
        self._at = found.end()
        if self._peek() == ".":
            self._at += 1
            raise self._unexpected("after decimal point in numeric literal")
        if self._peek() and self._peek() in "eE":
            self._at += 1
            raise self._unexpected("in exponent of numeric literal")

    def _literal(self, word: str) -> None:
        for place, letter in enumerate(word):
            if self._peek() != letter:
                where = f"in literal {word} (expecting '{letter}')"
                raise self._unexpected(where if place else "looking for beginning of value")
            self._at += 1


def _shown(character: str) -> str:
    return {"'": r"'\''", '"': "'\"'"}.get(character) or _quoted(character)


def _quoted(character: str) -> str:
    if character.isprintable():
        return f"'{character}'"
    escapes = {"\n": r"'\n'", "\r": r"'\r'", "\t": r"'\t'"}
    return escapes.get(character) or f"'\\x{ord(character):02x}'"


# YAML: JSON is a part of it, and what most clients send; the rest is read with libyaml where PyYAML has it.

_DEEPEST_YAML: Final = 500
_MOST_EXPANDED: Final = 400_000  # nodes, with every alias counted as what it stands for; Go's limit


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes' library takes it: keys are strings, times stay text, `1e3` is a number."""

    repeated: list[str]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: ARG002
        self.flatten_mapping(node)
        found: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = _key(self.construct_object(key_node, deep=True))
            if key in found:
                line = key_node.start_mark.line + 1
                self.repeated.append(f'line {line}: key "{key}" already set in map')
            found[key] = self.construct_object(value_node, deep=True)
        return found


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":float"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.[0-9_]+(?:[eE][-+]?[0-9]+)?)$"
    ),
    list("-+0123456789."),
)


def _text(loader: _Loader, node: yaml.ScalarNode) -> Any:
    return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:binary", _text)
_Parser: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _QuickLoader(_Parser):  # type: ignore[misc, valid-type]  # the same over libyaml
    repeated: list[str]
    construct_mapping = _Loader.construct_mapping
    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
    yaml_constructors = _Loader.yaml_constructors


def read_yaml(text: bytes) -> tuple[Any, list[str]]:
    """The value of a YAML text, and its repeated keys as Kubernetes reports them."""
    try:
        value = msgspec.json.decode(text)
        if len(_KEY.findall(text)) <= _keys(value):
            return _within_64_bits(value), []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    readable = text.decode("utf-8", "replace")
    try:
        return _loaded(readable, _QuickLoader)
    except TextError:
        if len(text) > _FOR_CARE:
            raise
        return _loaded(readable, _Loader)


def _loaded(text: str, kind: Any) -> tuple[Any, list[str]]:
    try:
        _check_depth(text)
        loader = kind(text)
        try:
            loader.repeated = []
            node = loader.get_single_node()
            if node is not None:
                _check_aliases(node)
            value = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = f"line {mark.line}: " if mark is not None and mark.line else ""
        raise TextError(f"yaml: {line}{problem.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        raise problem if isinstance(problem, TextError) else TextError(f"yaml: {problem}") from None
    value = _within_64_bits(value)
    repeated = ["yaml: unmarshal errors:\n  " + "\n  ".join(loader.repeated)] if loader.repeated else []
    return value, repeated


def _check_depth(text: str) -> None:
    """libyaml's events come one by one, but its trees are built by recursion in C, which a deep text would crash."""
    depth = 0
    for event in yaml.parse(text, _Parser):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST_YAML:
                raise TextError("yaml: exceeded max depth")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_aliases(root: yaml.Node) -> None:
    """Refuse a text that is small only because of its aliases: a few lines can stand for billions of values."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        known = sizes.get(id(node))
        if known is None:
            sizes[id(node)] = _MOST_EXPANDED  # what contains itself is never small
            below = [item for pair in node.value for item in pair] if isinstance(node, yaml.MappingNode) else node.value
            known = sizes[id(node)] = 1 + sum(map(size, below))
            written.append(1 + len(below))
        return known

    written: list[int] = []
    expanded = size(root)
    if expanded > _MOST_EXPANDED and expanded > 2 * sum(written):
        raise TextError("yaml: document contains excessive aliasing")
