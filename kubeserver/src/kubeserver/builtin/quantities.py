"""Resource quantities ("500m", "1Gi"): read, checked, and written in the one form Kubernetes keeps them in.

A quantity is kept in the largest unit that needs no fraction, in the style it was given in: 1024Mi becomes 1Gi,
0.5 becomes 500m, 1000m becomes 1.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil
from typing import Any, Final

Json = dict[str, Any]

_BINARY: Final = {"": 0, "Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_MOST_DIGITS: Final = 64  # of a number or an exponent: no machine has 10^64 bytes


def value_of(text: Any) -> Fraction | None:
    """The number a quantity stands for; None if it is none."""
    match = _match(text)
    if match is None:
        return None
    number = Fraction(match["number"])
    if match["exponent"] is not None:
        return number * _power(10, max(-_MOST_DIGITS, min(int(match["exponent"]), _MOST_DIGITS)))
    suffix = match["suffix"] or ""
    if suffix and suffix in _BINARY:
        return number * _power(1024, _BINARY[suffix])
    return number * _power(10, _DECIMAL[suffix])


def _match(text: Any) -> re.Match[str] | None:
    shown = "" if text is None else str(text).strip()
    return _PATTERN.fullmatch(shown) if len(shown) <= _MOST_DIGITS else None


def _power(base: int, exponent: int) -> Fraction:
    return Fraction(base) ** exponent


def canonical(text: Any) -> Any:
    """A quantity in the form it is kept in; anything else as it is."""
    value, match = value_of(text), _match(text)
    if value is None or match is None:
        return text
    value = _rounded_up(value, 9)
    if match["exponent"] is not None:
        return _exponent_form(value)
    if match["suffix"] and match["suffix"] in _BINARY and abs(value) >= 1024 and value.denominator == 1:
        return _binary_form(int(value))
    return _decimal_form(value)


def _rounded_up(value: Fraction, digits: int) -> Fraction:
    scale = 10**digits
    return Fraction(ceil(value * scale), scale)


def _binary_form(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < 6:
        value //= 1024
        power += 1
    return f"{value}{list(_BINARY)[power]}"


def _decimal_form(value: Fraction) -> str:
    for suffix, power in reversed(_DECIMAL.items()):
        scaled = value / _power(10, power)
        if scaled.denominator == 1 and (value or not suffix):
            return f"{int(scaled)}{suffix}"
    return "0"


def _exponent_form(value: Fraction) -> str:
    for power in range(18, -10, -3):
        scaled = value / _power(10, power)
        if scaled.denominator == 1 and (value or not power):
            return f"{int(scaled)}e{power}" if power else str(int(scaled))
    return "0"


def rounded_up_to_milli(text: Any) -> Any:
    value = value_of(text)
    if value is None or value == _rounded_up(value, 3):
        return text
    return _decimal_form(_rounded_up(value, 3))


def canonical_resources(item: Json, *fields: str) -> None:
    """Bring the quantities of resource lists (limits, requests, capacity) into their form."""
    for field in fields:
        found = item.get(field)
        if isinstance(found, dict):
            item[field] = {name: canonical(rounded_up_to_milli(value)) for name, value in found.items()}
