"""What `kubectl explain` says about built-in kinds, in our words.

The table of shapes carries no prose. Here is a line for every kind that is served and for the fields people look up
most; everything else shows its type alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from butler.local.apiserver.schema import Schema

# For every type that has such a field and says nothing more precise below
_EVERYWHERE: Final = {
    "apiVersion": "The version of this object's schema, as group/version.",
    "kind": "What this object is, in CamelCase.",
    "metadata": "Name, labels, owners and other data that every object has.",
    "spec": "What is wanted.",
    "status": "What is observed. Written by the controller in charge, not by you.",
    "conditions": "Observations with a type, a status (True, False or Unknown) and the reason for it.",
    "observedGeneration": "The generation of the object that this status is about.",
}
_KINDS: Final = {
    "core.v1.ConfigMap": "Configuration as keys and values, for pods to read.",
    "core.v1.Endpoints": "Addresses behind a service. EndpointSlice is its successor.",
    "core.v1.Event": "Something that happened to an object, as one component saw it.",
    "core.v1.Namespace": "A scope for names: objects in different namespaces may have the same name.",
    "core.v1.Node": "A machine that pods run on.",
    "core.v1.PersistentVolume": "A piece of storage in the cluster.",
    "core.v1.PersistentVolumeClaim": "A request for storage.",
    "core.v1.Pod": "Containers that run together on one node and share its network.",
    "core.v1.Secret": "Confidential data as keys and values: passwords, tokens, keys.",
    "core.v1.Service": "A stable address for a set of pods, and how to reach them.",
    "core.v1.ServiceAccount": "An identity for processes that run in pods.",
    "apps.v1.DaemonSet": "Runs a copy of a pod on every node, or on those it selects.",
    "apps.v1.Deployment": "Keeps a number of equal pods running and rolls out changes to them.",
    "apps.v1.ReplicaSet": "Keeps a number of equal pods running. Usually made by a Deployment.",
    "apps.v1.StatefulSet": "Runs pods with stable names and storage of their own.",
    "batch.v1.CronJob": "Starts jobs on a schedule.",
    "batch.v1.Job": "Runs pods until enough of them have finished.",
    "coordination.v1.Lease": "A claim that its holder renews: for leader election and heartbeats.",
    "discovery.v1.EndpointSlice": "Some of the addresses behind a service.",
    "events.v1.Event": "Something that happened to an object, as one component saw it.",
    "networking.v1.Ingress": "Rules that lead HTTP traffic from outside to services.",
    "networking.v1.IngressClass": "A kind of ingress and the controller that implements it.",
    "networking.v1.NetworkPolicy": "What traffic may reach, or leave, a set of pods.",
    "policy.v1.PodDisruptionBudget": "How many pods of a set may be down on purpose at a time.",
    "rbac.v1.ClusterRole": "Permissions in all namespaces, or on objects that have none.",
    "rbac.v1.ClusterRoleBinding": "Gives users, groups or service accounts a ClusterRole's permissions everywhere.",
    "rbac.v1.Role": "Permissions in one namespace.",
    "rbac.v1.RoleBinding": "Gives users, groups or service accounts the permissions of a role in one namespace.",
    "scheduling.v1.PriorityClass": "A name for how important pods are.",
    "storage.v1.StorageClass": "A kind of storage and how volumes of it are made.",
    "autoscaling.v2.HorizontalPodAutoscaler": "Changes the number of pods as load changes.",
    "admissionregistration.v1.MutatingWebhookConfiguration": "Webhooks that may change objects before they are stored.",
    "admissionregistration.v1.ValidatingWebhookConfiguration": "Webhooks that may refuse to let objects be stored.",
}
_FIELDS: Final = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "annotations": "Data that tools keep with the object; nobody selects by it.",
        "creationTimestamp": "When the object was created. Set by the server.",
        "deletionGracePeriodSeconds": "How long the object may take to end before it is removed.",
        "deletionTimestamp": "Set once deletion was asked for: the object goes when its finalizers are gone.",
        "finalizers": "Who must do something before the object may go.",
        "generateName": "A prefix: the server makes a unique name from it if there is no name.",
        "generation": "Counts changes of what is wanted. Set by the server.",
        "labels": "Keys and values to find and group objects by.",
        "managedFields": "Who set which field. Kept by the server for server-side apply.",
        "name": "Unique among objects of a kind in a namespace. Cannot be changed.",
        "namespace": "The namespace the object is in. Cannot be changed.",
        "ownerReferences": "The objects this one belongs to: it goes when all of them are gone.",
        "resourceVersion": "Changes with every write; give it back to change only what you have seen.",
        "uid": "Unique over space and time. Set by the server.",
    },
    "io.k8s.api.core.v1.PodSpec": {
        "containers": "The containers of the pod.",
        "initContainers": "Containers that run to their end, one after the other, before the others start.",
        "nodeName": "The node the pod is bound to.",
        "nodeSelector": "Labels a node must have for the pod to run on it.",
        "restartPolicy": "Always, OnFailure or Never.",
        "serviceAccountName": "The identity of the pod's processes.",
        "volumes": "What containers may mount.",
    },
    "io.k8s.api.core.v1.Container": {
        "args": "Arguments of the command.",
        "command": "What to run, in place of what the image says.",
        "env": "Environment variables.",
        "image": "The image to run.",
        "name": "The container's name in its pod.",
        "ports": "Ports the container listens on, for information.",
        "resources": "What it needs at least, and what it may use at most.",
    },
    "io.k8s.api.apps.v1.DeploymentSpec": {
        "replicas": "How many pods are wanted. Default 1.",
        "selector": "Which pods belong to the deployment. Must match the template's labels; cannot be changed.",
        "strategy": "How pods are replaced by new ones.",
        "template": "What the pods look like.",
    },
    "io.k8s.api.core.v1.ServiceSpec": {
        "clusterIP": "The address inside the cluster; None: the service has none.",
        "externalTrafficPolicy": "Whether traffic from outside may go to pods on other nodes: Cluster or Local.",
        "loadBalancerClass": "Which implementation of load balancers is meant.",
        "loadBalancerIP": "The address wanted from the load balancer, if it can choose.",
        "ports": "What is reachable, and where it leads.",
        "selector": "Which pods are behind the service.",
        "type": "ClusterIP, NodePort, LoadBalancer or ExternalName.",
    },
    "io.k8s.api.core.v1.Secret": {
        "data": "The values, in base64.",
        "immutable": "If true, the values can never be changed.",
        "stringData": "Values as plain text; they are folded into data and never shown again.",
        "type": "What the secret is for, so that programs can check its keys.",
    },
    "io.k8s.api.core.v1.ConfigMap": {
        "binaryData": "Values that are no text, in base64.",
        "data": "The values.",
        "immutable": "If true, the values can never be changed.",
    },
}


def describe(types: dict[str, Schema]) -> None:
    """Add descriptions to the types of built-in kinds; called once, before anybody else sees them."""
    for name, schema in types.items():
        schema.description = _KINDS.get(name.removeprefix("io.k8s.api."), "")
        own = _FIELDS.get(name, {})
        for field, child in schema.properties.items():
            text = own.get(field) or _EVERYWHERE.get(field)
            if text:
                # The node may be shared with every other field of its type.
                schema.properties[field] = replace(child, description=text)
