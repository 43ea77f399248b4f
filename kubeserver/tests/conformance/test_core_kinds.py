"""Secrets, config maps and services: what the server fills in, keeps fixed and refuses."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import pytest

from conformance.kinds import configmap, service
from conformance.wire import failure, invalid

if TYPE_CHECKING:
    from conformance.wire import Api, Causes, Object

IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"
KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def inside(namespace: str, kind: str) -> str:
    return f"/api/v1/namespaces/{namespace}/{kind}"


async def test_string_data_becomes_data(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "stringData": {"a": "b"}, "data": {"a": "eA==", "c": "ZA=="}}
    created = (await api.post(inside(namespace, "secrets"), body)).made
    assert created["data"] == {"a": "Yg==", "c": "ZA=="}
    assert "stringData" not in created
    assert created["type"] == "Opaque"


async def test_secret_data_is_base64(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "data": {"c": "***"}}
    answer = await api.post(inside(namespace, "secrets"), body)
    assert answer.body == failure(
        400,
        "BadRequest",
        'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0',
    )


@pytest.mark.parametrize(
    ("secret", "causes"),
    [
        (
            {"stringData": {"c/d": "x"}},
            [("FieldValueInvalid", "data[c/d]", f'Invalid value: "c/d": {KEY}')],
        ),
        (
            {"type": "kubernetes.io/tls"},
            [
                ("FieldValueRequired", "data[tls.crt]", "Required value"),
                ("FieldValueRequired", "data[tls.key]", "Required value"),
            ],
        ),
        (
            {"type": "kubernetes.io/dockerconfigjson"},
            [("FieldValueRequired", "data[.dockerconfigjson]", "Required value")],
        ),
        (
            {"type": "kubernetes.io/service-account-token"},
            [
                (
                    "FieldValueRequired",
                    "metadata.annotations[kubernetes.io/service-account.name]",
                    "Required value",
                )
            ],
        ),
    ],
    ids=["key", "tls", "docker", "token"],
)
async def test_a_bad_secret_is_refused(api: Api, namespace: str, secret: Object, causes: Causes) -> None:
    answer = await api.post(inside(namespace, "secrets"), {"metadata": {"name": "one"}, **secret})
    assert answer.body == invalid("Secret", "one", *causes)


async def test_the_type_of_a_secret_is_fixed(api: Api, namespace: str) -> None:
    await api.post(inside(namespace, "secrets"), {"metadata": {"name": "one"}})
    answer = await api.merge(f"{inside(namespace, 'secrets')}/one", {"type": "x"})
    assert answer.body == invalid(
        "Secret", "one", ("FieldValueInvalid", "type", 'Invalid value: "x": field is immutable')
    )


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
async def test_an_immutable_object_stays_as_it_is(api: Api, namespace: str, kind: str) -> None:
    path = inside(namespace, f"{kind.lower()}s")
    body = {"metadata": {"name": "one"}, "data": {"a": "YQ=="}, "immutable": True}
    assert (await api.post(path, body)).made["immutable"] is True
    for patch, field in (({"data": {"a": "Yg=="}}, "data"), ({"immutable": None}, "immutable")):
        answer = await api.merge(f"{path}/one", patch)
        assert answer.body == invalid(kind, "one", ("FieldValueForbidden", field, IMMUTABLE))
    assert (await api.merge(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})).status == 200
    assert (await api.delete(f"{path}/one")).status == 200


async def test_binary_data_stands_beside_data(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "data": {"a": "1"}, "binaryData": {"b": "AAE="}}
    created = (await api.post(inside(namespace, "configmaps"), body)).made
    assert (created["data"], created["binaryData"]) == ({"a": "1"}, {"b": "AAE="})


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (
            {"data": {"a": "1"}, "binaryData": {"a": "AAE="}},
            (
                "FieldValueInvalid",
                "data[a]",
                'Invalid value: "a": duplicate of key present in binaryData',
            ),
        ),
        (
            {"data": {"a b": "1"}},
            ("FieldValueInvalid", "data[a b]", f'Invalid value: "a b": {KEY}'),
        ),
    ],
    ids=["in both", "key"],
)
async def test_a_bad_config_map_is_refused(api: Api, namespace: str, body: Object, cause: tuple[str, str, str]) -> None:
    answer = await api.post(inside(namespace, "configmaps"), {"metadata": {"name": "one"}, **body})
    assert answer.body == invalid("ConfigMap", "one", cause)


async def test_a_config_map_may_be_a_megabyte(api: Api, namespace: str) -> None:
    path = inside(namespace, "configmaps")
    assert (await api.post(path, configmap("fits", {"a": "x" * 1_048_000}))).status == 201
    answer = await api.post(path, configmap("not", {"a": "x" * 1_048_577}))
    cause = ("FieldValueTooLong", "[]", "Too long: may not be more than 1048576 bytes")
    assert answer.body == invalid("ConfigMap", "not", cause)


async def test_a_service_is_filled_in(api: Api, namespace: str) -> None:
    created = (await api.post(inside(namespace, "services"), service("one", selector={"a": "b"}))).made
    address = created["spec"]["clusterIP"]
    assert ipaddress.ip_address(address).is_private
    assert created["spec"] == {
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
        "selector": {"a": "b"},
        "clusterIP": address,
        "clusterIPs": [address],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    assert created["status"] == {"loadBalancer": {}}


async def test_a_load_balancer_gets_node_ports(api: Api, namespace: str) -> None:
    body = service("one", type="LoadBalancer", ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}])
    spec = (await api.post(inside(namespace, "services"), body)).made["spec"]
    ports = [item["nodePort"] for item in spec["ports"]]
    assert len(set(ports)) == 2
    assert all(30000 <= port <= 32767 for port in ports)
    assert spec["allocateLoadBalancerNodePorts"] is True
    assert spec["externalTrafficPolicy"] == "Cluster"


async def test_a_load_balancer_may_do_without_node_ports(api: Api, namespace: str) -> None:
    body = service("one", type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    spec = (await api.post(inside(namespace, "services"), body)).made["spec"]
    assert "nodePort" not in spec["ports"][0]


async def test_an_external_name_has_no_address(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "spec": {"type": "ExternalName", "externalName": "x.example.com"}}
    spec = (await api.post(inside(namespace, "services"), body)).made["spec"]
    assert spec == {"type": "ExternalName", "sessionAffinity": "None", "externalName": "x.example.com"}


async def test_a_headless_service_has_no_address(api: Api, namespace: str) -> None:
    body = service("one", clusterIP="None", selector={"a": "b"})
    spec = (await api.post(inside(namespace, "services"), body)).made["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


async def test_a_service_can_change_its_type(api: Api, namespace: str) -> None:
    path = f"{inside(namespace, 'services')}/one"
    before = (await api.post(inside(namespace, "services"), service("one"))).made["spec"]
    spec = (await api.merge(path, {"spec": {"type": "LoadBalancer"}})).made["spec"]
    assert spec["ports"][0]["nodePort"] >= 30000
    assert spec["clusterIP"] == before["clusterIP"]
    assert (await api.merge(path, {"spec": {"type": "ClusterIP"}})).made["spec"] == before


async def test_two_services_never_share_an_address(api: Api, namespace: str) -> None:
    path = inside(namespace, "services")
    taken = (await api.post(path, service("one"))).made["spec"]["clusterIP"]
    answer = await api.post(path, service("two", clusterIP=taken))
    assert answer.body == invalid(
        "Service",
        "two",
        (
            "FieldValueInvalid",
            "spec.clusterIPs",
            f'Invalid value: ["{taken}"]: failed to allocate IP {taken}: provided IP is already allocated',
        ),
    )
    await api.delete(f"{path}/one")
    assert (await api.post(path, service("two", clusterIP=taken))).made["spec"]["clusterIP"] == taken


async def test_two_services_never_share_a_node_port(api: Api, namespace: str) -> None:
    path = inside(namespace, "services")
    taken = (await api.post(path, service("one", type="NodePort"))).made["spec"]["ports"][0]["nodePort"]
    answer = await api.post(path, service("two", type="NodePort", ports=[{"port": 1, "nodePort": taken}]))
    assert answer.body == invalid(
        "Service",
        "two",
        (
            "FieldValueInvalid",
            "spec.ports[0].nodePort",
            f"Invalid value: {taken}: provided port is already allocated",
        ),
    )


async def test_the_address_of_a_service_is_fixed(api: Api, namespace: str) -> None:
    await api.post(inside(namespace, "services"), service("one"))
    answer = await api.merge(f"{inside(namespace, 'services')}/one", {"spec": {"clusterIP": "10.96.0.99"}})
    assert answer.body == invalid(
        "Service",
        "one",
        ("FieldValueInvalid", "spec.clusterIPs[0]", 'Invalid value: ["10.96.0.99"]: may not change once set'),
    )


RANGE = "must be between 1 and 65535, inclusive"


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({}, [("FieldValueRequired", "spec.ports", "Required value")]),
        (
            {"ports": [{}]},
            [
                ("FieldValueInvalid", "spec.ports[0].port", f"Invalid value: 0: {RANGE}"),
                ("FieldValueInvalid", "spec.ports[0].targetPort", f"Invalid value: 0: {RANGE}"),
            ],
        ),
        (
            {"ports": [{"port": 70000, "targetPort": 80}]},
            [("FieldValueInvalid", "spec.ports[0].port", f"Invalid value: 70000: {RANGE}")],
        ),
        (
            {"type": "X", "ports": [{"port": 1}]},
            [
                (
                    "FieldValueNotSupported",
                    "spec.type",
                    'Unsupported value: "X": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
                )
            ],
        ),
        (
            {"ports": [{"port": 1}, {"port": 2}]},
            [
                ("FieldValueRequired", "spec.ports[0].name", "Required value"),
                ("FieldValueRequired", "spec.ports[1].name", "Required value"),
            ],
        ),
        (
            {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]},
            [("FieldValueDuplicate", "spec.ports[1].name", 'Duplicate value: "a"')],
        ),
        (
            {"ports": [{"port": 1, "protocol": "X"}]},
            [
                (
                    "FieldValueNotSupported",
                    "spec.ports[0].protocol",
                    'Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
                )
            ],
        ),
        (
            {"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]},
            [
                (
                    "FieldValueInvalid",
                    "spec.ports[0].nodePort",
                    (
                        "Invalid value: 80: provided port is not in the valid range. "
                        "The range of valid ports is 30000-32767"
                    ),
                )
            ],
        ),
        (
            {"ports": [{"port": 1, "nodePort": 30080}]},
            [
                (
                    "FieldValueForbidden",
                    "spec.ports[0].nodePort",
                    "Forbidden: may not be used when `type` is 'ClusterIP'",
                )
            ],
        ),
        (
            {"type": "ExternalName"},
            [("FieldValueRequired", "spec.externalName", "Required value")],
        ),
        (
            {"clusterIP": "192.0.2.1", "ports": [{"port": 1}]},
            [
                (
                    "FieldValueInvalid",
                    "spec.clusterIPs",
                    (
                        'Invalid value: ["192.0.2.1"]: failed to allocate IP 192.0.2.1: '
                        "the provided network does not match the current range"
                    ),
                )
            ],
        ),
    ],
    ids=str,
)
async def test_a_bad_service_is_refused(api: Api, namespace: str, spec: Object, causes: Causes) -> None:
    answer = await api.post(inside(namespace, "services"), {"metadata": {"name": "one"}, "spec": spec})
    assert answer.body == invalid("Service", "one", *causes)
