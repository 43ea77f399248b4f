"""What a Machine says of itself at each step of its life, by Cluster API's v1beta1 contract. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.local.world import kinds, machine_objects
from butler.local.world.conditions import false, is_true, merged, true

if TYPE_CHECKING:
    from butler.api.objects import Json

_BOOTSTRAP: Final = "BootstrapReady"
_INFRASTRUCTURE: Final = "InfrastructureReady"
_NODE: Final = "NodeHealthy"
_READY: Final = "Ready"


def control_plane_serves(cluster: Json) -> bool:
    """Whether machines of a Cluster may start: they need the infrastructure around them and a control plane to join."""
    ready = bool((cluster.get("status") or {}).get("infrastructureReady"))
    return ready and is_true(cluster, "ControlPlaneInitialized")


def address_of(infrastructure: Json) -> str | None:
    """The address that the provider's machine holds."""
    found: str | None = (infrastructure["metadata"].get("annotations") or {}).get(kinds.ADDRESS)
    return found


def internal_address(machine: Json) -> str | None:
    """The address that a Machine shows."""
    shown = (machine.get("status") or {}).get("addresses") or ()
    return next((address["address"] for address in shown if address["type"] == "InternalIP"), None)


def pending(machine: Json, now: str) -> Json:
    waits = ("WaitingForControlPlaneAvailable", "")
    return _status(machine, "Pending", now, false(_BOOTSTRAP, *waits), false(_READY, *waits))


def provisioning(machine: Json, reason: str, message: str, now: str) -> Json:
    severity = "Warning" if message else "Info"
    conditions = (
        true(_BOOTSTRAP),
        false(_INFRASTRUCTURE, reason, message, severity),
        false(_NODE, "WaitingForNodeRef"),
        false(_READY, reason, message, severity),
    )
    return _status(machine, "Provisioning", now, *conditions) | {"bootstrapReady": True}


def running(machine: Json, node: Json, address: str, now: str) -> Json:
    conditions = (true(_BOOTSTRAP), true(_INFRASTRUCTURE), true(_NODE), true(_READY))
    return _status(machine, "Running", now, *conditions) | {
        "bootstrapReady": True,
        "infrastructureReady": True,
        "nodeRef": node,
        "nodeInfo": machine_objects.node_info(machine),
        "addresses": machine_objects.addresses(machine, address),
    }


def failed(machine: Json, reason: str, message: str, now: str) -> Json:
    conditions = (false(_INFRASTRUCTURE, reason, message, "Error"), false(_READY, reason, message, "Error"))
    return _status(machine, "Failed", now, *conditions) | {"failureReason": reason, "failureMessage": message}


def deleting(machine: Json, now: str) -> Json:
    conditions = (false(_NODE, "Deleting"), false(_READY, "Deleting"))
    return _status(machine, "Deleting", now, *conditions)


def _status(machine: Json, phase: str, now: str, *conditions: Json) -> Json:
    told = machine.get("status") or {}
    since = {} if told.get("phase") == phase else {"lastUpdated": now}
    return {
        "phase": phase,
        "observedGeneration": machine["metadata"].get("generation", 1),
        "conditions": merged(machine, conditions, now),
        **since,
    }
