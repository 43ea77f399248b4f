"""What MetalLB's controller lets be seen of itself: whether it has taken in a change of its pool, or refuses to.

MetalLB works from memory and takes in a change when it hears of it. That is a matter of milliseconds, unless its
controller hangs; and a single invalid pool, Butler's or not, makes it keep all of its old configuration. Then it
would go on handing out addresses that were withdrawn. Newer versions tell: an object named after the component says
when pools were last read and whether they were refused, and the pool's own status counts the addresses that MetalLB
sees in it. Older ones (before 0.15) say nothing; who relies on them has to wait and hope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from butler.api.objects import Json, condition_of
from butler.kube.errors import NotFound
from butler.kube.resource import untyped
from butler.tenant.metallb import GROUP, NAMESPACE, VERSION

if TYPE_CHECKING:
    from butler.kube.client import Client

STATES: Final = untyped(GROUP, VERSION, "configurationstates", "ConfigurationState")
CONTROLLER: Final = "controller"
POOLS_READ: Final = "poolReconcilerValid"
LONGEST_REFUSAL: Final = 500


@dataclass(frozen=True, slots=True)
class Sign:
    """What MetalLB's controller shows; a version that shows nothing leaves all of it empty."""

    read_at: str | None = None
    """When it last read its pools, by its own clock, to the second."""
    refused: str = ""
    """Why it does not accept its configuration, and goes on with an older one."""


async def read_sign(client: Client) -> Sign:
    """What its controller shows now."""
    try:
        state = await client.get(STATES, CONTROLLER, NAMESPACE)
    except NotFound:
        return Sign()
    return sign_of(state)


def sign_of(state: Json) -> Sign:
    """What a ConfigurationState says. Pure."""
    found = condition_of(state, POOLS_READ)
    if not isinstance(found, dict):
        return Sign()
    at, message = found.get("lastTransitionTime"), found.get("message")
    refused = found.get("status") == "False"
    text = str(message or "it does not say why")[:LONGEST_REFUSAL] if refused else ""
    return Sign(at if isinstance(at, str) else None, text)


def size_seen(pool: Json | None) -> int | None:
    """How many IPv4 addresses MetalLB sees in a pool, by the pool's status; None where it does not say."""
    status: Any = (pool or {}).get("status")
    if not isinstance(status, dict):
        return None
    assigned, available = status.get("assignedIPv4"), status.get("availableIPv4")
    return assigned + available if isinstance(assigned, int) and isinstance(available, int) else None


def can_hand_out(pool: Json | None, size: int) -> int | None:
    """How many addresses MetalLB says are left in a pool of this size; None where it has not counted that pool yet."""
    if pool is None or size_seen(pool) != size:
        return None
    return int(pool["status"]["availableIPv4"])
