"""Ingress, IngressClass and NetworkPolicy: stored and checked for the controllers that act on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    child,
    cidr,
    forbidden,
    invalid,
    ip_address,
    label,
    label_selector,
    port_name,
    port_number,
    put_default,
    required,
    subdomain,
    too_long,
    unchanged,
    unsupported,
)
from kubeserver.resources import Strategy, World
from kubeserver.wire.names import dns_subdomain

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_WILDCARD: Final = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_BAD_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDINGS: Final = ("/..", "/.")


def default_ingress(ingress: Json) -> None:
    child(ingress, "spec")
    child(child(ingress, "status"), "loadBalancer")


def _prepare_ingress(world: World, ingress: Json) -> None:
    """An ingress that names no class gets the default one, the newest if several say they are."""
    ingress["status"] = {"loadBalancer": {}}
    annotations = ingress["metadata"].get("annotations") or {}
    if ingress["spec"].get("ingressClassName") is not None or "kubernetes.io/ingress.class" in annotations:
        return
    key = "ingressclass.kubernetes.io/is-default-class"
    defaults = [
        obj["metadata"]
        for obj in world.objects("networking.k8s.io", "ingressclasses")
        if (obj["metadata"].get("annotations") or {}).get(key) == "true"
    ]
    if defaults:
        newest = max(defaults, key=lambda default: str(default.get("creationTimestamp") or ""))
        ingress["spec"]["ingressClassName"] = newest["name"]


def validate_ingress(ingress: Json) -> list[FieldError]:
    spec: Json = ingress.get("spec") or {}
    rules = spec.get("rules") or []
    errors: list[FieldError] = []
    if not rules and spec.get("defaultBackend") is None:
        errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if spec.get("defaultBackend") is not None:
        errors += _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(rules):
        path, host = f"spec.rules[{index}]", rule.get("host") or ""
        if host:
            errors += _host(f"{path}.host", host)
        if rule.get("http") is not None:
            errors += _http(rule["http"], f"{path}.http")
    for index, tls in enumerate(spec.get("tls") or ()):
        for position, host in enumerate(tls.get("hosts") or ()):
            errors += _name(f"spec.tls[{index}].hosts[{position}]", host)
        if tls.get("secretName"):
            errors += subdomain(f"spec.tls[{index}].secretName", tls["secretName"])
    if spec.get("ingressClassName") is not None:
        errors += subdomain("spec.ingressClassName", spec["ingressClassName"])
    return errors


def _host(path: str, host: str) -> list[FieldError]:
    errors = [] if ip_address("", host) else [invalid(path, host, "must be a DNS name, not an IP address")]
    return errors + _name(path, host)


def _name(path: str, host: str) -> list[FieldError]:
    if "*" not in host:
        return subdomain(path, host)
    if re.fullmatch(_WILDCARD, host):
        return []
    detail = (
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
        "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
        f"(e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
    )
    return [invalid(path, host, detail)]


def _http(http: Json, path: str) -> list[FieldError]:
    paths = http.get("paths") or []
    errors = [] if paths else [required(f"{path}.paths")]
    for index, each in enumerate(paths):
        errors += _http_path(each, f"{path}.paths[{index}]")
    return errors


def _http_path(item: Json, path: str) -> list[FieldError]:
    kind, target = item.get("pathType"), item.get("path") or ""
    where = f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors: list[FieldError] = []
    if kind in ("Exact", "Prefix"):
        if not target.startswith("/"):
            errors.append(invalid(where, target, "must be an absolute path"))
        errors += [
            invalid(where, target, f"must not contain '{bad_sequence}'")
            for bad_sequence in _BAD_SEQUENCES
            if bad_sequence in target
        ]
        errors += [
            invalid(where, target, f"cannot end with '{bad_ending}'")
            for bad_ending in _BAD_ENDINGS
            if target.endswith(bad_ending)
        ]
    elif kind == "ImplementationSpecific":
        if target and not target.startswith("/"):
            errors.append(invalid(where, target, "must be an absolute path"))
    else:
        errors.append(unsupported(f"{path}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix")))
    return errors + _backend(item.get("backend") or {}, f"{path}.backend")


def _backend(backend: Json, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return [required(f"{path}.resource.{text}") for text in ("kind", "name") if not resource.get(text)]
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = service.get("name") or ""
    errors = label(f"{path}.service.name", name) if name else [required(f"{path}.service.name")]
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += port_name(f"{path}.service.port.name", port["name"])
    elif port.get("number"):
        errors += port_number(f"{path}.service.port.number", port["number"])
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def default_ingress_class(item: Json) -> None:
    parameters = child(item, "spec").get("parameters")
    if parameters is not None:
        put_default(parameters, "scope", "Cluster")


def validate_ingress_class(item: Json) -> list[FieldError]:
    spec: Json = item.get("spec") or {}
    controller = spec.get("controller") or ""
    errors: list[FieldError] = []
    if len(controller) > 250:
        errors.append(too_long("spec.controller", 250))
    return errors + domain_prefixed_path("spec.controller", controller)


def domain_prefixed_path(path: str, value: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    domain, slash, rest = value.partition("/")
    if not slash or not domain or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return [invalid(path, domain, text) for text in dns_subdomain(domain)]


def validate_ingress_class_update(item: Json, old: Json) -> list[FieldError]:
    return unchanged("spec.controller", item["spec"].get("controller"), old["spec"].get("controller"))


def default_network_policy(policy: Json) -> None:
    spec = child(policy, "spec")
    child(spec, "podSelector")
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            put_default(port, "protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def validate_network_policy(policy: Json) -> list[FieldError]:
    spec: Json = policy.get("spec") or {}
    errors = label_selector("spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for position, port in enumerate(rule.get("ports") or ()):
                errors += _policy_port(port, f"{path}.ports[{position}]")
            for position, peer in enumerate(rule.get(peers) or ()):
                errors += _peer(peer, f"{path}.{peers}[{position}]")
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        if kind not in ("Ingress", "Egress"):
            errors.append(unsupported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress")))
    return errors


def _policy_port(port: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    protocols = ("TCP", "UDP", "SCTP")
    if port.get("protocol") not in (None, *protocols):
        errors.append(unsupported(f"{path}.protocol", port["protocol"], protocols))
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        errors += port_number(f"{path}.port", number)
        if end is not None:
            if end < number:
                errors.append(invalid(f"{path}.endPort", end, "must be greater than or equal to `port`"))
            errors += port_number(f"{path}.endPort", end)
        return errors
    if end is not None:
        why = "is not specified" if number is None else "is non-numeric"
        errors.append(invalid(f"{path}.endPort", end, f"may not be specified when `port` {why}"))
    if isinstance(number, str):
        errors += port_name(f"{path}.port", number)
    return errors


def _peer(peer: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    for selector in given:
        if selector != "ipBlock":
            errors += label_selector(f"{path}.{selector}", peer[selector])
    if "ipBlock" in given:
        block = peer["ipBlock"].get("cidr") or ""
        where = f"{path}.ipBlock.cidr"
        errors += cidr(where, block) if block else [required(where)]
    if not given:
        errors.append(required(path, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


INGRESS: Final = Strategy(default=default_ingress, prepare_create=_prepare_ingress, validate=validate_ingress)
INGRESS_CLASS: Final = Strategy(
    default=default_ingress_class,
    validate=validate_ingress_class,
    validate_update=validate_ingress_class_update,
)
NETWORK_POLICY: Final = Strategy(default=default_network_policy, validate=validate_network_policy)
