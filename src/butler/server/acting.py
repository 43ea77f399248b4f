"""Writing to Kubernetes as the person who asked for it, and the audit of it.

The server's own rights never write for anybody: each person gets a client that impersonates them, so that RBAC and
admission decide, and the API server's own audit log names them. What came of every write is told twice: as a line of
JSON on the logger `butler.audit`, and as an Event on the object, which every replica can show.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from butler.kube.client import Client
from butler.kube.config import Connection, Impersonation
from butler.kube.errors import KubeError
from butler.kube.events import EventRecorder
from butler.kube.objects import to_json
from butler.kube.resource import Key, Resource
from butler.server.access.person import Person
from butler.server.problems import from_kubernetes

T = TypeVar("T")
audit_log = logging.getLogger("butler.audit")
FIELD_MANAGER: Final = "butler-console"
MOST_CLIENTS: Final = 128
REASON: Final = "ChangedByPerson"
REFUSED: Final = "RefusedToPerson"


@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody wants to do to an object."""

    verb: str
    """As in `grow`, `release`, `create`: for people."""
    resource: Resource[Any]
    key: Key
    detail: str = ""
    """What exactly, without secrets."""


class Acting:
    """Clients in the names of people, and the audit."""

    def __init__(self, connection: Connection, events: EventRecorder) -> None:
        self._connection = connection
        self._events = events
        self._clients: OrderedDict[tuple[str, tuple[str, ...]], Client] = OrderedDict()

    def client(self, person: Person) -> Client:
        """A client that does everything as this person; for reads that only they may do, and for dry runs."""
        who = (person.user, person.groups)
        found = self._clients.pop(who, None)
        if found is None:
            as_person = replace(self._connection, impersonate=Impersonation(user=person.user, groups=person.groups))
            found = Client(as_person, field_manager=FIELD_MANAGER, attempts=2, user_agent="butler-console")
        self._clients[who] = found
        return found

    async def close(self) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            await client.close()

    async def tidy(self) -> None:
        """Hang up for those who have not done anything for longest."""
        while len(self._clients) > MOST_CLIENTS:
            _, client = self._clients.popitem(last=False)
            await client.close(wait=5.0)

    async def write(self, person: Person, deed: Deed, call: Callable[[Client], Awaitable[T]]) -> T:
        """Do it as the person, and tell what came of it; raises `Refused` where Kubernetes says no."""
        try:
            done = await call(self.client(person))
        except KubeError as error:
            refused = from_kubernetes(error)
            self._tell(person, deed, f"refused with {refused.status}: {refused.detail}", done=None)
            raise refused from error
        self._tell(person, deed, "done", done=done)
        await self.tidy()
        return done

    def _tell(self, person: Person, deed: Deed, outcome: str, *, done: object) -> None:
        line = {
            "user": person.user,
            "groups": person.groups,
            "via": person.via,
            "session": person.session,
            "verb": deed.verb,
            "kind": deed.resource.kind,
            "namespace": deed.key.namespace,
            "name": deed.key.name,
            "detail": deed.detail,
            "outcome": outcome,
        }
        audit_log.info("%s", msgspec.json.encode(line).decode())
        about = _about(deed, done)
        said = f"{person.user}: {deed.verb}{f' {deed.detail}' if deed.detail else ''}: {outcome}"
        kind, reason = ("Normal", REASON) if done is not None else ("Warning", REFUSED)
        self._events.record(about, deed.resource, reason, said, type=kind)  # type: ignore[arg-type]


def _about(deed: Deed, done: object) -> dict[str, Any]:
    """The object that an Event is to hang on: as it was answered, else by its name."""
    found = to_json(done, deed.resource) if done is not None else {}
    if found.get("kind") != deed.resource.kind or "metadata" not in found:
        found = {"metadata": {"namespace": deed.key.namespace, "name": deed.key.name}}
    return {"apiVersion": deed.resource.api_version, "kind": deed.resource.kind, "metadata": found["metadata"]}
