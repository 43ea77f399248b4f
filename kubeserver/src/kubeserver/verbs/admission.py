"""What may still refuse or change a write: the check against escalation of roles, and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeserver.access.authorization import Attributes, forbidden
from kubeserver.builtin.catalog import ADMISSION, RBAC
from kubeserver.builtin.escalation import refuse_escalation
from kubeserver.storage.store import ObjectKey, Table
from kubeserver.verbs.lifecycle import default
from kubeserver.webhooks.hooks import Admitted, HookTable, Served
from kubeserver.wire.messages import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeserver.access.authorization import Authorizer
    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource
    from kubeserver.verbs.writes import Write
    from kubeserver.webhooks.calls import Webhooks

Json = dict[str, Any]

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class Admission:
    """Admission in one logical cluster. Most have no webhooks: then a write never waits for one."""

    def __init__(self, cluster: LogicalCluster, authorizer: Authorizer, webhooks: Webhooks) -> None:
        self._cluster = cluster
        self._authorizer = authorizer
        self._webhooks = webhooks
        self._mutating = self._hooks("mutatingwebhookconfigurations")
        self._validating = self._hooks("validatingwebhookconfigurations")

    async def mutate(self, write: Write, operation: str, obj: Json, old: Json | None) -> Json:
        """The object after all mutating webhooks."""
        hooks = self._mutating.hooks()
        if not hooks or write.resource.group == ADMISSION:
            return obj
        changed = await self._webhooks.mutate(hooks, self._asked(write, operation, obj, old), write.warnings)
        return obj if changed is None else changed

    async def validate(self, write: Write, operation: str, obj: Json | None, old: Json | None) -> bool:
        """Refuse what a role or a validating webhook does not allow; returns whether it waited for a webhook."""
        if write.resource.group == RBAC and obj is not None:
            refuse_escalation(
                self._authorizer,
                write.request.user,
                plural=write.resource.plural,
                namespace=write.namespace,
                new=obj,
                old=old,
            )
        if operation == "CREATE":
            self._refuse_creation(write)
        hooks = self._validating.hooks()
        if not hooks or write.resource.group == ADMISSION:
            return False
        await self._webhooks.validate(hooks, self._asked(write, operation, obj, old), write.warnings)
        return True

    def _refuse_creation(self, write: Write) -> None:
        """PATCH and PUT were authorised as what they are; one that creates needs the right to create as well."""
        info = write.request.info
        if info.verb == "create":
            return
        wanted = Attributes(
            write.request.user,
            "create",
            group=info.group,
            version=info.version,
            resource=info.resource,
            subresource=info.subresource,
            namespace=info.namespace,
            name=info.name,
        )
        decision = self._authorizer.authorize(wanted)
        if not decision.allowed:
            raise forbidden(wanted, decision.reason)

    def _asked(self, write: Write, operation: str, obj: Json | None, old: Json | None) -> Admitted:
        resource = write.resource
        options: Json = {"kind": _OPTIONS[operation], "apiVersion": "meta.k8s.io/v1"}
        if write.request.info.verb == "patch":
            options["kind"] = "PatchOptions"
        if write.options.manager:
            options["fieldManager"] = write.options.manager
        if write.options.dry_run:
            options["dryRun"] = ["All"]
        # A namespace is selected by its own labels, so it counts as being inside itself.
        namespace = write.name if resource.plural == "namespaces" and not resource.group else write.namespace
        return Admitted(
            operation=operation,
            served=_served(resource, resource),
            user=write.request.user,
            obj=obj,
            old=old,
            name=write.name,
            namespace=namespace,
            subresource=write.subresource,
            options=options,
            dry_run=write.options.dry_run,
            equivalents=tuple(
                _served(item, resource)
                for item in self._cluster.registry.resources()
                if item.table == resource.table and item is not resource
            ),
            default=lambda changed: default(resource, changed),
            namespace_labels=lambda: self._labels_of(namespace),
            apart=lambda work: self._cluster.lane.run(write.caller, work),
        )

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        entry = self._cluster.store.latest(ObjectKey(self._cluster.name, "", "namespaces", "", namespace))
        return (decode(entry.value)["metadata"].get("labels") or {}) if entry else {}

    def _hooks(self, plural: str) -> HookTable:
        table = Table(self._cluster.name, ADMISSION, plural)
        return HookTable(
            load=lambda: [decode(entry.value) for entry in self._cluster.store.entries(table)],
            version=lambda: self._cluster.version_of(ADMISSION, plural),
        )


def _served(shown: Resource, asked: Resource) -> Served:
    """A resource as a webhook may want to see it; versions of one kind differ in their apiVersion alone."""
    return Served(
        shown.group,
        shown.version,
        shown.plural,
        shown.kind,
        there=lambda obj: {**obj, "apiVersion": shown.api_version},
        back=lambda obj: {**obj, "apiVersion": asked.api_version},
    )
