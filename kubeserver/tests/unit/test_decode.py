"""Bodies as clients send them: what is taken in, what is refused, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.resources import Resource
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.schemas.decode import read, strict_error
from kubeserver.schemas.schema import parse
from kubeserver.wire.gojson import TextError, read_json, read_yaml
from kubeserver.wire.status import ApiError

Json = dict[str, Any]

DEPLOYMENT = Resource(
    "apps",
    "v1",
    "deployments",
    "deployment",
    "Deployment",
    namespaced=True,
    schema=builtin_types()["io.k8s.api.apps.v1.Deployment"],
)
SECRET = Resource(
    "", "v1", "secrets", "secret", "Secret", namespaced=True, schema=builtin_types()["io.k8s.api.core.v1.Secret"]
)
CUSTOM = Resource(
    "example.org",
    "v1",
    "things",
    "thing",
    "Thing",
    namespaced=True,
    schema=parse({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {}}}}}),
    custom=True,
)
UNRECOGNIZED = (
    "the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: "
)
HANDLED = 'Deployment in version "v1" cannot be handled as a Deployment: '


def refusal(body: str | bytes, resource: Resource = DEPLOYMENT) -> str:
    with pytest.raises(ApiError) as refused:
        read(body if isinstance(body, bytes) else body.encode(), resource)
    assert refused.value.code == 400
    return refused.value.message


def deployment(**spec: Any) -> str:
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})


def pod(**spec: Any) -> str:
    return deployment(template={"spec": spec})


@pytest.mark.parametrize(
    ("body", "found", "field", "wanted"),
    [
        (deployment(replicas="x"), "string", "DeploymentSpec.spec.replicas", "int32"),
        (deployment(replicas=1.5), "number 1.5", "DeploymentSpec.spec.replicas", "int32"),
        (deployment(paused="x"), "string", "DeploymentSpec.spec.paused", "bool"),
        (
            deployment(strategy={"type": 5}),
            "number",
            "DeploymentStrategy.spec.strategy.type",
            "v1.DeploymentStrategyType",
        ),
        (
            deployment(strategy={"rollingUpdate": {"maxSurge": True}}),
            "bool",
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge",
            "int32",
        ),
        (pod(containers={}), "object", "PodSpec.spec.template.spec.containers", "[]v1.Container"),
        (
            deployment(selector={"matchLabels": []}),
            "array",
            "LabelSelector.spec.selector.matchLabels",
            "map[string]string",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_as_go_does(body: str, found: str, field: str, wanted: str) -> None:
    why = f"json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"
    assert refusal(body) == HANDLED + why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            pod(containers=[{"resources": {"limits": {"cpu": "x"}}}]),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            '{"metadata":{"creationTimestamp":"x"}}',
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
    ],
)
def test_a_text_that_does_not_parse_is_refused_as_go_does(body: str, why: str) -> None:
    assert refusal(body) == HANDLED + why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("bad json", "invalid character 'b' looking for beginning of value (626164206a736f6e)"),
        ("", "unexpected end of JSON input (<empty>)"),
        ('{"a":1', 'unexpected end of JSON input ({"a":1)'),
        ('{"a":1}x', "invalid character 'x' after top-level value ({\"a\":1}x)"),
        ('{"a" 1}', "invalid character '1' after object key ({\"a\" 1})"),
        ('{"a":1 "b"}', 'invalid character \'"\' after object key:value pair ({"a":1 "b"})'),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string ({a:1})"),
        ('{"a":[1 2]}', "invalid character '2' after array element ({\"a\":[1 2]})"),
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e') ({\"a\":tru})"),
        ('{"a":"\\x"}', 'invalid character \'x\' in string escape code ({"a":"\\x"})'),
        ('{"kind":5}', 'json: cannot unmarshal number into Go struct field .kind of type string ({"kind":5})'),
    ],
)
def test_what_is_no_json_is_refused_with_the_place(body: str, why: str) -> None:
    assert refusal(body) == UNRECOGNIZED + why


def test_unknown_and_repeated_fields_are_complaints_in_order() -> None:
    body = (
        b'{"apiVersion":"apps/v1","kind":"Deployment","spec":{"foo":1,"replicas":1,"replicas":2,'
        b'"template":{"spec":{"containers":[{"x":1,"name":"a","name":"b"}]}}},"Spec":1}'
    )
    decoded = read(body, DEPLOYMENT)
    assert decoded.complaints == [
        'unknown field "spec.foo"',
        'duplicate field "spec.replicas"',
        'unknown field "spec.template.spec.containers[0].x"',
        'duplicate field "spec.template.spec.containers[0].name"',
        'unknown field "Spec"',
    ]
    assert decoded.obj["spec"] == {"replicas": 2, "template": {"spec": {"containers": [{"name": "b"}]}}}
    assert strict_error(decoded, DEPLOYMENT).message.startswith(
        f'{HANDLED}strict decoding error: unknown field "spec.foo"'
    )


def test_a_text_that_only_looks_as_if_it_repeated_a_field_does_not() -> None:
    body = json.dumps({"kind": "Secret", "apiVersion": "v1", "stringData": {"a": 'x":"x', "b": '"a":1'}}).encode()
    assert read(body, SECRET).complaints == []


def test_nulls_vanish_from_structs_and_become_zero_in_maps() -> None:
    decoded = read(b'{"metadata":{"name":null},"stringData":{"a":null},"type":null}', SECRET)
    assert decoded.obj == {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": {"a": ""}}


def test_empty_values_vanish_where_the_struct_says_so() -> None:
    decoded = read(deployment(paused=False, replicas=0, minReadySeconds=0).encode(), DEPLOYMENT)
    assert decoded.obj["spec"] == {"replicas": 0}


def test_custom_resources_complain_about_repeated_fields_first() -> None:
    body = (
        b'{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a","nope":1},'
        b'"spec":{"z":1,"a":1,"a":2,"b":1}}'
    )
    assert read(body, CUSTOM).complaints == [
        'duplicate field "spec.a"',
        'unknown field "metadata.nope"',
        'unknown field "spec.b"',
        'unknown field "spec.z"',
    ]


def test_metadata_of_custom_resources_is_a_struct() -> None:
    body = '{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"labels":{"a":1}}}'
    assert refusal(body, CUSTOM) == (
        'Thing in version "v1" cannot be handled as a Thing: '
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    )


@pytest.mark.parametrize("metadata", [[], "x", 1, {"name": 5}, None])
def test_another_kind_is_refused_whatever_its_metadata_is(metadata: Any) -> None:
    body = json.dumps({"apiVersion": CUSTOM.api_version, "kind": "Other", "metadata": metadata})
    with pytest.raises(ApiError, match=f"must be {CUSTOM.kind}"):
        read(body.encode(), CUSTOM)


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    value, repeated = read_yaml(b"a: 2020-01-01\nb: yes\nc: 1e3\nd: 0x10\n1: x\ntrue: y\ne: '5'\n")
    assert value == {"a": "2020-01-01", "b": True, "c": 1000.0, "d": 16, "1": "x", "true": "y", "e": "5"}
    assert repeated == []


def test_repeated_keys_in_yaml_are_named_with_their_line() -> None:
    _, repeated = read_yaml(b"metadata:\n  name: a\n  name: b\n")
    assert repeated == ['yaml: unmarshal errors:\n  line 3: key "name" already set in map']


def test_integers_beyond_64_bits_are_floats_and_bad_utf8_is_replaced() -> None:
    assert read_json(b'{"a":99999999999999999999,"b":9223372036854775807}') == {
        "a": 1e20,
        "b": 9223372036854775807,
    }
    assert read_json(b'{"a":"\xff"}') == {"a": "\ufffd"}


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0123ab\\ntrue-. ', max_size=40).map(str.encode))
def test_any_bytes_are_json_or_refused(body: bytes) -> None:
    try:
        value = read_json(body, find_repeated=True)
    except TextError:
        return
    json.dumps(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_what_has_no_repeated_fields_is_read_the_same_with_and_without_care(value: Any) -> None:
    body = json.dumps(value).encode()
    assert read_json(body, find_repeated=True) == read_json(body)
