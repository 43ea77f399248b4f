"""Custom resource definitions for the kinds of Cluster API, Steward and the providers, where the real ones are missing.

They take any spec and any status, so they prove nothing about what Butler writes; tests check that against the real
definitions. What a person sees is like the real ones: names, short names, columns, the status and scale subresources.
A definition that is there and is not ours stays as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from butler.api.objects import condition_of, labels_of, name_of
from butler.capi import aws, naming
from butler.kube.errors import AlreadyExists
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from butler.local.world.kinds import KUBEADM_CONFIG

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.capi.naming import Kind
    from butler.kube.client import Client

OURS: Final = ("world.butler.butlerlabs.dev/definition", "loose")
"""The label on definitions that came from here."""
CONTENT: Final = "world.butler.butlerlabs.dev/content"
FIELD_MANAGER: Final = "butler-world/definitions"
ESTABLISHED_SECONDS: Final = 60.0
PROVIDER_NAMESPACES: Final = (aws.SYSTEM_NAMESPACE,)
"""Where providers are installed that read their credentials there and nowhere else."""

_AGE = ("Age", "date", ".metadata.creationTimestamp")
_CLUSTER = ("Cluster", "string", ".spec.clusterName")
_OF_CLUSTER = ("Cluster", "string", r".metadata.labels.cluster\.x-k8s\.io/cluster-name")
_READY = ("Ready", "boolean", ".status.ready")
_PROVIDER_ID = ("ProviderID", "string", ".spec.providerID")

_SHORT_NAMES: Final = {
    "Cluster": "cl",
    "MachineDeployment": "md",
    "MachineSet": "ms",
    "Machine": "ma",
    "StewardControlPlane": "stcp",
}
_COLUMNS: Final = {
    "Cluster": (("Phase", "string", ".status.phase"), _AGE),
    "MachineDeployment": (
        _CLUSTER,
        ("Replicas", "integer", ".status.replicas"),
        ("Ready", "integer", ".status.readyReplicas"),
        ("Updated", "integer", ".status.updatedReplicas"),
        ("Unavailable", "integer", ".status.unavailableReplicas"),
        ("Phase", "string", ".status.phase"),
        _AGE,
        ("Version", "string", ".spec.template.spec.version"),
    ),
    "MachineSet": (
        _CLUSTER,
        ("Replicas", "integer", ".status.replicas"),
        ("Ready", "integer", ".status.readyReplicas"),
        ("Available", "integer", ".status.availableReplicas"),
        _AGE,
        ("Version", "string", ".spec.template.spec.version"),
    ),
    "Machine": (
        _CLUSTER,
        ("NodeName", "string", ".status.nodeRef.name"),
        _PROVIDER_ID,
        ("Phase", "string", ".status.phase"),
        _AGE,
        ("Version", "string", ".spec.version"),
    ),
    "StewardControlPlane": (
        ("Version", "string", ".status.version"),
        ("Initialized", "boolean", ".status.initialized"),
        _READY,
        ("Replicas", "integer", ".status.replicas"),
        _AGE,
    ),
}
_SCALED: Final = ("MachineDeployment", "MachineSet")


def definitions() -> tuple[Json, ...]:
    """All of them, in a fixed order."""
    return tuple(_marked(definition(kind)) for kind in (*naming.KINDS, KUBEADM_CONFIG))


def _marked(found: Json) -> Json:
    """With a mark of what it says, so that a start need not write what is there."""
    text = json.dumps(found["spec"], sort_keys=True)
    mark = {CONTENT: hashlib.sha256(text.encode()).hexdigest()[:16]}
    return {**found, "metadata": {**found["metadata"], "annotations": mark}}


def definition(kind: Kind) -> Json:
    """A definition of a kind that takes anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subresources: Json = {"status": {}}
    if kind.kind in _SCALED:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    columns = _COLUMNS.get(kind.kind) or _usual_columns(kind)
    short = _SHORT_NAMES.get(kind.kind)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": dict((OURS,))},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "categories": ["cluster-api"],
                **({"shortNames": [short]} if short else {}),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": subresources,
                    "additionalPrinterColumns": [
                        {"name": name, "type": shown, "jsonPath": path} for name, shown, path in columns
                    ],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": f"{kind.kind}, with any content: the real definition is not installed.",
                            "properties": {"spec": anything, "status": anything},
                        }
                    },
                }
            ],
        },
    }


def _usual_columns(kind: Kind) -> tuple[tuple[str, str, str], ...]:
    if kind.kind.endswith("Cluster"):
        return (_OF_CLUSTER, _READY, ("Endpoint", "string", ".spec.controlPlaneEndpoint.host"), _AGE)
    if kind.kind.endswith("Machine"):
        return (_OF_CLUSTER, _READY, _PROVIDER_ID, _AGE)
    return (_OF_CLUSTER, _AGE)


async def install(client: Client) -> None:
    """Install what is missing, renew what is ours, and wait until all of it is served."""
    for name in PROVIDER_NAMESPACES:
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
    listed = await client.list(CUSTOM_RESOURCE_DEFINITIONS)
    present = {name_of(definition): definition for definition in listed.items}
    wanted = [definition for definition in definitions() if _is_to_write(definition, present.get(name_of(definition)))]
    await asyncio.gather(
        *(
            client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, force=True, field_manager=FIELD_MANAGER)
            for definition in wanted
        )
    )
    key, value = OURS
    names = {name_of(definition) for definition in wanted}
    async with asyncio.timeout(ESTABLISHED_SECONDS):
        while names:
            listed = await client.list(CUSTOM_RESOURCE_DEFINITIONS, label_selector=f"{key}={value}")
            names -= {name_of(definition) for definition in listed.items if _is_established(definition)}
            if names:
                await asyncio.sleep(0.05)


def _is_to_write(wanted: Json, found: Json | None) -> bool:
    if found is None:
        return True
    told = found["metadata"].get("annotations") or {}
    is_ours = labels_of(found).get(OURS[0]) == OURS[1]
    return is_ours and told.get(CONTENT) != wanted["metadata"]["annotations"][CONTENT]


def _is_established(found: Json) -> bool:
    condition = condition_of(found, "Established")
    return condition is not None and condition["status"] == "True"
