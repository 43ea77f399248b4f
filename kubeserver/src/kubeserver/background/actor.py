"""The server's own hands: changes and deletions that no client asked for, through the ordinary write path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.access.authentication import MASTERS, User
from kubeserver.verbs import deletes, writes
from kubeserver.verbs.writes import Write
from kubeserver.wire.messages import Request
from kubeserver.wire.options import DeleteOptions, WriteOptions
from kubeserver.wire.paths import RequestInfo
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource
    from kubeserver.storage.store import ObjectKey
    from kubeserver.verbs.admission import Admission

Json = dict[str, Any]

SERVER: Final = "kubeserver"
"""The field manager of what the server changes by itself."""
_AT_ONCE: Final = 64  # deletions under way together: they share trips to the disk
_SYSTEM: Final = User("system:kube-controller-manager", groups=(MASTERS,))


class Actor:
    def __init__(self, cluster: LogicalCluster, admission: Admission) -> None:
        self.cluster = cluster
        self._admission = admission

    def resource(self, key: ObjectKey) -> Resource | None:
        """The resource that an object's key belongs to, in the version it is stored in."""
        return self.cluster.registry.storage(key.group, key.plural)

    async def create(self, resource: Resource, namespace: str, obj: Json, manager: str) -> None:
        """Create an object; one that is there already is left as it is."""
        try:
            await writes.create(self._write(resource, namespace, obj["metadata"]["name"], "", manager), obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def change(
        self, key: ObjectKey, changed: Callable[[Json], Json], *, subresource: str = "", manager: str = SERVER
    ) -> None:
        """Change an object; `changed` gets the stored one. An object that is gone is no error."""
        resource = self.resource(key)
        if resource is None:
            return
        try:
            await writes.patch(self._write(resource, key.namespace, key.name, subresource, manager), changed)
        except ApiError as error:
            if error.code != 404:
                raise

    async def apply(self, obj: Json, manager: str) -> None:
        """Server-side apply of a cluster-scoped object, overruling other managers."""
        resource = self.cluster.registry.of_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None
        write = self._write(resource, "", obj["metadata"]["name"], "", manager)
        write.options = WriteOptions(manager=manager, force=True)
        await writes.server_side_apply(write, obj)

    async def delete(self, key: ObjectKey, *, uid: str | None = None, propagation: str = "Background") -> None:
        resource = self.resource(key)
        if resource is None:
            return
        options = DeleteOptions(propagation=propagation, uid=uid)
        try:
            await deletes.delete(self._write(resource, key.namespace, key.name, "", SERVER), options)
        except ApiError as error:
            if error.code != 404:
                raise

    async def delete_all(self, keys: Iterable[ObjectKey]) -> list[ApiError]:
        """Ask many objects to go, some at a time; what stands in the way of one does not keep the others."""
        refusals: list[ApiError] = []

        async def one(key: ObjectKey) -> None:
            try:
                await self.delete(key)
            except ApiError as refusal:
                refusals.append(refusal)

        await self.cluster.turns.each(_SYSTEM.name, keys, one, at_once=_AT_ONCE)
        return refusals

    def _write(self, resource: Resource, namespace: str, name: str, subresource: str, manager: str) -> Write:
        info = RequestInfo(
            verb="update",
            path="",
            is_resource=True,
            group=resource.group,
            version=resource.version,
            namespace=namespace,
            resource=resource.plural,
            subresource=subresource,
            name=name,
        )
        request = Request(info, _SYSTEM, {"fieldManager": manager}, {})
        return Write(
            cluster=self.cluster,
            resource=resource,
            request=request,
            options=WriteOptions(),
            admission=self._admission,
            namespace=namespace,
            name=name,
            subresource=subresource,
        )
