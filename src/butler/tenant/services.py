"""The Services of a tenant that hold, or ask for, load-balancer addresses.

A tenant's API server is not ours: lists are read in small pages and bounded in number and time, of each Service only
what is asked about is decoded, and what is kept of it, a `Balancer`, has a size that nothing in the Service can blow
up. What people may write into a Service as they like (annotations, a load-balancer IP) is read with patience: garbage
there is cut or ignored. What only API servers write has to have its shape: a Service that has not is an error and is
never passed over, because the addresses of one that was passed over would look free. Anything but a Service of type
LoadBalancer is left strictly alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec

from butler.api.labels import Label
from butler.kube.errors import BadAnswer, Conflict, NotFound
from butler.kube.resource import Resource
from butler.rules.loadbalancer.service import Balancer

if TYPE_CHECKING:
    from butler.kube.client import Client

PAGE = 250
MOST_SERVICES = 10_000
LIST_SECONDS = 30.0
ONLY_BALANCERS = "spec.type=LoadBalancer"
MOST_ASKED = 8
"""Addresses that one Service may name; MetalLB refuses more than one of each family."""
LONGEST = 253
"""Characters that are kept of what people write; no name in Kubernetes is longer."""


_Name = Annotated[str, msgspec.Meta(max_length=LONGEST)]
_NOTHING = msgspec.Raw(b"null")


class _Annotations(msgspec.Struct):
    """MetalLB's, under today's names and those before version 0.15."""

    addresses: msgspec.Raw = msgspec.field(default=_NOTHING, name="metallb.io/loadBalancerIPs")
    old_addresses: msgspec.Raw = msgspec.field(default=_NOTHING, name="metallb.universe.tf/loadBalancerIPs")
    pool: msgspec.Raw = msgspec.field(default=_NOTHING, name="metallb.io/address-pool")
    old_pool: msgspec.Raw = msgspec.field(default=_NOTHING, name="metallb.universe.tf/address-pool")
    sharing: msgspec.Raw = msgspec.field(default=_NOTHING, name="metallb.io/allow-shared-ip")
    old_sharing: msgspec.Raw = msgspec.field(default=_NOTHING, name="metallb.universe.tf/allow-shared-ip")


class _Labels(msgspec.Struct):
    platform: msgspec.Raw = msgspec.field(default=_NOTHING, name=str(Label.PLATFORM_LOAD_BALANCER))


class _Metadata(msgspec.Struct, rename="camel"):
    name: _Name
    namespace: _Name
    uid: _Name = ""
    resource_version: _Name = ""
    labels: _Labels | None = None
    annotations: _Annotations | None = None
    creation_timestamp: msgspec.Raw = _NOTHING
    deletion_timestamp: msgspec.Raw = _NOTHING


class _Spec(msgspec.Struct, rename="camel"):
    type: _Name = ""
    load_balancer_class: Annotated[str, msgspec.Meta(max_length=2 * LONGEST)] | None = None
    load_balancer_ip: msgspec.Raw = msgspec.field(default=_NOTHING, name="loadBalancerIP")
    ip_families: Annotated[list[_Name], msgspec.Meta(max_length=4)] | None = None
    ip_family_policy: _Name | None = None


class _Ingress(msgspec.Struct):
    ip: str = ""
    hostname: str = ""


class _LoadBalancerStatus(msgspec.Struct):
    ingress: Annotated[list[_Ingress], msgspec.Meta(max_length=64)] | None = None


class _Status(msgspec.Struct, rename="camel"):
    load_balancer: _LoadBalancerStatus | None = None


class Service(msgspec.Struct):
    """The parts of a Service that a `Balancer` is made of."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None


SERVICES = Resource("", "v1", "services", "Service", Service)


def read_balancer(service: Service) -> Balancer:
    """What is kept of a Service; its size has a bound, whatever the Service holds."""
    meta, spec = service.metadata, service.spec
    notes = meta.annotations or _Annotations()
    given = service.status.load_balancer if service.status else None
    ingress = (given.ingress or []) if given else []
    asked = _text(notes.addresses) or _text(notes.old_addresses) or _text(spec.load_balancer_ip)
    pool = _text(notes.pool) or _text(notes.old_pool)
    sharing = _text(notes.sharing) or _text(notes.old_sharing)
    return Balancer(
        sys.intern(meta.namespace),
        meta.name,
        meta.uid,
        addresses=tuple(found for item in ingress if (found := address_in(item.ip)) is not None),
        has_hostname=any(item.hostname for item in ingress),
        deleting=bytes(meta.deletion_timestamp) != b"null",
        class_name=spec.load_balancer_class,
        asks=_asked(asked),
        asks_pool=pool[:LONGEST] or None,
        sharing_key=_short_key(sharing) or None,
        families=tuple(sys.intern(ip_family) for ip_family in spec.ip_families or ()),
        family_policy=None if spec.ip_family_policy is None else sys.intern(spec.ip_family_policy),
        platform=meta.labels is not None and _text(meta.labels.platform) == "true",
        created=_moment(meta.creation_timestamp),
    )


def address_in(text: str) -> str | None:
    """An IP address in its usual spelling, as MetalLB reads it; None for anything else.

    Leading zeros and zones are no address to it, and an IPv4 address in IPv6's clothes is an IPv4 address.
    """
    if len(text) > 64 or "%" in text:
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def _asked(text: str) -> tuple[str, ...]:
    parts = (part.strip() for part in text.split(",", MOST_ASKED)[:MOST_ASKED])
    # "," asks for something too, if for nothing that could be given.
    return tuple(address_in(part) or part[:64] for part in parts if part) or ((text.strip()[:64],) if text else ())


def _short_key(text: str) -> str:
    """A key that is equal to another exactly when the whole texts are."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:64]}#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _text(raw: msgspec.Raw) -> str:
    """The string that is there; nothing where there is something else."""
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, RecursionError):
        return ""


def _moment(raw: msgspec.Raw) -> datetime | None:
    try:
        found = msgspec.json.decode(raw, type=datetime | None)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if found is not None and found.tzinfo is not None else None  # without a zone it is no moment


async def load_balancers(client: Client) -> list[Balancer]:
    """All Services of type LoadBalancer, read afresh at one version."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            listed = await client.list(SERVICES, field_selector=ONLY_BALANCERS, limit=PAGE, max_items=MOST_SERVICES)
    except TimeoutError:
        raise BadAnswer(f"the list of Services did not end within {LIST_SECONDS:.0f} s") from None
    # The server was asked for no others, but these are about to be deleted, or their addresses given away.
    return [read_balancer(service) for service in listed.items if service.spec.type == "LoadBalancer"]


async def delete_load_balancers(client: Client) -> int:
    """Delete all Services of type LoadBalancer, as when their cluster goes; how many were still there.

    Call it until it says 0: a Service with finalizers takes its time, and something may make new ones.
    """
    found = await load_balancers(client)
    for service in found:
        if service.deleting:
            continue
        try:
            # By UID: one of the same name that came meanwhile may be of another type.
            await client.delete(SERVICES, service.name, service.namespace, uid=service.uid)
        except (NotFound, Conflict):
            continue
    return len(found)
