"""Objects as the server has them, and as Butler understands them, side by side.

What is printed as JSON or YAML is the server's own object, with every field; decisions and tables read the typed one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from butler.api.codec import from_json
from butler.api.resource import CustomResource
from butler.cli.toolkit.session import Failure, missing
from butler.kube.errors import Forbidden, NotFound
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.resource import Resource
from butler.reports.estate import Estate

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Json
    from butler.cli.toolkit.session import CommandSession

K = TypeVar("K", bound=CustomResource)


@dataclass(frozen=True, slots=True)
class LoadedObject(Generic[K]):
    """One object, both ways."""

    raw: Json
    obj: K

    @property
    def name(self) -> str:
        return self.obj.metadata.name


def as_json(resource: Resource[Any]) -> Resource[Json]:
    """The same kind, as plain dicts."""
    return Resource(resource.group, resource.version, resource.plural, resource.kind, dict, resource.namespaced)


STORED = "put it right with kubectl edit"
IN_FILE = "put it right in the file"


def load_object(resource: Resource[K], raw: Json, hint: str = STORED) -> LoadedObject[K]:
    """An object both ways; Failure where it makes no sense to Butler, with a hint where to put it right."""
    try:
        # A list leaves out what each item is, and printing one needs it.
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **raw}
        return LoadedObject(whole, from_json(resource.type, whole))
    except msgspec.ValidationError as error:
        meta = raw.get("metadata") or {}
        where = f"{meta.get('namespace')}/{meta.get('name')}"
        next_step = f": {hint}" if hint else ""
        raise Failure(f"{resource.kind} {where} cannot be read ({error}){next_step}") from None


async def read_all(
    session: CommandSession, resource: Resource[K], namespace: str, *, selector: str | None = None
) -> list[LoadedObject[K]]:
    """All objects of a kind, in order of their names; "" stands for all namespaces."""
    listed = await session.client.list(as_json(resource), namespace, label_selector=selector)
    found = [load_object(resource, raw) for raw in listed.items]
    return sorted(found, key=lambda loaded: (loaded.obj.metadata.namespace, loaded.obj.metadata.name))


async def read_one(session: CommandSession, resource: Resource[K], name: str, namespace: str) -> LoadedObject[K]:
    """One object; where it is not there, the error names those that sound like it, or where there is one."""
    try:
        return load_object(resource, await session.client.get(as_json(resource), name, namespace))
    except NotFound as error:
        if not error.status.details.name:
            raise
        raise await absent(session, resource, name, namespace) from None


async def absent(session: CommandSession, resource: Resource[Any], name: str, namespace: str) -> Failure:
    """That an object is not there, with what helps to find it, as far as the user may look."""
    try:
        listed = await session.client.list(as_json(resource), "")
    except Forbidden:
        listed = await session.client.list(as_json(resource), namespace)
    every = [(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in listed.items]
    here = [known for where, known in every if where == namespace]
    return missing(resource.kind, name, namespace, here, [where for where, known in every if known == name])


async def read_addresses(session: CommandSession, namespace: str | None = None) -> Estate:
    """The pools of a namespace (the home, unless said otherwise) and then its allocations.

    In this order: an allocation that a pool speaks of and that is not in a later list is gone, not new.
    """
    where = session.home if namespace is None else namespace
    pools = await read_all(session, POOLS, where)
    allocations = await read_all(session, ALLOCATIONS, where)
    return Estate(where, tuple(pool.obj for pool in pools), tuple(allocation.obj for allocation in allocations))


async def read_estate(session: CommandSession) -> Estate:
    """All pools, allocations and providers of the home namespace, and all tenant clusters."""
    pools = await read_all(session, POOLS, session.home)  # before the allocations, see `read_addresses`
    allocations, providers, clusters = await asyncio.gather(
        read_all(session, ALLOCATIONS, session.home),
        read_all(session, PROVIDERS, session.home),
        read_all(session, CLUSTERS, ""),
    )
    return Estate(
        session.home,
        tuple(pool.obj for pool in pools),
        tuple(allocation.obj for allocation in allocations),
        tuple(provider.obj for provider in providers),
        tuple(cluster.obj for cluster in clusters),
    )


def pool_of(estate: Estate, name: str) -> NetworkPool:
    """A pool by name; where it is not there, the error names those that sound like it."""
    found = estate.pool(name)
    if found is None:
        raise missing("NetworkPool", name, estate.home, [pool.metadata.name for pool in estate.pools])
    return found
