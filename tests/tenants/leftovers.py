"""What is left when clusters have gone, and whether any process still writes.

Everything that Butler and the world make for clusters is listed, not only what the witness follows: a Secret that was
forgotten, a template, a namespace, a logical cluster of the world.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from control_planes import ControlPlane
from ipam.history import GROUP

if TYPE_CHECKING:
    from collections.abc import Collection

    from ipam.history import Json
    from world_process import WorldProcess

PATIENCE = 120.0
_CORE = "/apis/cluster.x-k8s.io/v1beta1"
_BOOTSTRAP = "/apis/bootstrap.cluster.x-k8s.io/v1beta1"
_PROXMOX = "/apis/infrastructure.cluster.x-k8s.io/v1alpha1"
CLUSTER_API = {
    **{plural: f"{_CORE}/{plural}" for plural in ("clusters", "machinedeployments", "machinesets", "machines")},
    **{plural: f"{_BOOTSTRAP}/{plural}" for plural in ("kubeadmconfigtemplates", "kubeadmconfigs")},
    **{plural: f"{_PROXMOX}/{plural}" for plural in ("proxmoxclusters", "proxmoxmachines", "proxmoxmachinetemplates")},
    "stewardcontrolplanes": "/apis/controlplane.cluster.x-k8s.io/v1alpha1/stewardcontrolplanes",
}
_UID = "butler.butlerlabs.dev/tenant-uid"


class Leftovers:
    """One management cluster and its world, looked through. `team` has the TenantClusters, `home` Butler's own."""

    def __init__(self, plane: ControlPlane, world: WorldProcess, team: str, home: str) -> None:
        self._plane = plane
        self._world = world
        self._team = team
        self._home = home

    async def insist_nothing_but(self, homes: Collection[str]) -> None:
        """All that was made for clusters is in the namespaces of those that are there, and no such one is missing.

        Released allocations go in their own time, and a garbage collector takes a moment.
        """
        deadline = time.monotonic() + PATIENCE
        while found := await asyncio.to_thread(self._out_of_place, frozenset(homes)):
            assert time.monotonic() < deadline, f"left over, or missing: {found[:8]}"
            await asyncio.sleep(0.2)

    def _out_of_place(self, homes: frozenset[str]) -> list[str]:
        found = []
        for plural, path in CLUSTER_API.items():
            where = {obj["metadata"]["namespace"] for obj in self._items(path)}
            found += [f"{plural} in {namespace}" for namespace in where - homes]
            found += [f"no {plural} in {namespace}" for namespace in homes - where]
        namespaces = {obj["metadata"]["name"] for obj in self._items("/api/v1/namespaces", _UID)}
        found += [f"namespace {name}" for name in namespaces ^ homes]
        for secret in self._items("/api/v1/secrets", _UID):
            meta = secret["metadata"]
            found += [f"Secret {meta['namespace']}/{meta['name']}"] if meta["namespace"] not in homes else []
        uids = {obj["metadata"]["uid"] for obj in self._items(self._own("tenantclusters", self._team))}
        for plural, namespace in (("tenantaddons", self._team), ("ipallocations", self._home)):
            for obj in self._items(self._own(plural, namespace)):
                if _owner(obj) not in uids:
                    found.append(f"{plural} {obj['metadata']['name']} {(obj.get('status') or {}).get('phase')}")
        folder = self._world.data_dir / "clusters"
        hosted = {path.parent.parent.name for path in folder.glob("*/*/kubeconfig")} if folder.exists() else set()
        return found + [f"logical cluster {name}" for name in hosted ^ homes]

    async def insist_peace(self, seconds: float) -> None:
        """Nothing is written for so long: not in the management cluster, leases apart, and not on any tenant."""
        deadline = time.monotonic() + PATIENCE
        before = await asyncio.to_thread(self._versions)
        while True:
            await asyncio.sleep(seconds)
            after = await asyncio.to_thread(self._versions)
            written = [f"{key}: {before.get(key)} -> {after.get(key)}" for key in before.keys() | after.keys()]
            written = [text for text in written if len(set(text.rsplit(": ", 1)[1].split(" -> "))) > 1]
            if not written:
                return
            assert time.monotonic() < deadline, f"it never comes to rest: {written[:8]}"
            before = after

    def _versions(self) -> dict[str, str]:
        own = ("tenantclusters", "tenantaddons")
        paths = [*CLUSTER_API.values(), "/api/v1/namespaces", "/api/v1/secrets"]
        paths += [self._own(plural, self._team) for plural in own]
        paths += [self._own(plural, self._home) for plural in ("networkpools", "ipallocations", "providerconfigs")]
        paths += [f"/api/v1/namespaces/{namespace}/events" for namespace in (self._team, self._home)]
        found = {}
        for path in paths:
            for obj in self._items(path):
                meta = obj["metadata"]
                found[f"{path} {meta.get('namespace', '')}/{meta['name']}"] = str(meta["resourceVersion"])
        tenants = ControlPlane.from_kubeconfig(
            "world", self._world.data_dir / "kubeconfig", self._world.data_dir.parent / "world-client"
        )
        code, answer = tenants.request("GET", "/api/v1/namespaces")
        assert code == 200, answer
        return found | {"all tenants": str(answer["metadata"]["resourceVersion"])}  # one store counts for all of them

    def _own(self, plural: str, namespace: str) -> str:
        return f"{GROUP}/namespaces/{namespace}/{plural}"

    def _items(self, path: str, label: str = "") -> list[Json]:
        code, answer = self._plane.request("GET", f"{path}?labelSelector={label.replace('/', '%2F')}")
        assert code == 200, f"{path}: {answer}"
        return list(answer["items"])


def _owner(obj: Json) -> str:
    meta = obj["metadata"]
    owners = [
        owner_reference["uid"]
        for owner_reference in meta.get("ownerReferences") or ()
        if owner_reference["kind"] == "TenantCluster"
    ]
    return str(meta.get("labels", {}).get(_UID) or (owners or [""])[0])
