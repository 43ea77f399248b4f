"""Node: what the kubelet registers; here, what a stand-in for machines does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    cidr,
    duplicate,
    forbidden,
    invalid,
    qualified_name,
    required,
    show_times,
    unsupported,
)
from kubeserver.builtin.quantities import canonical_resources
from kubeserver.resources import Strategy
from kubeserver.wire.names import label_value

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_NO_NODE_INFO: Final = dict.fromkeys(
    (
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ),
    "",
)


def default(node: Json) -> None:
    spec = node.setdefault("spec", {})
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    status = node.setdefault("status", {})
    status["daemonEndpoints"] = status.get("daemonEndpoints") or {}
    status["daemonEndpoints"]["kubeletEndpoint"] = status["daemonEndpoints"].get("kubeletEndpoint") or {"Port": 0}
    status["nodeInfo"] = {**_NO_NODE_INFO, **(status.get("nodeInfo") or {})}
    canonical_resources(status, "capacity", "allocatable")
    show_times(status, "lastHeartbeatTime", "lastTransitionTime")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def validate(node: Json) -> list[FieldError]:
    spec: Json = node.get("spec") or {}
    errors = _taints(spec.get("taints") or [])
    for index, each in enumerate(spec.get("podCIDRs") or ()):
        errors += cidr(f"spec.podCIDRs[{index}]", each)
    return errors


def _taints(taints: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"metadata.taints[{index}]"  # sic: the real server names the wrong parent too
        key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
        errors += qualified_name(f"{path}.key", key)
        errors += [invalid(f"{path}.value", value, text) for text in label_value(value)]
        if not effect:
            errors.append(required(f"{path}.effect"))
        elif effect not in _EFFECTS:
            supported = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            errors.append(unsupported(f"{path}.effect", effect, supported))
        if (key, effect) in seen:
            shown = {field: taint[field] for field in ("key", "value", "effect") if taint.get(field)}
            error = duplicate(path, shown)
            errors.append(type(error)(error.kind, path, "taints must be unique by key and effect pair", shown))
        seen.add((key, effect))
    return errors


def validate_update(node: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[Json] = []
    for index, address in enumerate((node.get("status") or {}).get("addresses") or ()):
        if address in seen:
            errors.append(duplicate(f"status.addresses[{index}]", address))
        seen.append(address)
    spec, before = node.get("spec") or {}, old.get("spec") or {}
    if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
        detail = 'node updates may not change podCIDR except from "" to valid'
        errors.append(forbidden("spec.podCIDRs", detail))
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        what = "modified" if spec.get("providerID") else "cleared"
        errors.append(invalid("spec.providerID", None, f"field cannot be {what} once set"))
    return errors


STRATEGY: Final = Strategy(
    default=default,
    validate=validate,
    validate_update=validate_update,
    selectable={
        "spec.unschedulable": lambda node: "true" if (node.get("spec") or {}).get("unschedulable") else "false"
    },
)
