"""The custom kinds that addons bring to a cluster, declared loosely: groups, versions, names, scope, columns.

Schemas are open, so that anything written for the real kind is taken. The exception is what Butler itself writes and
would get wrong unnoticed: MetalLB refuses an IPAddressPool without addresses, and so does this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.objects import Json


@dataclass(frozen=True, slots=True)
class Declared:
    """One custom kind."""

    kind: str
    plural: str
    group: str
    versions: tuple[str, ...]
    """The last one is stored."""
    namespaced: bool = True
    columns: tuple[tuple[str, str, str], ...] = ()
    """Title, type and path, as kubectl shows them."""
    spec: Json | None = None
    """Schema of the spec, where not anything goes."""
    short_names: tuple[str, ...] = ()


_OPEN: Final[Json] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_METALLB: Final = ("metallb.io", ("v1beta1",))
_CERTIFICATES: Final = ("cert-manager.io", ("v1",))
_READY: Final = ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status')

KINDS: Final[Mapping[str, tuple[Declared, ...]]] = {
    "metallb": (
        Declared(
            "IPAddressPool",
            "ipaddresspools",
            *_METALLB,
            columns=(
                ("Auto Assign", "boolean", ".spec.autoAssign"),
                ("Avoid Buggy IPs", "boolean", ".spec.avoidBuggyIPs"),
                ("Addresses", "string", ".spec.addresses"),
            ),
            spec={
                **_OPEN,
                "required": ["addresses"],
                "properties": {
                    "addresses": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                    "autoAssign": {"type": "boolean", "default": True},
                    "avoidBuggyIPs": {"type": "boolean", "default": False},
                },
            },
        ),
        Declared(
            "L2Advertisement",
            "l2advertisements",
            *_METALLB,
            columns=(
                ("IPAddressPools", "string", ".spec.ipAddressPools"),
                ("Interfaces", "string", ".spec.interfaces"),
            ),
        ),
        Declared(
            "BGPAdvertisement",
            "bgpadvertisements",
            *_METALLB,
            columns=(("IPAddressPools", "string", ".spec.ipAddressPools"), ("Peers", "string", ".spec.peers")),
        ),
        Declared(
            "BGPPeer",
            "bgppeers",
            "metallb.io",
            ("v1beta1", "v1beta2"),
            columns=(("Address", "string", ".spec.peerAddress"), ("ASN", "string", ".spec.peerASN")),
        ),
        Declared("BFDProfile", "bfdprofiles", *_METALLB),
        Declared("Community", "communities", *_METALLB),
        Declared("ServiceL2Status", "servicel2statuses", *_METALLB),
        Declared(
            "ConfigurationState",
            "configurationstates",
            *_METALLB,
            columns=(("Result", "string", ".status.result"), ("ErrorSummary", "string", ".status.errorSummary")),
        ),
    ),
    "cert-manager": (
        Declared("Certificate", "certificates", *_CERTIFICATES, columns=(_READY,), short_names=("cert", "certs")),
        Declared("Issuer", "issuers", *_CERTIFICATES, columns=(_READY,)),
        Declared("ClusterIssuer", "clusterissuers", *_CERTIFICATES, namespaced=False, columns=(_READY,)),
        Declared("CertificateRequest", "certificaterequests", *_CERTIFICATES, columns=(_READY,)),
    ),
    "longhorn": (
        Declared(
            "Volume",
            "volumes",
            "longhorn.io",
            ("v1beta2",),
            columns=(("State", "string", ".status.state"), ("Robustness", "string", ".status.robustness")),
            short_names=("lhv",),
        ),
        Declared("Setting", "settings", "longhorn.io", ("v1beta2",), short_names=("lhs",)),
    ),
    "cilium": (
        Declared("CiliumNetworkPolicy", "ciliumnetworkpolicies", "cilium.io", ("v2",), short_names=("cnp", "ciliumnp")),
        Declared("CiliumNode", "ciliumnodes", "cilium.io", ("v2",), namespaced=False, short_names=("cn", "ciliumn")),
    ),
    "linstor": (
        Declared("LinstorCluster", "linstorclusters", "piraeus.io", ("v1",), namespaced=False),
        Declared("LinstorSatellite", "linstorsatellites", "piraeus.io", ("v1",), namespaced=False),
    ),
    "traefik": (
        Declared("IngressRoute", "ingressroutes", "traefik.io", ("v1alpha1",)),
        Declared("Middleware", "middlewares", "traefik.io", ("v1alpha1",)),
    ),
    "flux": (
        Declared(
            "GitRepository",
            "gitrepositories",
            "source.toolkit.fluxcd.io",
            ("v1",),
            columns=(("URL", "string", ".spec.url"), _READY),
            short_names=("gitrepo",),
        ),
        Declared(
            "Kustomization",
            "kustomizations",
            "kustomize.toolkit.fluxcd.io",
            ("v1",),
            columns=(_READY,),
            short_names=("ks",),
        ),
        Declared(
            "HelmRelease", "helmreleases", "helm.toolkit.fluxcd.io", ("v2",), columns=(_READY,), short_names=("hr",)
        ),
    ),
    "argocd": (
        Declared(
            "Application",
            "applications",
            "argoproj.io",
            ("v1alpha1",),
            columns=(
                ("Sync Status", "string", ".status.sync.status"),
                ("Health Status", "string", ".status.health.status"),
            ),
            short_names=("app", "apps"),
        ),
        Declared("AppProject", "appprojects", "argoproj.io", ("v1alpha1",), short_names=("appproj", "appprojs")),
    ),
}


def definitions(addon: str) -> list[Json]:
    """The CustomResourceDefinitions of an addon."""
    return [_definition(declared) for declared in KINDS.get(addon, ())]


def _definition(declared: Declared) -> Json:
    names: Json = {
        "kind": declared.kind,
        "listKind": f"{declared.kind}List",
        "plural": declared.plural,
        "singular": declared.kind.lower(),
    }
    if declared.short_names:
        names["shortNames"] = list(declared.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{declared.plural}.{declared.group}"},
        "spec": {
            "group": declared.group,
            "scope": "Namespaced" if declared.namespaced else "Cluster",
            "names": names,
            "versions": [
                _version(declared, version, stored=version == declared.versions[-1]) for version in declared.versions
            ],
        },
    }


def _version(declared: Declared, version: str, *, stored: bool) -> Json:
    schema: Json = {**_OPEN, "properties": {"spec": declared.spec or dict(_OPEN), "status": dict(_OPEN)}}
    columns = [{"name": name, "type": kind, "jsonPath": path} for name, kind, path in declared.columns]
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    return {
        "name": version,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [*columns, age],
    }
