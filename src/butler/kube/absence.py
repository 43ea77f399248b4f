"""Whether an object is really not there: a consistent read that takes no for an answer only from the right mouth.

Addresses are given back on the word that something is gone, so that word has to be worth something. A 404 also comes
from a definition that is not served (yet), from a proxy and from a server that is starting. Only a NotFound that
names the very object that was asked for says that this object does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from butler.kube.errors import NotFound

if TYPE_CHECKING:
    from butler.api.objects import Key
    from butler.kube.client import Client
    from butler.kube.resource import Resource

T = TypeVar("T")


async def read(client: Client, resource: Resource[T], key: Key) -> T | None:
    """The object as the server has it now; None when it surely does not exist. Raises whatever else happens."""
    try:
        return await client.get(resource, key.name, key.namespace)
    except NotFound as error:
        if proves_absence(error, resource, key.name):
            return None
        raise


def proves_absence(error: NotFound, resource: Resource[T], name: str) -> bool:
    """Whether a 404 says that this object does not exist, rather than that the path is unknown."""
    said = error.status.details
    return error.reason == "NotFound" and (said.name, said.group, said.kind) == (name, resource.group, resource.plural)
