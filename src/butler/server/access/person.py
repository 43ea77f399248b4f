"""A user who has logged in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Via = Literal["link", "password", "oidc"]


@dataclass(frozen=True, slots=True)
class Person:
    """Who it is to Kubernetes, and by which session they are here."""

    user: str
    groups: tuple[str, ...]
    via: Via
    session: str
    """What the session is called; no secret."""
    since: datetime
    expires_at: datetime
    csrf_token: str = field(repr=False)
