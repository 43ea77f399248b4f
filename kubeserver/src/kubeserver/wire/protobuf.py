"""Objects that arrive in Kubernetes' protobuf encoding, turned into what their JSON would have been.

Clients written in Go send built-in kinds this way. A body is four magic bytes and an envelope: which kind it is, and
the kind's message. What the numbers in a message mean is in builtin_messages.json, which `tools/
extract_builtin_messages.py` writes from the published descriptions.

Reading does what Go does when it decodes protobuf and then writes JSON. An encoder in Go writes every field that is
not a pointer, empty or not; its JSON leaves empty ones out where the struct says so, and writes `null` or zero where
it does not. The table knows which is which, so the rest of the server cannot tell the two encodings apart.

The input is not trusted: lengths are checked before use, nesting is limited, unknown fields are stepped over, and
everything that is wrong ends in a `ProtobufError`, worded as Kubernetes words it.
"""

from __future__ import annotations

import codecs
import struct
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
DEEPEST: Final = 100  # messages in messages; a pod needs 12, a far nested schema of a custom resource some 50

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_START_GROUP: Final = 3
_END_GROUP: Final = 4
_FIXED32: Final = 5
_CUT_SHORT: Final = "unexpected EOF"


class ProtobufError(ValueError):
    """A body that cannot be read. `kind` is what it said it is, if reading came so far."""

    kind: TypeMeta | None = None


class TypeMeta(NamedTuple):
    api_version: str
    kind: str


def decode_kubernetes(body: bytes, default: TypeMeta | None = None) -> Json:
    """The object in a body, as its JSON would be; a body that does not name its kind is of the `default` kind."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(MAGIC):
        shown = " ".join(str(number) for number in MAGIC)
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{shown}]")
    if len(body) == len(MAGIC):
        raise ProtobufError("empty body")
    messages = _messages()
    envelope = _read(_ENVELOPE, body, len(MAGIC), len(body), {}, 0)
    meta = envelope["typeMeta"]
    found = TypeMeta(meta.get("apiVersion", ""), meta.get("kind", ""))
    if default is not None:
        found = TypeMeta(found.api_version or default.api_version, found.kind or default.kind)
    message = messages.of_kind(found)
    obj: Json = {"kind": found.kind, "apiVersion": found.api_version}
    raw = envelope.get("raw", b"")
    try:
        return _read(message, raw, 0, len(raw), obj, 0)
    except ProtobufError as problem:
        problem.kind = found
        raise


# The table


@dataclass(slots=True)
class _Field:
    name: str
    number: int
    wire: int
    text: bool = False
    convert: Callable[[Any], Any] | None = None  # what to make of a number or of bytes
    message: _Message | None = None
    repeated: bool = False
    map_value: _Field | None = None
    drop_empty: bool = False


@dataclass(slots=True)
class _Message:
    name: str
    by_tag: dict[int, _Field] = field(default_factory=dict)
    by_number: dict[int, _Field] = field(default_factory=dict)
    inlined: list[_Message] = field(default_factory=list)
    always: list[tuple[str, _Message | None, Any]] = field(default_factory=list)  # what is there even when not sent
    form: Callable[[Json], Any] | None = None

    def add(self, each: _Field) -> None:
        self.by_tag[each.number << 3 | each.wire] = each
        self.by_number[each.number] = each


class _Messages(NamedTuple):
    kinds: dict[str, dict[str, str]]
    by_name: dict[str, _Message]

    def of_kind(self, wanted: TypeMeta) -> _Message:
        version, kind = wanted
        if not kind or not version:
            missing = "Kind" if not kind else "apiVersion"
            raise ProtobufError(f"Object '{missing}' is missing in the protobuf envelope")
        name = self.kinds.get(version, {}).get(kind) or self.kinds["*"].get(kind)
        if name is None:
            problem = ProtobufError(
                f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
            )
            problem.kind = wanted
            raise problem
        return self.by_name[name]


@cache
def _messages() -> _Messages:
    text = files("kubeserver.wire").joinpath("builtin_messages.json").read_bytes()
    table = msgspec.json.decode(text)
    by_name = {name: _Message(name.rpartition(".")[2]) for name in table["messages"]}
    for name, entry in table["messages"].items():
        _fill(by_name[name], entry, by_name)
    return _Messages(table["kinds"], by_name)


def _fill(message: _Message, entry: Json, by_name: dict[str, _Message]) -> None:
    message.form = _FORMS[entry["form"]] if "form" in entry else None
    for number, name, type_, flags in entry["fields"]:
        each = _typed(name, number, type_, by_name)
        pointer, optional = "p" in flags, "o" in flags
        if "m" in flags:
            each = _Field(name, number, _BYTES, map_value=each)
        each.repeated = "r" in flags
        message.add(each)
        plain = not (each.repeated or each.map_value or pointer)
        if not name:
            assert each.message is not None, "only messages are spread into their parent"
            message.inlined.append(each.message)
        elif plain and each.message:
            each.drop_empty = "z" in flags
            if not each.drop_empty:
                message.always.append((name, each.message, None))
        elif plain and optional:
            each.drop_empty = True
        elif not optional:
            message.always.append((name, None, _ZEROS.get(type_) if plain else None))


_ZEROS: Final[dict[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}


def _typed(name: str, number: int, type_: str, by_name: dict[str, _Message]) -> _Field:
    match type_:
        case "string":
            return _Field(name, number, _BYTES, text=True)
        case "bytes":
            return _Field(name, number, _BYTES, convert=lambda value: b64encode(value).decode())
        case "raw":
            return _Field(name, number, _BYTES, convert=bytes)
        case "json":
            return _Field(name, number, _BYTES, convert=_embedded_json)
        case "bool":
            return _Field(name, number, _VARINT, convert=bool)
        case "int32":
            return _Field(name, number, _VARINT, convert=_int32)
        case "int64":
            return _Field(name, number, _VARINT, convert=_int64)
        case "double":
            return _Field(name, number, _FIXED64, convert=_double)
        case _:
            return _Field(name, number, _BYTES, message=by_name[type_])


# Values


def _int32(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def _int64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _double(value: bytes) -> float:
    number: float = struct.unpack("<d", value)[0]
    if not isfinite(number):
        raise ProtobufError(f"json: unsupported value: {number}")
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number  # Go writes 5, not 5.0


def _embedded_json(value: bytes) -> Any:
    if not value:
        return None
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtobufError(f"a field of raw JSON does not hold JSON: {error}") from None


def _one_byte_each(error: UnicodeError) -> tuple[str, int]:
    """Go shows every byte that is no UTF-8 as one U+FFFD; Python would take several bytes for one."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


codecs.register_error("kubeserver.go", _one_byte_each)


# Messages whose JSON is not an object of their fields

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # all in UTC, written with a Z
_ZERO_TIME: Final = -62_135_596_800  # the year 1, Go's unset time


def _time(fields: Json) -> str | None:
    return _rfc3339(fields, 0, "seconds")


def _micro_time(fields: Json) -> str | None:
    return _rfc3339(fields, int(fields.get("nanos", 0) / 1000), "microseconds")


def _rfc3339(fields: Json, microseconds: int, precision: str) -> str | None:
    seconds = fields.get("seconds", 0)
    if not fields or (seconds == _ZERO_TIME and not microseconds):
        return None
    try:
        return (_EPOCH + timedelta(seconds=seconds, microseconds=microseconds)).isoformat(timespec=precision) + "Z"
    except OverflowError:
        raise ProtobufError(f"Time: {seconds} seconds are outside of the years 1 to 9999") from None


def _int_or_string(fields: Json) -> int | str:
    match fields.get("type", 0):
        case 0:
            number: int = fields.get("intVal", 0)
            return number
        case 1:
            text: str = fields.get("strVal", "")
            return text
        case other:
            raise ProtobufError(f"impossible IntOrString.Type: {other}")


_FORMS: Final[dict[str, Callable[[Json], Any]]] = {
    "time": _time,
    "microtime": _micro_time,
    "quantity": lambda fields: fields.get("string", "0"),
    "int-or-string": _int_or_string,
    "json": lambda fields: next(iter(fields.values()), None),
    "items": lambda fields: fields.get("items", []),
    "schema-or-array": lambda fields: fields.get("jSONSchemas") or fields.get("schema"),
    "schema-or-bool": lambda fields: fields.get("schema", fields.get("allows", False)),
    "schema-or-strings": lambda fields: fields.get("property") or fields.get("schema"),
}

_ENVELOPE: Final = _Message("Unknown")
_fill(
    _ENVELOPE,
    {"fields": [[1, "typeMeta", "TypeMeta", ""], [2, "raw", "raw", "po"]]},
    {"TypeMeta": (_type_meta := _Message("TypeMeta"))},
)
_fill(_type_meta, {"fields": [[1, "apiVersion", "string", "o"], [2, "kind", "string", "o"]]}, {})


# Reading


def _read(message: _Message, data: bytes, at: int, end: int, into: Json, depth: int) -> Json:
    """Read a message's fields between two positions; what a field said before is replaced, merged or added to."""
    if depth > DEEPEST:
        raise ProtobufError(f"proto: {message.name}: messages are nested more than {DEEPEST} deep")
    by_tag = message.by_tag
    while at < end:
        start = at
        tag = data[at]
        at += 1
        if tag > 127:
            tag, at = _varint(data, start, end)
        each = by_tag.get(tag)
        if each is None:
            at = _unlisted(message, tag, data, start, at, end, into)
            continue
        value: Any
        if each.wire == _BYTES:
            at, stop = _extent(data, at, end)
            if each.text:
                value = _text(data, at, stop)
            elif each.message is not None:
                _nested(each, each.message, data, at, stop, into, depth + 1)
                at = stop
                continue
            elif each.map_value is not None:
                key, value = _entry(each.map_value, data, at, stop, depth + 1)
                into.setdefault(each.name, {})[key] = value
                at = stop
                continue
            else:
                assert each.convert is not None
                value = each.convert(data[at:stop])
            at = stop
        else:
            value, at = _number(each, data, at, end)
        if each.repeated:
            into.setdefault(each.name, []).append(value)
        elif value or not each.drop_empty:
            into[each.name] = value
        else:
            into.pop(each.name, None)
    _complete(message, into)
    return into


def _complete(message: _Message, into: Json) -> None:
    """Add what JSON has even if it was not sent: a Go struct has all of its fields."""
    for name, nested, zero in message.always:
        if name not in into:
            into[name] = zero if nested is None else _empty(nested)
    for inlined in message.inlined:
        _complete(inlined, into)


def _empty(message: _Message) -> Any:
    into: Json = {}
    _complete(message, into)
    return into if message.form is None else message.form(into)


def _nested(each: _Field, message: _Message, data: bytes, at: int, stop: int, into: Json, depth: int) -> None:
    if not each.name:
        _read(message, data, at, stop, into, depth)
        return
    before = None if each.repeated or message.form else into.get(each.name)
    value: Any = _read(message, data, at, stop, {} if before is None else before, depth)
    if message.form is not None:
        value = message.form(value)
    if each.repeated:
        into.setdefault(each.name, []).append(value)
    elif value is not None or not each.drop_empty:
        into[each.name] = value
    else:
        into.pop(each.name, None)


def _entry(value_field: _Field, data: bytes, at: int, end: int, depth: int) -> tuple[str, Any]:
    """A map's entry is a message of its own: the key is its field 1, the value its field 2."""
    found: Json = {}
    key = ""
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        if tag == 1 << 3 | _BYTES:
            at, stop = _extent(data, at, end)
            key = _text(data, at, stop)
            at = stop
        elif tag == 2 << 3 | _BYTES:
            at, stop = _extent(data, at, end)
            if value_field.message is not None:
                _nested(value_field, value_field.message, data, at, stop, found, depth)
            elif value_field.text:
                found[value_field.name] = _text(data, at, stop)
            else:
                assert value_field.convert is not None
                found[value_field.name] = value_field.convert(data[at:stop])
            at = stop
        else:
            at = _skip("map entry", tag, data, start, at, end)
    if value_field.name in found:
        return key, found[value_field.name]
    if value_field.message is not None:
        return key, _empty(value_field.message)
    return key, ""


def _number(each: _Field, data: bytes, at: int, end: int) -> tuple[Any, int]:
    assert each.convert is not None
    if each.wire == _FIXED64:
        if at + 8 > end:
            raise ProtobufError(_CUT_SHORT)
        return each.convert(data[at : at + 8]), at + 8
    value, at = _varint(data, at, end)
    return each.convert(value), at


def _unlisted(message: _Message, tag: int, data: bytes, start: int, at: int, end: int, into: Json) -> int:
    """A tag that is not in the table: numbers packed into one field, a mistake, or a field of the future."""
    each = message.by_number.get(tag >> 3)
    if each is None or tag & 7 == _END_GROUP:
        return _skip(message.name, tag, data, start, at, end)
    if not (each.repeated and tag & 7 == _BYTES):
        name = each.name[:1].upper() + each.name[1:]
        if each.message is not None and each.name in ("", "metadata"):
            name = each.message.name  # embedded: Go names the field after its type
        raise ProtobufError(f"proto: wrong wireType = {tag & 7} for field {name}")
    at, stop = _extent(data, at, end)
    while at < stop:
        value, at = _number(each, data, at, stop)
        into.setdefault(each.name, []).append(value)
    return stop


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")
    raise ProtobufError(_CUT_SHORT)


def _extent(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where a field with a length begins and ends."""
    if at >= end:
        raise ProtobufError(_CUT_SHORT)
    size = data[at]
    if size > 127:
        size, at = _varint(data, at, end)
        if size >> 63:
            raise ProtobufError("proto: negative length found during unmarshaling")
    else:
        at += 1
    stop = at + size
    if stop > end:
        raise ProtobufError(_CUT_SHORT)
    return at, stop


def _text(data: bytes, at: int, stop: int) -> str:
    return data[at:stop].decode("utf-8", "kubeserver.go")


def _skip(message: str, tag: int, data: bytes, start: int, at: int, end: int) -> int:
    """Step over a field that is not known, with all that a group holds."""
    number = _int32(tag >> 3)
    if tag & 7 == _END_GROUP:
        raise ProtobufError(f"proto: {message}: wiretype end group for non-group")
    if number <= 0:
        raise ProtobufError(f"proto: {message}: illegal tag {number} (wire type {tag})")
    open_groups = 0
    at = start
    while at < end:
        tag, at = _varint(data, at, end)
        match tag & 7:
            case 0:
                _, at = _varint(data, at, end)
            case 1:
                at += 8
            case 2:
                _, at = _extent(data, at, end)
            case 3:
                open_groups += 1
            case 4:
                if open_groups == 0:
                    raise ProtobufError("proto: unexpected end of group")
                open_groups -= 1
            case 5:
                at += 4
            case other:
                raise ProtobufError(f"proto: illegal wireType {other}")
        if open_groups == 0:
            break
    if at > end or open_groups:
        raise ProtobufError(_CUT_SHORT)
    return at
