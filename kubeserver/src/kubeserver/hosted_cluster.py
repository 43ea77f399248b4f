"""A logical cluster in operation: its objects, its users and roles, and what goes on in its background."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from kubeserver.access.authentication import Authenticator, User, service_account
from kubeserver.access.authorization import Authorizer, RbacObjects
from kubeserver.access.tokens import TokenIssuer
from kubeserver.background.actor import Actor
from kubeserver.background.definitions import DefinitionKeeper
from kubeserver.background.garbage import GarbageCollector
from kubeserver.background.namespaces import NamespaceKeeper
from kubeserver.builtin.catalog import RBAC
from kubeserver.builtin.default_roles import default_cluster_role_bindings, default_cluster_roles
from kubeserver.cluster import LogicalCluster
from kubeserver.storage.store import Entry, ObjectKey, Store, StoredChange, Table
from kubeserver.verbs.admission import Admission
from kubeserver.verbs.answers import Access
from kubeserver.verbs.dispatch import Verbs
from kubeserver.webhooks.calls import Webhooks
from kubeserver.wire.messages import decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubeserver.background.follower import Follower
    from kubeserver.lane import Lane
    from kubeserver.pki import Pki
    from kubeserver.resources import Resource
    from kubeserver.turns import Turns

Json = dict[str, Any]

_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC_TABLES: Final = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
_MANAGER: Final = "kube-apiserver"
_INSTALL_SECONDS: Final = 30


class HostedCluster:
    """One logical cluster with everything that serves it."""

    def __init__(
        self,
        name: str,
        store: Store,
        builtin: list[Resource],
        pki: Pki,
        address: str,
        unit: str = "",
        lane: Lane | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.address = address  # host:port, as clients reach it
        self.unit = unit  # the organisational unit of certificates that are good here
        self.cluster = LogicalCluster(name, store, builtin, lane=lane, turns=turns)
        self.tokens = TokenIssuer(
            pki, issuer=f"https://kubeserver.local/clusters/{name}" if name else "https://kubeserver.local"
        )
        self._rbac_read: dict[ObjectKey, tuple[int, Json]] = {}  # revision and object
        self.authorizer = Authorizer(self._rbac_objects, self._rbac_version)
        self.authenticator = Authenticator(verify_token=self._service_account_of)
        self.webhooks = Webhooks()
        admission = Admission(self.cluster, self.authorizer, self.webhooks)
        self.verbs = Verbs(self.cluster, admission, Access(self.authenticator, self.authorizer, self.tokens))
        self.actor = Actor(self.cluster, admission)
        self._definitions = DefinitionKeeper(self.actor)
        self._followers: list[Follower[Any]] = [
            self._definitions,
            NamespaceKeeper(self.actor),
            GarbageCollector(self.actor),
        ]

    async def start(self) -> None:
        """Begin to serve: what was there before is found again, what every cluster has is made."""
        self._definitions.serve_what_is_established()
        store = self.cluster.store
        for table in store.tables(self.cluster.name):
            for entry in store.entries(table):
                self._changed(StoredChange("ADDED", entry.key, entry.revision, entry.value))
        store.listeners.setdefault(self.cluster.name, []).append(self._changed)
        for follower in self._followers:
            follower.start()
        await self._bootstrap()

    async def stop(self) -> None:
        self.cluster.store.listeners.pop(self.cluster.name, None)
        for follower in self._followers:
            await follower.stop()

    def _changed(self, change: StoredChange) -> None:
        self.cluster.note(change)
        for follower in self._followers:
            follower.changed(change)

    async def _bootstrap(self) -> None:
        """What a cluster has from its first moment. Whatever was changed since is left alone."""
        # All at once, so that they go to the disk together.
        await asyncio.gather(
            *(self._ensure("", "namespaces", "", {"metadata": {"name": name}}) for name in _NAMESPACES),
            *(self._ensure(RBAC, "clusterroles", "", role) for role in default_cluster_roles()),
            *(
                self._ensure(RBAC, "clusterrolebindings", "", default_cluster_role_binding)
                for default_cluster_role_binding in default_cluster_role_bindings()
            ),
        )

    async def install(self, definitions: Iterable[Json], namespaces: Iterable[str], manager: str) -> None:
        """Bring custom resources and namespaces to a cluster; returns when they are served."""
        definitions = list(definitions)
        for namespace in namespaces:
            await self._ensure("", "namespaces", "", {"metadata": {"name": namespace}})
        for definition in definitions:
            await self.actor.apply(definition, manager)
        names = {definition["metadata"]["name"] for definition in definitions}
        async with asyncio.timeout(_INSTALL_SECONDS):
            while not names <= self._definitions.served():  # noqa: ASYNC110 - a few milliseconds, once per start
                await asyncio.sleep(0.005)

    async def _ensure(self, group: str, plural: str, namespace: str, obj: Json) -> None:
        resource = self.cluster.registry.find(group, "v1", plural)
        assert resource is not None
        key = ObjectKey(self.cluster.name, group, plural, namespace, obj["metadata"]["name"])
        if self.cluster.store.latest(key) is None:
            full = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
            await self.actor.create(resource, namespace, full, _MANAGER)

    # Users and roles.

    def _rbac_objects(self) -> RbacObjects:
        """Roles and bindings; those that did not change since the last time are the same objects as then."""
        before, self._rbac_read = self._rbac_read, {}

        def read(entry: Entry) -> Json:
            known = before.get(entry.key)
            obj = known[1] if known is not None and known[0] == entry.revision else decode(entry.value)
            self._rbac_read[entry.key] = entry.revision, obj
            return cast("Json", obj)

        roles, role_bindings, cluster_roles, cluster_bindings = (
            [read(entry) for entry in self.cluster.store.entries(Table(self.cluster.name, RBAC, plural))]
            for plural in _RBAC_TABLES
        )
        return RbacObjects(roles, role_bindings, cluster_roles, cluster_bindings)

    def _rbac_version(self) -> int:
        return max(self.cluster.version_of(RBAC, plural) for plural in _RBAC_TABLES)

    def _service_account_of(self, token: str) -> User | None:
        """The service account behind a token; none if it was deleted, or deleted and created again, since."""
        claims = self.tokens.verified(token)
        if claims is None:
            return None
        key = ObjectKey(self.cluster.name, "", "serviceaccounts", claims.namespace, claims.name)
        entry = self.cluster.store.get(key)
        if entry is None or decode(entry.value)["metadata"]["uid"] != claims.uid:
            return None
        return service_account(claims.namespace, claims.name, claims.uid)
