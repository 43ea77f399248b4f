"""The addresses and ports a Service is given: cluster IPs, node ports, the port of its health check.

What is taken is read from the other Services each time, so there is no second book to keep in step with the
first. The cluster is dual-stack, IPv4 first. As on Kubernetes the low part of the range is left to those who ask for
an address by name, and the choice above it is random, so that an address just released is not reused at once.
"""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import invalid
from kubeserver.builtin.service_families import complete_families, is_headless, needs_cluster_ip, refuse
from kubeserver.wire.status import internal

if TYPE_CHECKING:
    from collections.abc import Collection

    from kubeserver.resources import World

Json = dict[str, Any]

SERVICE_RANGES: Final[dict[str, ipaddress.IPv4Network | ipaddress.IPv6Network]] = {
    "IPv4": ipaddress.IPv4Network("10.96.0.0/12"),
    "IPv6": ipaddress.IPv6Network("fd00:10:96::/112"),
}
NODE_PORTS: Final = range(30000, 32768)
_STATIC_ADDRESSES: Final = 256  # at the start of the range: never given out unasked
_STATIC_PORTS: Final = 86


def externally_accessible(spec: Json) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _needs_node_ports(spec: Json) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort")


def allocate(world: World, service: Json) -> None:
    """Give a new Service what it needs, or refuse what it asks for."""
    spec = service["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    name = service["metadata"].get("name", "")
    complete_families(spec, None, name)
    taken = _Taken(world, service)
    _give_cluster_ips(spec, taken, name)
    if _needs_node_ports(spec):
        _give_node_ports(spec, taken, name)
    if needs_health_check(spec):
        _give_health_check_port(spec, taken)


def reallocate(world: World, service: Json, old: Json) -> None:
    """Keep what a changed Service has, and give what it needs in addition."""
    spec, before, name = service["spec"], old["spec"], service["metadata"].get("name", "")
    _keep_allocated(spec, before)
    _keep_in_step(spec, before)
    complete_families(spec, before, name)
    taken = _Taken(world, service)
    if needs_cluster_ip(spec) and not needs_cluster_ip(before):
        _give_cluster_ips(spec, taken, name)
    elif needs_cluster_ip(spec) and _gains_a_family(spec, before):
        _give_second_ip(spec, taken, name)
    if _needs_node_ports(spec):
        _give_node_ports(spec, taken, name)
    if needs_health_check(spec) and not needs_health_check(before):
        _give_health_check_port(spec, taken)


class _Taken:
    """What other Services hold, read when first asked for."""

    def __init__(self, world: World, service: Json) -> None:
        self._world = world
        metadata = service["metadata"]
        self._me = (metadata.get("namespace"), metadata.get("name"))
        self._read = False
        self._addresses: set[str] = set()
        self._ports: set[int] = set()

    def _others(self) -> None:
        if self._read:
            return
        self._read = True
        for other in self._world.objects("", "services"):
            metadata, spec = other["metadata"], other.get("spec") or {}
            if (metadata.get("namespace"), metadata.get("name")) == self._me:
                continue
            self._addresses.update(_canonical(address) for address in spec.get("clusterIPs") or ())
            self._ports.update(port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort"))
            self._ports.add(spec.get("healthCheckNodePort") or 0)

    @property
    def addresses(self) -> Collection[str]:
        self._others()
        return self._addresses

    @property
    def ports(self) -> set[int]:
        self._others()
        return self._ports

    def next_address(self, family: str) -> str:
        network = SERVICE_RANGES[family]
        size = network.num_addresses
        start = secrets.randbelow(size - _STATIC_ADDRESSES - 1)
        for step in range(size - 2):
            # First all of the upper part from a random place on, then the static part.
            offset = (start + step) % (size - 2 - _STATIC_ADDRESSES) + _STATIC_ADDRESSES + 1
            if step >= size - 2 - _STATIC_ADDRESSES:
                offset = size - 2 - step
            address = str(network[offset])
            if address not in self.addresses:
                return address
        raise internal("failed to allocate a serviceIP: range is full")

    def take_port(self, port: int) -> str:
        """Why a port cannot be had; empty if it can, and then it is taken."""
        if port not in NODE_PORTS:
            shown = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            return f"provided port is not in the valid range. The range of valid ports is {shown}"
        if port in self.ports:
            return "provided port is already allocated"
        self.ports.add(port)
        return ""

    def next_port(self) -> int:
        upper = range(NODE_PORTS.start + _STATIC_PORTS, NODE_PORTS.stop)
        start = secrets.randbelow(len(upper))
        candidates: list[int] = [*upper[start:], *upper[:start], *range(NODE_PORTS.start, upper.start)]
        for port in candidates:
            if port not in self.ports:
                self.ports.add(port)
                return port
        raise internal("failed to allocate a nodePort: range is full")


def _canonical(address: str) -> str:
    """One text for one address: IPv6 has many."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


def _gains_a_family(spec: Json, before: Json) -> bool:
    counts = len(before.get("ipFamilies") or ()), len(spec.get("ipFamilies") or ())
    return not is_headless(before) and counts == (1, 2)


def _give_cluster_ips(spec: Json, taken: _Taken, name: str) -> None:
    """An address of each family: the one asked for, or a free one."""
    if not needs_cluster_ip(spec) or is_headless(spec):
        return
    addresses = _one_for_each_family(spec)
    for index in range(len(addresses)):
        addresses[index] = _given(spec, addresses, index, taken, name)
    spec["clusterIP"] = addresses[0]
    spec["clusterIPs"] = addresses


def _give_second_ip(spec: Json, taken: _Taken, name: str) -> None:
    addresses = _one_for_each_family(spec)
    addresses[1] = _given(spec, addresses, 1, taken, name)
    spec["clusterIPs"] = addresses


def _one_for_each_family(spec: Json) -> list[str]:
    """The addresses that were asked for, and an empty text for each family without."""
    asked = [*(spec.get("clusterIPs") or ())]
    return asked + [""] * (len(spec["ipFamilies"]) - len(asked))


def _given(spec: Json, addresses: list[str], index: int, taken: _Taken, name: str) -> str:
    address, family = addresses[index], spec["ipFamilies"][index]
    if address and (why := _why_not(address, family, taken)):
        refuse([invalid("spec.clusterIPs", addresses, f"failed to allocate IP {address}: {why}")], name)
    return address or taken.next_address(family)


def _why_not(address: str, family: str, taken: _Taken) -> str:
    if ipaddress.ip_address(address) not in SERVICE_RANGES[family]:
        return "the provided network does not match the current range"
    return "provided IP is already allocated" if _canonical(address) in taken.addresses else ""


def _give_node_ports(spec: Json, taken: _Taken, name: str) -> None:
    wanted = spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
    of_port: dict[int, int] = {}
    for index, port in enumerate(spec.get("ports") or ()):
        asked = port.get("nodePort") or 0
        number = port.get("port", 0)
        if not asked and not wanted:
            continue
        if not asked:
            # The same port over two protocols shares its node port.
            asked = of_port.get(number) or next(
                (item["nodePort"] for item in spec["ports"] if item.get("port") == number and item.get("nodePort")),
                0,
            )
        if asked and asked not in of_port.values():
            why = taken.take_port(asked)
            if why:
                refuse([invalid(f"spec.ports[{index}].nodePort", asked, why)], name)
        port["nodePort"] = asked or taken.next_port()
        of_port.setdefault(number, port["nodePort"])


def _give_health_check_port(spec: Json, taken: _Taken) -> None:
    asked = spec.get("healthCheckNodePort") or 0
    if asked:
        why = taken.take_port(asked)
        if why:
            raise internal(f"failed to allocate requested HealthCheck NodePort {asked}: {why}")
    spec["healthCheckNodePort"] = asked or taken.next_port()


def _keep_allocated(spec: Json, before: Json) -> None:
    """A client that sends the manifest it once created keeps what it was given."""
    if needs_cluster_ip(spec) and needs_cluster_ip(before):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and before.get(field):
                spec[field] = before[field]
    if _needs_node_ports(spec) and _needs_node_ports(before):
        used = _node_ports(before) & _node_ports(spec)
        by_name = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            kept = by_name.get(port.get("name", ""), 0)
            if not port.get("nodePort") and kept and kept not in used:
                port["nodePort"] = kept
    if needs_health_check(spec) and needs_health_check(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort", 0)


def _node_ports(spec: Json) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _keep_in_step(spec: Json, before: Json) -> None:
    """A client that knows only clusterIP may change it; clusterIPs follows."""
    if spec.get("clusterIP", "") == before.get("clusterIP", ""):
        return
    if (spec.get("clusterIPs") or []) != (before.get("clusterIPs") or []):
        return
    if spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    else:
        spec.pop("clusterIPs", None)


def drop_what_the_type_does_not_use(service: Json, old: Json) -> None:
    """A change of type lets go of what was given for the old one, if the writer left it as it was."""
    spec, before = service["spec"], old["spec"]
    if needs_cluster_ip(before) and not needs_cluster_ip(spec):
        same = spec.get("clusterIPs") in (None, [], before.get("clusterIPs"))
        if same and spec.get("clusterIP") == before.get("clusterIP"):
            _drop(spec, "clusterIP", "clusterIPs")
        for field in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(field) == before.get(field):
                _drop(spec, field)
    if _needs_node_ports(before) and not _needs_node_ports(spec) and _node_ports(spec) <= _node_ports(before):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_same(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_same(spec, before, "allocateLoadBalancerNodePorts")
        _drop_same(spec, before, "loadBalancerClass")
    if externally_accessible(before) and not externally_accessible(spec):
        _drop_same(spec, before, "externalTrafficPolicy")


def _drop_same(spec: Json, before: Json, field: str) -> None:
    if spec.get(field) == before.get(field):
        _drop(spec, field)


def _drop(spec: Json, *fields: str) -> None:
    for field in fields:
        spec.pop(field, None)
