"""What the three on-premises providers have in common: images by name, and networks that Butler may describe.

Machines take an image by the first of these that is given: the machine template's imageRef, the cluster's
infrastructureOverride, the ProviderConfig. Where none names one, the operating system does: an image (or template, or
tag) called `rocky-9.5`, `flatcar-4152.2.0` or `talos-v1.9.3` is looked for.

Where Butler hands out node addresses, the gateway and the DNS servers go along with them. Where the network gives
machines their addresses, it also gives them these two; settings to the contrary would be ignored, so they are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.tenantcluster import OSType, TalosSettings
from butler.ipam.addresses import Range, address_text, range_text
from butler.rules.tenant.blueprint import Unbuildable, family_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.tenantcluster import OperatingSystem
    from butler.rules.tenant.blueprint import Blueprint, NodeNetwork

MACHINE = "spec.workers.machineTemplate"


def image_name(system: OperatingSystem) -> str:
    """The default name of an image of this operating system."""
    version = (system.talos or TalosSettings()).version if system.type is OSType.TALOS else system.version
    return f"{system.type.value}-{version}"


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same addresses in order, with ranges that touch made one."""
    found: list[Range] = []
    for span in sorted(ranges):
        if found and span.first <= found[-1].last + 1:
            found[-1] = Range(found[-1].first, max(found[-1].last, span.last))
        else:
            found.append(span)
    return tuple(found)


def range_texts(nodes: NodeNetwork) -> list[str]:
    """All node addresses as `first-last`, in order."""
    family = family_of(nodes)
    return [range_text(span, family) for span in joined(nodes.ranges)]


def network_text(nodes: NodeNetwork) -> str:
    """The network that the node addresses lie in, as in 10.40.0.0/21."""
    family = family_of(nodes)
    size = 1 << (family.bits - nodes.prefix_length)
    first = nodes.ranges[0].first
    return f"{address_text(first - first % size, family)}/{nodes.prefix_length}"


def refuse_settings_without_node_addresses(blueprint: Blueprint) -> None:
    """Refuse a gateway and DNS servers where machines get them from the network, with their addresses."""
    network = blueprint.provider.spec.network
    if blueprint.nodes is not None:
        return
    why = (
        "machines get it from the network, as by DHCP: leave it out,"
        " or use mode ipam with a pool for nodes, and give the gateway"
    )
    if network.gateway is not None:
        raise Unbuildable("spec.network.gateway", why)
    if network.dns_servers:
        raise Unbuildable("spec.network.dnsServers", why)


def refuse_subnet(blueprint: Blueprint, named_in: str) -> None:
    """Refuse spec.network.subnet where a field of the provider's own block names the network."""
    if blueprint.provider.spec.network.subnet is not None:
        raise Unbuildable("spec.network.subnet", f"{named_in} names the network of machines on this provider")
