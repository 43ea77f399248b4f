"""Resource quantities ("500m", "1Gi"): read, checked, and written in the one form Kubernetes keeps them in.

A quantity is kept in the largest unit that needs no fraction, in the style it was given in: 1024Mi becomes 1Gi,
0.5 becomes 500m, 1000m becomes 1.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

Json = dict[str, Any]

_BINARY: Final = {"": 0, "Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
BAD_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def value_of(text: Any) -> Decimal | None:
    """The number a quantity stands for; None if it is none."""
    match = _PATTERN.fullmatch(str(text).strip()) if text is not None else None
    if match is None:
        return None
    number = Decimal(match["number"])
    if match["exponent"] is not None:
        return number.scaleb(int(match["exponent"]))
    suffix = match["suffix"] or ""
    if suffix in _BINARY and suffix:
        return number * Decimal(1024) ** _BINARY[suffix]
    return number.scaleb(_DECIMAL[suffix])


def canonical(text: Any) -> Any:
    """A quantity in the form it is kept in; anything else as it is."""
    value = value_of(text)
    if value is None:
        return text
    match = _PATTERN.fullmatch(str(text).strip())
    assert match is not None
    value = value.quantize(Decimal("1e-9"), rounding=ROUND_CEILING) if value % Decimal("1e-9") else value
    if match["exponent"] is not None:
        return _exponent_form(value)
    if match["suffix"] and match["suffix"] in _BINARY and abs(value) >= 1024 and value == int(value):
        return _binary_form(int(value))
    return _decimal_form(value)


def _binary_form(value: int) -> str:
    power = 0
    while value and value % 1024 == 0 and power < 6:
        value //= 1024
        power += 1
    return f"{value}{list(_BINARY)[power]}"


def _decimal_form(value: Decimal) -> str:
    for suffix, power in reversed(_DECIMAL.items()):
        scaled = value.scaleb(-power)
        if scaled == scaled.to_integral_value() and (value or not suffix):
            return f"{int(scaled)}{suffix}"
    return "0"


def _exponent_form(value: Decimal) -> str:
    for power in range(18, -10, -3):
        scaled = value.scaleb(-power)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}e{power}" if power else str(int(scaled))
    return "0"


def rounded_up_to_milli(text: Any) -> Any:
    value = value_of(text)
    if value is None or value == value.quantize(Decimal("0.001")):
        return text
    return _decimal_form(value.quantize(Decimal("0.001"), rounding=ROUND_CEILING))


def canonical_resources(item: Json, *fields: str) -> None:
    """Bring the quantities of resource lists (limits, requests, capacity) into their form."""
    for field in fields:
        found = item.get(field)
        if isinstance(found, dict):
            item[field] = {name: canonical(rounded_up_to_milli(value)) for name, value in found.items()}
