"""Objects as clients send them, taken in as Kubernetes takes them in.

Built-in kinds are decoded into Go structs there, custom kinds into maps; both show in what is refused and in what is
left of an object. This module does to a parsed object what that decoding would: a value of the wrong type is refused
with Go's message, a null is dropped, an unknown field is dropped and reported, an empty value vanishes where the Go
struct says so. Only `metadata` of a custom resource is a struct; the rest is the business of its schema.

`read` is the whole way from a body to an object. It decides nothing about the object's content.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubeserver.schemas.builtin_types import OBJECT_META, builtin_types
from kubeserver.schemas.pruning import prune
from kubeserver.wire.goformat import number, quote
from kubeserver.wire.gojson import Repeated, TextError, read_json, read_yaml
from kubeserver.wire.protobuf import ProtobufError, TypeMeta, decode_kubernetes
from kubeserver.wire.status import ApiError, FieldError, bad_request, invalid

if TYPE_CHECKING:
    from kubeserver.resources import Resource
    from kubeserver.schemas.schema import Schema

Json = dict[str, Any]

_SHOWN_BYTES: Final = 30
MOST_COMPLAINTS: Final = 100


class Mistyped(ValueError):
    """A value that does not fit the Go type of its field; the text is that of Go's JSON decoder."""


class Decoded(NamedTuple):
    obj: Json
    complaints: list[str]  # what strict decoding refuses: `unknown field "spec.x"`, `duplicate field "spec.y"`


def read(body: bytes, resource: Resource, *, yaml: bool = False, strict: bool = True) -> Decoded:
    """The object in a body; raises ApiError. Without `strict`, repeated fields are not looked for."""
    complaints: list[str] = []
    try:
        if yaml:
            value, complaints = read_yaml(body)
        else:
            value = read_json(body, find_repeated=strict)
    except TextError as problem:
        raise _unrecognized(resource.kind, str(problem) if yaml else f"{_NO_KIND}{problem}", body) from None
    return take(value, resource, complaints, body)


def read_protobuf(body: bytes, resource: Resource) -> Decoded:
    """The object of a built-in kind in a body in protobuf, where no field is unknown or repeated; raises ApiError."""
    try:
        value = decode_kubernetes(body, TypeMeta(resource.api_version, resource.kind))
    except ProtobufError as problem:
        if problem.kind is None:
            raise _unrecognized(resource.kind, str(problem), body) from None
        sent: Json = {"apiVersion": problem.kind.api_version, "kind": problem.kind.kind}
        _check_kind(sent, resource)  # a kind that does not belong here is the greater mistake
        raise _not_handled(sent, resource, str(problem)) from None
    return take(value, resource, body=body)


_NO_KIND: Final = "couldn't get version/kind; json parse error: "
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)


def _unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    if not body:
        excerpt = "<empty>"
    else:
        excerpt = body.decode("utf-8", "replace")[:_SHOWN_BYTES] if body[:1] == b"{" else body[:_SHOWN_BYTES].hex()
        excerpt += " ..." if len(body) > _SHOWN_BYTES else ""
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({excerpt})")


def take(value: Any, resource: Resource, complaints: list[str] | None = None, body: bytes = b"") -> Decoded:
    """A parsed value as an object of a resource; raises ApiError where Kubernetes refuses it."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        why = f"{_NO_KIND}json: cannot unmarshal {_json_kind(value)} into Go value of type {_TYPE_META}"
        raise _unrecognized(resource.kind, why, body)
    for name in ("apiVersion", "kind"):
        found = value.get(name)
        if found is not None and not isinstance(found, str):
            kind = _json_kind(found)
            why = f"{_NO_KIND}json: cannot unmarshal {kind} into Go struct field .{name} of type string"
            raise _unrecognized(resource.kind, why, body)
    if resource.custom:
        _check_custom_kind(value, resource, body)
    else:
        _check_kind(value, resource)
    try:
        found = custom(value, resource.schema) if resource.custom else builtin(value, resource.schema)
    except Mistyped as problem:
        raise _not_handled(value, resource, str(problem)) from None
    return Decoded(value, [*(complaints or ()), *found])


def _check_custom_kind(value: Json, resource: Resource, body: bytes) -> None:
    version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if not kind:
        text = body.decode("utf-8", "replace")
        raise _unrecognized(resource.kind, f"Object 'Kind' is missing in '{text}'", body)
    if version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
    if kind != resource.kind:
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        error = FieldError("FieldValueInvalid", "kind", f"must be {resource.kind}", kind)
        raise invalid(resource.group, kind, name if isinstance(name, str) else "", [error])


def _check_kind(value: Json, resource: Resource) -> None:
    version = value.get("apiVersion") or resource.api_version
    kind = value.get("kind") or resource.kind
    value["apiVersion"], value["kind"] = version, kind
    if version == resource.api_version and kind == resource.kind:
        return
    if (version, kind) in _known_kinds():
        package = resource.group.partition(".")[0] or "core"
        types = f"(v1.{kind}) to ({package}.{resource.kind})".replace("v1.", f"{version.rpartition('/')[2]}.", 1)
        raise _not_handled(value, resource, f"converting {types}: unknown conversion")
    known_version = any(known == version for known, _ in _known_kinds())
    if known_version or version.count("/") > 1 or "/" not in version:
        scheme = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise _not_handled(value, resource, scheme)
    raise bad_request(
        f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
    )


@cache
def _known_kinds() -> frozenset[tuple[str, str]]:
    """apiVersion and kind of everything there is a built-in type for."""
    found = set()
    for name in builtin_types():
        if name.startswith("io.k8s.api."):
            group, version, kind = name.removeprefix("io.k8s.api.").split(".")
            found.add((version if group == "core" else f"{_GROUPS.get(group, group)}/{version}", kind))
    return frozenset(found)


# Groups whose Go package is not named as they are
_GROUPS: Final = {
    name: f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "authentication",
        "authorization",
        "coordination",
        "discovery",
        "events",
        "networking",
        "scheduling",
        "storage",
    )
} | {"rbac": "rbac.authorization.k8s.io"}


def _not_handled(value: Json, resource: Resource, why: str) -> ApiError:
    version = str(value["apiVersion"]).rpartition("/")[2]
    return bad_request(f'{value["kind"]} in version "{version}" cannot be handled as a {resource.kind}: {why}')


def strict_error(decoded: Decoded, resource: Resource) -> ApiError:
    """The refusal for `fieldValidation=Strict`."""
    listed = ", ".join(decoded.complaints[:MOST_COMPLAINTS])
    return _not_handled(decoded.obj, resource, f"strict decoding error: {listed}")


# Custom kinds


def custom(value: Json, schema: Schema) -> list[str]:
    """Clean a custom resource in place; returns what strict decoding would refuse."""
    complaints: list[str] = []
    if isinstance(value, Repeated):
        complaints = [f'duplicate field "{path}"' for path in _repeated(value, "")]
    unknown: list[str] = []
    metadata = value.get("metadata")
    if metadata is None:
        value["metadata"] = {}
    else:
        meta_schema = builtin_types()[OBJECT_META]
        struct = _Struct()
        if not isinstance(metadata, dict):
            wanted = _go_type(meta_schema)
            raise Mistyped(f"json: cannot unmarshal {_json_kind(metadata)} into Go value of type {wanted}")
        struct.fields(meta_schema, metadata, _Way(step=".metadata"))
        struct.finish()
        unknown = sorted(complaint.split('"')[1] for complaint in struct.complaints if complaint.startswith("unknown"))
    unknown += prune(schema, value)
    return complaints + [f'unknown field "{path}"' for path in unknown]


def _repeated(value: Any, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):
        again = value.repeated if isinstance(value, Repeated) else ()
        for key, each in value.items():
            inner = f"{path}.{key}" if path else key
            if key in again:
                found.append(inner)
            if isinstance(each, (dict, list)):
                found += _repeated(each, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                found += _repeated(item, f"{path}[{index}]")
    return found


# Built-in kinds


def builtin(value: Json, schema: Schema) -> list[str]:
    """Decode a built-in object in place as into its Go struct; returns what strict decoding would refuse."""
    if isinstance(value, Repeated):
        _merge_repeated(value)
    struct = _Struct()
    struct.fields(schema, value, _Way())
    struct.finish()
    if not isinstance(value.get("metadata"), dict):
        value["metadata"] = {}
    return struct.complaints


def _merge_repeated(value: Any) -> None:
    """Go decodes a map that stands twice into the same map: nothing of the first is lost."""
    if isinstance(value, Repeated):
        value.update(value.merged)
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, (dict, list)):
            _merge_repeated(item)


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "null"


_EMPTY: Final[tuple[Any, ...]] = ("", 0, [], {})


def _is_empty(value: Any) -> bool:
    return value is False or (value.__class__ in (str, int, list, dict) and value in _EMPTY)


class _Way:
    """The way to a value. It is walked for every field and told only in complaints, so it is kept as steps."""

    __slots__ = ("above", "name", "owner", "step")

    def __init__(self, above: _Way | None = None, step: str = "", name: str = "", owner: Schema | None = None) -> None:
        self.above = above
        self.step = step  # as paths show it: `.name`, `[0]`
        self.name = name  # as Go's messages show it: without places and keys
        self.owner = owner

    def field(self, owner: Schema, name: str) -> _Way:
        return _Way(self, f".{name}", name, owner)

    def item(self, step: str) -> _Way:
        return _Way(self, step)

    def path(self, key: str) -> str:
        """Where a key of the value here stands, in the object."""
        steps = [f".{key}"]
        at: _Way | None = self
        while at is not None:
            steps.append(at.step)
            at = at.above
        return "".join(reversed(steps)).removeprefix(".")

    def label(self) -> str:
        """The field as Go names it: the struct it is in, then all fields from the decoded value on."""
        names: list[str] = []
        struct = ""
        at: _Way | None = self
        while at is not None:
            if at.name:
                names.append(at.name)
            if at.owner is not None and not struct:
                struct = at.owner.go_name
            at = at.above
        return ".".join([struct, *reversed(names)])


class _Struct:
    """One decoding: the first value of a wrong type is remembered, a text that does not parse ends it at once."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._first = ""

    def finish(self) -> None:
        if self._first:
            raise Mistyped(self._first)

    def fields(self, schema: Schema, value: Json, way: _Way) -> None:
        """The fields of a struct, in place."""
        repeated = value.repeated if isinstance(value, Repeated) else ()
        for key, found in list(value.items()):
            if key in repeated:
                self.complaints.append(f'duplicate field "{way.path(key)}"')
            child = schema.properties.get(key)
            if child is None:
                self.complaints.append(f'unknown field "{way.path(key)}"')
                del value[key]
                continue
            if found is None:
                del value[key]
                continue
            if found.__class__ is not str or child.type != "string" or child.name or child.format == "byte":
                value[key] = self.value(child, found, way.field(schema, key))
            if key in schema.omit and _is_empty(value[key]):
                del value[key]

    def value(self, schema: Schema, value: Any, way: _Way) -> Any:
        special = _SPECIAL.get(schema.name) if schema.name else None
        if special is not None:
            return special(value, way)
        if schema.name in _SCHEMA_OR_ELSE:
            return _schema_or_else(value)
        if schema.type == "object" or schema.properties:
            return self._object(schema, value, way)
        if schema.type == "array":
            if not isinstance(value, list):
                return self.wrong(value, _json_kind(value), way, _go_type(schema))
            items = schema.items
            if items is None:
                return value
            return [
                _zero(items) if item is None else self.value(items, item, way.item(f"[{index}]"))
                for index, item in enumerate(value)
            ]
        return self._scalar(schema, value, way)

    def _object(self, schema: Schema, value: Any, way: _Way) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, _json_kind(value), way, _go_type(schema))
        additional = schema.additional
        if additional is not None:
            repeated = value.repeated if isinstance(value, Repeated) else ()
            plain = additional.type == "string" and not additional.name and additional.format != "byte"
            for key, each in value.items():
                if key in repeated:
                    self.complaints.append(f'duplicate field "{way.path(key)}"')
                if each is None:
                    value[key] = _zero(additional)
                elif not plain or each.__class__ is not str:
                    value[key] = self.value(additional, each, way.item(f".{key}"))
        elif schema.properties or (schema.name and not schema.preserve_unknown):
            self.fields(schema, value, way)
        return value

    def _scalar(self, schema: Schema, value: Any, way: _Way) -> Any:
        kind = _json_kind(value)
        if schema.type == "string":
            if kind != "string":
                return self.wrong(value, kind, way, _go_type(schema))
            if schema.format == "byte":
                return _base64(value)
        elif schema.type == "boolean":
            if kind != "bool":
                return self.wrong(value, kind, way, _go_type(schema))
        elif schema.type == "integer":
            if kind != "number":
                return self.wrong(value, kind, way, _go_type(schema))
            bits = 31 if schema.format == "int32" else 63
            if isinstance(value, float) or not -(1 << bits) <= value < 1 << bits:
                text = number(value) if isinstance(value, float) else str(value)
                return self.wrong(value, f"number {text}", way, _go_type(schema))
        elif schema.type == "number" and kind != "number":
            return self.wrong(value, kind, way, _go_type(schema))
        return value

    def wrong(self, value: Any, found: str, way: _Way, wanted: str) -> Any:
        """Remember the first value of a wrong type; it stays where it is, the object is refused in the end."""
        if not self._first:
            self._first = str(_unmarshalled(found, way, wanted))
        return value


def _unmarshalled(found: str, way: _Way, wanted: str) -> Mistyped:
    return Mistyped(f"json: cannot unmarshal {found} into Go struct field {way.label()} of type {wanted}")


def _zero(schema: Schema) -> Any:
    """What Go holds where a list or map has null."""
    if schema.type == "object":
        return {}
    return {"string": "", "integer": 0, "boolean": False, "number": 0}.get(schema.type, [])


def _go_type(schema: Schema) -> str:
    if schema.go:
        return schema.go
    if schema.name:
        package = schema.name.rsplit(".", 2)[-2]
        return f"{package}.{schema.go_name}"
    if schema.type == "array":
        return f"[]{_go_type(schema.items)}" if schema.items is not None else "[]interface {}"
    if schema.type == "object":
        return f"map[string]{_go_type(schema.additional)}" if schema.additional is not None else "struct {}"
    if schema.type == "string":
        return "[]uint8" if schema.format == "byte" else "string"
    if schema.type == "integer":
        return schema.format or "int64"
    return {"boolean": "bool", "number": "float64"}.get(schema.type, "interface {}")


def _base64(text: str) -> str:
    plain = re.sub(r"[\r\n]", "", text)
    bad = re.search(r"[^A-Za-z0-9+/]", plain.rstrip("=") if plain.count("=") <= 2 else plain)
    if bad:
        raise Mistyped(f"illegal base64 data at input byte {bad.start()}")
    try:
        base64.b64decode(plain, validate=True)
    except binascii.Error:
        raise Mistyped(f"illegal base64 data at input byte {len(plain) // 4 * 4}") from None
    return plain


_QUANTITY: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")
_NO_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _quantity(value: Any, _: _Way) -> Any:
    text = value if isinstance(value, str) else None if isinstance(value, (bool, dict, list)) else number(value)
    if text is None or not _QUANTITY.fullmatch(text):
        if text == "":
            raise Mistyped("quantities must match the regular expression" + _NO_QUANTITY.partition("expression")[2])
        raise Mistyped(_NO_QUANTITY)
    return text


def _int_or_string(value: Any, way: _Way) -> Any:
    if isinstance(value, str):
        return value
    kind = _json_kind(value)
    if kind != "number":
        raise _unmarshalled(kind, way, "int32")
    if isinstance(value, float) or not -(1 << 31) <= value < 1 << 31:
        raise _unmarshalled(f"number {number(value)}", way, "int32")
    return value


_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


def _time(value: Any, way: _Way) -> Any:
    return _moment(value, way, "2006-01-02T15:04:05Z07:00")


def _micro_time(value: Any, way: _Way) -> Any:
    return _moment(value, way, "2006-01-02T15:04:05.000000Z07:00")


def _moment(value: Any, way: _Way, layout: str) -> Any:
    if not isinstance(value, str):
        raise _unmarshalled(_json_kind(value), way, "string")
    if not _TIME.fullmatch(value):
        raise Mistyped(_why_no_time(value, layout))
    return value


_ELEMENTS: Final = (
    ("2006", "[0-9]{4}"),
    ("-", "-"),
    ("01", "[0-9]{2}"),
    ("-", "-"),
    ("02", "[0-9]{2}"),
    ("T", "T"),
    ("15", "[0-9]{2}"),
    (":", ":"),
    ("04", "[0-9]{2}"),
    (":", ":"),
    ("05", "[0-9]{2}"),
    ("Z07:00", r"(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"),
)


def _why_no_time(text: str, layout: str) -> str:
    rest = text
    for element, pattern in _ELEMENTS:
        found = re.match(pattern, rest)
        if not found:
            return f'parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(rest)} as "{element}"'
        rest = rest[found.end() :]
    return f"parsing time {quote(text)}: extra text: {quote(rest)}"


def _anything(value: Any, _: _Way) -> Any:
    return value


def _schema_or_else(value: Any) -> Any:
    """A schema, or a list of schemas, a boolean or a list of names: Go decodes it apart, without complaints."""
    if isinstance(value, list):
        return [_schema_or_else(item) for item in value]
    if isinstance(value, dict):
        apart = _Struct()
        apart.fields(builtin_types()[f"{_EXTENSIONS}JSONSchemaProps"], value, _Way())
        apart.finish()
    return value


_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SCHEMA_OR_ELSE: Final = frozenset(f"{_EXTENSIONS}JSONSchemaPropsOr{what}" for what in ("Array", "Bool", "StringArray"))
_SPECIAL: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": _time,
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": _micro_time,
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": _anything,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _anything,
    f"{_EXTENSIONS}JSON": _anything,
}
