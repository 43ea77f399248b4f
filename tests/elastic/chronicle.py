"""A record of both sides: what the management cluster and each tenant committed, with the moment of each revision.

It is plain data. `record.py` writes it down from running servers, tests of the rules write it by hand, and the rules
only read it.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from elastic.moments import NEVER_ENDED, Moment, Period
from ipam.oracle import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ipam.history import Json, Revision

SERVICE, ADDRESS_POOL, ADVERTISEMENT = "Service", "IPAddressPool", "L2Advertisement"
TENANT, PROVIDER = "TenantCluster", "ProviderConfig"
TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
ROLE = "butler.butlerlabs.dev/allocation-role"
DEFAULT_POOL = ("metallb-system", "default-pool")


class Dated(NamedTuple):
    """One revision and when it was committed."""

    moment: Moment
    revision: Revision


@dataclass
class Chronicle:
    """Revisions of each store in their order. Tenants are named by the UID of their TenantCluster."""

    management: list[Dated] = field(default_factory=list)
    tenants: dict[str, list[Dated]] = field(default_factory=dict)
    edits: frozenset[tuple[str, int]] = frozenset()
    """Revisions of a tenant's default-pool that a user wrote, by tenant and version: not Butler's to answer for."""


class Hold(NamedTuple):
    """One object had one address for some time."""

    period: Period
    began: Revision
    ended: Revision | None


Track = dict[int, list[Hold]]
"""By address: who had it, and when."""


def track(having: Iterable[tuple[Dated, set[int]]]) -> Track:
    """Follow the addresses of objects through their revisions, each with what the object has from then on."""
    found: Track = defaultdict(list)
    held: dict[tuple[str, int], Dated] = {}
    now: dict[str, set[int]] = defaultdict(set)
    for each, has in having:
        uid = each.revision.uid
        for address in now[uid] - has:
            begun = held.pop((uid, address))
            found[address].append(Hold(Period(begun.moment, each.moment), begun.revision, each.revision))
        for address in has - now[uid]:
            held[uid, address] = each
        now[uid] = has
    for (_, address), begun in held.items():
        found[address].append(Hold(Period(begun.moment, NEVER_ENDED), begun.revision, None))
    return found


def having(dated: Iterable[Dated], addresses_of: Callable[[Json], set[int]]) -> list[tuple[Dated, set[int]]]:
    """Revisions with what the object has after each, which is nothing once it is gone."""
    return [(item, addresses_of(item.revision.after) if item.revision.after is not None else set()) for item in dated]


def of_kind(dated: Iterable[Dated], kind: str) -> list[Dated]:
    return [item for item in dated if item.revision.kind == kind]


def latest(dated: Iterable[Dated], kind: str) -> list[Json]:
    """The objects of a kind as they are after everything recorded."""
    found: dict[str, Json | None] = {item.revision.uid: item.revision.after for item in of_kind(dated, kind)}
    return [obj for obj in found.values() if obj is not None]


# What objects say.


def phase(obj: Json) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def is_growth(allocation: Json) -> bool:
    return bool((allocation["metadata"].get("labels") or {}).get(ROLE) == "growth")


def tenant_of(allocation: Json) -> str:
    """The UID of its cluster; one that was made by hand has it in its status."""
    labelled = (allocation["metadata"].get("labels") or {}).get(TENANT_UID)
    return str(labelled or (allocation.get("status") or {}).get("tenantClusterUID") or "")


def granted(allocation: Json) -> set[int]:
    """The load-balancer addresses that an allocation holds."""
    if phase(allocation) != "Allocated" or allocation["spec"]["type"] != "loadbalancer":
        return set()
    return {number(address) for address in allocation["status"]["addresses"]}


def announced(pool: Json) -> set[int]:
    """The addresses of an IPAddressPool: `a-b` or a network."""
    found: set[int] = set()
    for entry in (pool.get("spec") or {}).get("addresses") or ():
        first, dash, last = entry.partition("-")
        if dash:
            found |= set(range(number(first.strip()), number(last.strip()) + 1))
        else:
            found |= {int(item) for item in ipaddress.ip_network(entry)}
    return found


def shown(service: Json) -> set[int]:
    """The addresses in a Service's status, while it is a load balancer."""
    if service["spec"].get("type") != "LoadBalancer":
        return set()
    entries = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return {number(entry["ip"]) for entry in entries if entry.get("ip") and ":" not in entry["ip"]}


def _annotation(service: Json, name: str) -> str:
    notes = service["metadata"].get("annotations") or {}
    return str(notes.get(f"metallb.io/{name}") or notes.get(f"metallb.universe.tf/{name}") or "")


def asked(service: Json) -> tuple[str, ...]:
    """The addresses that a Service names itself."""
    named = _annotation(service, "loadBalancerIPs") or service["spec"].get("loadBalancerIP") or ""
    return tuple(part.strip() for part in named.split(",") if part.strip())


def asked_pool(service: Json) -> str:
    return _annotation(service, "address-pool")


def sharing_key(service: Json) -> str:
    return _annotation(service, "allow-shared-ip")


def wishes(service: Json) -> tuple[object, ...]:
    """Everything by which a user can make MetalLB choose another address."""
    spec = service["spec"]
    ports = tuple(sorted((str(port.get("protocol", "TCP")), int(port["port"])) for port in spec.get("ports") or ()))
    families = (tuple(spec.get("ipFamilies") or ()), spec.get("ipFamilyPolicy"))
    named = (spec.get("type"), spec.get("loadBalancerClass"), asked(service), asked_pool(service))
    return (*named, sharing_key(service), ports, families, spec.get("externalTrafficPolicy"))
