"""The roles every cluster starts with.

Those that people and charts refer to by name, with the rules kube-apiserver gives them; the roles of Kubernetes'
own components (scheduler, kubelet, controllers) are left out because none of them runs here.
They are ordinary objects: the server creates what is missing when a logical cluster starts.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

_API: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_READ_WRITE: Final = (*_READ, *_WRITE)
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"


def _rule(verbs: tuple[str, ...], groups: tuple[str, ...], *resources: str) -> Json:
    return {"apiGroups": sorted(groups), "resources": sorted(resources), "verbs": sorted(verbs)}


def _paths(*paths: str) -> Json:
    return {"nonResourceURLs": sorted(paths), "verbs": ["get"]}


def _view() -> list[Json]:
    return [
        _rule(
            _READ,
            ("",),
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
        ),
        _rule(
            _READ,
            ("",),
            "bindings",
            "limitranges",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
        ),
        _rule(_READ, ("",), "namespaces"),
        _rule(_READ, ("", "events.k8s.io"), "events"),
        _rule(_READ, ("discovery.k8s.io",), "endpointslices"),
        _rule(
            _READ,
            ("apps",),
            "controllerrevisions",
            *_with(("daemonsets",), "status"),
            *_with(("deployments", "replicasets", "statefulsets"), "status", "scale"),
        ),
        _rule(_READ, ("autoscaling",), *_with(("horizontalpodautoscalers",), "status")),
        _rule(_READ, ("batch",), *_with(("cronjobs", "jobs"), "status")),
        _rule(
            _READ,
            ("extensions",),
            "networkpolicies",
            "replicationcontrollers/scale",
            *_with(("daemonsets", "ingresses"), "status"),
            *_with(("deployments", "replicasets"), "status", "scale"),
        ),
        _rule(_READ, ("policy",), *_with(("poddisruptionbudgets",), "status")),
        _rule(_READ, ("networking.k8s.io",), "networkpolicies", *_with(("ingresses",), "status")),
        _rule(_READ, ("resource.k8s.io",), "resourceclaimtemplates", *_with(("resourceclaims",), "status")),
    ]


def _edit() -> list[Json]:
    return [
        _rule(
            _READ,
            ("",),
            "pods/attach",
            "pods/exec",
            "pods/portforward",
            "pods/proxy",
            "secrets",
            "services/proxy",
        ),
        _rule(("impersonate",), ("",), "serviceaccounts"),
        _rule(_WRITE, ("",), "pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"),
        _rule(("create",), ("",), "pods/eviction"),
        _rule(
            _WRITE,
            ("",),
            "configmaps",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "secrets",
            "serviceaccounts",
            "services",
            "services/proxy",
        ),
        _rule(("create",), ("",), "serviceaccounts/token"),
        _rule(_WRITE, ("", "events.k8s.io"), "events"),
        _rule(
            _WRITE,
            ("apps",),
            "daemonsets",
            "deployments/rollback",
            *_with(("deployments", "replicasets", "statefulsets"), "scale"),
        ),
        _rule(_WRITE, ("autoscaling",), "horizontalpodautoscalers"),
        _rule(_WRITE, ("batch",), "cronjobs", "jobs"),
        _rule(
            _WRITE,
            ("extensions",),
            "daemonsets",
            "deployments/rollback",
            "ingresses",
            "networkpolicies",
            "replicationcontrollers/scale",
            *_with(("deployments", "replicasets"), "scale"),
        ),
        _rule(_WRITE, ("policy",), "poddisruptionbudgets"),
        _rule(_WRITE, ("networking.k8s.io",), "ingresses", "networkpolicies"),
        _rule(_READ_WRITE, ("coordination.k8s.io",), "leases"),
        _rule(_WRITE, ("resource.k8s.io",), "resourceclaims", "resourceclaimtemplates"),
    ]


def _with(plurals: tuple[str, ...], *subresources: str) -> list[str]:
    """Resources together with their subresources."""
    return [*plurals, *(f"{plural}/{subresource}" for plural in plurals for subresource in subresources)]


def _admin() -> list[Json]:
    return [
        _rule(("create",), ("authorization.k8s.io",), "localsubjectaccessreviews"),
        _rule(_READ_WRITE, (_API,), "rolebindings", "roles"),
    ]


def _metadata(name: str, labels: Json | None = None) -> Json:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **(labels or {})},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }


def _role(name: str, rules: list[Json], *, feeds: str = "", gathers: str = "") -> Json:
    labels = {f"{_AGGREGATE}{feeds}": "true"} if feeds else None
    role: Json = {"apiVersion": f"{_API}/v1", "kind": "ClusterRole", "metadata": _metadata(name, labels)}
    if gathers:
        selector = {"matchLabels": {f"{_AGGREGATE}{gathers}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return {**role, "rules": rules}


def _binding(name: str, *groups: str) -> Json:
    return {
        "apiVersion": f"{_API}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _API, "kind": "Group", "name": group} for group in groups],
    }


def default_cluster_roles() -> list[Json]:
    """The ClusterRoles of a new cluster, aggregated ones filled in."""
    health = ("/healthz", "/livez", "/readyz")
    version = ("/version", "/version/")
    view, edit = _view(), _view_and_edit()
    reviews = _rule(("create",), ("authorization.k8s.io",), "selfsubjectaccessreviews", "selfsubjectrulesreviews")
    return [
        _role("cluster-admin", [_rule(("*",), ("*",), "*"), {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _role("admin", [*_admin(), *edit], gathers="admin"),
        _role("edit", edit, feeds="admin", gathers="edit"),
        _role("view", view, feeds="edit", gathers="view"),
        _role("system:aggregate-to-admin", _admin(), feeds="admin"),
        _role("system:aggregate-to-edit", _edit(), feeds="edit"),
        _role("system:aggregate-to-view", _view(), feeds="view"),
        _role("system:basic-user", [reviews, _rule(("create",), ("authentication.k8s.io",), "selfsubjectreviews")]),
        _role(
            "system:discovery",
            [_paths(*health, *version, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")],
        ),
        _role("system:public-info-viewer", [_paths(*health, *version)]),
        _role(
            "system:monitoring",
            [
                _paths("/flagz", "/metrics", "/metrics/slis", "/statusz", *health, *(f"{path}/*" for path in health)),
                _rule(("get",), ("",), "nodes/metrics"),
            ],
        ),
        _role(
            "system:auth-delegator",
            [
                _rule(("create",), ("authentication.k8s.io",), "tokenreviews"),
                _rule(("create",), ("authorization.k8s.io",), "subjectaccessreviews"),
            ],
        ),
    ]


def _view_and_edit() -> list[Json]:
    return [*_edit(), *_view()]


def default_cluster_role_bindings() -> list[Json]:
    """Who has which of them from the start."""
    return [
        _binding("cluster-admin", "system:masters"),
        _binding("system:basic-user", "system:authenticated"),
        _binding("system:discovery", "system:authenticated"),
        _binding("system:monitoring", "system:monitoring"),
        _binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
    ]
