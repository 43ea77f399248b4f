"""Service: what it looks like when it is complete, and what it may not say.

Addresses and node ports are given out in `service_addresses`; here are the defaults that need no other object,
and the rules. The order of the checks is kube-apiserver's, as clients see it in the list of causes.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin import service_addresses, service_families
from kubeserver.builtin.checks import (
    PROTOCOLS,
    cidr,
    duplicate,
    forbidden,
    invalid,
    ip_address,
    label,
    one_of,
    port_number,
    port_number_or_name,
    qualified_name,
    required,
    subdomain,
)
from kubeserver.builtin.service_addresses import externally_accessible, needs_health_check
from kubeserver.builtin.service_families import cluster_ip_errors, is_headless
from kubeserver.resources import Strategy, World
from kubeserver.wire.goformat import Struct
from kubeserver.wire.names import validate_labels

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ONLY_LOAD_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DAY: Final = 86400


def default(service: Json) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec["type"] = spec["type"] or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] != "ExternalName" and spec.get("internalTrafficPolicy") is None and spec["type"] in _TYPES:
        spec["internalTrafficPolicy"] = "Cluster"
    status = service.setdefault("status", {})
    status.setdefault("loadBalancer", {})
    if spec["type"] == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        for ingress in status["loadBalancer"].get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def prepare_create(world: World, service: Json) -> None:
    service_addresses.allocate(world, service)
    service["status"] = {"loadBalancer": {}}


def prepare_update(world: World, service: Json, old: Json) -> None:
    service_addresses.reallocate(world, service, old)
    service_addresses.drop_what_the_type_does_not_use(service, old)
    if service["spec"]["type"] != "LoadBalancer":
        service.setdefault("status", {})["loadBalancer"] = {}


def validate(service: Json) -> list[FieldError]:
    spec: Json = service.get("spec") or {}
    errors: list[FieldError] = []
    kind = spec.get("type", "")
    ports = spec.get("ports") or []
    if not ports and not is_headless(spec) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    errors += _by_type(spec, kind)
    names: set[str] = set()
    for index, port in enumerate(ports):
        errors += _port(f"spec.ports[{index}]", port, named=len(ports) > 1, names=names)
    errors += validate_labels(spec.get("selector") or {}, "spec.selector")
    errors += _affinity(spec)
    errors += cluster_ip_errors(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        errors += ip_address(path, address) or special_ip(path, address)
    errors += one_of("spec.type", kind, _TYPES)
    errors += _ports_together(kind, ports)
    errors += _source_ranges(service, spec, kind)
    errors += _load_balancer(spec, kind)
    errors += _traffic(spec)
    return errors + _status(service)


def _by_type(spec: Json, kind: str) -> list[FieldError]:
    if kind in ("LoadBalancer", "NodePort"):
        if is_headless(spec):
            return [invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")]
        return []
    if kind != "ExternalName":
        return []
    errors = [
        forbidden(f"spec.{field}", "may not be set for ExternalName services")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = (spec.get("externalName") or "").removesuffix(".")
    return errors + (subdomain("spec.externalName", name) if name else [required("spec.externalName")])


def _port(path: str, port: Json, *, named: bool, names: set[str]) -> list[FieldError]:
    errors = []
    name = port.get("name") or ""
    if named and not name:
        errors.append(required(f"{path}.name"))
    elif name:
        errors += label(f"{path}.name", name)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    errors += port_number(f"{path}.port", port.get("port", 0))
    errors += one_of(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS)
    errors += port_number_or_name(f"{path}.targetPort", port.get("targetPort", 0))
    if port.get("appProtocol") is not None:
        errors += qualified_name(f"{path}.appProtocol", port["appProtocol"])
    return errors


def _affinity(spec: Json) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    errors = one_of("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if affinity == "ClientIP":
        seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds", 0)
        if not 0 < seconds <= _DAY:
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            errors.append(invalid(path, seconds, f"must be greater than 0 and less than {_DAY}"))
    return errors


def special_ip(path: str, value: str) -> list[FieldError]:
    """Addresses that no endpoint can have."""
    address = ipaddress.ip_address(value)
    found = []
    if address.is_unspecified:
        found.append("may not be unspecified (0.0.0.0 or ::)")
    if address.is_loopback:
        found.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        found.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address.is_multicast and str(address).startswith(("224.0.0.", "ff02")):
        found.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return [invalid(path, value, text) for text in found]


def _ports_together(kind: str, ports: list[Json]) -> list[FieldError]:
    errors = []
    if kind == "ClusterIP":
        errors += [
            forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for index, port in enumerate(ports)
            if port.get("nodePort")
        ]
    node_ports: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if port.get("nodePort"):
            key = (port.get("protocol", ""), port["nodePort"])
            if key in node_ports:
                errors.append(duplicate(f"spec.ports[{index}].nodePort", port["nodePort"]))
            node_ports.add(key)
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in seen:
            errors.append(duplicate(f"spec.ports[{index}]", _as_printed(*key)))
        seen.add(key)
    return errors


def _as_printed(protocol: str, port: int) -> Struct:
    """A port as the real server prints it in this refusal: all of its Go fields."""
    return Struct(Name="", Protocol=protocol, AppProtocol=None, Port=port, TargetPort=0, NodePort=0)


def _source_ranges(service: Json, spec: Json, kind: str) -> list[FieldError]:
    ranges = spec.get("loadBalancerSourceRanges") or []
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        errors = [] if kind == "LoadBalancer" else [forbidden(path, _ONLY_LOAD_BALANCER)]
        for index, source in enumerate(ranges):
            errors += cidr(f"{path}[{index}]", source.strip())
        return errors
    annotated = ((service.get("metadata") or {}).get("annotations") or {}).get(_SOURCE_RANGES)
    if annotated is None:
        return []
    path = f"metadata.annotations[{_SOURCE_RANGES}]"
    errors = [] if kind == "LoadBalancer" else [forbidden(path, _ONLY_LOAD_BALANCER)]
    for part in annotated.strip().split(",") if annotated.strip() else ():
        errors += cidr(path, part.strip())
    return errors


def _load_balancer(spec: Json, kind: str) -> list[FieldError]:
    errors = []
    if kind != "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not None:
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCER))
    chosen = spec.get("loadBalancerClass")
    if chosen is not None:
        if kind == "LoadBalancer":
            errors += qualified_name("spec.loadBalancerClass", chosen)
        else:
            errors.append(forbidden("spec.loadBalancerClass", _ONLY_LOAD_BALANCER))
    return errors


def _traffic(spec: Json) -> list[FieldError]:
    errors = []
    external = spec.get("externalTrafficPolicy") or ""
    path = "spec.externalTrafficPolicy"
    if externally_accessible(spec):
        errors += one_of(path, external, ("Cluster", "Local"))
    elif external:
        errors.append(invalid(path, external, "may only be set for externally-accessible services"))
    health = spec.get("healthCheckNodePort") or 0
    path = "spec.healthCheckNodePort"
    if needs_health_check(spec):
        errors += port_number(path, health) if health else [required(path)]
    elif health:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid(path, health, detail))
    internal = spec.get("internalTrafficPolicy")
    if internal is not None:
        errors += one_of("spec.internalTrafficPolicy", internal, ("Cluster", "Local"))
    distribution = spec.get("trafficDistribution")
    if distribution is not None:
        known = ("PreferClose", "PreferSameZone", "PreferSameNode")
        errors += one_of("spec.trafficDistribution", distribution, known)
    return errors


def _status(service: Json) -> list[FieldError]:
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    ingresses = balancer.get("ingress") or []
    path = "status.loadBalancer.ingress"
    if ingresses and service["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    errors = []
    for index, ingress in enumerate(ingresses):
        where = f"{path}[{index}]"
        address, mode, host = ingress.get("ip") or "", ingress.get("ipMode"), ingress.get("hostname") or ""
        if address:
            errors += ip_address(f"{where}.ip", address)
        if address and mode is None:
            errors.append(required(f"{where}.ipMode", "must be specified when `ip` is set"))
        if not address and mode is not None:
            errors.append(forbidden(f"{where}.ipMode", "may not be specified when `ip` is not set"))
        if mode is not None:
            errors += one_of(f"{where}.ipMode", mode, ("Proxy", "VIP"))
        if host:
            errors += subdomain(f"{where}.hostname", host)
            if not ip_address("", host):
                errors.append(invalid(f"{where}.hostname", host, "must be a DNS name, not an IP address"))
    return errors


def validate_update(service: Json, old: Json) -> list[FieldError]:
    new_spec, old_spec = service["spec"], old["spec"]
    errors = service_families.change_errors(new_spec, old_spec)
    if new_spec.get("type") == old_spec.get("type") == "LoadBalancer":
        chosen = new_spec.get("loadBalancerClass")
        if chosen != old_spec.get("loadBalancerClass"):
            errors.append(invalid("spec.loadBalancerClass", chosen, "may not change once set"))
    moved = new_spec.get("healthCheckNodePort") != old_spec.get("healthCheckNodePort")
    if moved and needs_health_check(new_spec) and needs_health_check(old_spec):
        errors.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors


def warnings(service: Json) -> list[str]:
    spec = service.get("spec") or {}
    found = []
    kind, external = spec.get("type"), spec.get("externalIPs") or []
    if is_headless(spec):
        if spec.get("loadBalancerIP"):
            found.append("spec.loadBalancerIP is ignored for headless services")
        if external:
            found.append("spec.externalIPs is ignored for headless services")
        if spec.get("sessionAffinity") != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
    elif external and kind != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if kind == "ExternalName" and external:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


STRATEGY: Final = Strategy(
    default=default,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    validate=validate,
    validate_update=validate_update,
    warnings=warnings,
    selectable={
        "spec.type": lambda service: str((service.get("spec") or {}).get("type") or ""),
        "spec.clusterIP": lambda service: str((service.get("spec") or {}).get("clusterIP") or ""),
    },
)
