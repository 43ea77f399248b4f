"""Stand-in for Steward and capi-steward: a StewardControlPlane becomes a logical cluster of the embedded server.

As capi-steward does, it waits for the Cluster that owns the object, writes the endpoint into the object itself and
into the provider's cluster where it knows the kind, leaves the kubeconfig and the CA in Secrets, and calls the control
plane initialized and ready when the Cluster's infrastructure is. A new version takes its time. On deletion the
kubeconfig goes first, so that all clients let go of the tenant, and then the tenant with all that is in it.

The key of the CA is not handed out, though Steward does: here one CA serves the whole machine, and a client with its
key could act as any user on every tenant.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import yaml

from butler.api.objects import (
    Key,
    condition_of,
    is_being_deleted,
    key_of,
    name_of,
    namespace_of,
    version_of,
    with_finalizer,
)
from butler.kube.controller import After, Controller
from butler.kube.errors import AlreadyExists, NotFound
from butler.kube.objects import owner_reference
from butler.kube.resource import SECRETS
from butler.local.world import kinds, talos_trust
from butler.local.world.cluster_api import endpoint_of
from butler.local.world.conditions import judged, merged, true
from butler.local.world.tenants import COMPONENT, ENTRY, SUFFIX
from butler.local.world.view import WorldView, owner_key

if TYPE_CHECKING:
    from pathlib import Path

    from butler.api.objects import Json
    from butler.kube.cache import Cache
    from butler.kube.operator import Operator
    from butler.local.control_plane import ControlPlane
    from butler.local.world.settings import WorldSettings

PATCHED: Final = frozenset({"AWSCluster", "AzureCluster", "NutanixCluster", "ProxmoxCluster"})
"""The providers' clusters into which capi-steward writes the endpoint, of those that Butler makes."""
_UPGRADING: Final = "Upgrading"
_IS_READY: Final = "StewardControlPlaneIsReady"


def add_steward(operator: Operator, view: WorldView, plane: ControlPlane, settings: WorldSettings) -> None:
    secrets = operator.cache(SECRETS, label_selector="=".join(COMPONENT))
    stand_in = Steward(view, secrets, plane, settings)
    controller = Controller("world-steward", stand_in.reconcile, workers=settings.workers, metrics=operator.metrics)
    controller.watches(view.control_planes)
    controller.watches(view.clusters, lambda cluster: [_control_plane_key(cluster)])
    for cache in view.infrastructure_clusters.values():
        controller.watches(cache, lambda found: [owner_key(found, kinds.CLUSTERS) or key_of(found)])
    controller.watches(secrets, lambda secret: [Key(namespace_of(secret), name_of(secret).removesuffix(SUFFIX))])
    operator.add(controller)


def _control_plane_key(cluster: Json) -> Key:
    reference = cluster["spec"].get("controlPlaneRef") or {}
    return Key(namespace_of(cluster), reference.get("name") or name_of(cluster))


class Steward:
    def __init__(self, view: WorldView, secrets: Cache[Json], plane: ControlPlane, settings: WorldSettings) -> None:
        self._view = view
        self._secrets = secrets
        self._plane = plane
        self._settings = settings
        self._hosted: dict[Key, Path] = {}

    async def reconcile(self, key: Key) -> After | None:
        view = self._view
        control_plane = view.control_planes.get(key)
        if control_plane is None:
            if key in self._hosted:  # it went without asking
                await self._remove(key)
            return None
        owner = owner_key(control_plane, kinds.CLUSTERS)
        cluster = view.clusters.get(owner) if owner is not None else None
        if cluster is not None and view.is_paused(cluster):
            return None
        if is_being_deleted(control_plane):
            await self._remove(key)
            await view.release(view.control_planes, control_plane, kinds.CONTROL_PLANE_FINALIZER)
            return None
        if cluster is None or is_being_deleted(cluster):
            return None
        left = view.pace.remaining(
            key, control_plane["metadata"].get("creationTimestamp"), self._settings.control_plane_seconds
        )
        if left and key not in self._hosted:
            return After(left)
        control_plane = await self._begin(control_plane)
        kubeconfig = await self._host(key)
        await self._hand_out(control_plane, kubeconfig)
        patched = await self._patch_infrastructure(cluster)
        return await self._report(key, control_plane, cluster, patched=patched)

    async def _begin(self, control_plane: Json) -> Json:
        """Finalizer and endpoint, in one write, before there is anything to clean up."""
        change: Json = {}
        finalizers = with_finalizer(control_plane, kinds.CONTROL_PLANE_FINALIZER)
        if finalizers is not None:
            change["metadata"] = {"finalizers": finalizers, "resourceVersion": version_of(control_plane)}
        if endpoint_of(control_plane) != self._endpoint:
            change["spec"] = {"controlPlaneEndpoint": self._endpoint}
        return await self._view.patch(self._view.control_planes, control_plane, change) if change else control_plane

    @property
    def _endpoint(self) -> Json:
        url = urlsplit(self._plane.url)
        return {"host": url.hostname, "port": url.port}

    async def _host(self, key: Key) -> Path:
        path = self._hosted.get(key)
        if path is None:
            path = self._hosted[key] = await self._plane.add_cluster(key.namespace, key.name)
        return path

    async def _remove(self, key: Key) -> None:
        with suppress(NotFound):
            await self._view.client.delete(SECRETS, f"{key.name}{SUFFIX}", key.namespace)
        await self._plane.remove_cluster(key.namespace, key.name)
        self._hosted.pop(key, None)
        self._view.pace.forget(key)
        self._view.pace.forget(("upgrade", key))

    async def _hand_out(self, control_plane: Json, path: Path) -> None:
        """The Secrets, the kubeconfig last: who finds it finds the others."""
        kubeconfig = path.read_text()
        name = f"{name_of(control_plane)}{SUFFIX}"
        present = self._secrets.get(Key(namespace_of(control_plane), name))
        encoded = base64.b64encode(kubeconfig.encode()).decode()
        wanted = {ENTRY: encoded, "admin.svc": encoded}
        if present is not None and present.get("data") == wanted:
            return
        if present is not None:  # the server moved to another port
            await self._view.patch(self._secrets, present, {"data": wanted})
            return
        authority = yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["certificate-authority-data"]
        await self._create_secret(control_plane, "-ca", {"ca.crt": authority, "tls.crt": authority})
        addons = control_plane["spec"].get("addons") or {}
        if "workerBootstrap" in addons:
            await self._create_secret(control_plane, "-trustd-creds", talos_trust.credentials())
        await self._create_secret(control_plane, SUFFIX, wanted, {COMPONENT[0]: COMPONENT[1]})

    async def _create_secret(
        self, control_plane: Json, suffix: str, data: dict[str, str], labels: dict[str, str] | None = None
    ) -> None:
        secret: Json = {
            "metadata": {
                "name": f"{name_of(control_plane)}{suffix}",
                "namespace": namespace_of(control_plane),
                "labels": {**(labels or {}), "steward.butlerlabs.dev/name": name_of(control_plane)},
                "ownerReferences": [owner_reference(control_plane, kinds.STEWARD_CONTROL_PLANES)],
            },
            "data": data,
        }
        with suppress(AlreadyExists):
            self._secrets.wrote(await self._view.client.create(SECRETS, secret))

    async def _patch_infrastructure(self, cluster: Json) -> bool:
        """Tell the provider's cluster where the control plane is, where capi-steward does; whether it knows."""
        found = self._view.infrastructure_cluster(cluster)
        if found is None:
            return False
        cache, infrastructure = found
        if cache.resource.kind not in PATCHED:
            return endpoint_of(infrastructure) is not None
        known = endpoint_of(infrastructure) or {}
        if any(known.get(field) != value for field, value in self._endpoint.items()):
            await self._view.patch(cache, infrastructure, {"spec": {"controlPlaneEndpoint": self._endpoint}})
        return True

    async def _report(self, key: Key, control_plane: Json, cluster: Json, *, patched: bool) -> After | None:
        view = self._view
        serves = endpoint_of(cluster) is not None and bool((cluster.get("status") or {}).get("infrastructureReady"))
        known = (control_plane.get("status") or {}).get("version")
        wanted = control_plane["spec"].get("version", "")
        upgrading = serves and known is not None and known != wanted
        left = 0.0
        if upgrading:
            found = condition_of(control_plane, _IS_READY) or {}
            since = found.get("lastTransitionTime") if found.get("reason") == _UPGRADING else None
            left = view.pace.remaining(("upgrade", key), since, self._settings.control_plane_seconds)
        if not left:
            view.pace.forget(("upgrade", key))
            upgrading = False
        version = (known if upgrading else wanted) if serves else None
        told = status(control_plane, version, serves=serves, upgrading=upgrading, patched=patched, now=view.now)
        await view.write_status(view.control_planes, control_plane, told)
        return After(left) if upgrading else None


def status(control_plane: Json, version: str | None, *, serves: bool, upgrading: bool, patched: bool, now: str) -> Json:
    """What a StewardControlPlane says of itself; while it is upgraded it goes on serving."""
    replicas = control_plane["spec"].get("replicas", 2) if serves else 0
    waits = "waiting for the Cluster's infrastructure and endpoint"
    ready = judged(_IS_READY, serves and not upgrading, _UPGRADING if upgrading else "WaitingForCluster", waits)
    if upgrading:
        ready["message"] = f"from {version} to {control_plane['spec'].get('version', '')}"
    unknown = "the provider's cluster has no endpoint, and capi-steward does not write it for this kind"
    conditions = (
        true("TenantControlPlaneCreated"),
        true("TenantControlPlaneAddressReady"),
        true("ControlPlaneEndpointPatched"),
        judged("InfrastructureClusterPatched", patched, "UnsupportedInfrastructure", unknown),
        judged("StewardControlPlaneIsInitialized", serves, "WaitingForCluster", waits),
        ready,
    )
    return {
        "initialized": serves,
        "ready": serves,
        "externalManagedControlPlane": True,
        "replicas": replicas,
        "readyReplicas": replicas,
        "updatedReplicas": replicas if not upgrading else 0,
        "unavailableReplicas": 0,
        "selector": f"steward.butlerlabs.dev/name={name_of(control_plane)}",
        "conditions": merged(control_plane, conditions, now),
        **({"version": version} if version else {}),
    }
