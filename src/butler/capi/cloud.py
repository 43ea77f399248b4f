"""What the three public clouds have in common: instance types, credentials, and networks that are not ours.

A cloud has no machines of any size, only a list of sizes. Where a ProviderConfig names none, the machine template's
cpu and memory choose from a short table per cloud: three families with 2 (or 1), 4 and 8 GiB per CPU, all of them
x86-64 and all of them offered in nearly every region. The first type, by CPUs and then by memory, that holds what was
asked for is taken; a request that none holds is refused, never cut down.

A cloud gives machines their addresses, routes and (mostly) resolvers itself. Settings of a ProviderConfig that say
otherwise cannot be carried anywhere, so they are refused here: the user who wrote them expects them to take effect.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, NamedTuple

from butler.capi.quantity import GIB, in_bytes, in_units
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.rules.tenant.blueprint import Blueprint

MACHINE = "spec.workers.machineTemplate"
IMAGE_REF = f"{MACHINE}.os.imageRef"


class InstanceType(NamedTuple):
    """A size of machine that a cloud offers; the order of these tuples is the order of choice."""

    cpus: int
    memory_gib: int
    name: str


def instance_types(*families: Iterable[InstanceType]) -> tuple[InstanceType, ...]:
    """A cloud's table, smallest first."""
    return tuple(sorted(instance_type for family in families for instance_type in family))


def smallest_holding(blueprint: Blueprint, table: tuple[InstanceType, ...], remedy: str) -> str:
    """The first type with at least the CPUs and the memory of the machine template."""
    wanted = blueprint.cluster.spec.workers.machine_template
    memory = in_bytes(wanted.memory)
    for instance_type in table:
        if instance_type.cpus >= wanted.cpu and instance_type.memory_gib * GIB >= memory:
            return instance_type.name
    field = "cpu" if wanted.cpu > max(instance_type.cpus for instance_type in table) else "memory"
    raise Unbuildable(
        f"{MACHINE}.{field}",
        f"no instance type that Butler knows has {wanted.cpu} CPUs and {wanted.memory} of memory: {remedy}",
    )


def disk_gib(blueprint: Blueprint, largest: int) -> int:
    """The root disk in GiB, which every cloud calls GB."""
    size = in_units(blueprint.cluster.spec.workers.machine_template.disk_size, GIB)
    if not 1 <= size <= largest:
        raise Unbuildable(f"{MACHINE}.diskSize", f"must be between 1Gi and {largest}Gi on this provider")
    return size


def credential(blueprint: Blueprint, key: str) -> str:
    """One entry of the provider's Secret."""
    value = blueprint.credentials.get(key, "").strip()
    if not value:
        namespace, name = blueprint.credentials_secret
        raise Unbuildable("spec.credentialsRef", f"Secret {namespace}/{name} has nothing under the key {key}")
    return value


def refuse_key_of_credentials(blueprint: Blueprint) -> None:
    """For providers whose credentials have several parts: one other key cannot stand for all of them."""
    reference = blueprint.provider.spec.credentials_ref
    if reference is not None and reference.key is not None:
        raise Unbuildable("spec.credentialsRef.key", "this provider's credentials have several keys: leave it out")


def refuse_foreign_networking(blueprint: Blueprint, subnet_field: str, *, takes_dns_servers: bool = False) -> None:
    """Refuse what a cloud decides on its own; subnet_field is where its subnet is named instead."""
    network = blueprint.provider.spec.network
    if blueprint.nodes is not None:
        raise Unbuildable("spec.network.mode", "this provider gives machines their addresses itself: use mode cloud")
    if network.gateway is not None:
        raise Unbuildable("spec.network.gateway", "the cloud's own network routes for machines: leave it out")
    if network.subnet is not None:
        raise Unbuildable("spec.network.subnet", f"name the subnet in {subnet_field} on this provider")
    if network.dns_servers and not takes_dns_servers:
        raise Unbuildable(
            "spec.network.dnsServers",
            "machines on this provider get their DNS servers from the cloud's network: set them there",
        )


def refuse_overlap(blueprint: Blueprint, made_by_provider: str, remedy: str) -> None:
    """Refuse networks of the cluster that contain the addresses of its own machines."""
    machines = ip_network(made_by_provider)
    networking = blueprint.cluster.spec.networking
    for field, text in (("podCIDR", networking.pod_cidr), ("serviceCIDR", networking.service_cidr)):
        network = ip_network(text, strict=False)
        if network.version == machines.version and network.overlaps(machines):
            raise Unbuildable(
                f"spec.networking.{field}",
                f"overlaps {machines}, the network that the provider makes for machines: choose another, or {remedy}",
            )
