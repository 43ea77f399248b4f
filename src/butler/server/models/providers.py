"""ProviderConfigs: where tenants go, and how many more fit."""

from __future__ import annotations

from datetime import datetime

from butler.server.models.common import Condition, Model


class ProviderItem(Model):
    namespace: str
    name: str
    provider: str
    """harvester, nutanix, proxmox, aws, gcp or azure."""
    mode: str
    """ipam or cloud."""
    ready: bool
    problem: str
    allocation_mode: str
    """static or elastic; empty in cloud mode."""
    pools: list[str]
    """In the order in which they are tried."""
    tenants: int
    available: int | None
    estimated_tenants: int | None
    """How many more would fit; null where that cannot be told."""
    created_at: datetime | None
    resource_version: str


class ProviderList(Model):
    items: list[ProviderItem]
    total: int
    next: str | None


class ProviderPool(Model):
    name: str
    priority: int
    purpose: str
    exists: bool
    gateway: str


class ProviderDetail(Model):
    provider: ProviderItem
    pools: list[ProviderPool]
    scope: str
    quotas: list[str]
    """What each tenant may have at most, in sentences."""
    conditions: list[Condition]
    tenants: list[str]
    """`namespace/name`."""
    yaml: str
