"""Addresses of a pool that are no tenant's: gateways and DNS servers of the ProviderConfigs that name it. Pure.

They are written into the pool's status and left out of its layout, so that the allocator, admission, maps, plans and
counters agree. A ProviderConfig may come, or change, when such an address is handed out already: nothing is taken away
then, and the pool, the ProviderConfig and the TenantCluster each say who holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.networkpool import MOST_EXCLUDED, ExcludedAddress
from butler.api.providerconfig import NetworkMode
from butler.ipam.addresses import BadAddress, Family, address_text, parse_address, parse_network

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig, ProviderNetwork
    from butler.rules.pool.holdings import Book

SHOWN = 2


def pools_named_by(config: ProviderConfig) -> list[str]:
    """The pools that a ProviderConfig takes addresses from."""
    network = config.spec.network
    return [reference.name for reference in network.pool_refs] if network.mode is NetworkMode.IPAM else []


def special_addresses(network: ProviderNetwork) -> Iterator[tuple[str, str]]:
    """The addresses that machines of a provider need, and that none of them may have, each with what it is."""
    if network.gateway is not None:
        yield network.gateway, "gateway"
    for reference in network.pool_refs:
        if reference.gateway is not None:
            yield reference.gateway, "gateway"
    for server in network.dns_servers:
        yield server, "DNS server"


def excluded_addresses(pool: NetworkPool, configs: Iterable[ProviderConfig]) -> tuple[ExcludedAddress, ...]:
    """What the ProviderConfigs that name a pool exclude from it, in order of address."""
    try:
        family, network = parse_network(pool.spec.cidr)
    except BadAddress:
        return ()
    found: dict[int, list[str]] = {}
    for config in sorted(configs, key=lambda config: (config.metadata.namespace, config.metadata.name)):
        for text, what in special_addresses(config.spec.network):
            address = _read(text, family)
            if address is not None and network.first <= address <= network.last:
                found.setdefault(address, []).append(f"{what} of ProviderConfig {config.metadata.name}")
    return tuple(
        ExcludedAddress(address=address_text(address, family), reason=_in_words(found[address]))
        for address in sorted(found)[:MOST_EXCLUDED]
    )


def held_excluded(book: Book) -> list[str]:
    """Excluded addresses that allocations hold, each in a sentence."""
    found = []
    for address in book.layout.excluded:
        names = book.all_holders(address.addresses)
        if names:
            text = address_text(address.addresses.first, book.layout.family)
            found.append(f"{text} is the {address.description}, and held by {', '.join(names)}")
    return found


def _read(text: str, wanted: Family) -> int | None:
    try:
        family, address = parse_address(text)
    except BadAddress:
        return None
    return address if family is wanted else None


def _in_words(reasons: list[str]) -> str:
    distinct = list(dict.fromkeys(reasons))
    more = f" and {len(distinct) - SHOWN} more" if len(distinct) > SHOWN else ""
    return " and ".join(distinct[:SHOWN]) + more
