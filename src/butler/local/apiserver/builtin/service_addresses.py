"""The addresses and ports a Service is given: cluster IPs, node ports, the port of its health check.

What is taken is read from the other Services each time, so there is no second book to keep in step with the
first. The cluster is single-stack IPv4. As on Kubernetes the low part of the range is left to those who ask for
an address by name, and the choice above it is random, so that an address just released is not reused at once.
"""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING, Any, Final

from butler.local.apiserver.builtin.checks import duplicate, invalid, ip_address, one_of, required
from butler.local.apiserver.wire.status import ApiError, FieldError, internal
from butler.local.apiserver.wire.status import invalid as refusal

if TYPE_CHECKING:
    from collections.abc import Collection

    from butler.local.apiserver.resources import World

Json = dict[str, Any]

SERVICE_RANGE: Final = ipaddress.IPv4Network("10.96.0.0/12")
NODE_PORTS: Final = range(30000, 32768)
_STATIC_ADDRESSES: Final = 256  # at the start of the range: never given out unasked
_STATIC_PORTS: Final = 86
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")


def is_headless(spec: Json) -> bool:
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return len(addresses) == 1 and addresses[0] == "None"


def externally_accessible(spec: Json) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _needs_node_ports(spec: Json) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort")


def _needs_cluster_ip(spec: Json) -> bool:
    return spec.get("type") != "ExternalName"


def allocate(world: World, service: Json) -> None:
    """Give a new Service what it needs, or refuse what it asks for."""
    spec = service["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    name = service["metadata"].get("name", "")
    _complete_families(spec, None, name)
    taken = _Taken(world, service)
    _give_cluster_ip(spec, taken, name)
    if _needs_node_ports(spec):
        _give_node_ports(spec, taken, name)
    if needs_health_check(spec):
        _give_health_check_port(spec, taken)


def reallocate(world: World, service: Json, old: Json) -> None:
    """Keep what a changed Service has, and give what it needs in addition."""
    spec, before, name = service["spec"], old["spec"], service["metadata"].get("name", "")
    _keep_allocated(spec, before)
    _keep_in_step(spec, before)
    _complete_families(spec, before, name)
    taken = _Taken(world, service)
    if _needs_cluster_ip(spec) and not _needs_cluster_ip(before):
        _give_cluster_ip(spec, taken, name)
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
            self._addresses.update(spec.get("clusterIPs") or ())
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

    def next_address(self) -> str:
        size = SERVICE_RANGE.num_addresses
        start = secrets.randbelow(size - _STATIC_ADDRESSES - 1)
        for step in range(size - 2):
            # First all of the upper part from a random place on, then the static part.
            offset = (start + step) % (size - 2 - _STATIC_ADDRESSES) + _STATIC_ADDRESSES + 1
            if step >= size - 2 - _STATIC_ADDRESSES:
                offset = size - 2 - step
            address = str(SERVICE_RANGE[offset])
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


def _complete_families(spec: Json, before: Json | None, name: str) -> None:
    """Which families and policy the Service has; raises what cannot be on a single-stack cluster."""
    if not _needs_cluster_ip(spec):
        return
    selectorless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        kept = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if selectorless else "SingleStack")
    _refuse(cluster_ip_errors(spec), name)
    families = spec.setdefault("ipFamilies", []) or []
    policy = spec["ipFamilyPolicy"]
    errors = _stack_errors(spec, families, policy)
    for index, address in enumerate(spec.get("clusterIPs") or ()):
        if address == "None":
            break
        if index >= len(families):
            if ipaddress.ip_address(address).version == 6:
                shown = spec["clusterIPs"]
                errors.append(invalid(f"spec.clusterIPs[{index}]", shown, "IPv6 is not configured on this cluster"))
            else:
                families.append("IPv4")
    _refuse(errors, name)
    if not families:
        families.append("IPv4")
    spec["ipFamilies"] = families
    if selectorless:
        if len(families) < 2 and policy != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        return
    if policy == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
    errors += [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family != "IPv4"
    ]
    _refuse(errors, name)


def _stack_errors(spec: Json, families: list[str], policy: str) -> list[FieldError]:
    if policy != "SingleStack":
        return []
    detail = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
    errors = []
    if len(spec.get("clusterIPs") or ()) == 2:
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail.format("cluster IPs")))
    if len(families) == 2:
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail.format("IP families")))
    return errors


def _give_cluster_ip(spec: Json, taken: _Taken, name: str) -> None:
    if not _needs_cluster_ip(spec) or is_headless(spec):
        return
    asked = next(iter(spec.get("clusterIPs") or ()), "")
    if asked:
        why = _why_not(asked, taken)
        if why:
            detail = f"failed to allocate IP {asked}: {why}"
            _refuse([invalid("spec.clusterIPs", spec["clusterIPs"], detail)], name)
    address = asked or taken.next_address()
    spec["clusterIP"] = address
    spec["clusterIPs"] = [address]


def _why_not(address: str, taken: _Taken) -> str:
    if ipaddress.ip_address(address) not in SERVICE_RANGE:
        return "the provided network does not match the current range"
    return "provided IP is already allocated" if address in taken.addresses else ""


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
                (each["nodePort"] for each in spec["ports"] if each.get("port") == number and each.get("nodePort")),
                0,
            )
        if asked and asked not in of_port.values():
            why = taken.take_port(asked)
            if why:
                _refuse([invalid(f"spec.ports[{index}].nodePort", asked, why)], name)
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
    if _needs_cluster_ip(spec) and _needs_cluster_ip(before):
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
    if _needs_cluster_ip(before) and not _needs_cluster_ip(spec):
        if all(spec.get(each) == before.get(each) for each in ("clusterIP", "clusterIPs")):
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


def cluster_ip_errors(spec: Json) -> list[FieldError]:
    """What is wrong with clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy as they stand."""
    if not _needs_cluster_ip(spec):
        return []
    addresses = spec.get("clusterIPs") or []
    errors: list[FieldError] = []
    path = "spec.clusterIPs"
    if spec.get("clusterIP"):
        if not addresses:
            errors.append(required(path))
        elif addresses[0] != spec["clusterIP"]:
            errors.append(invalid(path, addresses, "first value must match `clusterIP`"))
    elif addresses:
        errors.append(invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    families = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        errors += one_of(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    if spec.get("ipFamilyPolicy") is not None:
        errors += one_of("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], _POLICIES)
    return errors + _address_errors(path, addresses, families)


def _address_errors(path: str, addresses: list[str], families: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    bad = False
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                bad = True
                errors.append(invalid(path, addresses, "'None' must be the first and only value"))
            continue
        found = ip_address(f"{path}[{index}]", address)
        bad = bad or bool(found)
        errors += found
    if len(addresses) > 2:
        errors.append(invalid(path, addresses, "may only hold up to 2 values"))
    if bad or addresses == ["None"]:
        return errors
    versions = [f"IPv{ipaddress.ip_address(address).version}" for address in addresses]
    if len(versions) > 1 and len(set(versions)) < len(versions):
        errors.append(invalid(path, addresses, "may specify no more than one IP for each IP family"))
    for index, (address, version) in enumerate(zip(addresses, versions, strict=True)):
        if index < len(families) and families[index] in _FAMILIES and version != families[index]:
            detail = f"expected an {families[index]} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{path}[{index}]", address, detail))
    return errors


def change_errors(new: Json, old: Json) -> list[FieldError]:
    """What a change may not do to the addresses a Service has."""
    if not _needs_cluster_ip(new) or not _needs_cluster_ip(old) or (is_headless(new) and is_headless(old)):
        return []
    errors = []
    now, before = new.get("clusterIPs") or [], old.get("clusterIPs") or []
    if before and not now:
        errors.append(invalid("spec.clusterIPs[0]", now, "primary clusterIP can not be unset"))
    elif before and now[0] != before[0]:
        errors.append(invalid("spec.clusterIPs[0]", now, "may not change once set"))
    families, families_before = new.get("ipFamilies") or [], old.get("ipFamilies") or []
    if is_headless(new) == is_headless(old) and families and families_before and families[0] != families_before[0]:
        errors.append(invalid("spec.ipFamilies[0]", families, "may not change once set"))
    return errors


def _refuse(errors: list[FieldError], name: str) -> None:
    if errors:
        raise _invalid_service(errors, name)


def _invalid_service(errors: list[FieldError], name: str) -> ApiError:
    return refusal("", "Service", name, errors)
