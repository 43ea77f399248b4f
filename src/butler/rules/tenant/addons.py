"""Which TenantAddons a cluster needs, and how far they are. Pure.

A cluster without a word about addons gets the set that every cluster needs. What is named later is added; what is
no longer named stays, because removing a storage driver by leaving out a line would be a trap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from butler.api.labels import MANAGED_BY, Label
from butler.api.meta import LocalObjectReference, ObjectMeta, OwnerReference
from butler.api.tenantaddon import TenantAddon, TenantAddonPhase, TenantAddonSpec
from butler.api.tenantaddons import (
    AddonHealth,
    AddonManager,
    GitOpsProvider,
    IngressProvider,
    ObservedAddon,
    StorageProvider,
)
from butler.api.tenantcluster import ManagementMode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.tenantaddons import Addons
    from butler.api.tenantcluster import TenantCluster

CNI: Final = "cilium"
METALLB: Final = "metallb"
MOST_OBSERVED: Final = 256
"""How many addons the status of a cluster may list."""
_GITOPS: Final = {GitOpsProvider.FLUXCD: "flux", GitOpsProvider.ARGOCD: "argocd"}
_HEALTH: Final = {
    TenantAddonPhase.PENDING: AddonHealth.PENDING,
    TenantAddonPhase.INSTALLING: AddonHealth.INSTALLING,
    TenantAddonPhase.UPGRADING: AddonHealth.INSTALLING,
    TenantAddonPhase.INSTALLED: AddonHealth.HEALTHY,
    TenantAddonPhase.DEGRADED: AddonHealth.DEGRADED,
    TenantAddonPhase.FAILED: AddonHealth.FAILED,
    TenantAddonPhase.DELETING: AddonHealth.DEGRADED,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One addon: which, in which version, with which values."""

    addon: str
    version: str | None
    values: dict[str, Any]


def wanted_addons(cluster: TenantCluster, *, load_balancers: bool) -> tuple[Wanted, ...]:
    """All addons of a cluster, the pod network first; none where Butler does not manage them.

    `load_balancers` says whether Butler provides addresses for Services; in a cloud, the cloud does.
    """
    if not installs_addons(cluster):
        return ()
    addons = cluster.spec.addons
    found = [_of(CNI, addons.cni), _of("cert-manager", addons.cert_manager), _storage(addons)]
    if load_balancers or addons.load_balancer is not None:
        found.append(_of(METALLB, addons.load_balancer))
    if addons.ingress.enabled:
        provider = addons.ingress.provider or IngressProvider.TRAEFIK
        found.append(Wanted(provider.value, addons.ingress.version, addons.ingress.values))
    if addons.gitops is not None:
        tool = _GITOPS[addons.gitops.provider or GitOpsProvider.FLUXCD]
        repository = addons.gitops.repository
        values = {"repository": msgspec.to_builtins(repository)} if repository is not None else {}
        found.append(Wanted(tool, addons.gitops.version, values))
    if addons.cert_manager is not None and not addons.cert_manager.enabled:
        found = [wanted for wanted in found if wanted.addon != "cert-manager"]
    return tuple(found)


def installs_addons(cluster: TenantCluster) -> bool:
    """Whether Butler manages the cluster's addons."""
    return cluster.spec.management_policy.mode is ManagementMode.ACTIVE


def _of(name: str, given: Any) -> Wanted:
    return Wanted(name, given.version if given else None, given.values if given else {})


def _storage(addons: Addons) -> Wanted:
    provider = (addons.storage.provider if addons.storage else None) or StorageProvider.LONGHORN
    return _of(provider.value, addons.storage)


def tenant_addon(cluster: TenantCluster, wanted: Wanted) -> TenantAddon:
    """The TenantAddon for one of the cluster's addons; it goes when the cluster goes."""
    meta = cluster.metadata
    return TenantAddon(
        metadata=ObjectMeta(
            name=f"{meta.name}-{wanted.addon}",
            namespace=meta.namespace,
            labels={Label.TENANT.value: meta.name, Label.TENANT_UID.value: meta.uid, MANAGED_BY[0]: MANAGED_BY[1]},
            owner_references=(
                OwnerReference(
                    api_version=cluster.api_version,
                    kind="TenantCluster",
                    name=meta.name,
                    uid=meta.uid,
                    controller=True,
                    block_owner_deletion=True,
                ),
            ),
        ),
        spec=TenantAddonSpec(
            cluster_ref=LocalObjectReference(name=meta.name),
            addon=wanted.addon,
            version=wanted.version,
            values=wanted.values,
        ),
    )


def belongs_to(addon: TenantAddon, cluster: TenantCluster) -> bool:
    """Whether a TenantAddon is for this cluster, and not one that an earlier cluster of its name left behind."""
    same_place = addon.metadata.namespace == cluster.metadata.namespace
    made_for = addon.metadata.labels.get(Label.TENANT_UID, cluster.metadata.uid)
    return same_place and addon.spec.cluster_ref.name == cluster.metadata.name and made_for == cluster.metadata.uid


def _is_ours(addon: TenantAddon) -> bool:
    return MANAGED_BY[0] in addon.metadata.labels


def _one_each(present: Iterable[TenantAddon]) -> dict[str, TenantAddon]:
    """The TenantAddon of each addon; where a user made another for the same, Butler's own counts."""
    found: dict[str, TenantAddon] = {}
    for item in sorted(present, key=lambda addon: (addon.spec.addon, not _is_ours(addon), addon.metadata.name)):
        found.setdefault(item.spec.addon, item)
    return found


@dataclass(frozen=True, slots=True)
class AddonProgress:
    """How far the addons are."""

    installed: frozenset[str]
    waiting: tuple[str, ...]
    failed: tuple[str, ...]
    """Sentences, one for each addon that could not be installed; it is tried again."""
    cni_blocks: bool
    """Without a pod network nothing else can run."""


def progress(wanted: Iterable[Wanted], present: Iterable[TenantAddon]) -> AddonProgress:
    """How far the wanted addons are, given the TenantAddons that there are."""
    by_name = _one_each(present)
    installed, waiting, failed = set(), [], []
    for wish in wanted:
        found = by_name.get(wish.addon)
        status = found.status if found else None
        current = (
            found is not None
            and found.status.observed_generation == found.metadata.generation
            and found.metadata.deletion_timestamp is None
        )
        if status is not None and status.phase is TenantAddonPhase.INSTALLED and current:
            installed.add(wish.addon)
        elif status is not None and status.phase in (TenantAddonPhase.FAILED, TenantAddonPhase.DEGRADED):
            failed.append(f"{wish.addon}: {status.message or status.phase.value}")
        else:
            waiting.append(wish.addon)
    blocks = any(wish.addon == CNI for wish in wanted) and CNI not in installed
    return AddonProgress(frozenset(installed), tuple(waiting), tuple(failed), blocks)


def observed(present: Iterable[TenantAddon]) -> tuple[ObservedAddon, ...]:
    """The addons as the cluster's status lists them, by name, each name once: it is the key of that list."""
    return tuple(
        ObservedAddon(
            name=addon.spec.addon,
            version=addon.status.installed_version or addon.spec.version or "",
            status=_HEALTH[addon.status.phase],
            managed_by=AddonManager.BUTLER if _is_ours(addon) else AddonManager.MANUAL,
        )
        for addon in list(_one_each(present).values())[:MOST_OBSERVED]
    )
