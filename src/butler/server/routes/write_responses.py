"""What all routes that change something share: the version that is meant, and the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from litestar.params import HeaderParameter

from butler.api.objects import Key
from butler.api.resource import CustomResource
from butler.kube.client import Client
from butler.server.access.person import Person
from butler.server.actions.forms import Places, in_words_of
from butler.server.actions.impersonation import Deed
from butler.server.models.common import Written
from butler.server.problems import RequestRefused
from butler.server.services import Services

T = TypeVar("T")
IfMatch = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match", description="The resourceVersion that you looked at, in quotes. Needed.", max_length=80
    ),
]


async def write(
    services: Services,
    person: Person,
    deed: Deed,
    call: Callable[[Client], Awaitable[T]],
    *,
    places: Places = (),
    status: int = 200,
) -> T:
    """Do it as the person; a refusal names the fields as the form does."""
    try:
        return await services.impersonator.write(person, deed, call, status=status)
    except RequestRefused as refused:
        raise in_words_of(refused, places) from refused


def written(obj: CustomResource | None, key: Key, warnings: tuple[str, ...] = ()) -> Written:
    """What a write left behind; None of an object that is gone."""
    version = obj.metadata.resource_version if obj is not None else ""
    return Written(namespace=key.namespace, name=key.name, resource_version=version, warnings=warnings)
