"""A right that the author of a write must have, because Butler does for them what the object says. Pure.

Butler's account may read Secrets and build machines, and most authors may not. So an author who names another object
has to be allowed to use it in their own name. `webhooks/rights.py` asks the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api import GROUP, VERSION

if TYPE_CHECKING:
    from butler.api.resource import CustomResource


class ResourceName(NamedTuple):
    """A kind of object, as RBAC names it."""

    group: str
    version: str
    plural: str


SECRETS: Final = ResourceName("", "v1", "secrets")
NAMESPACES: Final = ResourceName("", "v1", "namespaces")


def resource_name(kind: type[CustomResource]) -> ResourceName:
    """One of Butler's own kinds."""
    return ResourceName(GROUP, VERSION, kind.definition.plural)


class Right(NamedTuple):
    """A verb on one object, and what its author is told who lacks it."""

    verb: str
    resource: ResourceName
    namespace: str
    name: str
    why_not: str
