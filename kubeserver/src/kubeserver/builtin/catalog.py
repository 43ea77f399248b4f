"""Every built-in kind the server has, as one table.

A line here is what discovery says of a kind: its names, its scope, what may be done to it. What it does beyond
its schema is the `Strategy` of a sibling module. Facts that only some kinds have (which changes count as a new
generation, which may be created with PUT) are small tables of their own, with a function to ask.

A kind that is not served in full is not listed: ResourceQuota and LimitRange would be stored but not enforced,
and a promise that the server does not keep is worse than a 404.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kubeserver.builtin.events import from_core, to_core
from kubeserver.builtin.strategies import strategy_of
from kubeserver.resources import ALL_VERBS, Resource, ScaleSubresource

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.schemas.schema import Schema

ADMISSION: Final = "admissionregistration.k8s.io"
AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"
COORDINATION: Final = "coordination.k8s.io"
DISCOVERY: Final = "discovery.k8s.io"
EVENTS: Final = "events.k8s.io"
EXTENSIONS: Final = "apiextensions.k8s.io"
NETWORKING: Final = "networking.k8s.io"
RBAC: Final = "rbac.authorization.k8s.io"
SCHEDULING: Final = "scheduling.k8s.io"
STORAGE: Final = "storage.k8s.io"

_REPLICAS: Final = ScaleSubresource(".spec.replicas", ".status.replicas", ".spec.selector")
_CREATE_ONLY: Final = ("create",)
_WITHOUT_COLLECTION_DELETE: Final = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")


@dataclass(slots=True, frozen=True)
class Subresource:
    """A subresource other than status and scale, which every `Resource` describes itself."""

    group: str
    version: str
    plural: str
    name: str
    kind: str
    kind_group: str
    kind_version: str
    verbs: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class _Kind:
    group: str
    plural: str
    kind: str
    namespaced: bool = True
    version: str = "v1"
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    status: bool = False
    scale: ScaleSubresource | None = None
    name_rule: str = "subdomain"
    stored_as: tuple[str, str] | None = None
    singular: str = ""
    deprecation: str = ""  # what everyone who uses the kind is warned of


_ALL: Final = ("all",)
_API: Final = ("api-extensions",)

_KINDS: Final = (
    _Kind(
        "",
        "namespaces",
        "Namespace",
        namespaced=False,
        short=("ns",),
        status=True,
        verbs=_WITHOUT_COLLECTION_DELETE,
        name_rule="label",
    ),
    _Kind("", "configmaps", "ConfigMap", short=("cm",)),
    _Kind("", "secrets", "Secret"),
    _Kind("", "services", "Service", short=("svc",), categories=_ALL, status=True, name_rule="label"),
    _Kind(
        "",
        "endpoints",
        "Endpoints",
        short=("ep",),
        singular="endpoints",
        deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    _Kind("", "events", "Event", short=("ev",)),
    _Kind("", "nodes", "Node", namespaced=False, short=("no",), status=True),
    _Kind("", "pods", "Pod", short=("po",), categories=_ALL, status=True),
    _Kind(
        "",
        "replicationcontrollers",
        "ReplicationController",
        short=("rc",),
        categories=_ALL,
        status=True,
        scale=_REPLICAS,
    ),
    _Kind("", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",), status=True),
    _Kind("", "persistentvolumes", "PersistentVolume", namespaced=False, short=("pv",), status=True),
    _Kind("", "serviceaccounts", "ServiceAccount", short=("sa",)),
    _Kind(EVENTS, "events", "Event", short=("ev",), stored_as=("", "events")),
    _Kind("apps", "deployments", "Deployment", short=("deploy",), categories=_ALL, status=True, scale=_REPLICAS),
    _Kind("apps", "replicasets", "ReplicaSet", short=("rs",), categories=_ALL, status=True, scale=_REPLICAS),
    _Kind(
        "apps",
        "statefulsets",
        "StatefulSet",
        short=("sts",),
        categories=_ALL,
        status=True,
        scale=_REPLICAS,
        name_rule="label",
    ),
    _Kind("apps", "daemonsets", "DaemonSet", short=("ds",), categories=_ALL, status=True),
    _Kind("batch", "jobs", "Job", categories=_ALL, status=True),
    _Kind("batch", "cronjobs", "CronJob", short=("cj",), categories=_ALL, status=True),
    _Kind(
        "autoscaling",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        version="v2",
        short=("hpa",),
        categories=_ALL,
        status=True,
    ),
    _Kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",), status=True),
    _Kind(NETWORKING, "ingresses", "Ingress", short=("ing",), status=True, singular="ingress"),
    _Kind(NETWORKING, "ingressclasses", "IngressClass", namespaced=False, singular="ingressclass"),
    _Kind(NETWORKING, "networkpolicies", "NetworkPolicy", short=("netpol",), singular="networkpolicy"),
    _Kind(DISCOVERY, "endpointslices", "EndpointSlice"),
    _Kind(STORAGE, "storageclasses", "StorageClass", namespaced=False, short=("sc",), singular="storageclass"),
    _Kind(
        SCHEDULING,
        "priorityclasses",
        "PriorityClass",
        namespaced=False,
        short=("pc",),
        singular="priorityclass",
    ),
    _Kind(COORDINATION, "leases", "Lease"),
    _Kind(RBAC, "roles", "Role", name_rule="path-segment"),
    _Kind(RBAC, "rolebindings", "RoleBinding", name_rule="path-segment"),
    _Kind(RBAC, "clusterroles", "ClusterRole", namespaced=False, name_rule="path-segment"),
    _Kind(RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False, name_rule="path-segment"),
    _Kind(
        EXTENSIONS,
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short=("crd", "crds"),
        categories=_API,
        status=True,
    ),
    _Kind(
        ADMISSION,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
        categories=_API,
    ),
    _Kind(
        ADMISSION,
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        namespaced=False,
        categories=_API,
    ),
    _Kind(AUTHENTICATION, "tokenreviews", "TokenReview", namespaced=False, verbs=_CREATE_ONLY),
    _Kind(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", namespaced=False, verbs=_CREATE_ONLY),
    _Kind(AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=_CREATE_ONLY),
    _Kind(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False, verbs=_CREATE_ONLY),
    _Kind(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False, verbs=_CREATE_ONLY),
    _Kind(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", namespaced=False, verbs=_CREATE_ONLY),
)

SUBRESOURCES: Final = (
    Subresource("", "v1", "namespaces", "finalize", "Namespace", "", "v1", ("update",)),
    Subresource("", "v1", "serviceaccounts", "token", "TokenRequest", AUTHENTICATION, "v1", _CREATE_ONLY),
    Subresource("", "v1", "pods", "binding", "Binding", "", "v1", _CREATE_ONLY),
    Subresource("", "v1", "pods", "eviction", "Eviction", "policy", "v1", _CREATE_ONLY),
    Subresource("", "v1", "pods", "log", "Pod", "", "v1", ("get",)),
)

# Where the parts of a kind live whose change makes a new generation. A kind that is missing has no generation
# at all; one with no parts starts at 1 and stays there.
_SPEC: Final = ("spec",)
_GENERATION: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "pods"): _SPEC,
    ("", "replicationcontrollers"): _SPEC,
    ("apps", "deployments"): ("spec", "metadata.annotations"),  # annotations are copied to replica sets
    ("apps", "replicasets"): _SPEC,
    ("apps", "statefulsets"): _SPEC,
    ("apps", "daemonsets"): _SPEC,
    ("batch", "jobs"): _SPEC,
    ("batch", "cronjobs"): _SPEC,
    ("autoscaling", "horizontalpodautoscalers"): _SPEC,
    ("policy", "poddisruptionbudgets"): _SPEC,
    (NETWORKING, "ingresses"): _SPEC,
    (NETWORKING, "ingressclasses"): _SPEC,
    (NETWORKING, "networkpolicies"): _SPEC,
    (DISCOVERY, "endpointslices"): ("addressType", "endpoints", "ports", "metadata.labels"),
    (SCHEDULING, "priorityclasses"): (),
    (EXTENSIONS, "customresourcedefinitions"): _SPEC,
    (ADMISSION, "validatingwebhookconfigurations"): ("webhooks",),
    (ADMISSION, "mutatingwebhookconfigurations"): ("webhooks",),
}

_CREATED_BY_PUT: Final = frozenset(
    {
        ("", "events"),
        ("", "services"),
        ("", "endpoints"),
        (EVENTS, "events"),
        (COORDINATION, "leases"),
        (RBAC, "roles"),
        (RBAC, "rolebindings"),
        (RBAC, "clusterroles"),
        (RBAC, "clusterrolebindings"),
    }
)

_NEEDS_RESOURCE_VERSION: Final = frozenset(
    {
        (COORDINATION, "leases"),
        ("policy", "poddisruptionbudgets"),
        (EXTENSIONS, "customresourcedefinitions"),
        (ADMISSION, "validatingwebhookconfigurations"),
        (ADMISSION, "mutatingwebhookconfigurations"),
    }
)


def generation_parts(group: str, plural: str) -> tuple[str, ...] | None:
    """The dotted paths whose change raises `metadata.generation`; None: the kind carries no generation."""
    return _GENERATION.get((group, plural))


def created_by_put(group: str, plural: str) -> bool:
    """Whether PUT to a name that does not exist creates it (else it is a 404)."""
    return (group, plural) in _CREATED_BY_PUT


def needs_resource_version(group: str, plural: str) -> bool:
    """Whether PUT without `metadata.resourceVersion` is refused (else it overwrites whatever is there)."""
    return (group, plural) in _NEEDS_RESOURCE_VERSION


def type_name(group: str, version: str, kind: str) -> str:
    """The name of a kind's type in the table of schemas."""
    if group == EXTENSIONS:
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"
    package = "rbac" if group == RBAC else (group.split(".", 1)[0] or "core")
    return f"io.k8s.api.{package}.{version}.{kind}"


def builtin_resources(types: Callable[[str], Schema]) -> list[Resource]:
    """Every built-in resource; `types` finds a schema by its type's name."""
    return [_resource(kind, types) for kind in _KINDS]


def _resource(each: _Kind, types: Callable[[str], Schema]) -> Resource:
    return Resource(
        group=each.group,
        version=each.version,
        plural=each.plural,
        singular=each.singular or each.plural.removesuffix("s"),
        kind=each.kind,
        namespaced=each.namespaced,
        schema=types(type_name(each.group, each.version, each.kind)),
        list_kind=f"{each.kind}List",
        short_names=each.short,
        categories=each.categories,
        verbs=each.verbs,
        status=each.status,
        scale=each.scale,
        strategy=strategy_of(each.group, each.plural),
        stored_as=each.stored_as,
        from_storage=from_core if each.stored_as else None,
        to_storage=to_core if each.stored_as else None,
        name_rule=each.name_rule,
        deprecated=bool(each.deprecation),
        deprecation_warning=each.deprecation,
    )
