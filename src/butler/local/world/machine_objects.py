"""Machines as a provider and a kubelet would make them: identities, addresses, sizes, and the Node. Pure."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from butler.api.objects import name_of, namespace_of, owners_of, uid_of
from butler.local.world import kinds

if TYPE_CHECKING:
    from butler.api.objects import Json

_WELL: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def provider_id(machine: Json) -> str:
    """How a provider names the virtual machine of a Machine; the same whenever asked."""
    name, number = name_of(machine), _number(machine)
    match machine["spec"]["infrastructureRef"]["kind"]:
        case "AWSMachine":
            return f"aws:///local/i-{number.hex[:17]}"
        case "GCPMachine":
            return f"gce://local/local/{name}"
        case "AzureMachine":
            scope = f"/subscriptions/{number}/resourceGroups/{namespace_of(machine)}"
            return f"azure://{scope}/providers/Microsoft.Compute/virtualMachines/{name}"
        case kind:
            return f"{kind.removesuffix('Machine').lower()}://{number}"


def _number(machine: Json) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, uid_of(machine))


def infrastructure_machine(machine: Json, template: Json, address: str | None) -> Json:
    """What the provider calls a machine: cloned from its template, owned by the Machine, with an address to keep."""
    inner = template["spec"]["template"]
    given = inner.get("metadata") or {}
    metadata = _cloned(machine, template, machine["spec"]["infrastructureRef"]["name"])
    metadata["labels"] = {**(given.get("labels") or {}), **metadata["labels"]}
    metadata["annotations"] = {**(given.get("annotations") or {}), **metadata["annotations"]}
    metadata["finalizers"] = [kinds.INFRASTRUCTURE_FINALIZER]
    if address is not None:
        metadata["annotations"][kinds.ADDRESS] = address
    return {"metadata": metadata, "spec": {**(inner.get("spec") or {}), "providerID": provider_id(machine)}}


def bootstrap_config(machine: Json, template: Json) -> Json:
    """The KubeadmConfig of a machine, cloned from its template."""
    metadata = _cloned(machine, template, machine["spec"]["bootstrap"]["configRef"]["name"])
    return {"metadata": metadata, "spec": template["spec"]["template"].get("spec") or {}}


def _cloned(machine: Json, template: Json, name: str) -> Json:
    group, _, _ = template["apiVersion"].partition("/")
    return {
        "name": name,
        "namespace": namespace_of(machine),
        "labels": dict(machine["metadata"].get("labels") or {}),
        "annotations": {
            kinds.CLONED_FROM_NAME: name_of(template),
            kinds.CLONED_FROM_KIND: f"{template['kind']}.{group}",
        },
        "ownerReferences": [
            {
                "apiVersion": kinds.MACHINES.api_version,
                "kind": kinds.MACHINES.kind,
                "name": name_of(machine),
                "uid": uid_of(machine),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def addresses(machine: Json, address: str) -> list[Json]:
    """What a Machine, the provider's machine and the Node say of where it is."""
    return [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name_of(machine)}]


def node(machine: Json, shape: Json, address: str, now: str) -> Json:
    """What the kubelet of a machine registers, as Cluster API marks it. `shape`: the provider's machine spec."""
    name = name_of(machine)
    owner = next(iter(owners_of(machine)), {"kind": "", "name": ""})
    amounts = _capacity(shape)
    return {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": "amd64",
            },
            "annotations": {
                "cluster.x-k8s.io/cluster-name": machine["spec"]["clusterName"],
                "cluster.x-k8s.io/cluster-namespace": namespace_of(machine),
                "cluster.x-k8s.io/machine": name,
                "cluster.x-k8s.io/owner-kind": owner["kind"],
                "cluster.x-k8s.io/owner-name": owner["name"],
            },
        },
        "spec": {"providerID": provider_id(machine)},
        "status": {
            "addresses": addresses(machine, address),
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
                for kind, status, reason, message in _WELL
            ],
            "nodeInfo": node_info(machine),
        },
    }


def node_info(machine: Json) -> Json:
    """What a kubelet tells of the machine it runs on."""
    number, version = str(_number(machine)), machine["spec"].get("version", "")
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "Butler stand-in",
        "kernelVersion": "0.0.0-world",
        "containerRuntimeVersion": "world://0",
        "kubeletVersion": version,
        "kubeProxyVersion": version,
        "machineID": number.replace("-", ""),
        "systemUUID": number,
        "bootID": number,
    }


def _capacity(shape: Json) -> Json:
    """How large a machine is, where the provider's own words tell."""
    cpu = shape.get("cpu") or shape.get("numCores", 0) * shape.get("numSockets", 1)
    cpu = cpu or shape.get("vcpuSockets", 0) * shape.get("vcpusPerSocket", 1)
    memory = shape.get("memory") or shape.get("memorySize")
    if shape.get("memoryMiB"):
        memory = f"{shape['memoryMiB']}Mi"
    return {"cpu": str(cpu or 4), "memory": str(memory or "16Gi"), "pods": "110"}
