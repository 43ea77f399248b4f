"""What a person may see: asked of Kubernetes, in their name, and remembered for a few seconds.

The server reads everything with rights of its own and keeps it; no user is shown more of it than `kubectl` would show
them. For each kind the question is the same: may they list it in that namespace, or everywhere?
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from butler.api.objects import Key
from butler.kube.client import Client
from butler.kube.errors import OutcomeUnknown, Unreachable
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.recent_results import RecentResults
from butler.kube.resource import EVENTS, SUBJECT_ACCESS_REVIEWS, Resource
from butler.server.access.person import Person
from butler.server.problems import forbidden

REMEMBER: Final = 10.0
"""Seconds that an answer is good for: a right that is taken away is gone from open pages after that."""
MOST: Final = 20_000
LONGEST_NAME: Final = 253
PATIENCE: Final = 5.0
"""Seconds: a user waits for the answer, and is shown nothing without one."""
Namespaces = frozenset[str] | None
"""Where a user may see a kind; None stands for everywhere."""


def is_in(namespace: str, namespaces: Namespaces) -> bool:
    return namespaces is None or namespace in namespaces


@dataclass(frozen=True, slots=True)
class _Question:
    user: str
    groups: tuple[str, ...]
    verb: str
    group: str
    plural: str
    namespace: str
    name: str = ""


class UserPermissions:
    """Answers, by asking with the server's own client."""

    def __init__(self, client: Client, home: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._home = home
        self._known = RecentResults(REMEMBER, most=MOST, never_older=True, clock=clock)

    async def may(self, person: Person, verb: str, resource: Resource[Any], namespace: str = "") -> bool:
        """Whether Kubernetes would let them; "" stands for all namespaces."""
        question = _Question(person.user, person.groups, verb, resource.group, resource.plural, namespace)
        return await self._known.of(question, lambda: self._ask(question))

    async def may_change(self, person: Person, verb: str, resource: Resource[Any], key: Key) -> bool:
        """Whether Kubernetes would let them do it to this object: to all of its kind there, or to it by name."""
        if await self.may(person, verb, resource, key.namespace):
            return True
        # Not remembered: names are of the person's choice.
        named = _Question(
            person.user, person.groups, verb, resource.group, resource.plural, key.namespace, key.name[:LONGEST_NAME]
        )
        return await self._ask(named)

    async def _ask(self, question: _Question) -> bool:
        attributes = {
            "verb": question.verb,
            "group": question.group,
            "resource": question.plural,
            "namespace": question.namespace,
            "name": question.name,
        }
        spec = {"user": question.user, "groups": list(question.groups), "resourceAttributes": attributes}
        try:
            answer = await self._client.create(SUBJECT_ACCESS_REVIEWS, {"spec": spec}, timeout=PATIENCE)
        except OutcomeUnknown as error:  # a question changes nothing, though it is sent as something to be created
            raise Unreachable(str(error)) from error
        return bool(answer.get("status", {}).get("allowed"))

    async def pools(self, person: Person) -> bool:
        return await self.may(person, "list", POOLS, self._home)

    async def allocations(self, person: Person) -> bool:
        return await self.may(person, "list", ALLOCATIONS, self._home)

    async def providers(self, person: Person) -> bool:
        return await self.may(person, "list", PROVIDERS, self._home)

    async def namespaces(self, person: Person, resource: Resource[Any], among: Iterable[str]) -> frozenset[str]:
        """Those of the namespaces in which they may list a kind."""
        every = frozenset(among)
        if await self.may(person, "list", resource):
            return every
        allowed = await asyncio.gather(*(self.may(person, "list", resource, namespace) for namespace in sorted(every)))
        return frozenset(name for name, may in zip(sorted(every), allowed, strict=True) if may)

    async def tenants(self, person: Person, among: Iterable[str]) -> frozenset[str]:
        return await self.namespaces(person, CLUSTERS, among)

    async def events(self, person: Person, among: Iterable[str]) -> frozenset[str]:
        return await self.namespaces(person, EVENTS, among)

    async def need_allocations(self, person: Person) -> None:
        if not await self.allocations(person):
            raise forbidden(f"read IPAllocations in namespace {self._home}")

    async def need_pools(self, person: Person) -> None:
        """Refuses who may not read pools and allocations: a pool's page is made of both."""
        if not (await self.pools(person) and await self.allocations(person)):
            raise forbidden(f"read NetworkPools and IPAllocations in namespace {self._home}")
