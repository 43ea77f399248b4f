"""The Services of a tenant that hold, or ask for, load-balancer addresses.

A tenant's API server is not ours: lists are read in small pages and bounded in number and time, and of each Service
only what is asked about is decoded. Anything but a Service of type LoadBalancer is left strictly alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from butler.kube.errors import BadAnswer, Conflict, NotFound
from butler.kube.resource import Resource

if TYPE_CHECKING:
    from butler.kube.client import Client

PAGE = 250
MOST_SERVICES = 50_000
LIST_SECONDS = 30.0


class LoadBalancer(NamedTuple):
    """One Service of type LoadBalancer."""

    namespace: str
    name: str
    addresses: tuple[str, ...]
    """What it was given; host names, as clouds give, are among them."""
    deleting: bool
    uid: str


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct):
    type: str = ""


class _Ingress(msgspec.Struct):
    ip: str = ""
    hostname: str = ""


class _LoadBalancerStatus(msgspec.Struct):
    ingress: list[_Ingress] | None = None


class _Status(msgspec.Struct, rename="camel"):
    load_balancer: _LoadBalancerStatus | None = None


class _Service(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None

    def addresses(self) -> tuple[str, ...]:
        given = self.status.load_balancer if self.status else None
        entries = (given.ingress or []) if given else []
        return tuple(each.ip or each.hostname for each in entries if each.ip or each.hostname)


_SERVICES = Resource("", "v1", "services", "Service", _Service)


async def load_balancers(client: Client) -> list[LoadBalancer]:
    """All Services of type LoadBalancer, read afresh at one version."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            listed = await client.list(_SERVICES, limit=PAGE, max_items=MOST_SERVICES)
    except TimeoutError:
        raise BadAnswer(f"the list of Services did not end within {LIST_SECONDS:.0f} s") from None
    return [
        LoadBalancer(
            service.metadata.namespace,
            service.metadata.name,
            service.addresses(),
            service.metadata.deletion_timestamp is not None,
            service.metadata.uid,
        )
        for service in listed.items
        if service.spec.type == "LoadBalancer"
    ]


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
            await client.delete(_SERVICES, service.name, service.namespace, uid=service.uid)
        except (NotFound, Conflict):
            continue
    return len(found)
