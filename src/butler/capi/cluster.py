"""Cluster and MachineDeployment: what ties the control plane, the infrastructure and the machines together.

Cluster API fills in Cluster.spec.controlPlaneEndpoint from the objects that this one points at; it is not ours to
write. Machines are replaced one at a time, and how depends on addresses: a machine more than wanted needs an address
more than wanted. Where the node addresses are just enough, an old machine has to go before its successor can come;
a surge would leave a machine without an address, and the update would stand still for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.capi.naming import (
    CLUSTER,
    CLUSTER_NAME_LABEL,
    DEPLOYMENT_NAME_LABEL,
    KUBEADM_CONFIG_TEMPLATE,
    MACHINE_DEPLOYMENT,
    PROVIDERS,
    STEWARD_CONTROL_PLANE,
    labels,
    make,
    reference,
    workers_name,
)

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint

DNS_DOMAIN: Final = "cluster.local"
"""The domain of a cluster's Services."""


def cluster(blueprint: Blueprint) -> Json:
    """The Cluster: its networks, and where its control plane and its infrastructure are described."""
    wanted = blueprint.cluster.spec
    infrastructure = PROVIDERS[blueprint.provider.spec.provider].cluster
    return make(
        CLUSTER,
        blueprint,
        {
            "paused": wanted.paused,
            "clusterNetwork": {
                "pods": {"cidrBlocks": [wanted.networking.pod_cidr]},
                "services": {"cidrBlocks": [wanted.networking.service_cidr]},
                # capi-steward copies this as it is, and nothing would become a domain called "".
                "serviceDomain": DNS_DOMAIN,
            },
            "controlPlaneRef": reference(STEWARD_CONTROL_PLANE, blueprint.name, blueprint.namespace),
            "infrastructureRef": reference(infrastructure, blueprint.name, blueprint.namespace),
        },
    )


def workers(
    blueprint: Blueprint, template_name: str, *, bootstrap_name: str | None = None, secret: str | None = None
) -> Json:
    """The MachineDeployment: machines of one template, configured by a bootstrap template or by a Secret."""
    if (bootstrap_name is None) == (secret is None):
        raise ValueError("machines are configured by a bootstrap template or by a Secret, and by one of them only")
    name = workers_name(blueprint.cluster)
    template = PROVIDERS[blueprint.provider.spec.provider].machine_template
    chosen_by = {CLUSTER_NAME_LABEL: blueprint.name, DEPLOYMENT_NAME_LABEL: name}
    bootstrap: Json = (
        {"dataSecretName": secret}
        if bootstrap_name is None
        else {"configRef": reference(KUBEADM_CONFIG_TEMPLATE, bootstrap_name, blueprint.namespace)}
    )
    machine: Json = {
        "clusterName": blueprint.name,
        "version": blueprint.versions.workers,
        "bootstrap": bootstrap,
        "infrastructureRef": reference(template, template_name, blueprint.namespace),
    }
    spec: Json = {
        "clusterName": blueprint.name,
        "replicas": blueprint.cluster.spec.workers.replicas,
        "selector": {"matchLabels": chosen_by},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": _rolling_update(blueprint)},
        "template": {"metadata": {"labels": labels(blueprint.cluster) | chosen_by}, "spec": machine},
    }
    return make(MACHINE_DEPLOYMENT, blueprint, spec, name)


def _rolling_update(blueprint: Blueprint) -> Json:
    if blueprint.nodes is None or blueprint.nodes.size > blueprint.cluster.spec.workers.replicas:
        return {"maxSurge": 1, "maxUnavailable": 0}
    return {"maxSurge": 0, "maxUnavailable": 1}
