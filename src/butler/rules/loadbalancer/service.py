"""A Service of type LoadBalancer on a tenant, as far as addresses are concerned. `tenant/services.py` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

POOL = "default-pool"
"""The IPAddressPool in which MetalLB is told all load-balancer ranges of a tenant."""


class Balancer(NamedTuple):
    """One Service of type LoadBalancer: who it is, what it was given and what it asks for."""

    namespace: str
    name: str
    uid: str
    addresses: tuple[str, ...] = ()
    """The IP addresses it was given, in their usual spelling."""
    has_hostname: bool = False
    """It was given a host name, as clouds do."""
    deleting: bool = False
    class_name: str | None = None
    asks: tuple[str, ...] = ()
    """The addresses it insists on, by annotation or spec.loadBalancerIP; what is no address stays as it is written,
    because a Service that asks for nonsense is refused and not given something else."""
    asks_pool: str | None = None
    sharing_key: str | None = None
    families: tuple[str, ...] = ()
    family_policy: str | None = None
    platform: bool = False
    created: datetime | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
