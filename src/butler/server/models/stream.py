"""The live stream: what is sent over the WebSocket.

A client opens `/api/v1/stream?kinds=pool,allocation,tenant,provider,activity&since=POSITION` and gets text frames, each
one JSON object of these. The first is `hello`. With `since`, everything that changed after that position follows, or
`reset` for kinds whose past is no longer known: then what was loaded of them has to be loaded again. A position is
opaque, and any replica understands it.
"""

from __future__ import annotations

from typing import Literal

from butler.server.models.activity import ActivityItem
from butler.server.models.allocations import AllocationItem
from butler.server.models.common import Model
from butler.server.models.pools import PoolItem
from butler.server.models.providers import ProviderItem
from butler.server.models.tenants import TenantItem

StreamKind = Literal["pool", "allocation", "tenant", "provider", "activity"]


class Frame(Model, tag_field="type"):
    """What every frame says."""

    position: str
    """What to resume from after this frame."""
    heard: str
    """What its sender knew of by then. Sent back in the header `Butler-Heard` of a request, it makes sure that the
    answer knows as much, whichever replica gives it."""


class Hello(Frame, tag="hello"):
    """The stream is open, and complete from `position` on."""

    kinds: list[StreamKind]
    """Those that the person may see."""


class Reset(Frame, tag="reset"):
    """Load what you have of these kinds again."""

    kinds: list[StreamKind]


class Changed(Frame, tag="changed"):
    """An object came, changed or went (`item` is null)."""

    kind: StreamKind
    namespace: str
    name: str
    item: PoolItem | AllocationItem | TenantItem | ProviderItem | ActivityItem | None
    pools: list[str]
    """Pools whose map, counters or forecast this concerns."""
    tenants: list[str]
    """Tenants that it concerns, as `namespace/name`."""


class Beat(Frame, tag="beat"):
    """Nothing happened; the connection is alive. Every 15 seconds."""
