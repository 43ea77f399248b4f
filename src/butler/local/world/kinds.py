"""The foreign kinds that the stand-ins look after, and the names that Cluster API writes into their objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.capi import naming
from butler.capi.naming import Kind
from butler.kube.resource import Resource, untyped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.objects import Json


def resource(kind: Kind) -> Resource[Json]:
    return untyped(kind.group, kind.version, kind.plural, kind.kind, namespaced=kind.namespaced)


KUBEADM_CONFIG: Final = Kind("bootstrap.cluster.x-k8s.io", "v1beta1", "kubeadmconfigs", "KubeadmConfig")

CLUSTERS: Final = resource(naming.CLUSTER)
MACHINE_DEPLOYMENTS: Final = resource(naming.MACHINE_DEPLOYMENT)
MACHINE_SETS: Final = resource(naming.MACHINE_SET)
MACHINES: Final = resource(naming.MACHINE)
STEWARD_CONTROL_PLANES: Final = resource(naming.STEWARD_CONTROL_PLANE)
KUBEADM_CONFIGS: Final = resource(KUBEADM_CONFIG)
KUBEADM_CONFIG_TEMPLATES: Final = resource(naming.KUBEADM_CONFIG_TEMPLATE)

INFRASTRUCTURE_CLUSTERS: Final[Mapping[str, Resource[Json]]] = {
    kinds.cluster.kind: resource(kinds.cluster) for kinds in naming.PROVIDERS.values()
}
MACHINE_TEMPLATES: Final[Mapping[str, Resource[Json]]] = {
    kinds.machine_template.kind: resource(kinds.machine_template) for kinds in naming.PROVIDERS.values()
}
INFRASTRUCTURE_MACHINES: Final[Mapping[str, Resource[Json]]] = {
    kinds.machine.kind: resource(kinds.machine) for kinds in naming.PROVIDERS.values()
}

CLUSTER_NAME: Final = naming.CLUSTER_NAME_LABEL
DEPLOYMENT_NAME: Final = naming.DEPLOYMENT_NAME_LABEL
SET_NAME: Final = "cluster.x-k8s.io/set-name"
TEMPLATE_HASH: Final = "machine-template-hash"
PAUSED: Final = "cluster.x-k8s.io/paused"
"""Annotation on any object of Cluster API: leave it alone."""
DELETE_FIRST: Final = "cluster.x-k8s.io/delete-machine"
CLONED_FROM_NAME: Final = "cluster.x-k8s.io/cloned-from-name"
CLONED_FROM_KIND: Final = "cluster.x-k8s.io/cloned-from-groupkind"

STEM: Final = 57
"""How much of a name is kept when five letters are put behind it: names become labels, which have 63 at the most."""

CLUSTER_FINALIZER: Final = "cluster.cluster.x-k8s.io"
DEPLOYMENT_FINALIZER: Final = "cluster.x-k8s.io/machinedeployment"
SET_FINALIZER: Final = "cluster.x-k8s.io/machineset"
MACHINE_FINALIZER: Final = "machine.cluster.x-k8s.io"
INFRASTRUCTURE_FINALIZER: Final = "world.butler.butlerlabs.dev/machine"
CONTROL_PLANE_FINALIZER: Final = "world.butler.butlerlabs.dev/control-plane"

ADDRESS: Final = "world.butler.butlerlabs.dev/address"
"""Annotation on an infrastructure machine: the address that it holds from its beginning to its end."""
FAIL_MACHINES: Final = "world.butler.butlerlabs.dev/fail-machines"
"""Annotation on a MachineDeployment: let so many of its machines, or `all`, fail instead of coming up."""
MACHINE_SECONDS: Final = "world.butler.butlerlabs.dev/machine-seconds"
"""Annotation on a MachineDeployment: how long its machines take to come up."""
