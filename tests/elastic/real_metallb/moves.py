"""Services that lost their address: by whose doing.

The real MetalLB has two habits that no order of Butler's writes can keep from costing a Service its address, and each
leaves a trace that cannot be mistaken, because Services and pool are in one store and their order is exact.

*Its own race.* It serves a Service, looks at an old copy of it that shows no address, forgets what it gave, gives that
to another, and then moves the first. The address stood in the pool all the time, so Butler did not cause the move; and
only a Service that was served a moment ago can be hit.

*A reach into a drain.* A Service that names an address or the pool itself is served from a pool that hands out nothing
by itself. Created in the milliseconds between Butler's last look at Services and its withdrawal of a range, it may
take an address of that range. It was given the address between the two writes of the drain, and had asked for it only
just before the second.

Everything else is Butler's fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from elastic.chronicle import SERVICE, announced, asked, asked_pool, of_kind, shown, wishes
from elastic.rules import default_pool, no_service_is_moved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from elastic.chronicle import Chronicle, Dated
    from ipam.history import Revision
    from ipam.story import Violation

JUST_SERVED = 1.0
JUST_ASKED = 0.25
"""Seconds. From a look at Services to a withdrawal it takes Butler some ten milliseconds."""


class Moves(NamedTuple):
    """Moved Services, sorted by cause."""

    butlers: list[Violation]
    metallbs: list[Violation]
    reached: list[Violation]


def moves(chronicle: Chronicle) -> Moves:
    """Everything that moved, over the whole record."""
    found = Moves([], [], [])
    pools = {tenant: default_pool(inside) for tenant, inside in chronicle.tenants.items()}
    services = {tenant: of_kind(inside, SERVICE) for tenant, inside in chronicle.tenants.items()}
    for violation in no_service_is_moved(chronicle):
        given, taken = violation.revisions
        (tenant,) = (name for name, dated in services.items() if any(item.revision is taken for item in dated))
        lost = shown(taken.before or {"spec": {}}) - shown(taken.after or {"spec": {}})
        withdrawn = _withdrawal(pools[tenant], lost, given, taken)
        if withdrawn is None:
            own = taken.seconds - given.seconds < JUST_SERVED
            (found.metallbs if own else found.butlers).append(violation)
        else:
            reached = _reached(services[tenant], pools[tenant], given, withdrawn)
            (found.reached if reached else found.butlers).append(violation)
    return found


def _withdrawal(pools: Iterable[Dated], lost: set[int], given: Revision, taken: Revision) -> Revision | None:
    """The write of the pool that took one of these addresses out between two revisions of a Service, if any."""
    before: set[int] = set()
    for pool in (dated.revision for dated in pools):
        now = announced(pool.after) if pool.after is not None else set()
        if given.version < pool.version < taken.version and before & lost - now:
            return pool
        before = now
    return None


def _reached(services: Iterable[Dated], pools: Iterable[Dated], given: Revision, withdrawn: Revision) -> bool:
    """Whether the Service named what it got, in a pool that handed out nothing, just before the withdrawal."""
    after = given.after
    if after is None or not (asked(after) or asked_pool(after)):
        return False
    standing = [pool.revision.after for pool in pools if pool.revision.version < given.version]
    if not standing or standing[-1] is None or standing[-1]["spec"].get("autoAssign", True):
        return False
    wish = wishes(after)
    own = [service.revision for service in services if service.revision.uid == given.uid]
    since = next(revision.seconds for revision in own if revision.after is not None and wishes(revision.after) == wish)
    return withdrawn.seconds - since < JUST_ASKED
