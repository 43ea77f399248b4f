"""What a listener may see, and how that is remembered.

Pools and allocations live in Butler's own namespace: a user may see all or none of them. Tenants, providers and
activity are seen namespace by namespace. A few items show something of another kind (a pool its providers, a tenant its
addresses, a provider how many tenants it has): so one object may look different to two people, and a person who may no
longer see one kind has to load others again, too. A frame also names pools and tenants that a change concerns: those
that the listener may see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from butler.kube.kinds import CLUSTERS, PROVIDERS
from butler.kube.resource import EVENTS, Resource
from butler.server.access.person import Person
from butler.server.cache.cluster_state import KIND_NAMES, KindName
from butler.server.permissions import Namespaces, UserPermissions, is_in
from butler.server.stream.changes import Touch

NOWHERE: Final[frozenset[str]] = frozenset()
NAMESPACED: Final[Mapping[KindName, Resource[Any]]] = {"tenant": CLUSTERS, "provider": PROVIDERS, "activity": EVENTS}
SHOWN_IN: Final[Mapping[KindName, tuple[KindName, ...]]] = {"tenant": ("provider",), "provider": ("pool", "tenant")}
"""Kinds whose items show something of another kind."""


class Named(NamedTuple):
    """What a frame names beside its object."""

    pools: tuple[str, ...]
    tenants: tuple[str, ...]


class StreamPermissions:
    """What a user may see, as far as the client asked for it. Never changes."""

    def __init__(self, where: Mapping[KindName, Namespaces], asked: Iterable[KindName], among: frozenset[str]) -> None:
        """`where` they see each kind, of the namespaces `among` which it was looked for; `asked` is what they want."""
        self._where = where
        self._among = among
        self.asked: list[KindName] = [kind for kind in KIND_NAMES if kind in set(asked)]
        self.words: dict[KindName, str] = {kind: self._word(kind) for kind in self.asked if kind in where}
        """For each kind, what stands for all of this in a position."""

    @property
    def kinds(self) -> list[KindName]:
        """Those of which they may see something."""
        return [kind for kind in self.asked if self.where(kind) != NOWHERE]

    def where(self, kind: KindName) -> Namespaces:
        return self._where.get(kind, NOWHERE)

    def shows(self, touch: Touch) -> bool:
        if touch.kind not in self.words:
            return False
        if not touch.itself and not self.named(touch).tenants:
            return False  # a tenant changed that they may not know of
        return is_in(touch.key.namespace, self.where(touch.kind))

    def named(self, touch: Touch) -> Named:
        """The pools and tenants of a touch that they may know of, in order."""
        where = self.where("tenant")
        tenants = (name for name in touch.tenants if is_in(name.partition("/")[0], where))
        return Named(tuple(sorted(touch.pools)) if self.where("pool") is None else (), tuple(sorted(tenants)))

    def is_unsure(self, touch: Touch) -> bool:
        """Whether it is about a namespace that was not there when this was asked."""
        return touch.kind in self.words and self.where(touch.kind) is not None and self._is_new(touch.key.namespace)

    def _is_new(self, namespace: str) -> bool:
        return namespace not in self._among

    def look(self, kind: KindName) -> tuple[Namespaces | bool, ...]:
        """All that an item of this kind depends on, beside the object: who has the same, sees the same."""
        if kind == "pool":
            return (self.where("provider"),)
        if kind == "tenant":
            return (self.where("allocation") is None, self.where("provider"))
        return (self.where("tenant"),) if kind == "provider" else ()

    def differs(self, later: StreamPermissions) -> list[KindName]:
        """Kinds that look different from what they did, apart from namespaces in which there is nothing any more."""
        both = self._among & later._among
        return [
            kind
            for kind in self.asked
            if self._within(kind, both) != later._within(kind, both) or any(map(self._is_new, later.where(kind) or ()))
        ]

    def _within(self, kind: KindName, namespaces: frozenset[str]) -> tuple[object, ...]:
        cut = [scope & namespaces if isinstance(scope, frozenset) else scope for scope in self.look(kind)]
        where = self.where(kind)
        return (where if where is None else where & namespaces, *cut)

    def _word(self, kind: KindName) -> str:
        parts = [
            "*" if scope is None else str(scope) if isinstance(scope, bool) else "\n".join(sorted(scope))
            for scope in (self.where(kind), *self.look(kind))
        ]
        return hashlib.blake2b("\n\n".join(parts).encode(), digest_size=6).hexdigest()


async def see(
    permissions: UserPermissions, person: Person, asked: Iterable[KindName], among: frozenset[str]
) -> StreamPermissions:
    """Ask what a person may see of some kinds; of namespaced ones, in which of the namespaces."""
    wanted = set(asked)
    where: dict[KindName, Namespaces] = {}
    if await permissions.allocations(person):
        where["allocation"] = None
        if await permissions.pools(person):
            where["pool"] = None
    for kind, resource in NAMESPACED.items():
        # Frames of every kind name tenants.
        if kind == "tenant" or wanted & {kind, *SHOWN_IN.get(kind, ())}:
            everywhere = await permissions.may(person, "list", resource)
            where[kind] = None if everywhere else await permissions.namespaces(person, resource, among)
    return StreamPermissions(where, wanted, among)
