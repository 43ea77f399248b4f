"""The platform's addons: which chart each one is, from where, in which version, and where on a cluster it lives.

Plain data, and the one place for it: the version that is installed by default, what the console offers and what
the stand-ins of a local world pretend to install are the same. A TenantAddon may name an addon that is not here;
then it must bring along what is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class AddonChart:
    """A Helm chart, and how Butler installs it."""

    name: str
    repository: str
    chart: str
    version: str
    """The platform's version, for those who name none."""
    namespace: str
    release: str = ""
    """Name of the Helm release; the addon's own when empty."""

    @property
    def release_name(self) -> str:
        return self.release or self.name


_CHARTS: Final = (
    AddonChart("cilium", "https://helm.cilium.io", "cilium", "1.17.0", "kube-system"),
    AddonChart("metallb", "https://metallb.github.io/metallb", "metallb", "0.15.3", "metallb-system"),
    AddonChart("cert-manager", "https://charts.jetstack.io", "cert-manager", "v1.16.2", "cert-manager"),
    AddonChart("longhorn", "https://charts.longhorn.io", "longhorn", "1.7.2", "longhorn-system"),
    AddonChart(
        "linstor",
        "oci://ghcr.io/piraeusdatastore/piraeus-operator",
        "piraeus",
        "2.10.4",
        "piraeus-datastore",
        "piraeus-operator",
    ),
    AddonChart("traefik", "https://traefik.github.io/charts", "traefik", "34.3.0", "traefik"),
    AddonChart(
        "nginx",
        "https://kubernetes.github.io/ingress-nginx",
        "ingress-nginx",
        "4.12.0",
        "ingress-nginx",
        "ingress-nginx",
    ),
    AddonChart("flux", "https://fluxcd-community.github.io/helm-charts", "flux2", "2.14.1", "flux-system"),
    AddonChart("argocd", "https://argoproj.github.io/argo-helm", "argo-cd", "7.7.5", "argocd"),
    AddonChart(
        "metrics-server",
        "https://kubernetes-sigs.github.io/metrics-server",
        "metrics-server",
        "3.12.2",
        "kube-system",
    ),
)
CHARTS: Final = {chart.name: chart for chart in _CHARTS}


def platform_version(addon: str) -> str | None:
    """The version of an addon that is installed by default; None for one that the platform does not know."""
    chart = CHARTS.get(addon)
    return None if chart is None else chart.version
