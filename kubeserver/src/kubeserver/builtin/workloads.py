"""Deployment, ReplicaSet, StatefulSet and DaemonSet: a template of pods and how many of them there should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    at_most_100_percent,
    child,
    forbidden,
    invalid,
    is_nothing,
    label,
    label_selector,
    not_negative,
    one_of,
    percent_or_count,
    put_default,
    required,
    show_times,
    unchanged,
    unsupported,
)
from kubeserver.builtin.pod_defaults import default_template
from kubeserver.builtin.pod_rules import validate_pod_spec
from kubeserver.builtin.volumes import default_claim, validate_claim_spec
from kubeserver.resources import Strategy, World
from kubeserver.wire.goformat import Struct
from kubeserver.wire.names import validate_annotations, validate_labels
from kubeserver.wire.selectors import label_selector_from_json
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

NOT_MATCHING: Final = "`selector` does not match template `labels`"


def _default_replicas(spec: Json) -> None:
    if spec.get("replicas") is None:
        spec["replicas"] = 1


def _default_limit(spec: Json) -> None:
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10


def default_deployment(item: Json) -> None:
    spec = child(item, "spec")
    _default_replicas(spec)
    strategy = child(spec, "strategy")
    put_default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = child(strategy, "rollingUpdate")
        for field in ("maxUnavailable", "maxSurge"):
            if rolling.get(field) is None:
                rolling[field] = "25%"
    _default_limit(spec)
    if spec.get("progressDeadlineSeconds") is None:
        spec["progressDeadlineSeconds"] = 600
    spec.setdefault("selector", None)
    default_template(child(spec, "template"))
    show_times(item.setdefault("status", {}), "lastUpdateTime", "lastTransitionTime")


def default_replica_set(item: Json) -> None:
    spec = child(item, "spec")
    _default_replicas(spec)
    spec.setdefault("selector", None)
    if spec.get("template") is not None:
        default_template(spec["template"])
    else:
        default_template(child(spec, "template"))
    status = item.setdefault("status", {})
    status.setdefault("replicas", 0)
    show_times(status, "lastTransitionTime")


def default_stateful_set(item: Json) -> None:
    spec = child(item, "spec")
    put_default(spec, "podManagementPolicy", "OrderedReady")
    strategy = child(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        child(strategy, "rollingUpdate")
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        if rolling.get("partition") is None:
            rolling["partition"] = 0
        if rolling.get("maxUnavailable") is None:
            rolling["maxUnavailable"] = 1
    retention = child(spec, "persistentVolumeClaimRetentionPolicy")
    put_default(retention, "whenDeleted", "Retain")
    put_default(retention, "whenScaled", "Retain")
    _default_replicas(spec)
    _default_limit(spec)
    spec.setdefault("selector", None)
    spec.setdefault("serviceName", "")
    default_template(child(spec, "template"))
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("metadata", {})
        default_claim(claim)
    status = item.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)
    show_times(status, "lastTransitionTime")


def default_daemon_set(item: Json) -> None:
    spec = child(item, "spec")
    strategy = child(spec, "updateStrategy")
    put_default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = child(strategy, "rollingUpdate")
        if rolling.get("maxUnavailable") is None:
            rolling["maxUnavailable"] = 1
        if rolling.get("maxSurge") is None:
            rolling["maxSurge"] = 0
    _default_limit(spec)
    spec.setdefault("selector", None)
    default_template(child(spec, "template"))
    status = item.setdefault("status", {})
    for field in ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"):
        status.setdefault(field, 0)
    show_times(status, "lastTransitionTime")


def _prepare_create(status: Json) -> Any:
    def prepare(_: World, item: Json) -> None:
        item["status"] = dict(status)

    return prepare


def _prepare_daemon_set(_: World, item: Json) -> None:
    item["status"] = {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }
    annotations = item["metadata"].get("annotations") or {}
    item["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "1", **annotations}


def _prepare_daemon_set_update(_: World, item: Json, old: Json) -> None:
    key = "deprecated.daemonset.template.generation"
    before = int(((old["metadata"].get("annotations")) or {}).get(key) or 1)
    changed = item["spec"].get("template") != old["spec"].get("template")
    annotations = item["metadata"].get("annotations") or {}
    item["metadata"]["annotations"] = {**annotations, key: str(before + 1 if changed else before)}


def template_errors(template: Json, path: str) -> list[FieldError]:
    metadata = template.get("metadata") or {}
    return [
        *validate_labels(metadata.get("labels") or {}, f"{path}.labels"),
        *validate_annotations(metadata.get("annotations") or {}, f"{path}.annotations"),
        *validate_pod_spec(template.get("spec") or {}, f"{path}.spec"),
    ]


def pods_for_ever(spec: Json, kind: str) -> list[FieldError]:
    """The template of a controller that keeps pods running for ever."""
    path, template = "spec.template", spec.get("template") or {}
    errors = template_errors(template, path)
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy != "Always":
        errors.append(unsupported(f"{path}.spec.restartPolicy", policy, ("Always",)))
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", detail))
    return errors


def selects(selector: Json | None, labels: Json) -> bool:
    try:
        return label_selector_from_json(selector).matches(labels)
    except ApiError:
        return True  # what is wrong with the selector is reported as such


def _matches(spec: Json) -> list[FieldError]:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    selector = spec.get("selector")
    unselective = selector is not None and _empty(selector)
    if not unselective and not selects(selector, labels or {}):
        return [invalid("spec.template.metadata.labels", labels, NOT_MATCHING)]
    return []


def _empty(selector: Json | None) -> bool:
    return not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions")


def _selector(spec: Json, kind: str) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    errors = label_selector("spec.selector", selector)
    if _empty(selector):
        errors.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return errors


def validate_deployment(item: Json) -> list[FieldError]:
    spec: Json = item.get("spec") or {}
    errors = not_negative("spec.replicas", spec.get("replicas"))
    errors += _selector(spec, "deployment") + _matches(spec) + pods_for_ever(spec, "ReplicaSet")
    errors += _deployment_strategy(spec.get("strategy") or {})
    for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        errors += not_negative(f"spec.{field}", spec.get(field))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors + status_counts(item, "updatedReplicas", "readyReplicas", "availableReplicas")


def status_counts(item: Json, *parts: str, ready: str = "readyReplicas") -> list[FieldError]:
    """The numbers in a status: none negative, and no part larger than the whole."""
    status = item.get("status") or {}
    errors: list[FieldError] = []
    for field in ("observedGeneration", "replicas", *parts, "unavailableReplicas", "collisionCount"):
        errors += not_negative(f"status.{field}", status.get(field))
    total = status.get("replicas") or 0
    for field in parts:
        if (status.get(field) or 0) > total:
            detail = "cannot be greater than status.replicas"
            errors.append(invalid(f"status.{field}", status.get(field) or 0, detail))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        errors.append(invalid("status.availableReplicas", available, f"cannot be greater than {ready}"))
    return errors


def _deployment_strategy(strategy: Json) -> list[FieldError]:
    path, kind = "spec.strategy", strategy.get("type")
    rolling = strategy.get("rollingUpdate")
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", detail)]
    if kind != "RollingUpdate":
        return [unsupported(path, strategy, ("Recreate", "RollingUpdate"))]
    rolling = rolling or {}
    where = f"{path}.rollingUpdate"
    errors = percent_or_count(f"{where}.maxUnavailable", rolling.get("maxUnavailable"))
    errors += percent_or_count(f"{where}.maxSurge", rolling.get("maxSurge"))
    if is_nothing(rolling.get("maxUnavailable")) and is_nothing(rolling.get("maxSurge")):
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{where}.maxUnavailable", rolling.get("maxUnavailable"), detail))
    return errors + at_most_100_percent(f"{where}.maxUnavailable", rolling.get("maxUnavailable"))


def validate_replica_set(item: Json) -> list[FieldError]:
    spec: Json = item.get("spec") or {}
    errors = not_negative("spec.replicas", spec.get("replicas"))
    errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    errors += _selector(spec, "deployment") + _matches(spec) + pods_for_ever(spec, "ReplicaSet")
    return errors + status_counts(item, "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def validate_stateful_set(item: Json) -> list[FieldError]:
    spec: Json = item.get("spec") or {}
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _stateful_strategy(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
        errors += one_of(path, retention.get(field), ("Delete", "Retain"))
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        errors += validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    for field in ("replicas", "minReadySeconds"):
        errors += not_negative(f"spec.{field}", spec.get(field))
    if spec.get("serviceName"):
        errors += label("spec.serviceName", spec["serviceName"])
    errors += _selector(spec, "statefulset") + _matches(spec) + pods_for_ever(spec, "StatefulSet")
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    return errors + status_counts(item, *parts, ready="status.readyReplicas")


def _stateful_strategy(strategy: Json) -> list[FieldError]:
    path, rolling = "spec.updateStrategy", strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "OnDelete":
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            return [] if rolling is None else [invalid(f"{path}.rollingUpdate", rolling, detail)]
        case "RollingUpdate":
            return not_negative(f"{path}.rollingUpdate.partition", (rolling or {}).get("partition"))
    shown = Struct(Type=strategy.get("type", ""), RollingUpdate=rolling)
    return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]


def validate_daemon_set(item: Json) -> list[FieldError]:
    spec: Json = item.get("spec") or {}
    selector = spec.get("selector")
    errors = label_selector("spec.selector", selector)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not selects(selector, labels or {}):
        errors.append(invalid("spec.template.metadata.labels", labels, NOT_MATCHING))
    if selector is not None and _empty(selector):
        errors.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    errors += pods_for_ever(spec, "DaemonSet")
    errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    errors += _daemon_strategy(spec.get("updateStrategy") or {})
    return errors + not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _daemon_strategy(strategy: Json) -> list[FieldError]:
    path, rolling = "spec.updateStrategy", strategy.get("rollingUpdate") or {}
    if strategy.get("type") == "OnDelete":
        return []
    if strategy.get("type") != "RollingUpdate":
        return [unsupported(path, strategy, ("RollingUpdate", "OnDelete"))]
    where = f"{path}.rollingUpdate"
    down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors: list[FieldError] = []
    for field, value in (("maxUnavailable", down), ("maxSurge", up)):
        errors += percent_or_count(f"{where}.{field}", value) + at_most_100_percent(f"{where}.{field}", value)
    if not is_nothing(down) and not is_nothing(up):
        errors.append(invalid(f"{where}.maxSurge", up, "may not be set when maxUnavailable is non-zero"))
    if is_nothing(down) and is_nothing(up):
        errors.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def _fixed(*fields: str) -> Any:
    def validate_update(item: Json, old: Json) -> list[FieldError]:
        errors: list[FieldError] = []
        for field in fields:
            errors += unchanged(f"spec.{field}", item["spec"].get(field), old["spec"].get(field))
        return errors

    return validate_update


DEPLOYMENT: Final = Strategy(
    default=default_deployment,
    prepare_create=_prepare_create({}),
    validate=validate_deployment,
    validate_update=_fixed("selector"),
)
REPLICA_SET: Final = Strategy(
    default=default_replica_set,
    prepare_create=_prepare_create({"replicas": 0}),
    validate=validate_replica_set,
    validate_update=_fixed("selector"),
)
STATEFUL_SET: Final = Strategy(
    default=default_stateful_set,
    prepare_create=_prepare_create({"availableReplicas": 0, "replicas": 0}),
    validate=validate_stateful_set,
    validate_update=_fixed("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"),
)
DAEMON_SET: Final = Strategy(
    default=default_daemon_set,
    prepare_create=_prepare_daemon_set,
    prepare_update=_prepare_daemon_set_update,
    validate=validate_daemon_set,
    validate_update=_fixed("selector"),
)
