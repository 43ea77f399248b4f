"""What `kubectl get` shows of pods and of everything that runs them.

The status of a pod is the hardest word in Kubernetes: it is the phase, unless a container, an init container, a
gate or a deletion has something better to say, in the order that `_pod_status` tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from kubeserver.resources import PrintedColumn
from kubeserver.views.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Since,
    age,
    labels_text,
    number,
    part,
    selector_text,
    text,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


@dataclass(slots=True)
class _PodStatus:
    """What the containers of a pod say about it."""

    reason: str
    ready: int = 0
    total: int = 0
    restarts: int = 0
    last_restart: str = ""

    def restarted(self, container: Json) -> None:
        self.restarts += container.get("restartCount") or 0
        finished = part(container, "lastState", "terminated", "finishedAt") or ""
        self.last_restart = max(self.last_restart, finished)


def _has_condition(obj: Json, kind: str) -> bool:
    conditions = part(obj, "status", "conditions") or ()
    return next((condition.get("status") == "True" for condition in conditions if condition.get("type") == kind), False)


def _terminated_reason(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _pod_status(pod: Json) -> _PodStatus:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    phase = status.get("phase", "")
    found = _PodStatus(status.get("reason") or phase)
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            found.reason = "SchedulingGated"
    sidecars = {
        init_container.get("name")
        for init_container in spec.get("initContainers") or ()
        if init_container.get("restartPolicy") == "Always"
    }
    found.total = len(spec.get("containers") or ()) + len(sidecars)
    of_sidecars = _PodStatus("")
    if not _initializing(pod, found, of_sidecars, sidecars) or _has_condition(pod, "Initialized"):
        found.restarts, found.last_restart = of_sidecars.restarts, of_sidecars.last_restart
        _running(pod, found)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            found.reason = "Unknown"
        elif phase not in {"Failed", "Succeeded"}:
            found.reason = "Terminating"
    return found


def _initializing(pod: Json, found: _PodStatus, of_sidecars: _PodStatus, sidecars: set[Any]) -> bool:
    """Whether an init container is still at work (or has failed): then it has the word."""
    for index, container in enumerate(part(pod, "status", "initContainerStatuses") or ()):
        found.restarted(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            of_sidecars.restarted(container)
        terminated = part(container, "state", "terminated")
        waiting = part(container, "state", "waiting", "reason")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            found.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            found.reason = f"Init:{_terminated_reason(terminated)}"
        elif waiting and waiting != "PodInitializing":
            found.reason = f"Init:{waiting}"
        else:
            found.reason = f"Init:{index}/{len(part(pod, 'spec', 'initContainers') or ())}"
        return True
    return False


def _running(pod: Json, found: _PodStatus) -> None:
    """The containers proper, last first, so that the first one has the last word."""
    has_running, error = False, ""
    for container in reversed(part(pod, "status", "containerStatuses") or ()):
        found.restarted(container)
        terminated = part(container, "state", "terminated")
        waiting = part(container, "state", "waiting", "reason")
        if waiting:
            found.reason = waiting
        elif terminated is not None:
            found.reason = _terminated_reason(terminated)
            if terminated.get("exitCode"):
                error = found.reason
        elif container.get("ready") and part(container, "state", "running") is not None:
            has_running = True
            found.ready += 1
    if found.reason == "Completed":
        if has_running and _has_condition(pod, "Ready"):
            found.reason = "Running"
        elif error:
            found.reason = error
        elif has_running:
            found.reason = "NotReady"


def _pod_ready(pod: Json) -> str:
    found = _pod_status(pod)
    return f"{found.ready}/{found.total}"


def _pod_restarts(pod: Json) -> str | Since:
    found = _pod_status(pod)
    if found.restarts and found.last_restart:
        return Since(found.last_restart, before=f"{found.restarts} (", after=" ago)")
    return str(found.restarts)


def _pod_ip(pod: Json) -> str:
    addresses = part(pod, "status", "podIPs") or ()
    return (addresses[0].get("ip") if addresses else "") or NONE


def _pod_gates(pod: Json) -> str:
    gates = part(pod, "spec", "readinessGates") or ()
    if not gates:
        return NONE
    return f"{sum(_has_condition(pod, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"


_COMPLETED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def row_conditions(obj: Json) -> list[Json]:
    """What a row says beyond its cells: that a pod is over, for clients that hide those."""
    phase = part(obj, "status", "phase")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def _containers(key: str, *path: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        containers = part(obj, *path, "spec", "template", "spec", "containers") or ()
        return ",".join(str(container.get(key, "")) for container in containers)

    return cell


def _container_columns(*path: str) -> tuple[PrintedColumn, PrintedColumn]:
    return wide("Containers", _containers("name", *path)), wide("Images", _containers("image", *path))


def _selector(*path: str) -> PrintedColumn:
    return wide("Selector", lambda obj: selector_text(part(obj, *path, "spec", "selector")))


def _deployment_selector(obj: Json) -> str:
    return selector_text(part(obj, "spec", "selector"), empty="", invalid="<invalid>")


def _ready_of_wanted(obj: Json) -> str:
    return f"{part(obj, 'status', 'readyReplicas') or 0}/{part(obj, 'spec', 'replicas') or 0}"


_JOB_STATES: Final = {
    "Complete": "Complete",
    "Failed": "Failed",
    "deleted": "Terminating",
    "Suspended": "Suspended",
    "FailureTarget": "FailureTarget",
    "SuccessCriteriaMet": "SuccessCriteriaMet",
}


def _job_status(obj: Json) -> str:
    deleted = bool(obj["metadata"].get("deletionTimestamp"))
    for kind, shown in _JOB_STATES.items():
        if deleted if kind == "deleted" else _has_condition(obj, kind):
            return shown
    return "Running"


def _job_completions(obj: Json) -> str:
    succeeded = part(obj, "status", "succeeded") or 0
    completions = part(obj, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = part(obj, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Json) -> str | Since:
    start, end = part(obj, "status", "startTime"), part(obj, "status", "completionTime")
    if not start:
        return ""
    if not end:
        return Since(start)
    return age(datetime.fromisoformat(end) - datetime.fromisoformat(start))


def _suspended(obj: Json) -> str:
    suspend = part(obj, "spec", "suspend")
    return UNSET if suspend is None else str(bool(suspend))


def _last_schedule(obj: Json) -> str | Since:
    stamp = part(obj, "status", "lastScheduleTime")
    return Since(stamp) if stamp else NONE


def _scale_reference(obj: Json) -> str:
    reference = part(obj, "spec", "scaleTargetRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _metrics(obj: Json) -> str:
    specs, currents = part(obj, "spec", "metrics") or (), part(obj, "status", "currentMetrics") or ()
    if not specs:
        return NONE
    shown = [_metric(spec, currents[at] if at < len(currents) else {}) for at, spec in enumerate(specs)]
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more


_METRIC_FIELDS: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(spec: Json, current: Json) -> str:
    field = _METRIC_FIELDS.get(spec.get("type", ""))
    if field is None:
        return "<unknown type>"
    wanted = part(spec, field, "target") or {}
    found = part(current, field, "current") or {}
    if field in {"resource", "containerResource"}:
        name = part(spec, field, "name") or ""
        if wanted.get("averageValue") is not None:
            return f"{name}: {found.get('averageValue', UNKNOWN)}/{wanted['averageValue']}"
        return f"{name}: {_percent(found, UNKNOWN)}/{_percent(wanted, '<auto>')}"
    if field == "pods" or wanted.get("averageValue") is not None:
        average = "" if field == "pods" else " (avg)"
        return f"{found.get('averageValue', UNKNOWN)}/{wanted.get('averageValue', '')}{average}"
    return f"{found.get('value', UNKNOWN)}/{wanted.get('value', '')}"


def _percent(target: Json, default: str) -> str:
    return f"{target['averageUtilization']}%" if target.get("averageUtilization") is not None else default


def _available(name: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        value = part(obj, "spec", name)
        return "N/A" if value is None else str(value)

    return cell


def _integer(name: str, *path: str) -> PrintedColumn:
    return PrintedColumn(name, type="integer", cell=number(*path))


WORKLOADS: Final[dict[tuple[str, str], tuple[PrintedColumn, ...]]] = {
    ("", "pods"): (
        NAME,
        PrintedColumn("Ready", cell=_pod_ready),
        PrintedColumn("Status", cell=lambda pod: _pod_status(pod).reason),
        PrintedColumn("Restarts", cell=_pod_restarts),
        AGE,
        wide("IP", _pod_ip),
        wide("Node", text("spec", "nodeName", default=NONE)),
        wide("Nominated Node", text("status", "nominatedNodeName", default=NONE)),
        wide("Readiness Gates", _pod_gates),
    ),
    ("", "replicationcontrollers"): (
        NAME,
        _integer("Desired", "spec", "replicas"),
        _integer("Current", "status", "replicas"),
        _integer("Ready", "status", "readyReplicas"),
        AGE,
        *_container_columns(),
        wide("Selector", lambda obj: labels_text(part(obj, "spec", "selector"))),
    ),
    ("apps", "deployments"): (
        NAME,
        PrintedColumn("Ready", cell=_ready_of_wanted),
        PrintedColumn("Up-to-date", cell=number("status", "updatedReplicas")),
        PrintedColumn("Available", cell=number("status", "availableReplicas")),
        AGE,
        *_container_columns(),
        wide("Selector", _deployment_selector),
    ),
    ("apps", "replicasets"): (
        NAME,
        _integer("Desired", "spec", "replicas"),
        _integer("Current", "status", "replicas"),
        _integer("Ready", "status", "readyReplicas"),
        AGE,
        *_container_columns(),
        _selector(),
    ),
    ("apps", "statefulsets"): (NAME, PrintedColumn("Ready", cell=_ready_of_wanted), AGE, *_container_columns()),
    ("apps", "daemonsets"): (
        NAME,
        _integer("Desired", "status", "desiredNumberScheduled"),
        _integer("Current", "status", "currentNumberScheduled"),
        _integer("Ready", "status", "numberReady"),
        _integer("Up-to-date", "status", "updatedNumberScheduled"),
        _integer("Available", "status", "numberAvailable"),
        PrintedColumn(
            "Node Selector",
            cell=lambda obj: labels_text(part(obj, "spec", "template", "spec", "nodeSelector")),
        ),
        AGE,
        *_container_columns(),
        _selector(),
    ),
    ("batch", "jobs"): (
        NAME,
        PrintedColumn("Status", cell=_job_status),
        PrintedColumn("Completions", cell=_job_completions),
        PrintedColumn("Duration", cell=_job_duration),
        AGE,
        *_container_columns(),
        _selector(),
    ),
    ("batch", "cronjobs"): (
        NAME,
        PrintedColumn("Schedule", cell=text("spec", "schedule")),
        PrintedColumn("Timezone", cell=text("spec", "timeZone", default=NONE)),
        PrintedColumn("Suspend", type="boolean", cell=_suspended),
        PrintedColumn("Active", type="integer", cell=lambda obj: len(part(obj, "status", "active") or ())),
        PrintedColumn("Last Schedule", cell=_last_schedule),
        AGE,
        *_container_columns("spec", "jobTemplate"),
        _selector("spec", "jobTemplate"),
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        NAME,
        PrintedColumn("Reference", cell=_scale_reference),
        PrintedColumn("Targets", cell=_metrics),
        PrintedColumn("MinPods", cell=lambda obj: str(part(obj, "spec", "minReplicas") or UNSET)),
        PrintedColumn("MaxPods", cell=number("spec", "maxReplicas")),
        PrintedColumn("Replicas", cell=number("status", "currentReplicas")),
        AGE,
    ),
    ("policy", "poddisruptionbudgets"): (
        NAME,
        PrintedColumn("Min Available", cell=_available("minAvailable")),
        PrintedColumn("Max Unavailable", cell=_available("maxUnavailable")),
        _integer("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
}
