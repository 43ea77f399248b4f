"""Definitions of our own for the kinds whose projects publish no Go module: CAPHV's and Steward's.

Written from facts about their types (names of fields, types, what is required, what may be chosen), with no text of
theirs, and as strict as Kubernetes allows: a field that they do not know is refused. Only the parts of a kind that
Butler might write are described.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer", "format": "int32"}
SWITCH: Json = {"type": "boolean"}
TEXTS: Json = {"type": "array", "items": TEXT}
QUANTITY: Json = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
ENDPOINT: Json = {"type": "object", "required": ["host", "port"], "properties": {"host": TEXT, "port": NUMBER}}


def choice(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


def thing(required: str = "", **properties: Json) -> Json:
    """An object with exactly these fields; the required ones are named with spaces between."""
    names = required.split()
    return {"type": "object", "properties": properties, **({"required": names} if names else {})}


def several(item: Json) -> Json:
    return {"type": "array", "items": item}


IP_POOL = thing("vmNetwork subnet gateway", vmNetwork=TEXT, subnet=TEXT, gateway=TEXT, rangeStart=TEXT, rangeEnd=TEXT)

HARVESTER_CLUSTER = thing(
    "identitySecret loadBalancerConfig targetNamespace",
    server=TEXT,
    identitySecret=thing("namespace name", namespace=TEXT, name=TEXT),
    loadBalancerConfig=thing("ipamType", ipamType=choice("dhcp", "pool"), ipPoolRef=TEXT, ipPool=IP_POOL),
    controlPlaneEndpoint=ENDPOINT,
    targetNamespace={**TEXT, "minLength": 1},
    vmNetworkConfig=thing(
        "gateway subnetMask",
        ipPoolRef=TEXT,
        ipPoolRefs=TEXTS,
        ipPool=IP_POOL,
        gateway=TEXT,
        subnetMask=TEXT,
        dnsServers=TEXTS,
        dnsSearch=TEXTS,
    ),
)

HARVESTER_MACHINE = thing(
    "cpu memory sshUser sshKeyPair volumes networks",
    providerID=TEXT,
    failureDomain=TEXT,
    cpu=NUMBER,
    memory=TEXT,
    sshUser=TEXT,
    sshKeyPair=TEXT,
    networks=TEXTS,
    volumes=several(
        thing(
            "volumeType",
            volumeType=choice("storageClass", "image"),
            imageName=TEXT,
            storageClass=TEXT,
            volumeSize=QUANTITY,
            bootOrder={"type": "integer"},
        )
    ),
    networkConfig=thing("address gateway", address=TEXT, gateway=TEXT, dnsServers=TEXTS, dnsSearch=TEXTS),
)

_AMOUNTS: Json = {"type": "object", "additionalProperties": QUANTITY}
_COMPONENT = thing(
    extraArgs=TEXTS, resources=thing(requests=_AMOUNTS, limits=_AMOUNTS), containerImageName={**TEXT, "minLength": 1}
)
_IMAGE: dict[str, Any] = {"imageRepository": TEXT, "imageTag": TEXT}

STEWARD_CONTROL_PLANE = thing(
    "version",
    version=TEXT,
    replicas={**NUMBER, "default": 2},
    controlPlaneEndpoint=ENDPOINT,
    dataStoreName=TEXT,
    dataStoreSchema=TEXT,
    registry=TEXT,
    addons=thing(
        coreDNS=thing(dnsServiceIPs=TEXTS, **_IMAGE),
        kubeProxy=thing(**_IMAGE),
        konnectivity=thing(server=thing(port=NUMBER), agent=thing(mode=choice("DaemonSet", "Deployment"))),
        workerBootstrap=thing(
            "provider",
            provider=choice("talos"),
            talos=thing(image=TEXT, imageTag=TEXT, port={**NUMBER, "default": 50001}, certSANs=TEXTS),
            csrApproval=thing("autoApprove", autoApprove={**SWITCH, "default": True}),
            allowedSubnets=TEXTS,
        ),
    ),
    apiServer=_COMPONENT,
    controllerManager=_COMPONENT,
    scheduler=_COMPONENT,
    kubelet=thing(
        cgroupfs=choice("systemd", "cgroupfs"),
        preferredAddressTypes=several(
            choice("Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"),
        ),
    ),
    network=thing(
        serviceType={**choice("ClusterIP", "NodePort", "LoadBalancer"), "default": "LoadBalancer"},
        serviceAddress=TEXT,
        certSANs=TEXTS,
        dnsServiceIPs=TEXTS,
    ),
)


def definition(group: str, version: str, plural: str, kind: str, spec: Json) -> Json:
    """A definition with a status that takes anything."""
    schema = thing(
        apiVersion=TEXT,
        kind=TEXT,
        metadata={"type": "object"},
        spec=spec,
        status={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [{**served, "subresources": {"status": {}}}],
        },
    }


def _template(spec: Json) -> Json:
    return thing("template", template=thing("spec", metadata={"type": "object"}, spec=spec))


_INFRASTRUCTURE = ("infrastructure.cluster.x-k8s.io", "v1alpha1")

DEFINITIONS = (
    definition(*_INFRASTRUCTURE, "harvesterclusters", "HarvesterCluster", HARVESTER_CLUSTER),
    definition(*_INFRASTRUCTURE, "harvestermachines", "HarvesterMachine", HARVESTER_MACHINE),
    definition(*_INFRASTRUCTURE, "harvestermachinetemplates", "HarvesterMachineTemplate", _template(HARVESTER_MACHINE)),
    definition(
        "controlplane.cluster.x-k8s.io",
        "v1alpha1",
        "stewardcontrolplanes",
        "StewardControlPlane",
        STEWARD_CONTROL_PLANE,
    ),
)
