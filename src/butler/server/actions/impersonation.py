"""Writing to Kubernetes as the user who asked for it, and the audit of it.

The server never writes for a user with rights of its own: each user gets a client that impersonates them, so that RBAC
and admission decide, and the API server's own audit log names them. What came of every write is written down (`audit`).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from butler.api.objects import Key, key_of
from butler.api.resource import CustomResource
from butler.kube.cache import Cache
from butler.kube.client import Client
from butler.kube.config import Connection, Impersonation
from butler.kube.errors import ApiError, BadAnswer, Forbidden, KubeError
from butler.kube.kinds import WRITE_TIMEOUT
from butler.kube.objects import object_reference
from butler.kube.resource import Resource
from butler.server.access.person import Person
from butler.server.actions.preconditions import KnownVersions, released, written
from butler.server.audit import AuditEntry, AuditTrail, Outcome, shortened
from butler.server.cache.cluster_state import ClusterState
from butler.server.permissions import LONGEST_NAME, UserPermissions
from butler.server.problems import RequestRefused, forbidden, from_kubernetes

T = TypeVar("T")
K = TypeVar("K", bound=CustomResource)
DENIED: Final = " denied the request: "
"""What API servers put before the words of an admission webhook."""
FIELD_MANAGER: Final = "butler-console"
MOST_CLIENTS: Final = 128
GLANCE: Final = 0.02
GLANCES: Final = 100
NO_EVENT: Final = (403, 404)
"""What leaves a line alone: they had no right to it, or there is nothing that an Event could be about."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What a user wants to do to an object."""

    verb: str
    """As in `grow`, `release`, `create`: for people."""
    resource: Resource[Any]
    key: Key
    detail: str = ""
    """What exactly, without secrets."""
    about: object = None
    """The object as it is known, where there is one already: the Event of the deed hangs on it."""
    found: Callable[[], str] | None = None
    """In place of `detail`: what exactly, where that is known only when it has been tried."""

    @property
    def right(self) -> str:
        """The verb that Kubernetes knows it by."""
        return _RIGHTS.get(self.verb, "patch")


_RIGHTS: Final = {
    "create": "create",
    "ask for": "create",
    "delete": "delete",
    "release": "delete",
    "fetch kubeconfig": "get",
}


class Impersonator:
    """Clients in the names of people, and the audit."""

    def __init__(
        self, connection: Connection, trail: AuditTrail, state: ClusterState, permissions: UserPermissions
    ) -> None:
        self._connection = connection
        self._trail = trail
        self._permissions = permissions
        self._caches: dict[str, Cache[Any]] = {str(cach.resource): cach for cach in state.caches.values()}
        self.versions = KnownVersions({state.pools: written, state.clusters: written, state.allocations: released})
        self._clients: OrderedDict[tuple[str, tuple[str, ...]], Client] = OrderedDict()
        self._leaving: dict[asyncio.Task[None], Client] = {}

    def client(self, person: Person) -> Client:
        """A client that does everything as this person; for reads that only they may do, and for dry runs."""
        who = (person.user, person.groups)
        found = self._clients.pop(who, None)
        if found is None:
            as_person = replace(self._connection, impersonate=Impersonation(user=person.user, groups=person.groups))
            found = Client(as_person, field_manager=FIELD_MANAGER, attempts=2, user_agent="butler-console")
        self._clients[who] = found
        if len(self._clients) > MOST_CLIENTS:
            # Hang up for who has not done anything for longest, when what they may still do has ended.
            _, oldest = self._clients.popitem(last=False)
            leaving = asyncio.create_task(oldest.close(wait=WRITE_TIMEOUT))
            self._leaving[leaving] = oldest
            leaving.add_done_callback(self._leaving.pop)
        return found

    async def close(self) -> None:
        await self._trail.close()
        for client in [*self._clients.values(), *self._leaving.values()]:
            await client.close()
        self._clients.clear()

    async def write(
        self, person: Person, deed: Deed, call: Callable[[Client], Awaitable[T]], *, status: int = 200
    ) -> T:
        """Do it as the person, and write down what came of it; raises `Refused` where Kubernetes or `call` says no.

        Kubernetes is asked first whether they may do such a thing to the object at all: nothing else is looked at for
        a user who may not, and no Event tells of it where they have no business.
        What comes back is known here from then on, so that its author sees it. `status` is what the person is
        answered when it is done. A request that is given up half way is written down as one whose outcome is unknown.
        """
        may = False
        try:
            may = await self._permissions.may_change(person, deed.right, deed.resource, deed.key)
            if not may:
                what = f"{deed.right} {deed.resource.plural} in namespace {deed.key.namespace[:LONGEST_NAME]}"
                raise forbidden(what, user=person.user)
            done = await call(self.client(person))
        except (KubeError, RequestRefused) as error:
            refused = error if isinstance(error, RequestRefused) else refused_write(error)
            outcome: Outcome = "unknown" if refused.status == 504 else "refused"
            self._tell(
                person, deed, outcome, refused.status, refused.detail, event=may and refused.status not in NO_EVENT
            )
            raise refused from error
        except asyncio.CancelledError:
            self._tell(person, deed, "unknown", 504, "the request was given up while it was under way", event=may)
            raise
        if isinstance(done, deed.resource.type) and isinstance(done, CustomResource):
            self._caches[str(deed.resource)].wrote(done)
        self._tell(person, deed, "done", status, "", done=done)
        return done

    async def delete(
        self, client: Client, resource: Resource[K], key: Key, *, uid: str, version: str | None = None
    ) -> K | None:
        """Delete exactly this object; what is left of it, where it lives on for a while, or None when it is gone."""
        answer = await client.delete(
            resource, key.name, key.namespace, uid=uid, resource_version=version, timeout=WRITE_TIMEOUT
        )
        if answer.get("kind") == resource.kind:
            return msgspec.convert(answer, resource.type)
        await self._gone(self._caches[str(resource)], key, uid)
        return None

    async def _gone(self, cache: Cache[Any], key: Key, uid: str) -> None:
        """Wait a moment until the deletion is known here, too: a user should not see what they just deleted."""
        for _ in range(GLANCES):
            now = cache.get(key)
            if now is None or now.metadata.uid != uid:
                return
            await asyncio.sleep(GLANCE)

    def _tell(
        self,
        person: Person,
        deed: Deed,
        outcome: Outcome,
        status: int,
        message: str,
        *,
        done: object = None,
        event: bool = True,
    ) -> None:
        entry = AuditEntry(
            time=datetime.now(UTC),
            user=person.user,
            groups=person.groups,
            via=person.via,
            session=person.session,
            verb=deed.verb,
            kind=deed.resource.kind,
            namespace=shortened(deed.key.namespace),
            name=shortened(deed.key.name),
            detail=deed.found() if deed.found is not None else deed.detail,
            outcome=outcome,
            status=status,
            message=shortened(message),
        )
        self._trail.record(entry, object_reference(_about(deed, done), deed.resource) if event else None)


def refused_write(error: KubeError) -> RequestRefused:
    """What a write was answered. Where it may have happened all the same, it does not say to just try again."""
    if error.outcome_unknown or isinstance(error, BadAnswer):
        return RequestRefused(504, "no answer came in time: it may have been done; look at it before you try again")
    refused = from_kubernetes(error)
    if isinstance(error, ApiError):
        _, by_admission, why = error.message.partition(DENIED)
        if by_admission:
            # Not a matter of permissions: the rules of addresses say no, and why.
            return RequestRefused(409 if isinstance(error, Forbidden) else refused.status, why, *refused.fields)
    return refused


def _about(deed: Deed, done: object) -> object:
    """The object that an Event is to hang on: as it was answered, else as it was, else by its name."""
    for value in (done, deed.about):
        if (
            value is not None
            and (isinstance(value, Mapping) or hasattr(value, "metadata"))
            and key_of(value) == deed.key
        ):
            return value
    return {"metadata": {"namespace": deed.key.namespace, "name": deed.key.name}}
