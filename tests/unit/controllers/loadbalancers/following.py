"""Feeds of one tenant, without watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butler.kube.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.objects import Key
    from butler.rules.loadbalancer.service import Balancer
    from unit.controllers.loadbalancers.tenant import Tenant


class Feed:
    """A tenant, live; or as it was when the watch broke, where `late` is set."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self.trouble = ""
        self.is_synced = True
        self.late: list[Balancer] | None = None

    def services(self) -> list[Balancer]:
        return self._tenant.balancers() if self.late is None else self.late

    @property
    def client(self) -> Any:
        if self.trouble:
            raise Unreachable(self.trouble)
        return self._tenant


class Feeds:
    """One feed, by the UID of the cluster."""

    def __init__(self, tenant: Tenant) -> None:
        self.feed = Feed(tenant)
        self.followed: set[str] = set()

    async def follow(self, _key: Key, uid: str, _version: str, _secret: object, _endpoint: str = "") -> Feed:
        self.followed.add(uid)
        return self.feed

    async def forget(self, uid: str) -> None:
        self.followed.discard(uid)

    async def aclose(self) -> None:
        self.followed.clear()

    def __len__(self) -> int:
        return len(self.followed)

    def __iter__(self) -> Iterator[Feed]:
        return iter([self.feed] if self.followed else [])
