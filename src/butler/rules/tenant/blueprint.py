"""Blueprint: everything that the objects of one cluster are made from, gathered in one place.

A builder sees nothing but the blueprint, so the same blueprint always gives the same objects, and a test can say what
a field of a spec does by changing it and looking at what comes out. What cannot be built is refused with
`Unbuildable`, which names the field that the person who reads it can change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.ipam.addresses import parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.objects import Json
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.addresses import Family, Range


class Unbuildable(Exception):
    """Why no objects can be made for a cluster: the field to change, and what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    """Where machines get their addresses from, when Butler hands them out."""

    ranges: tuple[Range, ...]
    """All addresses that machines of this cluster may take, in the order in which they were granted."""
    prefix_length: int
    """Length of the network that the addresses lie in."""
    gateway: str
    dns_servers: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(span.size for span in self.ranges)


def family_of(nodes: NodeNetwork) -> Family:
    """IPv4 or IPv6, which the ranges themselves do not say."""
    return parse_address(nodes.gateway)[0]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API server of a cluster is reached."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Versions:
    """Which Kubernetes each part runs: in an upgrade the workers follow the control plane."""

    control_plane: str
    workers: str


@dataclass(frozen=True, slots=True)
class Blueprint:
    """One cluster: what is wanted, where it goes, and what is known about it by now."""

    cluster: TenantCluster
    provider: ProviderConfig
    namespace: str
    """The tenant namespace, which holds all objects of the cluster."""
    versions: Versions
    credentials: Mapping[str, str]
    """What the provider's Secret holds, decoded."""
    credentials_secret: tuple[str, str]
    """Namespace and name of the provider's Secret, for providers that are given a reference."""
    nodes: NodeNetwork | None = None
    """None: the network gives machines their addresses."""
    endpoint: Endpoint | None = None
    """None until the control plane has one."""
    bootstrap_secret: str | None = None
    """Name of the Secret with the machines' configuration, for an operating system that has no bootstrap template."""

    @property
    def name(self) -> str:
        return self.cluster.metadata.name


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """A provider's part: what it calls the cluster, the shape of its machines, and what these two refer to."""

    cluster: Json
    machine_template: Json
    """Without a name that matters: templates are immutable, so the caller names them by their content."""
    others: tuple[Json, ...] = ()
    """Secrets, identities and the like, to be there before the cluster is."""
