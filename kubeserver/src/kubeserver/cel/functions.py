"""The functions of the language itself and of its list, set and optional extensions; text is in `strings.py`.

Each takes plain values and returns one, or raises CelError with the text that cel-go would give. A member function
gets its target as the first argument.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import cmp_to_key
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from kubeserver.cel.strings import FUNCTIONS as STRINGS
from kubeserver.cel.strings import index_of, last_index_of, to_string
from kubeserver.cel.syntax import UInt
from kubeserver.cel.values import (
    NO_OVERLOAD,
    NONE,
    CelError,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    checked_int,
    checked_uint,
    compare,
    equals,
    is_number,
    parse_duration,
    parse_timestamp,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND: Final = 1_000_000_000


def _needs(condition: bool) -> None:
    if not condition:
        raise CelError(NO_OVERLOAD)


def _conversion(value: Any, wanted: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


# Conversions


def to_int(value: Any) -> int:
    if isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    if isinstance(value, int):
        return checked_int(int(value))
    if isinstance(value, float):
        if math.isnan(value) or not -(2**63) < value < 2**63:
            raise CelError("integer overflow")
        return int(value)
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?[0-9]+", value) and -(1 << 63) <= int(value) < 1 << 63:
            return int(value)
        raise _conversion(value, "int")
    if isinstance(value, Timestamp):
        return value.nanoseconds // _SECOND
    if isinstance(value, Duration):
        return value.nanoseconds
    raise CelError(NO_OVERLOAD)


def to_uint(value: Any) -> UInt:
    if isinstance(value, str):
        if re.fullmatch(r"[0-9]+", value) and int(value) < 1 << 64:
            return UInt(int(value))
        raise _conversion(value, "uint")
    _needs(is_number(value))
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        raise CelError("unsigned integer overflow")
    return checked_uint(int(value))


_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity)|(?i:nan)")


def to_double(value: Any) -> float:
    if isinstance(value, str):
        if not _FLOAT.fullmatch(value):
            raise _conversion(value, "double")
        return float(value)
    _needs(is_number(value))
    return float(value)


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    _needs(isinstance(value, str))
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise _conversion(value, "bool")


def to_bytes(value: Any) -> bytes:
    _needs(isinstance(value, (bytes, str)))
    return value.encode() if isinstance(value, str) else bytes(value)


def to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return _in_time(value * _SECOND)
    _needs(isinstance(value, str))
    found = parse_timestamp(value)
    if found is None:
        raise _conversion(value, "google.protobuf.Timestamp")
    return found


def _in_time(nanoseconds: int) -> Timestamp:
    """Times end with the year 9999."""
    if not -62135596800 * _SECOND <= nanoseconds < 253402300800 * _SECOND:
        raise CelError("timestamp overflow")
    return Timestamp(nanoseconds)


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Duration(value)
    _needs(isinstance(value, str))
    found = parse_duration(value)
    if found is None:
        raise _conversion(value, "google.protobuf.Duration")
    return found


# Arithmetic


def add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if _same_number(left, right):
        return _limited(left, left + right)
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left + right
    if isinstance(left, Duration) and isinstance(right, Duration):
        return _span(left.nanoseconds + right.nanoseconds)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return _in_time(left.nanoseconds + right.nanoseconds)
    if isinstance(left, Duration) and isinstance(right, Timestamp):
        return _in_time(left.nanoseconds + right.nanoseconds)
    raise CelError(NO_OVERLOAD)


def subtract(left: Any, right: Any) -> Any:
    if _same_number(left, right):
        return _limited(left, left - right)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return _in_time(left.nanoseconds - right.nanoseconds)
    if type_name(left) == type_name(right) and isinstance(left, (Timestamp, Duration)):
        return _span(left.nanoseconds - right.nanoseconds)
    raise CelError(NO_OVERLOAD)


def _span(nanoseconds: int) -> Duration:
    if not -(1 << 63) <= nanoseconds < 1 << 63:
        raise CelError("duration overflow")
    return Duration(nanoseconds)


def _same_number(left: Any, right: Any) -> bool:
    return is_number(left) and type_name(left) == type_name(right)


def _limited(model: Any, value: Any) -> Any:
    if isinstance(model, float):
        return value
    return checked_uint(value) if isinstance(model, UInt) else checked_int(value)


def multiply(left: Any, right: Any) -> Any:
    _needs(_same_number(left, right))
    return _limited(left, left * right)


def divide(left: Any, right: Any) -> Any:
    _needs(_same_number(left, right))
    if isinstance(left, float):
        if right == 0:
            return (
                math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
            )
        return left / right
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return _limited(left, quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> Any:
    _needs(_same_number(left, right) and not isinstance(left, float))
    if right == 0:
        raise CelError("modulus by zero")
    rest = abs(left) % abs(right)
    return _limited(left, -rest if left < 0 else rest)


def negate(value: Any) -> Any:
    _needs(is_number(value) and not isinstance(value, UInt))
    return _limited(value, -value)


# Collections


def size(value: Any) -> int:
    _needs(isinstance(value, (str, bytes, list, dict)))
    return len(value)


def index(container: Any, key: Any) -> Any:
    if isinstance(container, Optional):
        return optional_index(container, key)
    if isinstance(container, dict):
        key = _map_key(key)
        if key in container:
            return container[key]
        raise CelError(f"no such key: {key}")
    _needs(isinstance(container, list))
    place = _place(key)
    if not 0 <= place < len(container):
        raise CelError(f"index out of bounds: {place}")
    return container[place]


def _place(key: Any) -> int:
    if isinstance(key, bool) or not isinstance(key, (int, float)) or key != int(key):
        raise CelError(f"unsupported index type '{type_name(key)}' in list")
    return int(key)


def _map_key(key: Any) -> Any:
    if isinstance(key, (list, dict)):
        raise CelError(f"unsupported key type: {type_name(key)}")
    return key


def optional_index(container: Any, key: Any) -> Optional:
    if isinstance(container, Optional):
        if not container.present:
            return NONE
        container = container.value
    if isinstance(container, dict):
        return Optional(container[key], present=True) if key in container else NONE
    _needs(isinstance(container, list))
    place = _place(key)
    return Optional(container[place], present=True) if 0 <= place < len(container) else NONE


def is_in(item: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return not isinstance(item, (list, dict)) and item in container
    _needs(isinstance(container, list))
    return any(equals(item, entry) for entry in container)


def _index_of(container: Any, item: Any, *start: int) -> int:
    if isinstance(container, str):
        return index_of(container, item, *start)
    _needs(isinstance(container, list))
    return next((place for place, member in enumerate(container) if equals(item, member)), -1)


def _last_index_of(container: Any, item: Any, *end: int) -> int:
    if isinstance(container, str):
        return last_index_of(container, item, *end)
    _needs(isinstance(container, list))
    return next((place for place in range(len(container) - 1, -1, -1) if equals(item, container[place])), -1)


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def found(values: list[Any]) -> Any:
        _needs(isinstance(values, list))
        if not values:
            raise CelError(f"{name} called on empty list")
        best = values[0]
        for value in values[1:]:
            if compare(value, best) * sign > 0:
                best = value
        return best

    return found


def _sum(values: list[Any]) -> Any:
    total: Any = 0
    for place, member in enumerate(values):
        total = member if place == 0 else add(total, member)
    return total


def _is_sorted(values: list[Any]) -> bool:
    return all(compare(one, other) <= 0 for one, other in pairwise(values))


def ordered(values: list[Any], keys: list[Any]) -> list[Any]:
    """Values in the order of their keys, which must be of one kind."""
    if any(type_name(key) != type_name(keys[0]) for key in keys):
        raise CelError("list elements must have the same type")
    by_key = cmp_to_key(compare)
    return [values[place] for place in sorted(range(len(keys)), key=lambda place: by_key(keys[place]))]


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(equals(value, other) for other in kept):
            kept.append(value)
    return kept


def _flatten(values: list[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat.extend(value if isinstance(value, list) else [value])
    return flat


def _range(count: int) -> list[int]:
    if count > 1_000_000:
        raise CelError(f"lists.range: size {count} is too large")
    return list(range(count))


def _contains_all(values: list[Any], wanted: list[Any]) -> bool:
    return all(is_in(item, values) for item in wanted)


# Times


def _zone(name: str) -> tzinfo:
    offset = re.fullmatch(r"([+-]?)([0-9]{2}):([0-9]{2})", name)
    if offset:
        seconds = int(offset[2]) * 3600 + int(offset[3]) * 60
        return timezone(timedelta(seconds=-seconds if offset[1] == "-" else seconds))
    try:
        return ZoneInfo(name) if name != "UTC" else UTC
    except (OSError, ValueError):
        raise CelError(f"unknown time zone {name}") from None


def _part(read: Callable[[Any], int], unit: int = 0) -> Callable[..., int]:
    """A part of a moment in a zone; of a span, how many whole units it has."""

    def part(value: Any, zone: str = "UTC") -> int:
        if isinstance(value, Duration) and unit:
            return int(value.nanoseconds / unit)
        _needs(isinstance(value, Timestamp))
        return read(value.moment().astimezone(_zone(zone)))

    return part


def _non_zero(value: Any) -> Optional:
    empty = value is None or value is False or value in (0, "", b"", [], {}) or value == Duration(0)
    return NONE if empty else Optional(value, present=True)


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "_[_]": index,
    "_[?_]": optional_index,
    "@in": is_in,
    "size": size,
    "type": lambda value: TypeValue(type_name(value)),
    "dyn": lambda value: value,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "bool": to_bool,
    "bytes": to_bytes,
    "string": to_string,
    "timestamp": to_timestamp,
    "duration": to_duration,
    **STRINGS,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "isSorted": _is_sorted,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "sum": _sum,
    "sort": lambda values: ordered(values, values) if values else [],
    "flatten": _flatten,
    "slice": _slice,
    "distinct": _distinct,
    "reverse": lambda values: values[::-1],
    "first": lambda values: Optional(values[0], present=True) if values else NONE,
    "last": lambda values: Optional(values[-1], present=True) if values else NONE,
    "lists.range": _range,
    "sets.contains": _contains_all,
    "sets.equivalent": lambda one, other: _contains_all(one, other) and _contains_all(other, one),
    "sets.intersects": lambda one, other: any(is_in(item, other) for item in one),
    "getFullYear": _part(lambda moment: int(moment.year)),
    "getMonth": _part(lambda moment: int(moment.month) - 1),
    "getDayOfYear": _part(lambda moment: int(moment.timetuple().tm_yday) - 1),
    "getDayOfMonth": _part(lambda moment: int(moment.day) - 1),
    "getDate": _part(lambda moment: int(moment.day)),
    "getDayOfWeek": _part(lambda moment: int(moment.isoweekday()) % 7),
    "getHours": _part(lambda moment: int(moment.hour), 3600 * _SECOND),
    "getMinutes": _part(lambda moment: int(moment.minute), 60 * _SECOND),
    "getSeconds": _part(lambda moment: int(moment.second), _SECOND),
    "getMilliseconds": _part(lambda moment: int(moment.microsecond) // 1000, 1_000_000),
    "optional.of": lambda value: Optional(value, present=True),
    "optional.ofNonZeroValue": _non_zero,
    "optional.none": lambda: NONE,
    "value": _value,
    "hasValue": lambda optional: optional.present,
    "orValue": lambda optional, otherwise: optional.value if optional.present else otherwise,
    "or": lambda optional, otherwise: optional if optional.present else otherwise,
    "optional.unwrap": lambda values: [value.value for value in values if value.present],
    "unwrapOpt": lambda values: [value.value for value in values if value.present],
}
