"""What is done on the tenant itself: its kubeconfig, and its load balancers when it goes.

The tenant is its team's cluster. That it cannot be reached, or answers nonsense, is an outcome to report and
never an error that stops the rest. Only so many are talked to at a time, and none for long: the workers that wait for
tenants are missing to all others. Who does not get a turn comes again. What is said of a tenant stays the same
while it does not answer, however often it is asked, because it ends up in a status.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from butler.api.labels import FieldManager, Label
from butler.api.objects import Key, key_of, labels_of, version_of
from butler.capi.naming import CLUSTER_NAME_LABEL, SECRET, SECRET_TYPE, labels
from butler.kube.errors import AlreadyExists, ConfigError, KubeError, NotFound, OutcomeUnknown, Unreachable
from butler.kube.kinds import WRITE_TIMEOUT
from butler.kube.resource import SECRETS
from butler.rules.tenant.deletion import left_over
from butler.rules.tenant_namespace import tenant_namespace
from butler.tenant.clusters import TenantResting, kubeconfig_from, kubeconfig_secret
from butler.tenant.services import delete_load_balancers, load_balancers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.api.objects import Json
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.kubeconfig_secrets import KubeconfigSecrets
    from butler.controllers.tenantcluster.foreign_objects import ForeignObjects
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.tenant.clusters import TenantClients

ADMIN_KUBECONFIGS: Final = "steward.butlerlabs.dev/component=admin-kubeconfig"
"""How Steward marks the Secrets with the administrators' kubeconfigs."""
COPIED_FROM: Final = "butler.butlerlabs.dev/copied-from"
"""Annotation: which version of Steward's Secret a kubeconfig was copied from."""
AT_ONCE: Final = 16
"""How many tenants are talked to at a time: half of the workers."""
PATIENCE: Final = 30.0
"""Seconds for all that there is to say to one tenant."""
LONGEST_REASON: Final = 500


class TenantAccess:
    """Everything that needs a tenant's kubeconfig. `kubeconfigs` are Steward's Secrets, without their contents."""

    def __init__(
        self,
        client: Client,
        live: ForeignObjects,
        kubeconfigs: Cache[Json],
        tenants: TenantClients,
        secrets: KubeconfigSecrets,
    ) -> None:
        self._client = client
        self._live = live
        self._kubeconfigs = kubeconfigs
        self._tenants = tenants
        self._secrets = secrets
        self._talking = 0
        self._trouble: dict[str, str] = {}
        """Why a tenant did not answer when it was last asked."""
        self._copied_by_others: dict[str, str] = {}

    # The kubeconfig.

    async def kubeconfig(self, cluster: TenantCluster, endpoint: str | None) -> str | None:
        """Steward's Secret, once it is there; Cluster API then finds a copy under the name that it expects."""
        key = _kubeconfig_of(cluster)
        found = self._kubeconfigs.get(key)
        if found is None:
            return None
        if endpoint is not None:
            await self._copy_for_cluster_api(cluster, endpoint, found)
        return key.name

    async def _copy_for_cluster_api(self, cluster: TenantCluster, endpoint: str, source: Json) -> None:
        namespace, name = tenant_namespace(cluster), f"{cluster.metadata.name}-kubeconfig"
        ours = await self._live.one(SECRET, namespace, name)
        version = version_of(source)
        if ours is not None and ours["metadata"].get("annotations", {}).get(COPIED_FROM) == version:
            return
        if ours is None and self._copied_by_others.get(cluster.metadata.uid) == version:
            return
        content = await self._secrets.look(key_of(source), version)
        try:
            # Cluster API runs what a kubeconfig says: it gets one that we wrote.
            text = kubeconfig_from(content, endpoint, cluster.metadata.name)
        except ConfigError:
            return  # who talks to the tenant says what is wrong with it
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
            "data": {"value": base64.b64encode(text.encode()).decode()},
        }
        if ours is not None:
            await self._live.apply(SECRET, wanted)
            return
        try:
            written = await self._client.create(
                SECRETS, wanted, field_manager=FieldManager.TENANTS, timeout=WRITE_TIMEOUT
            )
            await self._live.wrote(SECRET, written)
        except AlreadyExists:
            present = await self._client.get(SECRETS, name, namespace)
            if labels_of(present).get(Label.TENANT_UID) != cluster.metadata.uid:
                self._copied_by_others[cluster.metadata.uid] = version  # by Steward's own provider, before us

    # Load balancers.

    async def balancers_left(self, cluster: TenantCluster) -> str:
        """Ask for all Services of type LoadBalancer to be deleted; what is still there, in words."""
        if _kubeconfig_of(cluster) not in self._kubeconfigs:
            return ""  # a tenant that could never be talked to has none
        try:
            async with self.talk_to(cluster) as tenant:
                await delete_load_balancers(tenant)
                left = [
                    f"{load_balancer.namespace}/{load_balancer.name}" for load_balancer in await load_balancers(tenant)
                ]
        except NotFound:
            return ""  # the kubeconfig is gone, and with it the tenant
        except KubeError as error:
            return f"the tenant's API server to delete its load balancers ({_shortened(error)})"
        return left_over("load balancer", left) if left else ""

    # The way there.

    @asynccontextmanager
    async def talk_to(self, cluster: TenantCluster) -> AsyncIterator[Client]:
        """A client for the tenant, for a short while. Raises KubeError while there can be none."""
        uid = cluster.metadata.uid
        if self._talking >= AT_ONCE:
            raise Unreachable(self._trouble.get(uid, "it has not been asked yet"))
        self._talking += 1
        try:
            async with asyncio.timeout(PATIENCE):
                key = _kubeconfig_of(cluster)
                secret = await self._client.get(SECRETS, key.name, key.namespace)
                tenant = await self._tenants.client(key_of(cluster), uid, secret)
                self._trouble.pop(uid, None)
                yield tenant
        except TenantResting:
            raise Unreachable(self._trouble.get(uid, "it does not answer")) from None
        except TimeoutError:
            self._trouble[uid] = f"it was not done within {PATIENCE:.0f} s"
            raise OutcomeUnknown(self._trouble[uid]) from None
        except (Unreachable, OutcomeUnknown) as error:
            self._trouble[uid] = str(error)
            raise
        finally:
            self._talking -= 1

    async def forget(self, uid: str) -> None:
        """The cluster is gone."""
        self._copied_by_others.pop(uid, None)
        self._trouble.pop(uid, None)
        await self._tenants.forget(uid)


def _kubeconfig_of(cluster: TenantCluster) -> Key:
    return Key(tenant_namespace(cluster), kubeconfig_secret(cluster.metadata.name))


def _shortened(error: KubeError) -> str:
    """What a tenant says may be of any length, and a status that is too long cannot be written at all."""
    said = str(error)
    return said if len(said) <= LONGEST_REASON else f"{said[: LONGEST_REASON - 1]}…"


def without_contents(secret: Json) -> Json:
    """A Secret as a cache may keep it: that it is there, and in which version."""
    meta = secret.get("metadata", {})
    kept = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "labels") if name in meta}
    return {"metadata": kept}
