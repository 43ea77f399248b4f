"""Pod: defaults, what admission adds to it, and the few fields that may still change.

Nothing here runs a pod. A stand-in may act as its kubelet and scheduler, through the status subresource and the
binding.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import forbidden, invalid, show_times
from kubeserver.builtin.pod_defaults import containers, default_pod_spec
from kubeserver.builtin.pod_rules import validate_pod_spec
from kubeserver.builtin.quantities import value_of
from kubeserver.resources import Strategy, World
from kubeserver.wire.names import random_suffix
from kubeserver.wire.status import forbidden as refusal
from kubeserver.wire.status import internal

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path, not a token
_TOLERATED_SECONDS: Final = 300
_OUTAGES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CHANGEABLE: Final = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def default(pod: Json) -> None:
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container["resources"]
            if resources.get("limits"):
                resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
            if spec.get("hostNetwork"):
                for port in container.get("ports") or ():
                    port["hostPort"] = port.get("hostPort") or port.get("containerPort", 0)
    status = pod.setdefault("status", {})
    if status.get("podIP") and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]
    elif status.get("podIPs") and not status.get("podIP"):
        status["podIP"] = status["podIPs"][0].get("ip", "")
    if status.get("phase"):
        status.setdefault("qosClass", qos_class(spec))  # a kubelet does not send it
    show_times(status, "lastProbeTime", "lastTransitionTime")
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container_status in status.get(field) or ():
            for state in ("state", "lastState"):
                _show_state_times(container_status.setdefault(state, {}))


def _show_state_times(state: Json) -> None:
    for name, fields in (("running", ("startedAt",)), ("terminated", ("startedAt", "finishedAt"))):
        for field in fields:
            if state.get(name) is not None:
                state[name].setdefault(field, None)


def prepare_create(world: World, pod: Json) -> None:
    _add_account(world, pod)
    _add_tolerations(pod["spec"])
    _add_priority(world, pod)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    default(pod)


def prepare_update(_: World, pod: Json, old: Json) -> None:
    pod["status"] = deepcopy(old.get("status") or {})


def _add_account(world: World, pod: Json) -> None:
    """Every pod runs as an account of its namespace, and finds that account's token in a volume."""
    spec, metadata = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = metadata.get("namespace", "")
    account = next(
        (obj for obj in world.objects("", "serviceaccounts", namespace) if obj["metadata"]["name"] == name), None
    )
    if account is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise refusal("", "pods", metadata.get("name", ""), why)
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = deepcopy(account["imagePullSecrets"])
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.get("automountServiceAccountToken")
    if wanted is not False:
        _mount_token(spec)


def _mount_token(spec: Json) -> None:
    volume = next(
        (item["name"] for item in spec.get("volumes") or () if item.get("name", "").startswith("kube-api-access-")),
        "",
    )
    needed = False
    name = volume or f"kube-api-access-{random_suffix()}"
    for container in containers(spec):
        mounts = container.get("volumeMounts") or []
        if any(mount.get("mountPath") == _TOKEN_PATH for mount in mounts):
            continue
        needed = True
        container["volumeMounts"] = [*mounts, {"mountPath": _TOKEN_PATH, "name": name, "readOnly": True}]
    if needed and not volume:
        spec["volumes"] = [*(spec.get("volumes") or []), _token_volume(name)]


def _token_volume(name: str) -> Json:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [{"fieldRef": field, "path": "namespace"}]}},
    ]
    return {"name": name, "projected": {"defaultMode": 420, "sources": sources}}


def _add_tolerations(spec: Json) -> None:
    """A pod outlives an outage of its node for five minutes, unless it says otherwise."""
    given = spec.get("tolerations") or []
    for key in _OUTAGES:
        covered = any(
            item.get("key", "") in ("", key) and item.get("effect", "") in ("", "NoExecute") for item in given
        )
        if not covered:
            toleration = {
                "effect": "NoExecute",
                "key": key,
                "operator": "Exists",
                "tolerationSeconds": _TOLERATED_SECONDS,
            }
            given = [*given, toleration]
    if given:
        spec["tolerations"] = given


_SYSTEM_PRIORITIES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _add_priority(world: World, pod: Json) -> None:
    spec = pod["spec"]
    classes = list(world.objects("scheduling.k8s.io", "priorityclasses"))
    name = spec.get("priorityClassName")
    if name:
        chosen = next((class_ for class_ in classes if class_["metadata"]["name"] == name), None)
        if chosen is None and name not in _SYSTEM_PRIORITIES:
            why = f"no PriorityClass with name {name} was found"
            raise refusal("", "pods", pod["metadata"].get("name", ""), why)
    else:
        chosen = next((class_ for class_ in classes if class_.get("globalDefault")), None)
        if chosen:
            spec["priorityClassName"] = name = chosen["metadata"]["name"]
    value = chosen.get("value", 0) if chosen else _SYSTEM_PRIORITIES.get(name or "", 0)
    if spec.get("priority") is not None and spec["priority"] != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise refusal("", "pods", pod["metadata"].get("name", ""), why)
    spec["priority"] = value
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.get("preemptionPolicy") not in (None, policy):
        raise internal("the string value of PreemptionPolicy must not be provided in pod spec")
    spec["preemptionPolicy"] = policy


def qos_class(spec: Json) -> str:
    """Guaranteed if every container's limits equal its requests, BestEffort if none has any."""
    guaranteed, any_given = True, False
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources") or {}
            amounts = {
                kind: {
                    name: value_of(amount)
                    for name, amount in (resources.get(kind) or {}).items()
                    if name in ("cpu", "memory") and value_of(amount)
                }
                for kind in ("limits", "requests")
            }
            any_given = any_given or bool(amounts["limits"] or amounts["requests"])
            if len(amounts["limits"]) < 2 or amounts["limits"] != amounts["requests"]:
                guaranteed = False
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def validate(pod: Json) -> list[FieldError]:
    spec = pod.get("spec") or {}
    errors = validate_pod_spec(spec, "spec")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden("spec.nodeName", detail))
    return errors


def validate_update(pod: Json, old: Json) -> list[FieldError]:
    """Only images, the deadline, and more tolerations; the rest of a pod is fixed."""
    new_spec, old_spec = pod["spec"], old["spec"]
    errors: list[FieldError] = []
    for field in ("containers", "initContainers"):
        if len(new_spec.get(field) or ()) != len(old_spec.get(field) or ()):
            return [forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    now, before = new_spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds")
    if now is not None and before is not None and now > before:
        path = "spec.activeDeadlineSeconds"
        return [invalid(path, now, "must be less than or equal to previous value")]
    if now is None and before is not None:
        detail = "must not update from a positive integer to nil value"
        errors.append(invalid("spec.activeDeadlineSeconds", None, detail))
    kept = [
        toleration
        for toleration in old_spec.get("tolerations") or ()
        if toleration not in (new_spec.get("tolerations") or ())
    ]
    if kept:
        detail = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(forbidden("spec.tolerations", detail))
    if _fixed_part(new_spec, old_spec) != old_spec:
        listed = ",".join(_CHANGEABLE)
        errors.append(forbidden("spec", f"pod updates may not change fields other than {listed}\n"))
    return errors


def _fixed_part(new: Json, old: Json) -> Json:
    """The new spec with everything that may change put back to what it was."""
    fixed = deepcopy(new)
    for field in ("containers", "initContainers"):
        for container, before in zip(fixed.get(field) or (), old.get(field) or (), strict=True):
            container["image"] = before.get("image")
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        if field in old:
            fixed[field] = old[field]
        else:
            fixed.pop(field, None)
    return fixed


def _reader(part: str, field: str) -> Callable[[Json], str]:
    return lambda pod: str((pod.get(part) or {}).get(field) or "")


STRATEGY: Final = Strategy(
    default=default,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    validate=validate,
    validate_update=validate_update,
    selectable={
        **{
            f"spec.{field}": _reader("spec", field)
            for field in ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName")
        },
        "spec.host": _reader("spec", "nodeName"),  # its name long ago
        "spec.hostNetwork": lambda pod: "true" if (pod.get("spec") or {}).get("hostNetwork") else "false",
        **{f"status.{field}": _reader("status", field) for field in ("phase", "podIP", "nominatedNodeName")},
    },
)
