"""What a tenant's MetalLB may announce: its address pool, published and kept as Butler says.

All load-balancer ranges of a tenant stand in one IPAddressPool, `default-pool`, one entry for each allocation, and
one L2Advertisement, `default`, announces that pool. Both are applied with force under Butler's IPAM field manager:
an address that is not the tenant's must never be announced, so what another writer put there is put right, and the
caller learns what it was. Nothing is written that is so already: MetalLB looks at every Service on each change.

No ranges at all is a state too. MetalLB's definition of the kind takes an empty list of addresses, but its webhook
refuses one ("pool has no prefixes defined"), and where the webhook is off its controller rejects its whole
configuration over it and goes on with the last good one, announcing what it should not. A deletion is not validated,
and an advertisement may name a pool that is not there. So without ranges the pool is deleted, the advertisement
stays, and nothing is announced.

Publishing has two halves, because a process may be paused anywhere, and others may run in the meantime. `read` returns
what is on the tenant; the caller then checks by a fresh read whatever its decision rests on; `publish` writes
only if the pool has not been written since. Without that, a process that slept through a withdrawal would put addresses
back that are another tenant's by now, or take some away that a Service has got since. MetalLB counts in the
pool's status what it has handed out, so one more Service with an address makes a version old as well: CONTESTED is
nothing out of the ordinary, and the answer to it is to read and decide again.

A caller that withdraws a range must first see `Published.is_current`: only then has the tenant's own API server
confirmed it (read back, not assumed). What MetalLB does about Services is not checked here.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from butler.api.labels import MANAGED_BY, Annotation, FieldManager
from butler.api.objects import Json, uid_of, version_of
from butler.api.printable import one_line
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_address, parse_range
from butler.kube.errors import AlreadyExists, ApiError, BadAnswer, Conflict, NotFound
from butler.kube.resource import Resource, untyped
from butler.rules.loadbalancer.service import POOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.kube.client import Client

GROUP, VERSION = "metallb.io", "v1beta1"
NAMESPACE = "metallb-system"
ADVERTISEMENT = "default"
ADDRESS_POOLS = untyped(GROUP, VERSION, "ipaddresspools", "IPAddressPool")
ADVERTISEMENTS = untyped(GROUP, VERSION, "l2advertisements", "L2Advertisement")
LONGEST_MESSAGE = 500
_REFUSALS = (400, 403, 422)  # a webhook's no, a policy's no, the schema's no


class ApplyOutcome(StrEnum):
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
    """Another client writes it at the same time: ours was not taken, or read back as something else."""


@dataclass(frozen=True, slots=True)
class MetalLBStanding:
    """What stands on a tenant: the pool and its advertisement, as far as they exist."""

    pool: Json | None
    advertisement: Json | None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The entries of the pool."""
        return _addresses_in(self.pool) or ()

    @property
    def is_in_drain(self) -> bool:
        """Whether the pool carries the mark of a drain, which may have been abandoned."""
        notes = _part(_part(self.pool, "metadata"), "annotations") if self.pool is not None else {}
        return Annotation.DRAINED_BY.value in notes


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of one `publish`."""

    outcome: ApplyOutcome
    before: tuple[str, ...] | None = None
    """The addresses that the pool had; None where there was no pool."""
    drift: tuple[str, ...] = ()
    """A sentence for each thing that another client had changed and that was put right."""
    message: str = ""
    pool: Json | None = None
    """The pool as it was read back."""

    @property
    def is_current(self) -> bool:
        """Whether the tenant's API server now has exactly what was asked for."""
        return self.outcome in (ApplyOutcome.CURRENT, ApplyOutcome.WRITTEN)


def addresses(ranges: Sequence[Range], *, family: Family = Family.V4) -> list[str]:
    """The ranges as MetalLB reads them, in order: `start-end` for each, adjacent ones apart, also for one address."""
    return [f"{address_text(span.first, family)}-{address_text(span.last, family)}" for span in sorted(ranges)]


def entry_range(text: str) -> tuple[Family, Range]:
    """An entry of an IPAddressPool as MetalLB reads it: a network, whatever bits follow its prefix, or start-end.

    Raises BadAddress.
    """
    start, dash, end = text.partition("-")
    if dash:
        return parse_range(start.strip(), end.strip())
    address, _, prefix = text.strip().partition("/")
    family, value = parse_address(address)
    if not prefix.isdecimal() or len(prefix) > 3 or int(prefix) > family.bits:
        raise BadAddress("it is neither a network nor start-end")
    size = 1 << (family.bits - int(prefix))
    first = value - value % size
    return family, Range(first, first + size - 1)


def ipv4_range(text: str) -> Range | None:
    """The IPv4 addresses of an entry; None where it has none, or makes no sense."""
    try:
        family, found = entry_range(text)
    except BadAddress:
        return None
    return found if family is Family.V4 else None


def address_pool(
    ranges: Sequence[Range],
    *,
    last: Sequence[Range] = (),
    family: Family = Family.V4,
    auto_assign: bool = True,
    drained_by: str = "",
) -> Json:
    """The IPAddressPool. All of its addresses can be used: what the tenant may not have is not in it.

    MetalLB hands out the first free address in the order of the entries: those of `last` when no other is left.
    `drained_by` tells one drain from the next, so that the pool's version changes with every one that begins.
    """
    spec: Json = {
        "addresses": addresses(ranges, family=family) + addresses(last, family=family),
        "autoAssign": auto_assign,
        "avoidBuggyIPs": False,
    }
    pool = _object(ADDRESS_POOLS, POOL, spec)
    if drained_by:
        pool["metadata"]["annotations"] = {Annotation.DRAINED_BY.value: drained_by}
    return pool


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
    # Only what was applied can be given up by applying less: what was created otherwise would differ for ever.
    applied = [entry for entry in _managers(live, FieldManager.IPAM) if entry.get("operation") == "Apply"]
    spec, annotations = wanted["spec"], wanted["metadata"].get("annotations", {})
    return any(_fields(obj, "spec") - set(spec) for obj in applied) or any(
        _fields(item, "metadata", "annotations") - set(annotations) for item in applied
    )


def drift_of(wanted: Json, live: Json | None) -> tuple[str, ...]:
    """What other clients changed in the fields that are ours. What we ourselves wrote earlier is no drift."""
    if live is None:
        return ()
    spec = _part(live, "spec")
    ours = {name for entry in _managers(live, FieldManager.IPAM) for name in _fields(entry, "spec")}
    return tuple(
        _clipped(f"{wanted['kind']} {wanted['metadata']['name']}: {name} was {_shown(spec.get(name))}{_by(live, name)}")
        for name, value in wanted["spec"].items()
        if name in spec and spec[name] != value and name not in ours
    )


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_within(value, live.get(name)) for name, value in wanted.items())
    return bool(wanted == live)


def _by(live: Json, field: str) -> str:
    names = [str(entry.get("manager")) for entry in _managers(live) if field in _fields(entry, "spec")]
    return f" (set by {', '.join(names)})" if names else ""


def _managers(live: Json, name: str = "") -> list[Json]:
    """Who says what about an object: the entries of all managers, or of one, however it wrote."""
    entries = _part(live, "metadata").get("managedFields")
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [entry for entry in found if not name or entry.get("manager") == name]


def _fields(entry: Json, *path: str) -> set[str]:
    """The fields below a path that are a manager's: it wrote them last, and no client has changed them since."""
    fields = _part(entry, "fieldsV1")
    for step in path:
        fields = _part(fields, f"f:{step}")
    return {name.removeprefix("f:") for name in fields if name != "."}


def _part(whole: Json, name: str) -> Json:
    """A part that should be an object; tenants are not trusted to send one."""
    part = whole.get(name)
    return part if isinstance(part, dict) else {}


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return "not set" if value is None else str(value)


def _clipped(text: str) -> str:
    """What the tenant wrote is quoted in Events and conditions here: nothing in it reaches a terminal as it is."""
    return one_line(text, LONGEST_MESSAGE)


# Acting.


async def read(client: Client) -> MetalLBStanding:
    """What stands on the tenant now."""
    pool = await _read(client, ADDRESS_POOLS, POOL)
    return MetalLBStanding(pool, await _read(client, ADVERTISEMENTS, ADVERTISEMENT))


async def publish(
    client: Client,
    standing: MetalLBStanding,
    ranges: Sequence[Range],
    *,
    last: Sequence[Range] = (),
    family: Family = Family.V4,
    auto_assign: bool = True,
    drained_by: str = "",
) -> Published:
    """Make the tenant's MetalLB announce exactly these ranges and those of `last`, if the pool is as it was read.

    What MetalLB itself says against it is an outcome. Raises KubeError where the tenant's API server cannot be asked
    or fails.
    """
    pool = address_pool(ranges, last=last, family=family, auto_assign=auto_assign, drained_by=drained_by)
    some = bool(ranges or last)
    announced = advertisement()
    before = _addresses_in(standing.pool)
    drift = (*drift_of(pool, standing.pool), *drift_of(announced, standing.advertisement))
    try:
        wrote = [
            await _put(client, pool, standing.pool) if some else await _withdraw(client, standing.pool),
            await _advertise(client, announced, standing.advertisement),
        ]
    except NotFound as error:
        return Published(
            ApplyOutcome.NOT_INSTALLED, before, message=_clipped(f"MetalLB is not installed: {error.message}")
        )
    except (Conflict, AlreadyExists):
        message = f"IPAddressPool {POOL} was written by another client at the same time"
        return Published(ApplyOutcome.CONTESTED, before, message=message)
    except ApiError as error:
        if error.code in _REFUSALS:
            return Published(ApplyOutcome.REFUSED, before, message=_clipped(error.message))
        if error.code == 500 and "failed calling webhook" in error.message:
            return Published(ApplyOutcome.NOT_READY, before, message=_clipped(error.message))
        raise
    if not any(wrote):
        return Published(ApplyOutcome.CURRENT, before, pool=standing.pool)
    return await _confirm(client, pool if some else None, Published(ApplyOutcome.WRITTEN, before, drift))


async def _confirm(client: Client, wanted: Json | None, published: Published) -> Published:
    """Read back what matters: the addresses."""
    live = await _read(client, ADDRESS_POOLS, POOL)
    if (live is None) == (wanted is None) and (wanted is None or not differs(wanted, live)):
        return replace(published, pool=live)
    found = ", ".join(_addresses_in(live) or ()) or "no addresses"
    message = _clipped(f"IPAddressPool {POOL} was written, but read back with {found}{_by(live or {}, 'addresses')}")
    return replace(published, outcome=ApplyOutcome.CONTESTED, message=message)


async def _read(client: Client, resource: Resource[Json], name: str) -> Json | None:
    try:
        return _identified(await client.get(resource, name, NAMESPACE))
    except NotFound:
        return None


def _identified(live: Json) -> Json:
    if not isinstance(live.get("metadata"), dict) or not (uid_of(live) and version_of(live)):
        raise BadAnswer("an object of MetalLB has no uid or no version, so nothing can be written over it safely")
    return live


def _addresses_in(live: Json | None) -> tuple[str, ...] | None:
    if live is None:
        return None
    found = _part(live, "spec").get("addresses")
    return tuple(map(str, found)) if isinstance(found, list) else ()


async def _put(client: Client, wanted: Json, live: Json | None) -> bool:
    """Write the pool over exactly the version that was read."""
    created = live is None
    if live is None:
        # An apply would also write over one that came meanwhile. But an apply gives up only what was applied, and the
        # annotation of a drain must go when the drain is over: so it is not created with the pool.
        bare = {name: value for name, value in wanted["metadata"].items() if name != "annotations"}
        body = {**wanted, "metadata": bare}
        live = _identified(await client.create(ADDRESS_POOLS, body, field_manager=FieldManager.IPAM))
    if not differs(wanted, live):
        return created
    over = {**wanted["metadata"], "uid": uid_of(live), "resourceVersion": version_of(live)}
    await client.apply(ADDRESS_POOLS, {**wanted, "metadata": over}, force=True, field_manager=FieldManager.IPAM)
    return True


async def _withdraw(client: Client, live: Json | None) -> bool:
    if live is None:
        return False
    with contextlib.suppress(NotFound):  # gone already, as it should be: reading back will tell
        await client.delete(ADDRESS_POOLS, POOL, NAMESPACE, uid=uid_of(live), resource_version=version_of(live))
    return True


async def _advertise(client: Client, wanted: Json, live: Json | None) -> bool:
    """Names no address, and so needs no version: every writer writes the same."""
    if not differs(wanted, live):
        return False
    await client.apply(ADVERTISEMENTS, wanted, force=True, field_manager=FieldManager.IPAM)
    return True
