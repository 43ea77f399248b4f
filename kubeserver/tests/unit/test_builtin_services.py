"""What a Service is given, keeps and gives back."""

from __future__ import annotations

import ipaddress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from kubeserver.builtin.service_addresses import NODE_PORTS, SERVICE_RANGES
from kubeserver.builtin.services import STRATEGY
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]


class World:
    def __init__(self, *services: Json) -> None:
        self.services = list(services)

    def objects(self, group: str, plural: str, namespace: str | None = None) -> Iterable[Json]:
        assert (group, plural, namespace) == ("", "services", None)
        return self.services

    def now(self) -> str:
        return "2026-01-01T00:00:00Z"


def service(name: str = "a", **spec: Any) -> Json:
    spec.setdefault("ports", [{"port": 80}])
    return {"metadata": {"name": name, "namespace": "n"}, "spec": spec}


def created(item: Json, *others: Json) -> Json:
    item = deepcopy(item)
    STRATEGY.default(item)
    STRATEGY.prepare_create(World(*others), item)
    assert STRATEGY.validate(item) == []
    return item


def changed(old: Json, *others: Json, **spec: Any) -> Json:
    item = service(old["metadata"]["name"], **spec)
    STRATEGY.default(item)
    STRATEGY.prepare_update(World(old, *others), item, old)
    assert STRATEGY.validate(item) + STRATEGY.validate_update(item, old) == []
    return item


def node_ports(item: Json) -> list[int]:
    return [port["nodePort"] for port in item["spec"]["ports"]]


def test_a_cluster_address_comes_from_the_range_and_not_from_its_static_start() -> None:
    for _ in range(50):
        spec = created(service())["spec"]
        address = ipaddress.ip_address(spec["clusterIP"])
        assert address in SERVICE_RANGES["IPv4"]
        assert int(address) - int(SERVICE_RANGES["IPv4"].network_address) > 256
        assert spec["clusterIPs"] == [spec["clusterIP"]]
        assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_an_address_is_given_once() -> None:
    first = created(service("a", clusterIP="10.96.0.10"))
    with pytest.raises(ApiError) as refused:
        created(service("b", clusterIP="10.96.0.10"), first)
    assert refused.value.code == 422
    assert "failed to allocate IP 10.96.0.10: provided IP is already allocated" in refused.value.message


def test_an_address_outside_the_range_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        created(service(clusterIP="192.0.2.1"))
    assert refused.value.message == (
        'Service "a" is invalid: spec.clusterIPs: Invalid value: ["192.0.2.1"]: failed to allocate IP 192.0.2.1: '
        "the provided network does not match the current range"
    )


def test_node_ports_are_given_to_every_port_that_needs_one() -> None:
    ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    given = node_ports(created(service(type="LoadBalancer", ports=ports)))
    assert len(set(given)) == 2
    assert all(port in NODE_PORTS for port in given)


def test_two_protocols_of_one_port_share_a_node_port() -> None:
    ports = [{"port": 53, "name": "u", "protocol": "UDP"}, {"port": 53, "name": "t"}]
    first, second = node_ports(created(service(type="NodePort", ports=ports)))
    assert first == second


def test_a_node_port_is_given_once() -> None:
    first = created(service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]))
    with pytest.raises(ApiError) as refused:
        created(service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]), first)
    assert "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated" in refused.value.message


def test_the_last_free_node_port_is_found() -> None:
    taken = [
        {"metadata": {"name": str(port), "namespace": "n"}, "spec": {"ports": [{"port": 1, "nodePort": port}]}}
        for port in NODE_PORTS
        if port != 30500
    ]
    assert node_ports(created(service(type="NodePort"), *taken)) == [30500]
    full = [*taken, {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 1, "nodePort": 30500}]}}]
    with pytest.raises(ApiError) as refused:
        created(service(type="NodePort"), *full)
    assert refused.value.message == "Internal error occurred: failed to allocate a nodePort: range is full"


def test_local_traffic_needs_a_port_for_its_health_check() -> None:
    spec = created(service(type="LoadBalancer", externalTrafficPolicy="Local"))["spec"]
    assert spec["healthCheckNodePort"] in NODE_PORTS
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]


def test_a_balancer_may_do_without_node_ports() -> None:
    spec = created(service(type="LoadBalancer", allocateLoadBalancerNodePorts=False))["spec"]
    assert "nodePort" not in spec["ports"][0]


def test_the_manifest_it_was_created_from_changes_nothing() -> None:
    old = created(service(type="LoadBalancer", externalTrafficPolicy="Local"))
    new = changed(old, type="LoadBalancer", externalTrafficPolicy="Local")
    assert new["spec"] == old["spec"]


def test_a_new_port_gets_a_node_port_and_the_old_one_keeps_its_own() -> None:
    old = created(service(type="NodePort", ports=[{"port": 80, "name": "a"}]))
    new = changed(old, type="NodePort", ports=[{"port": 81, "name": "b"}, {"port": 80, "name": "a"}])
    assert node_ports(new)[1] == node_ports(old)[0]
    assert node_ports(new)[0] not in node_ports(old)


def test_a_change_of_type_gives_back_what_the_new_type_does_not_use() -> None:
    old = created(service(type="LoadBalancer", loadBalancerClass="a.b/c", externalTrafficPolicy="Local"))
    old["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}}
    new = changed(old, type="ClusterIP")
    for gone in ("loadBalancerClass", "healthCheckNodePort", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"):
        assert gone not in new["spec"]
    assert "nodePort" not in new["spec"]["ports"][0]
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["status"] == {"loadBalancer": {}}


def test_an_external_name_has_no_address_until_it_is_something_else() -> None:
    old = created(service())
    name = changed(old, type="ExternalName", externalName="example.com", ports=[])
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & name["spec"].keys()
    assert changed(name)["spec"]["clusterIP"]


def test_a_primary_address_never_changes() -> None:
    old = created(service())
    item = service(clusterIP="10.96.0.77")
    STRATEGY.default(item)
    STRATEGY.prepare_update(World(old), item, old)
    (error,) = STRATEGY.validate_update(item, old)
    assert error.text() == 'spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set'


def test_balancers_can_be_selected_by_type() -> None:
    read = STRATEGY.selectable["spec.type"]
    assert read(created(service(type="LoadBalancer"))) == "LoadBalancer"
    assert read({}) == ""


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"externalIPs": ["192.0.2.1"]}, "spec.externalIPs is deprecated and may no longer be implemented"),
        ({"externalName": "x.y"}, 'spec.externalName is ignored when spec.type is not "ExternalName"'),
        ({"clusterIP": "None", "loadBalancerIP": "192.0.2.1"}, "spec.loadBalancerIP is ignored for headless services"),
    ],
)
def test_what_is_ignored_is_said(spec: Json, warning: str) -> None:
    assert any(text.startswith(warning) for text in STRATEGY.warnings(created(service(**spec))))
