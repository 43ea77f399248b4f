"""The way into tenant clusters: one client for each, shared by all stand-ins of the process.

A tenant is known by `Key(tenant namespace, cluster name)`, and the way in is the kubeconfig that Steward leaves in
the Secret `<name>-admin-kubeconfig` there, so it makes no difference whether the tenant is a logical cluster of this
process, of another one, or a real cluster (`own_tenants` has a shortcut for the first). Clients are made when first
borrowed and few connections are kept for each, because there may be hundreds. A Secret that goes, or leads elsewhere,
ends its client, but not under the hands of those who have borrowed it: the last of them to give it back closes it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.objects import Json, Key, is_being_deleted, key_of
from butler.kube.client import Client
from butler.kube.config import from_text
from butler.kube.errors import ConfigError, KubeError
from butler.kube.resource import SECRETS
from butler.local.world.own_tenants import OwnTenantTransport, own_tenant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from butler.api.objects import Change
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.operator import Operator
    from kubeserver import ControlPlane

log = logging.getLogger(__name__)

SUFFIX: Final = "-admin-kubeconfig"
ENTRY: Final = "admin.conf"
COMPONENT: Final = ("steward.butlerlabs.dev/component", "admin-kubeconfig")
"""The label by which Steward's kubeconfig Secrets are found."""
CONNECTIONS: Final = 2


class NoWayIn(KubeError):
    """There is no usable kubeconfig for a tenant, or not yet."""


@dataclass(slots=True)
class _Door:
    client: Client
    kubeconfig: bytes
    borrowers: int = 0
    closing: bool = False


class TenantConnections:
    """Clients for tenant clusters by `Key(tenant namespace, cluster name)`."""

    def __init__(self, operator: Operator, own: ControlPlane | None = None, *, connections: int = CONNECTIONS) -> None:
        """`own` hosts tenants in this process."""
        self._own = own
        self._connections = connections
        self._secrets = operator.cache(SECRETS, label_selector="=".join(COMPONENT))
        self._doors: dict[Key, _Door] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._handlers: list[Callable[[Key], None]] = []
        self._secrets.on_change(self._changed)
        operator.add_service(self._serve)

    def on_change(self, handler: Callable[[Key], None]) -> None:
        """Call `handler` whenever a tenant appears, goes, or is reached in another way; at once for those here."""
        self._handlers.append(handler)
        for key in self.keys():
            handler(key)

    def keys(self) -> list[Key]:
        """All tenants with a kubeconfig."""
        return [key for secret in self._secrets.values() if (key := _tenant_of(secret)) is not None]

    def __contains__(self, key: Key) -> bool:
        return self._kubeconfig(key) is not None

    def is_current(self, key: Key, client: Client) -> bool:
        """Whether a client that was borrowed earlier still is the way into that tenant."""
        door = self._doors.get(key)
        return door is not None and door.client is client and door.kubeconfig == self._kubeconfig(key)

    @asynccontextmanager
    async def borrow(self, key: Key) -> AsyncIterator[Client]:
        """The tenant's client, for the length of a block; `NoWayIn` when there is none."""
        door = self._open(key)
        door.borrowers += 1
        try:
            yield door.client
        finally:
            door.borrowers -= 1
            if door.closing and not door.borrowers:
                await door.client.close()

    def _open(self, key: Key) -> _Door:
        kubeconfig = self._kubeconfig(key)
        if kubeconfig is None:
            raise NoWayIn(f"tenant {key} has no Secret {key.name}{SUFFIX} with a kubeconfig")
        door = self._doors.get(key)
        if door is not None and door.kubeconfig == kubeconfig:
            return door
        try:
            connection = from_text(kubeconfig, source=f"Secret {key}{SUFFIX}", allow_plain_loopback=True)
        except ConfigError as error:
            raise NoWayIn(str(error)) from error
        self._shut(key)
        client = Client(connection, field_manager="butler-world", pool=self._connections, user_agent="butler-world")
        own = own_tenant(connection, kubeconfig, self._own) if self._own is not None else None
        if own is not None:
            client.transport = OwnTenantTransport(connection, own, pool=self._connections, user_agent="butler-world")
        door = self._doors[key] = _Door(client, kubeconfig)
        return door

    def _kubeconfig(self, key: Key) -> bytes | None:
        secret = self._secrets.get(Key(key.namespace, key.name + SUFFIX))
        encoded = None if secret is None or is_being_deleted(secret) else (secret.get("data") or {}).get(ENTRY)
        if not encoded:
            return None
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return None

    def _changed(self, change: Change[Json]) -> None:
        key = _tenant_of(change.new or change.old or {})
        if key is None:
            return
        door = self._doors.get(key)
        if door is not None and door.kubeconfig != self._kubeconfig(key):
            self._shut(key)
        for handler in self._handlers:
            handler(key)

    def _shut(self, key: Key) -> None:
        door = self._doors.pop(key, None)
        if door is None:
            return
        door.closing = True
        if not door.borrowers:
            task = asyncio.get_running_loop().create_task(door.client.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _serve(self) -> None:
        """Nothing but the end: services outlive controllers, so no controller borrows any more."""
        try:
            await asyncio.Event().wait()
        finally:
            for door in self._doors.values():
                await door.client.close()
            self._doors.clear()
            await asyncio.gather(*self._closing)


def _tenant_of(secret: Json) -> Key | None:
    key = key_of(secret)
    return Key(key.namespace, key.name.removesuffix(SUFFIX)) if key.name.endswith(SUFFIX) else None


def tenant_key(cluster: TenantCluster) -> Key | None:
    """Under which key a TenantCluster's own API server is found here; None before it has a namespace."""
    namespace = cluster.status.tenant_namespace
    return Key(namespace, cluster.metadata.name) if namespace else None
