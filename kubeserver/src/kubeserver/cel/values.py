"""The values expressions work on, beyond those JSON has.

Booleans, integers, floats, strings, bytes, lists, maps and null are Python's own. The rest is here: times, spans of
time, optional values, quantities, versions. Equality and order are CEL's: `1 == 1.0` holds, `true == 1` does not,
and values of different kinds are unequal rather than an error.
"""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

from kubeserver.cel.syntax import UInt
from kubeserver.wire.goformat import number


class CelError(Exception):
    """An expression that could not be evaluated on the values it was given."""


class CostError(CelError):
    """An expression that did more work than a request may cause."""


NO_OVERLOAD: Final = "no such overload"
_SECOND: Final = 1_000_000_000
_INT_LOW, _INT_HIGH = -(1 << 63), (1 << 63) - 1
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(slots=True, frozen=True, order=True)
class Duration:
    nanoseconds: int

    def __str__(self) -> str:
        return f"{number(self.nanoseconds / _SECOND)}s" if self.nanoseconds % _SECOND else self._whole()

    def _whole(self) -> str:
        return f"{self.nanoseconds // _SECOND}s"


@dataclass(slots=True, frozen=True, order=True)
class Timestamp:
    nanoseconds: int  # since 1970

    def moment(self) -> datetime:
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.nanoseconds // 1000)

    def __str__(self) -> str:
        text = self.moment().strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
        fraction = f"{self.nanoseconds % _SECOND:09d}".rstrip("0")
        return f"{text}.{fraction}Z" if fraction else f"{text}Z"


@dataclass(slots=True, frozen=True)
class Optional:
    value: Any = None
    present: bool = False


NONE: Final = Optional()


@dataclass(slots=True, frozen=True, order=True)
class Quantity:
    amount: Fraction


@dataclass(slots=True, frozen=True)
class Semver:
    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()

    def order(self) -> tuple[Any, ...]:
        # A pre-release comes before its release; numbers before words.
        pre = tuple((0, item, "") if isinstance(item, int) else (1, 0, item) for item in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, pre)


@dataclass(slots=True, frozen=True)
class Url:
    scheme: str
    host: str
    path: str
    query: str
    text: str


@dataclass(slots=True, frozen=True)
class Format:
    name: str


@dataclass(slots=True, frozen=True)
class TypeValue:
    name: str


def type_name(value: Any) -> str:
    if value is None:
        return "null_type"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, UInt):
        return "uint"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict):
        return "map"
    names: dict[type, str] = {
        Timestamp: "google.protobuf.Timestamp",
        Duration: "google.protobuf.Duration",
        Optional: "optional_type",
        TypeValue: "type",
        Quantity: "kubernetes.Quantity",
        Semver: "kubernetes.Semver",
        Url: "kubernetes.URL",
        Format: "kubernetes.NamedFormat",
    }
    if isinstance(value, (ipaddress.IPv4Interface, ipaddress.IPv6Interface)):
        return "net.CIDR"
    return names.get(value.__class__, "net.IP")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equals(left: Any, right: Any) -> bool:
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(equals(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and equals(left[key], right[key]) for key in left)
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.present == right.present and equals(left.value, right.value)
    return type_name(left) == type_name(right) and bool(left == right)


def compare(left: Any, right: Any) -> int:
    """Negative, zero or positive; raises for values that have no order."""
    if (isinstance(left, float) and math.isnan(left)) or (isinstance(right, float) and math.isnan(right)):
        raise CelError("NaN values cannot be ordered")
    if not (is_number(left) and is_number(right)) and (
        type_name(left) != type_name(right)
        or not isinstance(left, (bool, str, bytes, Timestamp, Duration, Quantity, Semver))
    ):
        raise CelError(NO_OVERLOAD)
    if isinstance(left, Semver):
        left, right = left.order(), right.order()
    return int(left > right) - int(left < right)


def checked_int(value: int) -> int:
    if not _INT_LOW <= value <= _INT_HIGH:
        raise CelError("integer overflow")
    return value


def checked_uint(value: int) -> UInt:
    if not 0 <= value < 1 << 64:
        raise CelError("unsigned integer overflow")
    return UInt(value)


# Times

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_SPAN: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_STAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(Z|z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def parse_duration(text: str) -> Duration | None:
    """A span as Go writes it: `1h30m`, `-1.5s`, `0`."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    parts = _SPAN.findall(rest)
    if not parts or "".join(amount + unit for amount, unit in parts) != rest:
        return None
    total = sum(Fraction(amount if not amount.endswith(".") else amount[:-1]) * _UNITS[unit] for amount, unit in parts)
    nanoseconds = sign * int(total)
    return Duration(nanoseconds) if abs(nanoseconds) <= _INT_HIGH else None


_WORDY: Final = (
    (1, r"ns|nano.*"),
    (1_000, r"us|µs|micro.*"),
    (1_000_000, r"ms|milli.*"),
    (_SECOND, r"s|sec.*"),
    (60 * _SECOND, r"m|min.*"),
    (3600 * _SECOND, r"h|hr|hour.*"),
    (86400 * _SECOND, r"d|day.*"),
    (604800 * _SECOND, r"w|wk|week.*"),
)


def parse_wordy_duration(text: str) -> Duration | None:
    """A span as a field of format duration may have it: also `3 weeks`."""
    plain = parse_duration(text)
    if plain is not None:
        return plain
    total, found = 0, False
    for amount, unit in re.findall(r"([0-9]+)\s*([A-Za-zµ]+)", text):
        for size, pattern in _WORDY:
            if re.fullmatch(pattern, unit, re.IGNORECASE):
                total, found = total + int(amount) * size, True
    return Duration(total) if found else None


def parse_timestamp(text: str, *, strict: bool = True) -> Timestamp | None:
    """A moment in RFC 3339; a field of format date or date-time may lack its time or zone."""
    match = _STAMP.fullmatch(text)
    if match is None or (strict and match[8] is None):
        return None
    year, month, day, hour, minute, second = (int(match[place] or 0) for place in range(1, 7))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    zone = match[8] or "Z"
    offset = 0
    if zone not in "Zz":
        offset = (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60) * (-1 if zone[0] == "-" else 1)
    seconds = int((moment - datetime.fromtimestamp(0, UTC)).total_seconds()) - offset
    fraction = int((match[7] or "0").ljust(9, "0")[:9])
    return Timestamp(seconds * _SECOND + fraction)


# Quantities and versions

_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:(Ki|Mi|Gi|Ti|Pi|Ei)|([numkMGTPE])|[eE]([+-]?[0-9]+))?"
)
_BINARY: Final = {unit: 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse_quantity(text: str) -> Quantity | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    try:
        amount = Fraction(Decimal(match[1]))
    except InvalidOperation:
        return None
    if match[2]:
        amount *= _BINARY[match[2]]
    elif match[3]:
        amount *= Fraction(10) ** _DECIMAL[match[3]]
    elif match[4]:
        if abs(int(match[4])) > 40:
            return None
        amount *= Fraction(10) ** int(match[4])
    return Quantity(amount)


_SEMVER: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


def parse_semver(text: str, *, lenient: bool = False) -> Semver | None:
    if lenient:
        text = text.removeprefix("v")
        core, mark, rest = re.fullmatch(r"([0-9.]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        parts = [part.lstrip("0") or "0" if part else part for part in core.split(".")]
        if len(parts) < 3 and mark:
            return None
        text = ".".join([*parts, "0", "0"][: max(3, len(parts))]) + mark + rest
    match = _SEMVER.fullmatch(text)
    if match is None:
        return None
    pre = tuple(int(part) if part.isdigit() else part for part in match[4].split(".")) if match[4] else ()
    return Semver(int(match[1]), int(match[2]), int(match[3]), pre)
