"""Telling the API server to ask us: the ValidatingWebhookConfiguration, put in place at start.

It is applied with force, so that whatever was edited in between is put right, and so that one left behind by a
process that died (its port is gone, and every write of our kinds would be refused) is replaced by the next start.
Every field is written out, because a field that we leave to defaults is a field that we cannot put right.

Only what people decide is asked about: pools and providers when their spec is made, changed or removed, clusters when
they name a team or a provider or are deleted by force, Namespaces that change their team, allocations that are not made
by Butler itself, and the deletion of allocations that hold addresses, which Butler itself never does: it releases them
first. Status writes are a subresource, which the rules do not name, but for those of Namespaces; finalizers and labels
are let pass by a match condition, so that a controller can still let go of an object while no process serves the
webhooks.

A configuration outlives its server. In a cluster that is meant: while no replica runs, no user may shrink a pool
behind its back. On a machine of one's own it would be a trap, so there it is removed at the end (`remove`), and also
at the start of a control plane that serves no webhooks.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from butler.api import GROUP, VERSION
from butler.api.ipallocation import IPAllocation
from butler.api.labels import Annotation, FieldManager, Finalizer, Label
from butler.api.networkpool import NetworkPool
from butler.api.objects import uid_of, version_of
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.kube.errors import Conflict, NotFound
from butler.kube.resource import VALIDATING_WEBHOOK_CONFIGURATIONS
from butler.webhooks.secret_path import PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.api.resource import CustomResource
    from butler.kube.client import Client

Json = dict[str, Any]

NAME: Final = GROUP
"""The configuration's name, unless several Butlers share one API server."""
TIMEOUT_SECONDS: Final = 5

_CHANGES_SPEC: Final = {
    "name": "spec-changes",
    "expression": "request.operation != 'UPDATE' || "
    "(object.spec != oldObject.spec && !has(object.metadata.deletionTimestamp))",
}
_CHANGES_SPEC_TO_THE_END: Final = {
    # A ProviderConfig that is being deleted still says where credentials go, for the clusters that are on it.
    "name": "spec-changes",
    "expression": "request.operation != 'UPDATE' || object.spec != oldObject.spec",
}
_NOT_FROM_BUTLER: Final = {
    # Butler's own requests carry the finalizer from birth. No user reads the warnings about them, and they come in
    # hundreds, so the API server is spared the questions.
    "name": "not-from-butler",
    "expression": f"!has(object.metadata.finalizers) || !('{Finalizer.IP_ALLOCATION}' in object.metadata.finalizers)",
}
_HOLDS_ADDRESSES: Final = {
    # What holds nothing may go at any time: Butler deletes records and refused requests, also with no server running.
    "name": "holds-addresses",
    "expression": "has(oldObject.status) && has(oldObject.status.phase) && oldObject.status.phase == 'Allocated'"
    " && !has(oldObject.metadata.deletionTimestamp)",
}
_NAMES_OTHERS: Final = {
    # Both are set once: they come, and neither change nor go.
    "name": "names-team-or-provider",
    "expression": "request.operation != 'UPDATE' || (has(object.spec.teamRef) && !has(oldObject.spec.teamRef)) ||"
    " (has(object.spec.providerConfigRef) && !has(oldObject.spec.providerConfigRef))",
}
_FORCES_DELETION: Final = {
    "name": "forces-deletion",
    "expression": f"has(object.metadata.annotations) && '{Annotation.FORCE_DELETE}' in object.metadata.annotations &&"
    " (request.operation == 'CREATE' || !has(oldObject.metadata.annotations) ||"
    f" !('{Annotation.FORCE_DELETE}' in oldObject.metadata.annotations) || oldObject.metadata.annotations"
    f"['{Annotation.FORCE_DELETE}'] != object.metadata.annotations['{Annotation.FORCE_DELETE}'])",
}


def _label(owner: str, label: str) -> str:
    labels = f"{owner}.metadata.labels"
    return f"(has({labels}) && '{label}' in {labels} ? {labels}['{label}'] : '')"


_CHANGES_TEAM: Final = {
    # The namespace of a tenant is no team's, whatever else it says.
    "name": "changes-team",
    "expression": " || ".join(
        f"{_label('object', label)} != {_label('oldObject', label)}" for label in (Label.TEAM, Label.TENANT_UID)
    ),
}


@dataclass(frozen=True, slots=True)
class AtUrl:
    """A server that the API server reaches by an address, such as one on the same machine."""

    url: str

    def client_config(self) -> Json:
        return {"url": self.url}


@dataclass(frozen=True, slots=True)
class AtService:
    """A server behind a Service of the cluster."""

    namespace: str
    name: str
    port: int = 443
    path: str = PREFIX

    def client_config(self) -> Json:
        return {"service": {"namespace": self.namespace, "name": self.name, "port": self.port, "path": self.path}}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that its certificate has to be good for; API servers check the first."""
        return (f"{self.name}.{self.namespace}.svc", f"{self.name}.{self.namespace}.svc.cluster.local")


def configuration(reach: AtUrl | AtService, ca_bundle: bytes, *, name: str = NAME, namespace: str = "") -> Json:
    """The whole configuration; with a namespace, objects elsewhere are none of our business."""
    client = reach.client_config() | {"caBundle": base64.b64encode(ca_bundle).decode()}
    selector: Json = {"matchLabels": {"kubernetes.io/metadata.name": namespace}} if namespace else {}
    return {
        "apiVersion": VALIDATING_WEBHOOK_CONFIGURATIONS.api_version,
        "kind": VALIDATING_WEBHOOK_CONFIGURATIONS.kind,
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "butler"}},
        "webhooks": [
            _webhook(NetworkPool, ("CREATE", "UPDATE", "DELETE"), _CHANGES_SPEC, "Fail", client, selector),
            # What slipped through would be told by conditions; but a deletion, once begun, cannot be taken back.
            _webhook(
                ProviderConfig, ("CREATE", "UPDATE", "DELETE"), _CHANGES_SPEC_TO_THE_END, "Fail", client, selector
            ),
            # Mostly good advice: what slips through while no process serves turns Failed and says why.
            _webhook(IPAllocation, ("CREATE",), _NOT_FROM_BUTLER, "Ignore", client, selector),
            # Without an answer the deletion would begin, and could only wait for what it would have been refused for.
            # Who insists is told in an event: a side effect, though none of a dry run.
            _webhook(
                IPAllocation, ("DELETE",), _HOLDS_ADDRESSES, "Fail", client, selector, prefix="deletion.", events=True
            ),
            # The controllers keep these rules, too: a cluster that slips through is Failed and says why.
            _webhook(TenantCluster, ("CREATE", "UPDATE"), _NAMES_OTHERS, "Ignore", client, selector),
            # Only here is it known who does it.
            _webhook(TenantCluster, ("CREATE", "UPDATE"), _FORCES_DELETION, "Fail", client, selector, prefix="force."),
            _of_namespaces(client, selector),
        ],
    }


def _webhook(
    kind: type[CustomResource],
    operations: Sequence[str],
    condition: Json,
    on_failure: str,
    client: Json,
    selector: Json,
    *,
    prefix: str = "",
    events: bool = False,
) -> Json:
    plural = kind.definition.plural
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "operations": list(operations),
        "resources": [plural],
        "scope": "Namespaced",
    }
    side_effects = "NoneOnDryRun" if events else "None"
    return _hook(f"{prefix}{plural}.{GROUP}", rule, condition, on_failure, client, selector, side_effects)


def _of_namespaces(client: Json, selector: Json) -> Json:
    """A role in a namespace may allow to change that Namespace; its labels can be changed by its status, too."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["namespaces", "namespaces/finalize", "namespaces/status"],
        "scope": "Cluster",
    }
    return _hook(f"team.namespaces.{GROUP}", rule, _CHANGES_TEAM, "Fail", client, selector, "None")


def _hook(
    name: str, rule: Json, condition: Json, on_failure: str, client: Json, selector: Json, side_effects: str
) -> Json:
    return {
        "name": name,
        "clientConfig": client,
        "rules": [rule],
        "failurePolicy": on_failure,
        "matchPolicy": "Equivalent",
        "sideEffects": side_effects,
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": selector,
        "objectSelector": {},
        "matchConditions": [condition],
    }


@dataclass(frozen=True, slots=True)
class Installed:
    """A configuration as we left it."""

    name: str
    uid: str
    resource_version: str


async def install(client: Client, wanted: Json) -> Installed:
    """Put a configuration in place, and right again what was changed in it; nothing is written when it is right."""
    manager = FieldManager.WEBHOOKS
    found = await client.apply(VALIDATING_WEBHOOK_CONFIGURATIONS, wanted, force=True, field_manager=manager)
    if _has_more(found["webhooks"], wanted["webhooks"]):
        # Applying leaves in place what others added to a list, and one more condition turns a webhook off.
        found = await client.replace(
            VALIDATING_WEBHOOK_CONFIGURATIONS, {**found, "webhooks": wanted["webhooks"]}, field_manager=manager
        )
    return Installed(wanted["metadata"]["name"], uid_of(found), version_of(found))


def _has_more(found: Sequence[Json], wanted: Sequence[Json]) -> bool:
    conditions = {hook["name"]: len(hook.get("matchConditions") or ()) for hook in found}
    return conditions != {hook["name"]: len(hook["matchConditions"]) for hook in wanted}


async def has_bare_path(client: Client, name: str) -> bool:
    """Whether a version of Butler that knew no secret in the path has registered itself, behind a Service."""
    try:
        found = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, name)
    except NotFound:
        return False
    services = [(hook.get("clientConfig") or {}).get("service") or {} for hook in found.get("webhooks") or ()]
    return any(service.get("path") == PREFIX for service in services)


async def remove(client: Client, installed: Installed | str = NAME, *, timeout: float | None = None) -> bool:
    """Take a configuration away; whether there was one to take.

    Given what `install` returned, only that very state goes: if another process has installed its own since, it stays.
    Given a name, whatever has that name goes.
    """
    try:
        if isinstance(installed, str):
            await client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, installed, timeout=timeout)
        else:
            await client.delete(
                VALIDATING_WEBHOOK_CONFIGURATIONS,
                installed.name,
                uid=installed.uid,
                resource_version=installed.resource_version,
                timeout=timeout,
            )
    except (NotFound, Conflict):
        return False
    return True
