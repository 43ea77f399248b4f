"""What MetalLB's controller lets be seen of itself, beside the addresses of Services.

A controller that takes addresses back relies on these signs, so the stand-in shows them where, when and in the words in
which MetalLB 0.15.3 does:

    status of an IPAddressPool         how many of its addresses are assigned and available, of those that MetalLB
                                       works with: a pool that it has not taken over keeps the counts of before
    ConfigurationState "controller"    that the pools were read, when, and why they were refused, if they were

The time of a reading says to the second when, and nothing else says what was read. Only what differs is written: two
readings within a second are one, and a pool's status changes when a count does. Not as there: MetalLB also reads its
pools again when a namespace or a Community changes, and puts its ConfigurationState back as soon as it is deleted;
here both wait for the next change of a pool, because the stand-in does not watch them.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from butler.api.objects import Json, name_of, version_of
from butler.kube.errors import AlreadyExists, Conflict, NotFound
from butler.kube.resource import untyped
from butler.local.world.conditions import status_change
from butler.local.world.metallb_allocator import Counts
from butler.local.world.pace import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.kube.cache import Cache
    from butler.kube.client import Client

HOME: Final = "metallb-system"
COMPONENT: Final = "metallb-controller"
IP_ADDRESS_POOLS: Final = untyped("metallb.io", "v1beta1", "ipaddresspools", "IPAddressPool")
CONFIGURATION_STATES: Final = untyped("metallb.io", "v1beta1", "configurationstates", "ConfigurationState")
STATE: Final = "controller"
LABELS: Final = {"metallb.io/component-type": "controller"}
READER: Final = "poolReconciler"
POOLS_READ: Final = "poolReconcilerValid"


class Signs:
    """The signs of one tenant's MetalLB."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._told: tuple[str, str] | None = None

    async def tell_reading(self, refusal: str) -> None:
        """Say that the pools were read just now, and why they were refused; empty when they were not."""
        telling = timestamp(time.time()), refusal
        if telling == self._told:
            return
        told = await self._tell_condition(condition(*telling))
        if told is not None and (change := status_change(told, verdict(refusal))):
            await self._client.patch(
                CONFIGURATION_STATES, STATE, change, HOME, subresource="status", field_manager=COMPONENT
            )
        self._told = telling

    async def _tell_condition(self, wanted: Json) -> Json | None:
        state = {"metadata": {"name": STATE, "namespace": HOME}, "status": {"conditions": [wanted]}}
        try:
            return await self._apply(state)
        except NotFound:
            pass
        empty = {"metadata": {"name": STATE, "namespace": HOME, "labels": LABELS}}
        try:
            with suppress(AlreadyExists):
                await self._client.create(CONFIGURATION_STATES, empty, field_manager=COMPONENT)
            return await self._apply(state)
        except NotFound:
            return None  # the kind is missing: MetalLB was installed before it had one

    async def _apply(self, state: Json) -> Json:
        return await self._client.apply(
            CONFIGURATION_STATES, state, subresource="status", force=True, field_manager=READER
        )

    async def show_counts(self, pools: Cache[Json], counts: Mapping[str, Counts]) -> None:
        """Have every pool's status say what is counted; one that changes meanwhile is heard of, and looked at then."""
        for pool in pools.values():
            wanted = counts.get(name_of(pool), Counts())
            if counts_shown(pool) == wanted:
                continue
            patch = {"metadata": {"resourceVersion": version_of(pool)}, "status": pool_status(wanted)}
            with suppress(Conflict, NotFound):
                pools.wrote(
                    await self._client.patch(
                        IP_ADDRESS_POOLS, name_of(pool), patch, HOME, subresource="status", field_manager=COMPONENT
                    )
                )


def condition(now: str, refusal: str) -> Json:
    """The condition that tells of a reading; its time is that of the reading, whether or not anything changed."""
    return {
        "type": POOLS_READ,
        "status": "False" if refusal else "True",
        "reason": "ConfigurationError" if refusal else "Reconciled",
        "message": _error(refusal),
        "lastTransitionTime": now,
    }


def verdict(refusal: str) -> Json:
    """The summary of all conditions, of which there is one; None: the field is absent."""
    return {"result": "Invalid" if refusal else "Valid", "errorSummary": _error(refusal) or None}


def _error(refusal: str) -> str:
    return f"configuration error: {refusal}" if refusal else ""


def pool_status(counts: Counts) -> Json:
    return {
        "assignedIPv4": counts.assigned_v4,
        "assignedIPv6": counts.assigned_v6,
        "availableIPv4": counts.available_v4,
        "availableIPv6": counts.available_v6,
    }


def counts_shown(pool: Json) -> Counts:
    """What a pool's status says; what it leaves out is zero, so a pool that was never taken over stays without one."""
    status: Any = pool.get("status") or {}
    return Counts(*(status.get(field) or 0 for field in _FIELDS))


_FIELDS: Final = ("assignedIPv4", "availableIPv4", "assignedIPv6", "availableIPv6")
