"""Who is there, and how they came in."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from butler.server.models.common import Model, RequestBody


class LoginMethods(Model):
    """How people can log in here."""

    local: bool
    """One-time links of `butleradm local up` are taken."""
    password: bool
    oidc: bool
    oidc_name: str
    """What the identity provider is called on the button."""


class Permissions(Model):
    """What the person may do in Butler's own namespace; for buttons, never for safety: Kubernetes decides."""

    read_pools: bool
    create_pools: bool
    edit_pools: bool
    delete_pools: bool
    read_allocations: bool
    create_allocations: bool
    release_allocations: bool
    read_tenants: bool
    create_tenants: bool
    edit_tenants: bool
    delete_tenants: bool
    read_providers: bool
    read_secrets: bool


class Me(Model):
    user: str
    groups: list[str]
    via: Literal["link", "password", "oidc"]
    session: str
    """Which of the person's sessions this is."""
    since: datetime
    expires_at: datetime
    csrf_token: str
    """To be sent as X-CSRF-Token with everything that changes something."""
    home: str
    """Namespace of pools, allocations and providers."""
    version: str
    world: bool
    """Whether this is a world on one machine, with stand-ins."""
    permissions: Permissions


class Session(Model):
    id: str
    via: str
    since: datetime
    expires_at: datetime
    user_agent: str
    current: bool


class SessionList(Model):
    items: list[Session]


class PasswordLogin(RequestBody):
    user: str
    password: str
