"""Bodies in protobuf are read as if they had come in JSON.

protobuf_vectors.json holds objects that Kubernetes' own serializers wrote in both encodings. Where a fact needs bytes
that no real client sends, the test writes them itself, field by field.
"""

from __future__ import annotations

import base64
import json
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.builtin.catalog import SUBRESOURCES, builtin_resources
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.wire.protobuf import DEEPEST, MAGIC, ProtobufError, TypeMeta, decode_kubernetes

HERE = Path(__file__).parent
VECTORS: dict[str, Any] = json.loads((HERE / "protobuf_vectors.json").read_text())
TABLE: dict[str, Any] = json.loads(
    (HERE.parents[2] / "kubeserver/src/kubeserver/wire/builtin_messages.json").read_text(),
)
CONFIG_MAP = TypeMeta("v1", "ConfigMap")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a message: a number as a varint, all else with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def body(message: bytes, kind: TypeMeta | None = CONFIG_MAP) -> bytes:
    meta = field(1, field(1, kind.api_version) + field(2, kind.kind)) if kind else b""
    return MAGIC + meta + field(2, message)


def refusal(sent: bytes, default: TypeMeta | None = None) -> str:
    with pytest.raises(ProtobufError) as caught:
        decode_kubernetes(sent, default)
    return str(caught.value)


def bytes_of(name: str) -> bytes:
    return base64.b64decode(VECTORS[name]["protobuf"])


# What Kubernetes writes


@pytest.mark.parametrize("name", VECTORS)
def test_an_object_reads_the_same_in_protobuf_and_in_json(name: str) -> None:
    read = decode_kubernetes(bytes_of(name))
    assert read == VECTORS[name]["json"]
    assert same_numbers(read, VECTORS[name]["json"])
    msgspec.json.encode(read)


def same_numbers(ours: Any, theirs: Any) -> bool:
    """Python takes 5.0 and True for 5 and 1; JSON does not."""
    if isinstance(ours, dict):
        return all(same_numbers(ours[name], theirs[name]) for name in ours)
    if isinstance(ours, list):
        return all(same_numbers(*pair) for pair in zip(ours, theirs, strict=True))
    return type(ours) is type(theirs)


def test_an_explicit_zero_of_a_pointer_is_kept() -> None:
    assert decode_kubernetes(bytes_of("deployment of zero replicas"))["spec"]["replicas"] == 0


def test_an_empty_value_vanishes_where_json_leaves_it_out() -> None:
    assert b"\x12\x00\x1a\x00" in bytes_of("empty configmap"), "the encoder did write empty names"
    assert decode_kubernetes(bytes_of("empty configmap"))["metadata"] == {}


# What the table covers


def test_every_kind_that_is_served_can_be_read() -> None:
    served = {
        (builtin_resource.api_version, builtin_resource.kind)
        for builtin_resource in builtin_resources(builtin_types().__getitem__)
    }
    for subresource in SUBRESOURCES:
        served.add((f"{subresource.kind_group}/{subresource.kind_version}".removeprefix("/"), subresource.kind))
    for version, kind in served:
        obj = decode_kubernetes(body(b"", TypeMeta(version, kind)))
        assert (obj["apiVersion"], obj["kind"]) == (version, kind)


def test_delete_options_belong_to_every_api_version() -> None:
    sent = body(field(1, 30), TypeMeta("apps/v1", "DeleteOptions"))
    assert decode_kubernetes(sent) == {"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 30}


def test_every_field_that_json_has_is_known_in_protobuf() -> None:
    schemas = json.loads((HERE.parents[2] / "kubeserver/src/kubeserver/schemas/builtin_schemas.json").read_text())
    compared = 0
    for name, message in TABLE["messages"].items():
        schema = schemas.get(f"io.k8s.{name}", {})
        if "properties" in schema:
            expected = set(schema["properties"])
            if "apiVersion" in expected and "apiVersion" not in names_in_json(name):
                expected -= {"apiVersion", "kind"}  # the envelope's
            assert names_in_json(name) == expected, name
            compared += 1
        assert "form" in message or "properties" in schema or name_is_spread(name) or not message["fields"], name
    assert compared > 300


def names_in_json(message: str) -> set[str]:
    found: set[str] = set()
    for _, name, type_, _ in TABLE["messages"][message]["fields"]:
        found |= {name} if name else names_in_json(type_)
    return found


def name_is_spread(message: str) -> bool:
    """Whether a message only exists inside of others, where JSON does not see it."""
    fields = (item for entry in TABLE["messages"].values() for item in entry["fields"])
    return any(not name and type_ == message for _, name, type_, _ in fields)


# What other encoders may write


def test_a_body_that_names_no_kind_is_of_the_expected_one() -> None:
    read = decode_kubernetes(body(field(1, field(1, "a")), kind=None), CONFIG_MAP)
    assert read == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def test_unknown_fields_and_groups_are_stepped_over() -> None:
    group = varint(99 << 3 | 3) + field(1, "x") + varint(7 << 3 | 3) + varint(7 << 3 | 4) + varint(99 << 3 | 4)
    fixed = varint(98 << 3 | 5) + b"1234" + varint(97 << 3 | 1) + b"12345678"
    strange = field(90, 5) + field(91, "later") + group + fixed
    read = decode_kubernetes(body(strange + field(1, strange + field(1, "a")) + field(2, field(1, "k") + strange)))
    assert read == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": ""}}


def test_a_field_sent_twice_is_merged_as_protobuf_says() -> None:
    first = field(1, field(1, "a") + field(3, "n") + field(14, "x"))
    again = field(1, field(1, "b") + field(3, "") + field(14, "y"))
    assert decode_kubernetes(body(first + again))["metadata"] == {"name": "b", "finalizers": ["x", "y"]}


def test_what_json_always_has_is_there_though_it_was_not_sent() -> None:
    read = decode_kubernetes(body(b"", TypeMeta("rbac.authorization.k8s.io/v1", "RoleBinding")))
    assert read["roleRef"] == {"apiGroup": "", "kind": "", "name": ""}
    assert read["metadata"] == {}


def test_packed_and_unpacked_lists_of_numbers_read_the_same() -> None:
    def groups(content: bytes) -> Any:
        pod = decode_kubernetes(body(field(2, field(14, content)), TypeMeta("v1", "Pod")))
        return pod["spec"]["securityContext"].get("supplementalGroups")

    assert groups(field(4, 1) + field(4, -2)) == [1, -2]
    assert groups(field(4, varint(1) + varint(-2))) == [1, -2]
    assert groups(field(4, b"")) is None


def test_a_short_negative_number_keeps_its_sign() -> None:
    kind = TypeMeta("scheduling.k8s.io/v1", "PriorityClass")
    assert decode_kubernetes(body(field(2, -5), kind))["value"] == -5
    assert decode_kubernetes(body(field(2, 0xFFFF_FFFF), kind))["value"] == -1


def test_bytes_that_are_no_text_are_shown_as_go_shows_them() -> None:
    sent = body(field(2, field(1, "k") + field(2, b"a\xff\xe2\x82z\xf0\x9f\x98")))
    assert decode_kubernetes(sent)["data"] == {"k": "a\ufffd\ufffd\ufffdz\ufffd\ufffd\ufffd"}


@pytest.mark.parametrize(
    ("seconds", "nanos", "expected"),
    [
        (0, 0, "1970-01-01T00:00:00.000000Z"),
        (-62_135_596_800, 0, None),
        (-1, 999_999_999, "1969-12-31T23:59:59.999999Z"),
        (253_402_300_799, 0, "9999-12-31T23:59:59.000000Z"),
        (10, -1500, "1970-01-01T00:00:09.999999Z"),
    ],
)
def test_a_moment_is_written_with_six_digits(seconds: int, nanos: int, expected: str | None) -> None:
    moment = field(1, seconds) + field(2, nanos)
    lease = decode_kubernetes(body(field(2, field(4, moment)), TypeMeta("coordination.k8s.io/v1", "Lease")))
    assert lease["spec"] == {"renewTime": expected}


# What is refused


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "empty data"),
        (MAGIC, "empty body"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (MAGIC + b"abcabc", "unexpected EOF"),
        (body(b"\x00"), "proto: ConfigMap: illegal tag 0 (wire type 0)"),
        (body(b"\x0c"), "proto: ConfigMap: wiretype end group for non-group"),
        (body(b"\x0f"), "proto: wrong wireType = 7 for field ObjectMeta"),
        (body(field(1, 5)), "proto: wrong wireType = 0 for field ObjectMeta"),
        (body(varint(50 << 3 | 7)), "proto: illegal wireType 7"),
        (body(varint(50 << 3 | 3) + field(1, 1)), "unexpected EOF"),
        (body(varint(50 << 3 | 1) + b"1234"), "unexpected EOF"),
        (body(b"\x0a"), "unexpected EOF"),
        (body(b"\x0a\x05abc"), "unexpected EOF"),
        (body(b"\x0a\x03" + field(1, "longer than said")), "unexpected EOF"),
        (body(b"\x0a" + varint(-1)), "proto: negative length found during unmarshaling"),
        (body(b"\xff" * 11), "proto: integer overflow"),
        (body(b"", None), "Object 'Kind' is missing in the protobuf envelope"),
        (
            body(b"", TypeMeta("v1", "Nonsense")),
            'no kind "Nonsense" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_in_the_words_of_kubernetes(sent: bytes, why: str) -> None:
    assert refusal(sent) == why


def test_a_refusal_says_which_kind_was_being_read() -> None:
    with pytest.raises(ProtobufError) as inside:
        decode_kubernetes(body(b"\x00", None), CONFIG_MAP)
    with pytest.raises(ProtobufError) as before:
        decode_kubernetes(MAGIC + b"\x00")
    assert (inside.value.kind, before.value.kind) == (CONFIG_MAP, None)


def in_schema(content: bytes) -> bytes:
    """A custom resource definition whose schema has this content."""
    version = field(1, "v1") + field(4, field(1, content))
    return body(field(2, field(7, version)), TypeMeta("apiextensions.k8s.io/v1", "CustomResourceDefinition"))


@pytest.mark.parametrize("raw", [b"{", b"\xff", b"[" * 100_000, b"1 2"])
def test_raw_json_must_be_json(raw: bytes) -> None:
    assert refusal(in_schema(field(8, field(1, raw)))).startswith("a field of raw JSON does not hold JSON")


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_json_cannot_write_is_refused(number: float) -> None:
    sent = in_schema(varint(9 << 3 | 1) + struct.pack("<d", number))
    assert refusal(sent).startswith("json: unsupported value")


def test_a_time_that_no_calendar_has_is_refused() -> None:
    assert "years 1 to 9999" in refusal(body(field(1, field(8, field(1, 1 << 60)))))


def nested_schema(depth: int) -> bytes:
    content = b""
    for _ in range(depth):
        content = field(28, content)
    return in_schema(content)


def test_nesting_is_limited() -> None:
    assert decode_kubernetes(nested_schema(50))["kind"] == "CustomResourceDefinition"
    assert f"nested more than {DEEPEST} deep" in refusal(nested_schema(100_000))


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(noise: bytes) -> None:
    for kind in (CONFIG_MAP, TypeMeta("v1", "Pod"), TypeMeta("apiextensions.k8s.io/v1", "CustomResourceDefinition")):
        for sent in (noise, MAGIC + noise, body(noise, kind), body(field(1, noise), kind), body(field(2, noise), kind)):
            read_or_refused(sent)


@given(st.sampled_from(sorted(VECTORS)), st.data())
def test_no_damage_to_real_bytes_does_more_than_be_refused(name: str, data: st.DataObject) -> None:
    sent = bytearray(bytes_of(name))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(sent) - 1))
        sent[at] = data.draw(st.integers(0, 255))
    read_or_refused(bytes(sent))
    read_or_refused(bytes(sent[: data.draw(st.integers(0, len(sent)))]))


def read_or_refused(sent: bytes) -> None:
    with suppress(ProtobufError):
        msgspec.json.encode(decode_kubernetes(sent, CONFIG_MAP))


def test_a_small_object_costs_little() -> None:
    sent = bytes_of("configmap")
    decode_kubernetes(sent)
    rounds = []
    for _ in range(20):
        begun = time.perf_counter()
        for _ in range(50):
            decode_kubernetes(sent)
        rounds.append((time.perf_counter() - begun) / 50)
    assert min(rounds) < 100e-6, "a ConfigMap takes about 25 microseconds"
