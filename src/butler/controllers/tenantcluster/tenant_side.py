"""What is done on the tenant itself: its kubeconfig, its MetalLB, its load balancers when it goes.

The tenant is somebody else's cluster. That it cannot be reached, or answers nonsense, is an outcome to report and
never an error that stops the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.labels import FieldManager
from butler.capi.naming import CLUSTER_NAME_LABEL, SECRET, SECRET_TYPE, labels, tenant_namespace
from butler.controllers.kinds import WRITE_TIMEOUT
from butler.kube.errors import AlreadyExists, KubeError
from butler.kube.objects import key_of, version_of
from butler.kube.resource import SECRETS, Key
from butler.tenant.clusters import ADMIN_CONF, kubeconfig_secret
from butler.tenant.metallb import publish
from butler.tenant.services import delete_load_balancers, load_balancers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.tenantcluster.live import Live
    from butler.ipam.addresses import Range
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.resource import Json
    from butler.tenant.clusters import TenantClients

ADMIN_KUBECONFIGS: Final = "steward.butlerlabs.dev/component=admin-kubeconfig"
"""How Steward marks the Secrets with the administrators' kubeconfigs."""
COPIED_FROM: Final = "butler.butlerlabs.dev/copied-from"
"""Annotation: which version of Steward's Secret a kubeconfig was copied from."""


class TenantSide:
    """Everything that needs a tenant's kubeconfig. `kubeconfigs` are Steward's Secrets, without their contents."""

    def __init__(self, client: Client, live: Live, kubeconfigs: Cache[Json], tenants: TenantClients) -> None:
        self._client = client
        self._live = live
        self._kubeconfigs = kubeconfigs
        self._tenants = tenants
        self._published: dict[str, tuple[str, tuple[Range, ...]]] = {}
        self._copied_by_others: dict[str, str] = {}

    # The kubeconfig.

    async def kubeconfig(self, cluster: TenantCluster) -> str | None:
        """Steward's Secret, once it is there; Cluster API then finds a copy under the name that it expects."""
        key = Key(tenant_namespace(cluster), kubeconfig_secret(cluster.metadata.name))
        found = self._kubeconfigs.get(key)
        if found is None:
            return None
        await self._copy_for_cluster_api(cluster, found)
        return key.name

    async def _copy_for_cluster_api(self, cluster: TenantCluster, source: Json) -> None:
        namespace, name = tenant_namespace(cluster), f"{cluster.metadata.name}-kubeconfig"
        ours = await self._live.one(SECRET, namespace, name)
        version = version_of(source)
        if ours is not None and ours["metadata"].get("annotations", {}).get(COPIED_FROM) == version:
            return
        if ours is None and self._copied_by_others.get(cluster.metadata.uid) == version:
            return
        content = await self._client.get(SECRETS, key_of(source).name, namespace)
        encoded = (content.get("data") or {}).get(ADMIN_CONF)
        if not encoded:
            return
        wanted: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels(cluster) | {CLUSTER_NAME_LABEL: cluster.metadata.name},
                "annotations": {COPIED_FROM: version_of(content)},
            },
            "type": SECRET_TYPE,
            "data": {"value": encoded},
        }
        if ours is not None:
            await self._live.apply(SECRET, wanted)
            return
        try:
            await self._client.create(SECRETS, wanted, field_manager=FieldManager.TENANTS, timeout=WRITE_TIMEOUT)
        except AlreadyExists:  # Steward's own provider made one, before us
            self._copied_by_others[cluster.metadata.uid] = version

    # Load balancers.

    async def publish(self, cluster: TenantCluster, ranges: Sequence[Range]) -> str:
        """Tell the tenant's MetalLB its addresses; why that did not work, or nothing.

        What was published is remembered, so that a cluster at rest costs its tenant no request.
        """
        uid, wanted = cluster.metadata.uid, tuple(ranges)
        key = Key(tenant_namespace(cluster), kubeconfig_secret(cluster.metadata.name))
        source = self._kubeconfigs.get(key)
        mark = (version_of(source) if source is not None else "", wanted)
        if self._published.get(uid) == mark:
            return ""
        try:
            published = await publish(await self.client(cluster), wanted)
        except KubeError as error:
            return f"the tenant's MetalLB cannot be told its addresses: {error}"
        if not published.is_current:
            return f"the tenant's MetalLB does not have its addresses: {published.message or published.outcome}"
        self._published[uid] = mark
        return ""

    async def balancers_left(self, cluster: TenantCluster) -> list[str]:
        """Ask for all Services of type LoadBalancer to be deleted; those that are still there. Raises KubeError."""
        key = Key(tenant_namespace(cluster), kubeconfig_secret(cluster.metadata.name))
        if key not in self._kubeconfigs:
            return []  # a tenant that nobody could ever talk to has none
        tenant = await self.client(cluster)
        await delete_load_balancers(tenant)
        return [f"{each.namespace}/{each.name}" for each in await load_balancers(tenant)]

    async def client(self, cluster: TenantCluster) -> Client:
        """A client for the tenant. Raises KubeError while there can be none."""
        namespace, name = tenant_namespace(cluster), kubeconfig_secret(cluster.metadata.name)
        secret = await self._client.get(SECRETS, name, namespace)
        return await self._tenants.client(key_of(cluster), cluster.metadata.uid, secret)

    async def forget(self, uid: str) -> None:
        """The cluster is gone."""
        self._published.pop(uid, None)
        self._copied_by_others.pop(uid, None)
        await self._tenants.forget(uid)


def without_contents(secret: Json) -> Json:
    """A Secret as a cache may keep it: that it is there, and in which version."""
    meta = secret.get("metadata", {})
    kept = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "labels") if name in meta}
    return {"metadata": kept}
