"""PodDisruptionBudget, HorizontalPodAutoscaler and PriorityClass: rules about pods, stored and checked."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    at_most_100_percent,
    child,
    forbidden,
    invalid,
    label_selector,
    one_of,
    percent_or_count,
    put_default,
    required,
    show_times,
    unchanged,
)
from kubeserver.builtin.quantities import canonical
from kubeserver.resources import Strategy, World
from kubeserver.wire.names import path_segment

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_HIGHEST_PRIORITY: Final = 1_000_000_000
_NO_DISRUPTIONS: Final = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
_UP: Final = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Final = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def default_budget(budget: Json) -> None:
    child(budget, "spec")
    budget["status"] = {**_NO_DISRUPTIONS, **(budget.get("status") or {})}


def _prepare_budget(_: World, budget: Json) -> None:
    budget["status"] = dict(_NO_DISRUPTIONS)


def validate_budget(budget: Json) -> list[FieldError]:
    spec: Json = budget.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        errors.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            errors += percent_or_count(f"spec.{field}", spec[field])
            errors += at_most_100_percent(f"spec.{field}", spec[field])
    errors += label_selector("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        errors += one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))
    return errors


def default_autoscaler(autoscaler: Json) -> None:
    spec = child(autoscaler, "spec")
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        usual = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": usual}}]
    _keep_quantities(spec["metrics"], "target")
    behavior = spec.get("behavior")
    if behavior is not None:
        for field, rules in (("scaleUp", _UP), ("scaleDown", _DOWN)):
            given = {key: value for key, value in (behavior.get(field) or {}).items() if value is not None}
            behavior[field] = {**deepcopy(rules), **given}
    spec.setdefault("maxReplicas", 0)
    status = child(autoscaler, "status")
    status.setdefault("currentMetrics", None)
    status.setdefault("desiredReplicas", 0)
    _keep_quantities(status["currentMetrics"] or [], "current")
    show_times(status, "lastTransitionTime")


def _keep_quantities(metrics: list[Json], part: str) -> None:
    sources = [source for metric in metrics for source in metric.values() if isinstance(source, dict)]
    for amounts in (source.get(part) or {} for source in sources):
        for field in ("value", "averageValue"):
            if amounts.get(field) is not None:
                amounts[field] = canonical(amounts[field])


def _prepare_autoscaler(_: World, autoscaler: Json) -> None:
    autoscaler["status"] = {"currentMetrics": None, "desiredReplicas": 0}


def validate_autoscaler(autoscaler: Json) -> list[FieldError]:
    spec: Json = autoscaler.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors: list[FieldError] = []
    if least is not None and least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    for field in ("kind", "name"):
        path, value = f"spec.scaleTargetRef.{field}", target.get(field) or ""
        errors += [invalid(path, value, text) for text in path_segment(value)] if value else [required(path)]
    version = target.get("apiVersion") or ""
    if "/" not in version:
        path = "spec.scaleTargetRef.apiVersion"
        errors.append(invalid(path, version, "apiVersion must specify API group"))
    return errors


def default_priority_class(item: Json) -> None:
    item.setdefault("value", 0)
    put_default(item, "preemptionPolicy", "PreemptLowerPriority")


def validate_priority_class(item: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    name = item["metadata"].get("name") or ""
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        detail = (
            "priority class names with 'system-' prefix are reserved for system use only. "
            f"error: {name} is not a known system priority class"
        )
        errors.append(forbidden("metadata.name", detail))
    elif not name.startswith("system-") and item.get("value", 0) > _HIGHEST_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        errors.append(forbidden("value", detail))
    known = ("Never", "PreemptLowerPriority")
    return errors + one_of("preemptionPolicy", item.get("preemptionPolicy"), known)


def validate_priority_class_update(item: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    if item.get("value", 0) != old.get("value", 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    return errors + unchanged("preemptionPolicy", item.get("preemptionPolicy"), old.get("preemptionPolicy"))


POD_DISRUPTION_BUDGET: Final = Strategy(
    default=default_budget, prepare_create=_prepare_budget, validate=validate_budget
)
HORIZONTAL_POD_AUTOSCALER: Final = Strategy(
    default=default_autoscaler, prepare_create=_prepare_autoscaler, validate=validate_autoscaler
)
PRIORITY_CLASS: Final = Strategy(
    default=default_priority_class,
    validate=validate_priority_class,
    validate_update=validate_priority_class_update,
)
