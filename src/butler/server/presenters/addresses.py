"""Whose addresses are, as the API shows it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from typing import Final

import msgspec

from butler.api.networkpool import NetworkPool
from butler.reports.address_lookup import Answer, answer_json
from butler.server.models.addresses import AddressAnswer, Hit
from butler.server.models.allocations import AllocationItem
from butler.server.models.common import Link
from butler.server.models.providers import ProviderItem
from butler.server.models.tenants import TenantItem

KINDS: Final = ("pool", "tenant", "provider", "allocation")


def shown_answer(answer: Answer) -> AddressAnswer:
    return msgspec.convert(answer_json(answer), AddressAnswer)


def promised_names(pools: Iterable[NetworkPool]) -> set[str]:
    """The allocations that pools have promised addresses to."""
    return {intent.name for pool in pools for intent in pool.status.intents}


def pool_hits(pools: Iterable[NetworkPool]) -> Iterator[Hit]:
    for pool in pools:
        link = Link(kind="pool", namespace=pool.metadata.namespace, name=pool.metadata.name)
        yield Hit(link=link, title=pool.metadata.name, detail=f"pool, {pool.spec.cidr}")


def tenant_hits(tenants: Iterable[TenantItem]) -> Iterator[Hit]:
    for tenant in tenants:
        link = Link(kind="tenant", namespace=tenant.namespace, name=tenant.name)
        yield Hit(
            link=link, title=f"{tenant.namespace}/{tenant.name}", detail=f"tenant, {tenant.phase}, {tenant.version}"
        )


def provider_hits(providers: Iterable[ProviderItem]) -> Iterator[Hit]:
    for provider in providers:
        link = Link(kind="provider", namespace=provider.namespace, name=provider.name)
        yield Hit(link=link, title=provider.name, detail=f"provider, {provider.provider}")


def allocation_hits(allocations: Iterable[AllocationItem]) -> Iterator[Hit]:
    for allocation in allocations:
        link = Link(kind="allocation", namespace=allocation.namespace, name=allocation.name)
        where = f"{allocation.start}-{allocation.end}" if allocation.start else "no addresses"
        yield Hit(
            link=link, title=allocation.name, detail=f"allocation, {where} of {allocation.pool}, {allocation.state}"
        )


def _place(name: str, sought: str) -> tuple[object, ...]:
    """The name itself first, then what begins with the text, shorter ones first."""
    small = name.lower()
    return small != sought, not small.startswith(sought), len(small), small


def closest(allocations: Iterable[AllocationItem], sought: str, most: int) -> list[AllocationItem]:
    """Of thousands, the few that are worth a closer look."""
    found = (allocation for allocation in allocations if sought in allocation.name.lower())
    return nsmallest(most, found, key=lambda allocation: _place(allocation.name, sought))


def best(hits: Iterable[Hit], sought: str, most: int) -> list[Hit]:
    """Those whose name has the text in it, the best first."""

    def place(hit: Hit) -> tuple[object, ...]:
        return (*_place(hit.link.name, sought), KINDS.index(hit.link.kind), hit.link.namespace)

    return sorted((hit for hit in hits if sought in hit.title.lower()), key=place)[:most]
