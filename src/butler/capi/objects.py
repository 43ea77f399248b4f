"""Everything that a cluster consists of, in the order in which it is applied.

Credentials come before what uses them, templates before what points at them, and the Cluster last but one: Cluster
API starts to work when it sees the Cluster, and then finds everything in place. The MachineDeployment comes last. It
is left out for as long as it would point at nothing: machines of an operating system without a bootstrap template
wait for the Secret with their configuration, because some providers take a missing Secret for a final failure.
Likewise the provider's cluster waits for the endpoint where the provider would otherwise make one up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.providers import Provider
from butler.api.tenantcluster import OSType
from butler.capi import aws, azure, bootstrap, cluster, gcp, harvester, nutanix, proxmox, steward, talos
from butler.capi.naming import named_by_content, workers_name
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint, Infrastructure

BUILDERS: Final[dict[Provider, Callable[[Blueprint], Infrastructure]]] = {
    Provider.HARVESTER: harvester.infrastructure,
    Provider.NUTANIX: nutanix.infrastructure,
    Provider.PROXMOX: proxmox.infrastructure,
    Provider.AWS: aws.infrastructure,
    Provider.GCP: gcp.infrastructure,
    Provider.AZURE: azure.infrastructure,
}

WAIT_FOR_ENDPOINT: Final = frozenset({Provider.HARVESTER})
"""Providers that invent an endpoint for a cluster without control-plane machines. Cluster API keeps the first one that
it sees, so their cluster appears only after Steward's endpoint is known."""


def infrastructure(blueprint: Blueprint) -> Infrastructure:
    """The provider's part of a cluster."""
    provider = blueprint.provider.spec.provider
    build = BUILDERS.get(provider)
    if build is None:
        raise Unbuildable("spec.provider", f"Butler cannot put clusters on provider {provider.value}")
    _refuse_foreign_override(blueprint)
    return build(blueprint)


def _refuse_foreign_override(blueprint: Blueprint) -> None:
    override = blueprint.cluster.spec.infrastructure_override
    if override is None:
        return
    provider = blueprint.provider.spec.provider
    blocks = {
        Provider.HARVESTER: override.harvester,
        Provider.NUTANIX: override.nutanix,
        Provider.PROXMOX: override.proxmox,
        Provider.GCP: override.gcp,
    }
    for other, block in blocks.items():
        if other is not provider and block is not None:
            raise Unbuildable(
                f"spec.infrastructureOverride.{other.value}",
                f"means nothing here: the cluster's provider is {provider.value}",
            )


def objects(blueprint: Blueprint) -> tuple[Json, ...]:
    """All objects of a cluster, each after what it depends on."""
    parts = infrastructure(blueprint)
    prefix = workers_name(blueprint.cluster)
    template = named_by_content(prefix, parts.machine_template)
    template_name: str = template["metadata"]["name"]
    found = [*parts.others, steward.control_plane(blueprint), template]
    if blueprint.endpoint is not None or blueprint.provider.spec.provider not in WAIT_FOR_ENDPOINT:
        found.append(parts.cluster)
    if blueprint.cluster.spec.workers.machine_template.os.type is OSType.TALOS:
        talos.refuse_what_talos_has_not(blueprint)
        found.append(cluster.cluster(blueprint))
        if blueprint.bootstrap_secret is not None:
            found.append(cluster.workers(blueprint, template_name, secret=blueprint.bootstrap_secret))
        return tuple(found)
    configuration = named_by_content(prefix, bootstrap.kubeadm_template(blueprint))
    name: str = configuration["metadata"]["name"]
    found += [configuration, cluster.cluster(blueprint), cluster.workers(blueprint, template_name, bootstrap_name=name)]
    return tuple(found)
