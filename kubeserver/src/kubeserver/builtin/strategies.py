"""Which strategy belongs to which kind: the one place that imports every module of `builtin`."""

from __future__ import annotations

from typing import Final

from kubeserver.builtin import (
    admission_configurations,
    configuration,
    coordination,
    endpoints,
    events,
    jobs,
    namespaces,
    networking,
    nodes,
    pods,
    policies,
    rbac,
    replication_controllers,
    services,
    volumes,
    workloads,
)
from kubeserver.resources import Strategy

_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"

_STRATEGIES: Final[dict[tuple[str, str], Strategy]] = {
    ("", "namespaces"): namespaces.STRATEGY,
    ("", "configmaps"): configuration.CONFIG_MAP,
    ("", "secrets"): configuration.SECRET,
    ("", "services"): services.STRATEGY,
    ("", "endpoints"): endpoints.ENDPOINTS,
    ("", "events"): events.CORE,
    ("", "nodes"): nodes.STRATEGY,
    ("", "pods"): pods.STRATEGY,
    ("", "replicationcontrollers"): replication_controllers.STRATEGY,
    ("", "persistentvolumeclaims"): volumes.PERSISTENT_VOLUME_CLAIM,
    ("", "persistentvolumes"): volumes.PERSISTENT_VOLUME,
    ("", "serviceaccounts"): coordination.SERVICE_ACCOUNT,
    ("events.k8s.io", "events"): events.NEW,
    ("apps", "deployments"): workloads.DEPLOYMENT,
    ("apps", "replicasets"): workloads.REPLICA_SET,
    ("apps", "statefulsets"): workloads.STATEFUL_SET,
    ("apps", "daemonsets"): workloads.DAEMON_SET,
    ("batch", "jobs"): jobs.JOB,
    ("batch", "cronjobs"): jobs.CRON_JOB,
    ("autoscaling", "horizontalpodautoscalers"): policies.HORIZONTAL_POD_AUTOSCALER,
    ("policy", "poddisruptionbudgets"): policies.POD_DISRUPTION_BUDGET,
    ("discovery.k8s.io", "endpointslices"): endpoints.ENDPOINT_SLICE,
    ("scheduling.k8s.io", "priorityclasses"): policies.PRIORITY_CLASS,
    ("storage.k8s.io", "storageclasses"): volumes.STORAGE_CLASS,
    ("coordination.k8s.io", "leases"): coordination.LEASE,
    (_NETWORKING, "ingresses"): networking.INGRESS,
    (_NETWORKING, "ingressclasses"): networking.INGRESS_CLASS,
    (_NETWORKING, "networkpolicies"): networking.NETWORK_POLICY,
    (_RBAC, "roles"): rbac.ROLE,
    (_RBAC, "rolebindings"): rbac.ROLE_BINDING,
    (_RBAC, "clusterroles"): rbac.CLUSTER_ROLE,
    (_RBAC, "clusterrolebindings"): rbac.CLUSTER_ROLE_BINDING,
    (_ADMISSION, "validatingwebhookconfigurations"): admission_configurations.VALIDATING,
    (_ADMISSION, "mutatingwebhookconfigurations"): admission_configurations.MUTATING,
}


def strategy_of(group: str, plural: str) -> Strategy:
    """The strategy of a built-in kind; one without behaviour of its own gets the empty one."""
    return _STRATEGIES.get((group, plural), Strategy())
