"""What an operator may set about load-balancer addresses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class LoadBalancerSettings:
    """Defaults are right for production; tests shorten the times."""

    grace: timedelta = timedelta(minutes=10)
    """How long all addresses of a growth allocation have to be unused before it is given back."""
    settle: float = 2.0
    """Seconds that MetalLB gets to take in a change of its pool, before Services are looked at again."""
    check_every: float = 300.0
    """Seconds after which MetalLB's configuration on a tenant is compared with what it should be, though nothing that
    happened to its Services speaks of a difference."""
    look_again: float = 600.0
    """Seconds after which a tenant is looked at though nothing was heard of it."""
