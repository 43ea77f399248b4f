"""Endpoints and EndpointSlice: the addresses behind a Service."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    IMMUTABLE,
    PROTOCOLS,
    invalid,
    ip_address,
    label,
    one_of,
    port_number,
    qualified_name,
    required,
    subdomain,
)
from kubeserver.builtin.services import special_ip
from kubeserver.resources import Strategy
from kubeserver.wire.status import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

_ADDRESS_LIMIT: Final = 100
_ENDPOINT_LIMIT: Final = 1000


def default_endpoints(endpoints: Json) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def validate_endpoints(endpoints: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(subset.get(field) or ()):
                errors += _address(f"{path}.{field}[{position}]", address)
        ports = subset.get("ports") or []
        for position, port in enumerate(ports):
            errors += _port(f"{path}.ports[{position}]", port, named=len(ports) > 1)
    return errors


def _address(path: str, address: Json) -> list[FieldError]:
    errors = ip_address(f"{path}.ip", address.get("ip") or "")
    readable = not errors
    if address.get("hostname"):
        errors += label(f"{path}.hostname", address["hostname"])
    if address.get("nodeName") is not None:
        errors += subdomain(f"{path}.nodeName", address["nodeName"])
    if readable:
        return errors + special_ip(f"{path}.ip", address["ip"])
    return [*errors, invalid(f"{path}.ip", address.get("ip") or "", "must be a valid IP address")]


def _port(path: str, port: Json, *, named: bool) -> list[FieldError]:
    name = port.get("name") or ""
    errors = [required(f"{path}.name")] if named and not name else []
    if name:
        errors += label(f"{path}.name", name)
    errors += port_number(f"{path}.port", port.get("port", 0))
    errors += one_of(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS)
    if port.get("appProtocol") is not None:
        errors += qualified_name(f"{path}.appProtocol", port["appProtocol"])
    return errors


def default_slice(item: Json) -> None:
    # Both are printed as null when they are not there.
    item["endpoints"] = item.get("endpoints") or None
    item["ports"] = item.get("ports") or None
    for port in item["ports"] or ():
        if port.get("name") is None:
            port["name"] = ""
        port["protocol"] = port.get("protocol") or "TCP"
    for endpoint in item["endpoints"] or ():
        endpoint.setdefault("conditions", {})


def validate_slice(item: Json) -> list[FieldError]:
    family = item.get("addressType") or ""
    errors: list[FieldError] = []
    if not family:
        errors.append(required("addressType"))
    else:
        errors += one_of("addressType", family, ("FQDN", "IPv4", "IPv6"))
    errors += _slice_ports(item.get("ports") or [])
    endpoints = item.get("endpoints") or []
    if len(endpoints) > _ENDPOINT_LIMIT:
        detail = f"must have at most {_ENDPOINT_LIMIT} items"
        errors.append(FieldError("FieldValueTooMany", "endpoints", detail, len(endpoints)))
    for index, endpoint in enumerate(endpoints):
        errors += _endpoint(f"endpoints[{index}]", endpoint, family)
    return errors


def _slice_ports(ports: Iterable[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            errors += label(f"{path}.name", name)
        if name in names:
            errors.append(FieldError("FieldValueDuplicate", f"{path}.name", "", name))
        names.add(name)
        errors += one_of(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS)
        if port.get("port") is not None:
            errors += port_number(f"{path}.port", port["port"])
        if port.get("appProtocol") is not None:
            errors += qualified_name(f"{path}.appProtocol", port["appProtocol"])
    return errors


def _endpoint(path: str, endpoint: Json, family: str) -> list[FieldError]:
    addresses = endpoint.get("addresses") or []
    where = f"{path}.addresses"
    errors: list[FieldError] = []
    if not addresses:
        errors.append(required(where))
    elif len(addresses) > _ADDRESS_LIMIT:
        detail = f"must have at most {_ADDRESS_LIMIT} items"
        errors.append(FieldError("FieldValueTooMany", where, detail, len(addresses)))
    for index, address in enumerate(addresses):
        errors += _slice_address(f"{where}[{index}]", address, family)
    if endpoint.get("hostname") is not None:
        errors += label(f"{path}.hostname", endpoint["hostname"])
    if endpoint.get("nodeName") is not None:
        errors += subdomain(f"{path}.nodeName", endpoint["nodeName"])
    return errors


def _slice_address(path: str, address: str, family: str) -> list[FieldError]:
    if family == "FQDN":
        return subdomain(path, address)
    if family not in ("IPv4", "IPv6"):
        return []
    errors = ip_address(path, address)
    if errors:
        return errors
    if f"IPv{ipaddress.ip_address(address).version}" != family:
        return [invalid(path, address, f"must be an {family} address")]
    return special_ip(path, address)


def validate_slice_update(item: Json, old: Json) -> list[FieldError]:
    same = item.get("addressType") == old.get("addressType")
    return [] if same else [invalid("addressType", None, IMMUTABLE)]


ENDPOINTS: Final = Strategy(default=default_endpoints, validate=validate_endpoints)
ENDPOINT_SLICE: Final = Strategy(default=default_slice, validate=validate_slice, validate_update=validate_slice_update)
