"""Values as Go prints them.

The messages of Kubernetes carry the values they complain about, printed by three of Go's printers: `%q` for
strings, `%v` for numbers and `encoding/json` for everything else. Clients compare those messages, and so do our
own tests against a real kube-apiserver; hence the same three printers here. Nothing in this module decides
anything.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
# What encoding/json escapes beyond JSON's own needs, so that its output may stand in a script element.
_JSON_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


class Raw(str):
    """A value that was printed already, because its Go type has an order or names of its own."""

    __slots__ = ()


def quote(text: str) -> str:
    """A string as `%q` prints it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_quoted_character(letter) for letter in text) + '"'


def _quoted_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """A number as `%v` prints it: the shortest text, with an exponent below 1e-4 and from a million on."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return _float(value, smallest=1e-4, largest=1e6)


def _float(value: float, *, smallest: float, largest: float) -> str:
    size = abs(value)
    if size == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if smallest <= size < largest:
        text = format(Decimal(repr(value)), "f")
        return text.removesuffix(".0")
    digits, exponent = f"{Decimal(repr(value)):e}".lower().split("e")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return f"{digits}e{exponent[0]}{exponent[1:].zfill(2)}"


class Struct(dict[str, Any]):
    """An object that Go holds in a struct: printed in the order of its fields, not of its keys."""


def marshal(value: Any) -> str:
    """A value as `json.Marshal` writes it: sorted keys, no spaces, `<`, `>` and `&` escaped."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # encoding/json drops the leading zero of a two-digit negative exponent, as JavaScript does.
        return _float(value, smallest=1e-6, largest=1e21).replace("e-0", "e-")
    if isinstance(value, str):
        return '"' + "".join(_json_character(letter) for letter in value) + '"'
    if isinstance(value, dict):
        keys = value if isinstance(value, Struct) else sorted(value)
        return "{" + ",".join(f"{marshal(str(key))}:{marshal(value[key])}" for key in keys) + "}"
    return "[" + ",".join(marshal(item) for item in value) + "]"


def printed(value: Any) -> str:
    """A value as `%v` prints it: `map[a:1 b:[x y]]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{printed(value[key])}" for key in sorted(value)) + "]"
    return "[" + " ".join(map(printed, value)) + "]"


def _json_character(character: str) -> str:
    found = _JSON_ESCAPES.get(character)
    if found is not None:
        return found
    return f"\\u{ord(character):04x}" if character < " " else character


def shown(value: Any) -> str:
    """A value as a field error prints it."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float) and not isinstance(value, bool):
        return number(value)
    return marshal(value)
