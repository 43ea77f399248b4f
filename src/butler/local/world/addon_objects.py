"""What the chart of each addon leaves on a cluster, as far as a user would look for it. Pure.

Not the charts themselves: namespaces, workloads with their names and numbers, the kinds that an addon brings, storage
and ingress classes, and Services of ingress controllers, which are what addresses are for. A few values that change
these are honoured as the charts do (the type of an ingress controller's Service, its annotations, whether there is
one; replicas). Custom kinds are declared loosely: they take any object, and have the columns that people read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from butler.api.labels import Label
from butler.local.world.addon_kinds import definitions
from butler.tenant.addons import CHARTS, AddonChart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from butler.api.objects import Json

ADDON: Final = "world.butler.butlerlabs.dev/addon"
"""Label on everything that an addon put on a cluster, with the addon's name."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, a DaemonSet or a StatefulSet of an addon."""

    kind: str
    name: str
    replicas: int = 1


def _deployments(*names: str) -> tuple[Workload, ...]:
    return tuple(Workload("Deployment", name) for name in names)


WORKLOADS: Final[Mapping[str, tuple[Workload, ...]]] = {
    "cilium": (
        Workload("DaemonSet", "cilium"),
        Workload("DaemonSet", "cilium-envoy"),
        *_deployments("cilium-operator", "hubble-relay", "hubble-ui"),
    ),
    "cert-manager": _deployments("cert-manager", "cert-manager-cainjector", "cert-manager-webhook"),
    "longhorn": (
        Workload("DaemonSet", "longhorn-manager"),
        *_deployments("longhorn-driver-deployer"),
        Workload("Deployment", "longhorn-ui", 2),
    ),
    "linstor": _deployments("piraeus-operator-controller-manager", "piraeus-operator-gencert"),
    "metallb": (Workload("DaemonSet", "metallb-speaker"), *_deployments("metallb-controller")),
    "traefik": _deployments("traefik"),
    "nginx": _deployments("ingress-nginx-controller"),
    "flux": _deployments("source-controller", "kustomize-controller", "helm-controller", "notification-controller"),
    "argocd": (
        Workload("StatefulSet", "argocd-application-controller"),
        *_deployments("argocd-server", "argocd-repo-server", "argocd-redis", "argocd-applicationset-controller"),
    ),
}
_BUILT_IN_NAMESPACES: Final = ("kube-system", "default")


def chart_of(addon: str) -> AddonChart:
    """The platform's chart, or for an unknown addon one that is called as it is."""
    return CHARTS.get(addon) or AddonChart(addon, "", addon, "latest", addon)


def objects(addon: str, version: str, values: Json) -> tuple[Json, ...]:
    """Everything, in the order in which it is to be created."""
    chart = chart_of(addon)
    made = [] if chart.namespace in _BUILT_IN_NAMESPACES else [_namespace(chart.namespace)]
    made += definitions(addon)
    made += _classes(addon)
    for workload in WORKLOADS.get(addon) or _deployments(addon):
        made.append(_workload(chart, workload, version, values))
    made += _services(addon, chart, values)
    for obj in made:
        meta = obj["metadata"]
        meta["labels"] = {
            **meta.get("labels", {}),
            ADDON: addon,
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/instance": chart.release_name,
        }
        if obj["kind"] != "Namespace":
            meta["labels"]["helm.sh/chart"] = f"{chart.chart}-{version}".replace("+", "_")[:63].rstrip("-_.")
            meta["annotations"] = {
                **meta.get("annotations", {}),
                "meta.helm.sh/release-name": chart.release_name,
                "meta.helm.sh/release-namespace": chart.namespace,
            }
    return tuple(made)


def status_of(obj: Json, nodes: int) -> Json | None:
    """The status of a workload all of whose pods run, given the number of nodes; None for what is no workload."""
    generation = obj["metadata"].get("generation", 1)
    if obj["kind"] == "DaemonSet":
        counts = ("currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberReady")
        return {
            **dict.fromkeys((*counts, "updatedNumberScheduled"), nodes),
            "numberMisscheduled": 0,
            "observedGeneration": generation,
        }
    if obj["kind"] not in ("Deployment", "StatefulSet"):
        return None
    replicas = (obj.get("spec") or {}).get("replicas", 1)
    counts = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
    return {**dict.fromkeys(counts, replicas), "observedGeneration": generation}


def _namespace(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
    }


def _workload(chart: AddonChart, workload: Workload, version: str, values: Json) -> Json:
    labels = {"app.kubernetes.io/name": workload.name, "app.kubernetes.io/instance": chart.release_name}
    # Node ports and host networks of the real ones do not matter here: nothing runs, it only shows.
    container = {"name": workload.name[:63], "image": f"{chart.chart}:{version.removeprefix('v').replace('+', '_')}"}
    spec: Json = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if workload.kind != "DaemonSet":
        spec["replicas"] = _replicas(chart.name, workload, values)
    if workload.kind == "StatefulSet":
        spec["serviceName"] = workload.name
    return {
        "apiVersion": "apps/v1",
        "kind": workload.kind,
        "metadata": {"name": workload.name, "namespace": chart.namespace, "labels": dict(labels)},
        "spec": spec,
    }


def _replicas(addon: str, workload: Workload, values: Json) -> int:
    paths: Mapping[str, tuple[str, ...]] = {
        "traefik": ("deployment", "replicas"),
        "ingress-nginx-controller": ("controller", "replicaCount"),
        "cilium-operator": ("operator", "replicas"),
        "cert-manager": ("replicaCount",),
        "longhorn-ui": ("longhornUI", "replicas"),
    }
    default = values.get("replicaCount") if addon not in WORKLOADS else None
    found = _value(values, *paths[workload.name]) if workload.name in paths else default
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else workload.replicas


def _services(addon: str, chart: AddonChart, values: Json) -> list[Json]:
    if addon == "traefik":
        settings, name, owner = _value(values, "service"), "traefik", "traefik"
    elif addon == "nginx":
        settings, name, owner = _value(values, "controller", "service"), "ingress-nginx-controller", "ingress-nginx"
    else:
        return []
    given = settings if isinstance(settings, dict) else {}
    if given.get("enabled") is False:
        return []
    kind = given.get("type") or "LoadBalancer"
    plain, encrypted = ("web", "websecure") if addon == "traefik" else ("http", "https")
    spec: Json = {
        "type": kind,
        "selector": {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": chart.release_name},
        "ports": [
            {"name": plain, "port": 80, "protocol": "TCP", "targetPort": 8000},
            {"name": encrypted, "port": 443, "protocol": "TCP", "targetPort": 8443},
        ],
    }
    # Traefik's chart takes further fields under service.spec, that of ingress-nginx beside the type.
    more = given.get("spec") if addon == "traefik" else given
    for field in ("loadBalancerIP", "loadBalancerClass", "externalTrafficPolicy"):
        if isinstance(more, dict) and more.get(field):
            spec[field] = more[field]
    meta: Json = {
        "name": name,
        "namespace": chart.namespace,
        "labels": {"app.kubernetes.io/name": owner, Label.PLATFORM_LOAD_BALANCER.value: "true"},
    }
    if isinstance(given.get("annotations"), dict) and given["annotations"]:
        meta["annotations"] = {str(key): str(value) for key, value in given["annotations"].items()}
    return [{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}]


def _classes(addon: str) -> Iterable[Json]:
    if addon == "longhorn":
        yield _storage_class("longhorn", "driver.longhorn.io", default=True)
        yield _storage_class("longhorn-static", "driver.longhorn.io", default=False)
    ingress = {"traefik": ("traefik", "traefik.io/ingress-controller"), "nginx": ("nginx", "k8s.io/ingress-nginx")}
    if addon in ingress:
        name, controller = ingress[addon]
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": name},
            "spec": {"controller": controller},
        }


def _storage_class(name: str, provisioner: str, *, default: bool) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": name,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"} if default else {},
        },
        "provisioner": provisioner,
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def _value(values: Json, *path: str) -> Any:
    found: Any = values
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found
