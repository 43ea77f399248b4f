"""The functions on text: comparing, cutting, searching, formatting. Places count code points, not bytes."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kubeserver.cel.values import (
    NO_OVERLOAD,
    CelError,
    Duration,
    Timestamp,
    TypeValue,
    is_number,
    type_name,
)
from kubeserver.schemas.linear import Automaton, TooCostly
from kubeserver.schemas.regex import PatternError, compile_go
from kubeserver.wire.goformat import number, quote

if TYPE_CHECKING:
    from collections.abc import Callable


def to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return number(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, (Timestamp, Duration)) or type_name(value) in ("net.IP", "net.CIDR"):
        return str(value)
    raise CelError(NO_OVERLOAD)


def index_of(text: str, item: Any, start: int = 0) -> int:
    if item == "":
        return start
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(_text(item), start)


def last_index_of(text: str, item: Any, end: int | None = None) -> int:
    last = len(text) if end is None else end
    if not 0 <= last <= len(text):
        raise CelError(f"index out of range: {last}")
    return last if item == "" else text.rfind(_text(item), 0, last + len(item))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CelError(NO_OVERLOAD)
    return value


def matches(text: Any, pattern: Any) -> bool:
    try:
        return compile_go(_text(pattern)).search(_text(text))
    except (PatternError, TooCostly) as problem:
        raise CelError(str(problem)) from None


def _find(text: Any, pattern: Any) -> str:
    try:
        found = _pattern(pattern).find(_text(text))
    except TooCostly as problem:
        raise CelError(str(problem)) from None
    return text[slice(*found)] if found else ""


def _pattern(pattern: Any) -> Automaton:
    try:
        return compile_go(_text(pattern))
    except PatternError as problem:
        raise CelError(f"Illegal regex: {problem}") from None


def _find_all(text: Any, pattern: Any, limit: int = -1) -> list[str]:
    found = _pattern(pattern).find_all(_text(text))
    try:
        return list(found if limit < 0 else islice(found, limit))
    except TooCostly as problem:
        raise CelError(str(problem)) from None


def _char_at(text: Any, place: int) -> str:
    if not 0 <= place <= len(_text(text)):
        raise CelError(f"index out of range: {place}")
    return str(text[place : place + 1])


def _substring(text: Any, start: int, end: int | None = None) -> str:
    length = len(_text(text))
    last = length if end is None else end
    if not 0 <= start <= length:
        raise CelError(f"index out of range: {start}")
    if not 0 <= last <= length:
        raise CelError(f"index out of range: {last}")
    if start > last:
        raise CelError(f"invalid substring range. start: {start}, end: {last}")
    return str(text[start:last])


def _split(text: Any, separator: Any, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if limit == 1:
        return [_text(text)]
    if separator == "":
        parts = list(_text(text))
        return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return _text(text).split(_text(separator), -1 if limit < 0 else limit - 1)


def _replace(text: Any, old: Any, new: Any, limit: int = -1) -> str:
    return _text(text).replace(_text(old), _text(new), limit)


_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}
_WHITE: Final = (
    " \t\n\v\f\r\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)


def shown(value: Any) -> str:
    """A value as `%s` of `format` shows it."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    if isinstance(value, dict):
        entries = sorted((shown(key), shown(member)) for key, member in value.items())
        return "{" + ", ".join(f"{key}: {text}" for key, text in entries) + "}"
    if isinstance(value, TypeValue):
        return value.name
    return to_string(value)


_FINEST: Final = 1000  # digits behind the point
_VERB: Final = re.compile(r"%(?:%|(?:\.([0-9]+))?([a-zA-Z]))")


def _format(template: str, values: list[Any]) -> str:
    rest = iter(values)

    def one(match: re.Match[str]) -> str:
        if match.group() == "%%":
            return "%"
        try:
            value = next(rest)
        except StopIteration:
            raise CelError(f"index {len(values)} out of range") from None
        return _formatted(match[2], match[1], value)

    return _VERB.sub(one, template)


def _formatted(verb: str, precision: str | None, value: Any) -> str:
    whole = isinstance(value, int)
    if verb == "s":
        return shown(value)
    if verb == "d" and whole and not isinstance(value, bool):
        return str(int(value))
    if verb in "fe" and is_number(value):
        if precision and int(precision[:9]) > _FINEST:
            raise CelError(f"error during formatting: precision {precision[:9]} is too large")
        text = f"{float(value):.{precision or 6}{verb}}"
        return re.sub(r"e([+-])(\d)$", r"e\g<1>0\2", text)
    if verb in "bxXo" and whole:
        return format(int(value), verb)
    if verb in "xX" and isinstance(value, (str, bytes)):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    raise CelError(f"error during formatting: could not convert argument to {verb}")


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "matches": matches,
    "contains": lambda text, part: _text(part) in _text(text),
    "startsWith": lambda text, part: _text(text).startswith(_text(part)),
    "endsWith": lambda text, part: _text(text).endswith(_text(part)),
    "charAt": _char_at,
    "lowerAscii": lambda text: _text(text).translate(_LOWER),
    "upperAscii": lambda text: _text(text).translate(_UPPER),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: _text(text).strip(_WHITE),
    "format": _format,
    "strings.quote": lambda text: quote(_text(text)),
    "join": lambda parts, separator="": separator.join(_text(part) for part in parts),
    "find": _find,
    "findAll": _find_all,
}
