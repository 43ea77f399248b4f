"""What a tenant's MetalLB may announce: its address pool, published and kept as Butler says.

All load-balancer ranges of a tenant stand in one IPAddressPool, `default-pool`, one entry for each allocation, and
one L2Advertisement, `default`, announces that pool. Both are applied with force under Butler's IPAM field manager:
an address that is not the tenant's must never be announced, so what somebody else wrote there is put right, and the
caller is told what it was. Nothing is written that is so already: MetalLB looks at every Service on each change.

No ranges at all is a state too. MetalLB's definition of the kind takes an empty list of addresses, but its webhook
refuses one ("pool has no prefixes defined"), and where the webhook is off its controller rejects its whole
configuration over it and goes on with the last good one, announcing what it should not. A deletion is not validated,
and an advertisement may name a pool that is not there. So without ranges the pool is deleted, the advertisement
stays, and nothing is announced.

Whoever withdraws a range must first see `Published.is_current`: only then has the tenant's own API server confirmed
it (read back, not assumed). What MetalLB does about Services is not looked at here.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from butler.api.labels import MANAGED_BY, FieldManager
from butler.ipam.addresses import Family, Range, address_text
from butler.kube.errors import ApiError, Conflict, NotFound
from butler.kube.objects import uid_of
from butler.kube.resource import Json, Resource, untyped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.kube.client import Client

GROUP, VERSION = "metallb.io", "v1beta1"
NAMESPACE = "metallb-system"
POOL = "default-pool"
ADVERTISEMENT = "default"
ADDRESS_POOLS = untyped(GROUP, VERSION, "ipaddresspools", "IPAddressPool")
ADVERTISEMENTS = untyped(GROUP, VERSION, "l2advertisements", "L2Advertisement")
LONGEST_MESSAGE = 500
_REFUSALS = (400, 403, 422)  # a webhook's no, a policy's no, the schema's no


class Outcome(StrEnum):
    """What came of publishing."""

    CURRENT = "Current"
    """Everything was so already; nothing was written."""
    WRITTEN = "Written"
    """Written, and read back as written."""
    NOT_INSTALLED = "NotInstalled"
    """MetalLB's kinds or its namespace are not there (yet)."""
    NOT_READY = "NotReady"
    """MetalLB is there, but its webhook does not answer (yet)."""
    REFUSED = "Refused"
    """A webhook, a policy or the schema refused it; the message says why."""
    CONTESTED = "Contested"
    """Written, but read back as something else: somebody changes it at the same time."""


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of one `publish`."""

    outcome: Outcome
    before: tuple[str, ...] | None = None
    """The addresses that the pool had; None where there was no pool."""
    drift: tuple[str, ...] = ()
    """A sentence for each thing that somebody else had changed and that was put right."""
    message: str = ""

    @property
    def is_current(self) -> bool:
        """Whether the tenant's API server now has exactly what was asked for."""
        return self.outcome in (Outcome.CURRENT, Outcome.WRITTEN)


def addresses(ranges: Sequence[Range], *, family: Family = Family.V4) -> list[str]:
    """The ranges as MetalLB reads them, in order: `start-end` for each, adjacent ones apart, also for one address."""
    return [f"{address_text(each.first, family)}-{address_text(each.last, family)}" for each in sorted(ranges)]


def address_pool(ranges: Sequence[Range], *, family: Family = Family.V4, auto_assign: bool | None = None) -> Json:
    """The IPAddressPool. `auto_assign` is left to its default, and to whoever sets it, unless asked for."""
    spec: Json = {"addresses": addresses(ranges, family=family)}
    if auto_assign is not None:
        spec["autoAssign"] = auto_assign
    return _object(ADDRESS_POOLS, POOL, spec)


def advertisement() -> Json:
    """The L2Advertisement of that pool, and of that pool only: without names it would announce every pool."""
    return _object(ADVERTISEMENTS, ADVERTISEMENT, {"ipAddressPools": [POOL]})


def _object(resource: Resource[Json], name: str, spec: Json) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict([MANAGED_BY])},
        "spec": spec,
    }


# Deciding.


def differs(wanted: Json, live: Json | None) -> bool:
    """Whether an apply would change anything: a field that is missing or else, or one of ours to be given up."""
    if live is None:
        return True
    if not _within(wanted["spec"], live.get("spec")) or not _within(wanted["metadata"], live.get("metadata")):
        return True
    return bool(_owned(live, FieldManager.IPAM) - set(wanted["spec"]))


def drift_of(wanted: Json, live: Json | None) -> tuple[str, ...]:
    """What somebody else made of the fields that are ours to say. What we ourselves wrote earlier is no drift."""
    if live is None:
        return ()
    spec, ours = live.get("spec") or {}, _owned(live, FieldManager.IPAM)
    return tuple(
        _clipped(f"{wanted['kind']} {wanted['metadata']['name']}: {name} was {_shown(spec.get(name))}{_by(live, name)}")
        for name, value in wanted["spec"].items()
        if spec.get(name) != value and name not in ours
    )


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_within(value, live.get(name)) for name, value in wanted.items())
    return bool(wanted == live)


def _owned(live: Json, manager: str) -> set[str]:
    """The fields of the spec that a manager applied and nobody has changed since."""
    return {name for entry in _managers(live) if entry.get("manager") == manager for name in _spec_fields(entry)}


def _by(live: Json, field: str) -> str:
    names = [str(entry.get("manager")) for entry in _managers(live) if field in _spec_fields(entry)]
    return f" (set by {', '.join(names)})" if names else ""


def _managers(live: Json) -> list[Json]:
    entries = live.get("metadata", {}).get("managedFields")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _spec_fields(entry: Json) -> set[str]:
    fields = entry.get("fieldsV1")
    spec = fields.get("f:spec") if isinstance(fields, dict) else None
    return {name.removeprefix("f:") for name in spec if name != "."} if isinstance(spec, dict) else set()


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    return "not set" if value is None else str(value)


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"


# Acting.


async def publish(
    client: Client, ranges: Sequence[Range], *, family: Family = Family.V4, auto_assign: bool | None = None
) -> Published:
    """Make the tenant's MetalLB announce exactly these ranges; what MetalLB itself says against it is an outcome.

    Raises KubeError where the tenant's API server cannot be asked or fails.
    """
    pool, announced = address_pool(ranges, family=family, auto_assign=auto_assign), advertisement()
    live_pool = await _read(client, ADDRESS_POOLS, POOL)
    live_announced = await _read(client, ADVERTISEMENTS, ADVERTISEMENT)
    before = _addresses_in(live_pool)
    drift = (*drift_of(pool, live_pool), *drift_of(announced, live_announced))
    try:
        wrote = [
            await _put(client, ADDRESS_POOLS, pool, live_pool) if ranges else await _withdraw(client, live_pool),
            await _put(client, ADVERTISEMENTS, announced, live_announced),
        ]
    except NotFound as error:
        return Published(Outcome.NOT_INSTALLED, before, message=_clipped(f"MetalLB is not installed: {error.message}"))
    except ApiError as error:
        if error.code in _REFUSALS:
            return Published(Outcome.REFUSED, before, message=_clipped(error.message))
        if error.code == 500 and "failed calling webhook" in error.message:
            return Published(Outcome.NOT_READY, before, message=_clipped(error.message))
        raise
    if not any(wrote):
        return Published(Outcome.CURRENT, before)
    return await _confirm(client, pool if ranges else None, Published(Outcome.WRITTEN, before, drift))


async def _confirm(client: Client, wanted: Json | None, published: Published) -> Published:
    """Read back what matters: the addresses."""
    live = await _read(client, ADDRESS_POOLS, POOL)
    if (live is None) == (wanted is None) and (wanted is None or not differs(wanted, live)):
        return published
    found = ", ".join(_addresses_in(live) or ()) or "no addresses"
    message = _clipped(f"IPAddressPool {POOL} was written, but read back with {found}{_by(live or {}, 'addresses')}")
    return Published(Outcome.CONTESTED, published.before, published.drift, message)


async def _read(client: Client, resource: Resource[Json], name: str) -> Json | None:
    try:
        return await client.get(resource, name, NAMESPACE)
    except NotFound:
        return None


def _addresses_in(live: Json | None) -> tuple[str, ...] | None:
    if live is None:
        return None
    found = (live.get("spec") or {}).get("addresses")
    return tuple(map(str, found)) if isinstance(found, list) else ()


async def _put(client: Client, resource: Resource[Json], wanted: Json, live: Json | None) -> bool:
    if not differs(wanted, live):
        return False
    await client.apply(resource, wanted, force=True, field_manager=FieldManager.IPAM)
    return True


async def _withdraw(client: Client, live: Json | None) -> bool:
    if live is None:
        return False
    with contextlib.suppress(NotFound, Conflict):  # gone, or another one by now: reading back will tell
        await client.delete(ADDRESS_POOLS, POOL, NAMESPACE, uid=uid_of(live))
    return True
