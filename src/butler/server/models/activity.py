"""What happened: events of the controllers, and what people did through this API."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from butler.server.models.common import Link, Model


class ActivityItem(Model):
    id: str
    at: datetime
    severity: Literal["Normal", "Warning"]
    reason: str
    message: str
    about: Link | None
    source: str
    """The controller, or `console` for what people did."""
    actor: str
    """Who did it, where a person did."""
    count: int


class ActivityList(Model):
    items: list[ActivityItem]
    """Newest first."""
    total: int
    next: str | None


class Attention(Model):
    """Something that an administrator should look at."""

    severity: Literal["critical", "warning", "info"]
    title: str
    detail: str
    link: Link


class PhaseCount(Model):
    phase: str
    count: int


class Totals(Model):
    pools: int
    addresses: int
    allocated: int
    allocations: int
    waiting: int
    tenants: int
    tenants_ready: int
    services_waiting: int
    providers: int


class Hidden(Model):
    """What the person may not read, so that an empty page is not taken for an empty estate."""

    kinds: list[str]


class Overview(Model):
    totals: Totals
    attention: list[Attention]
    """Worst first."""
    phases: list[PhaseCount]
    hidden: Hidden
