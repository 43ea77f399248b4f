"""What an operator may set about tenant clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from butler.rules.loadbalancer.settings import LoadBalancerSettings


@dataclass(frozen=True, slots=True)
class TenantSettings:
    """Defaults are right for production; tests shorten the times."""

    home_namespace: str = "butler-system"
    """Where ProviderConfigs are looked for by default, and where pools and allocations are."""
    clean_up_limit: timedelta = timedelta(minutes=5)
    """How long a cluster that goes waits for its addons, and then for its load balancers."""
    stalled_after: timedelta = timedelta(minutes=15)
    """After how long a later stage of a deletion is reported as stalled; it is not given up."""
    force_is_checked: bool = False
    """Whether admission asks who forces a deletion. Where it does not, force lets go of the cluster's object, and the
    addresses stay held until the tenant namespace, with all that is in it, is gone."""
    look_again: float = 600.0
    """Seconds after which a cluster is looked at though nothing was heard of it."""
    load_balancers: LoadBalancerSettings = field(default_factory=LoadBalancerSettings)
