"""Whose is a namespace? The team of a cluster is that of its namespace, and this is the only place that says so.

The team stands in a label of the Namespace. Members of a team may write most of what is in their namespace, but not
the Namespace itself, so nothing that they write grants or charges anything: not `spec.teamRef`, not a label, not an
annotation of a cluster. A namespace that Butler made for the objects of one cluster belongs to no team, whatever its
labels say: they were copied there, and are for people to select by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import field

from butler.api.labels import Label
from butler.api.objects import Key
from butler.api.schema import Part
from butler.kube.errors import Forbidden, NotFound
from butler.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.tenantcluster import TenantCluster
    from butler.kube.cache import Cache
    from butler.kube.client import Client

BY_TEAM: Final = "namespaces by team"
WITH_A_TEAM: Final = Label.TEAM.value
"""Label selector of the namespaces that are worth knowing."""


class _Head(Part):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)


class NamespaceHead(Part):
    """As much of a Namespace as is looked at here."""

    metadata: _Head


NAMESPACE_HEADS: Final = Resource("", "v1", "namespaces", "Namespace", NamespaceHead, namespaced=False)


def team_of_labels(labels: Mapping[str, str]) -> str:
    """The team of a namespace with these labels; empty when it has none."""
    return "" if Label.TENANT_UID in labels else labels.get(Label.TEAM, "")


async def as_placed(client: Client, cluster: TenantCluster) -> TenantCluster:
    """A cluster that is not written yet, with the team that it would have: for looking ahead, not for deciding.

    Who may not read the Namespace is shown what the cluster itself says.
    """
    claimed = cluster.spec.team_ref.name if cluster.spec.team_ref else None
    try:
        found = await client.get(NAMESPACE_HEADS, cluster.metadata.namespace)
        team = team_of_labels(found.metadata.labels) or None
    except (Forbidden, NotFound):
        team = claimed
    return msgspec.structs.replace(cluster, status=msgspec.structs.replace(cluster.status, team=team))


class Teams:
    """The teams of namespaces, as a cache of the namespaces with a team shows them."""

    def __init__(self, namespaces: Cache[NamespaceHead]) -> None:
        self._namespaces = namespaces

    def add_index(self) -> None:
        """Make `namespaces` cheap."""
        self._namespaces.index(BY_TEAM, lambda namespace: [team_of_labels(namespace.metadata.labels)])

    def of(self, namespace: str) -> str:
        """The team of a namespace; empty when it has none."""
        found = self._namespaces.get(Key("", namespace))
        return team_of_labels(found.metadata.labels) if found is not None else ""

    def namespaces(self, team: str) -> list[str]:
        """The namespaces of a team."""
        return [namespace.metadata.name for namespace in self._namespaces.by(BY_TEAM, team)] if team else []
