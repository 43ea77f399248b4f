"""What the demo sees of the estate: values that the story is told from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TIERS: Final = (70, 85, 95)
"""Percent of a pool from which on it warns, is critical, is exhausted."""


@dataclass(frozen=True, slots=True)
class DemoService:
    """A Service of type LoadBalancer that the demo has put into a cluster."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DemoTenant:
    """A cluster of the demo."""

    namespace: str
    name: str
    uid: str = ""
    ready: bool = False
    waiting: bool = False
    """No addresses are left for it."""
    leaving: bool = False
    held: int = 0
    """Load-balancer addresses that it holds."""
    services: tuple[DemoService, ...] | None = None
    """None: its API server was not asked, or did not answer."""
    lived_in: bool = False
    """A user has put something into it, and would miss it."""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def open(self) -> bool:
        """Whether it can be worked in."""
        return self.ready and not self.leaving and self.services is not None


@dataclass(frozen=True, slots=True)
class DemoPool:
    """The pool that the load balancers get their addresses from."""

    total: int
    allocated: int
    size: str
    """`small` as in the worked example, `grown` by the operator, or `other`: a user has changed it."""

    @property
    def tier(self) -> int:
        """How many thresholds it is above."""
        return tier(self.allocated, self.total)


@dataclass(frozen=True, slots=True)
class Scene:
    pool: DemoPool
    tenants: tuple[DemoTenant, ...] = ()
    taken: frozenset[tuple[str, str]] = frozenset()
    """Names of clusters that belong to users."""

    @property
    def here(self) -> tuple[DemoTenant, ...]:
        """Those that are not on their way out."""
        return tuple(tenant for tenant in self.tenants if not tenant.leaving)


def tier(allocated: int, total: int) -> int:
    return sum(100 * allocated >= number * total for number in TIERS) if total else 0
