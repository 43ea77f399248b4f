"""Write kubeserver/src/kubeserver/wire/builtin_messages.json: how the built-in kinds travel in protobuf.

Two sources are joined by field number. The `generated.proto` files of the Go modules k8s.io/api, apimachinery and
apiextensions-apiserver say which number and type a field has; the Go structs next to them say how the same field looks
in JSON: its name, whether it is a pointer (an explicit zero is kept), whether it is left out when empty, whether a
nested message is spread into its parent. Only such facts are taken. Kinds are those of the server's catalog.

A table's field is `[number, JSON name, type, flags]`; a type is a scalar of protobuf or a message of the table. Flags:
`r` a list, `m` a map with text keys, `p` a pointer, `o` left out when empty (omitempty), `z` left out when zero
(omitzero). A field without a name is spread into its parent. Messages with a JSON form of their own have it as `form`.

    python tools/extract_builtin_messages.py "$(go env GOMODCACHE)/k8s.io" v0.37.1
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from kubeserver.builtin.catalog import SUBRESOURCES, builtin_resources, type_name
from kubeserver.schemas.builtin_types import builtin_types

TARGET = Path(__file__).parent.parent / "kubeserver/src/kubeserver/wire/builtin_messages.json"

MODULES = ("api", "apimachinery", "apiextensions-apiserver")
SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})

_META = "apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "apiextensions-apiserver.pkg.apis.apiextensions.v1."

# Messages that Go marshals to JSON in its own way; wire/protobuf.py has a function for each form.
FORMS = {
    f"{_META}Time": "time",
    f"{_META}MicroTime": "microtime",
    "apimachinery.pkg.api.resource.Quantity": "quantity",
    "apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    f"{_META}FieldsV1": "json",
    f"{_EXTENSIONS}JSON": "json",
    f"{_EXTENSIONS}JSONSchemaPropsOrArray": "schema-or-array",
    f"{_EXTENSIONS}JSONSchemaPropsOrBool": "schema-or-bool",
    f"{_EXTENSIONS}JSONSchemaPropsOrStringArray": "schema-or-strings",
    "api.authentication.v1.AttestationValue": "items",
    "api.authentication.v1.ExtraValue": "items",
    "api.authorization.v1.ExtraValue": "items",
}
ANY_VERSION = {"DeleteOptions": f"{_META}DeleteOptions"}
MORE_KINDS = [("autoscaling", "v1", "Scale")]


class ProtoField(NamedTuple):
    number: int
    name: str
    type: str
    repeated: bool
    map: bool


class GoField(NamedTuple):
    name: str
    embedded: bool
    pointer: bool
    options: frozenset[str]


def main() -> None:
    cache, version = Path(sys.argv[1]), sys.argv[2]
    protos: dict[str, list[ProtoField]] = {}
    structs: dict[tuple[str, int], GoField] = {}
    for module in MODULES:
        root = cache / f"{module}@{version}"
        for path in sorted(root.rglob("generated.proto")):
            package = ".".join((module, *path.parent.relative_to(root).parts))
            protos |= proto_messages(path.read_text(), package)
            for source in sorted(path.parent.glob("*.go")):
                structs |= go_fields(source.read_text(), package)
    kinds = wanted_kinds()
    roots = [name for by_kind in kinds.values() for name in by_kind.values()]
    messages = reached(roots, protos, structs)
    parts = ['{"kinds":{', _lines(kinds), '},"messages":{', _lines(messages), "}}\n"]
    TARGET.write_text("\n".join(parts))
    print(f"{len(roots)} kinds, {len(messages)} messages, {TARGET.stat().st_size} bytes")


def _lines(table: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(key)}:{json.dumps(table[key], separators=(',', ':'))}" for key in sorted(table))


def wanted_kinds() -> dict[str, dict[str, str]]:
    """API version -> kind -> message, of all that the server may be sent; "*" stands for any version."""
    served = {
        (builtin_resource.group, builtin_resource.version, builtin_resource.kind)
        for builtin_resource in builtin_resources(builtin_types().__getitem__)
    }
    served |= {(subresource.kind_group, subresource.kind_version, subresource.kind) for subresource in SUBRESOURCES}
    found: dict[str, dict[str, str]] = {"*": ANY_VERSION}
    for group, version, kind in sorted(served | set(MORE_KINDS)):
        api_version = f"{group}/{version}" if group else version
        found.setdefault(api_version, {})[kind] = type_name(group, version, kind).removeprefix("io.k8s.")
    return found


COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
PROTO_FIELD = re.compile(r"(?:(optional|required|repeated)\s+|map<string,\s*)\.?([\w.]+)>?\s+(\w+)\s*=\s*(\d+)\s*;")


def proto_messages(text: str, package: str) -> dict[str, list[ProtoField]]:
    """The messages of a .proto file, under their full names."""
    found = {}
    for name, body in MESSAGE.findall(COMMENT.sub("", text)):
        statements = [line.strip() for line in body.splitlines() if line.strip()]
        fields = []
        for statement in statements:
            match = PROTO_FIELD.fullmatch(statement)
            if match is None:
                raise SystemExit(f"{package}.{name}: cannot read `{statement}`")
            label, type_, field, number = match.groups()
            if type_ not in SCALARS:
                type_ = _full_name(type_, package)
            fields.append(ProtoField(int(number), field, type_, label == "repeated", label is None))
        found[f"{package}.{name}"] = fields
    return found


def _full_name(name: str, package: str) -> str:
    if "." not in name:
        return f"{package}.{name}"
    return name.removeprefix("k8s.io.").replace("apiextensions_apiserver", "apiextensions-apiserver")


STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
GO_FIELD = re.compile(r"^\t(\w+[ \t]+)?(\*?)([^\s`]+)[ \t]+`([^`]*)`", re.MULTILINE)
PROTOBUF_TAG = re.compile(r'protobuf:"\w+,(\d+)')
JSON_TAG = re.compile(r'json:"([^"]*)"')


def go_fields(text: str, package: str) -> dict[tuple[str, int], GoField]:
    """(message, field number) -> how that field looks in JSON."""
    found = {}
    for struct, body in STRUCT.findall(text):
        for own_name, pointer, _, tags in GO_FIELD.findall(body):
            protobuf, in_json = PROTOBUF_TAG.search(tags), JSON_TAG.search(tags)
            if protobuf is None or in_json is None:
                continue
            name, *options = in_json[1].split(",")
            field = GoField(name, not own_name, bool(pointer), frozenset(options))
            found[f"{package}.{struct}", int(protobuf[1])] = field
    return found


def reached(
    roots: list[str], protos: dict[str, list[ProtoField]], structs: dict[tuple[str, int], GoField]
) -> dict[str, dict[str, Any]]:
    """The table's entry of every message that the kinds lead to."""
    found: dict[str, dict[str, Any]] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        fields = sorted(protos[name])
        form = FORMS.get(name)
        entry: dict[str, Any] = {"form": form} if form else {}
        if form:
            entry["fields"] = [[field.number, field.name, _raw(field, form), _flags(field)] for field in fields]
        else:
            entry["fields"] = [_joined(name, field, structs) for field in fields]
        found[name] = entry
        waiting += [field.type for field in fields if field.type not in SCALARS]
    return found


def _raw(field: ProtoField, form: str) -> str:
    return "json" if form == "json" and field.type == "bytes" else field.type


def _flags(field: ProtoField, go: GoField | None = None) -> str:
    """A message with a form of its own keeps whatever is present: its form decides, as if all were pointers."""
    flags = "r" if field.repeated else "m" if field.map else ""
    if go is None:
        return flags + "po"
    flags += "p" if go.pointer else ""
    flags += "o" if "omitempty" in go.options else ""
    return flags + ("z" if "omitzero" in go.options else "")


def _joined(message: str, field: ProtoField, structs: dict[tuple[str, int], GoField]) -> list[Any]:
    go = structs.get((message, field.number))
    if go is None:
        raise SystemExit(f"{message}.{field.name}: no Go field has number {field.number}; does it need a form?")
    if go.name == "-" or (not go.name and not go.embedded):
        raise SystemExit(f"{message}.{field.name}: not in JSON; does the message need a form?")
    return [field.number, go.name, field.type, _flags(field, go)]


if __name__ == "__main__":
    main()
