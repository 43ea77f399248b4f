"""What people fill in, as objects of Kubernetes, and what Kubernetes says of those in the words of the form. Pure.

A form names its fields as the API's models do (`windows[0].start`); Kubernetes names them by their place in the object
(`spec.tenantAllocation.start`). Errors go back with the form's names, so that each can stand beside its input.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from butler.api.ipallocation import IPAllocation, IPAllocationType
from butler.api.meta import ObjectMeta
from butler.api.networkpool import (
    MOST_RESERVED,
    MOST_WINDOWS,
    AddressRange,
    AllocationDefaults,
    NetworkPool,
    NetworkPoolSpec,
    ReservedBlock,
    TenantAllocation,
)
from butler.api.objects import Key
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import BadAddress, Family, Range, parse_address
from butler.ipam.layout import InvalidPool
from butler.reports.plan.new_requests import request_for
from butler.reports.pool.edits import CannotEdit, grown_by
from butler.server.models.allocations import AllocationCreate
from butler.server.models.common import FieldError
from butler.server.models.pools import DefaultsWrite, PoolCreate, PoolEdit, ReservedWrite, WindowWrite
from butler.server.problems import RequestRefused

LARGEST_GROWTH: Final = 1 << 24
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_VALUE: Final = re.compile(r'^Invalid value: (?:"(?:[^"\\]|\\.)*": |-?\d+: )?')

Places = tuple[tuple[str, str], ...]
POOL: Final[Places] = (
    ("metadata.name", "name"),
    ("spec.tenantAllocation.ranges", "windows"),
    ("spec.tenantAllocation.start", "windows[0].start"),
    ("spec.tenantAllocation.end", "windows[0].end"),
    ("spec.tenantAllocation.defaults", "defaults"),
    ("spec.tenantAllocation", "windows"),
    ("spec.reserved", "reserved"),
    ("spec.cidr", "cidr"),
)
ALLOCATION: Final[Places] = (
    ("metadata.name", "name"),
    ("spec.pinnedRange.startAddress", "start"),
    ("spec.pinnedRange.endAddress", "end"),
    ("spec.pinnedRange", "start"),
    ("spec.poolRef.name", "pool"),
    ("spec.tenantClusterRef.namespace", "tenantNamespace"),
    ("spec.tenantClusterRef.name", "tenant"),
    ("spec.count", "count"),
    ("spec.type", "type"),
)
SCALE: Final[Places] = (("spec.workers.replicas", "workers"),)
UPGRADE: Final[Places] = (("spec.kubernetesVersion", "version"),)
MANIFEST: Final[Places] = ()
"""A user who writes the object itself knows its own names."""


def wrong(field: str, message: str) -> RequestRefused:
    """A field that cannot be like that."""
    return RequestRefused(422, f"{field}: {message}", FieldError(field=field, message=message))


def field_of(path: str, places: Places) -> str:
    """The form's name of a place in the object; the place itself where the form has none."""
    for prefix, name in places:
        rest = path.removeprefix(prefix)
        if path.startswith(prefix) and rest[:1] in ("", ".", "["):
            return name + rest
    return path


def in_words_of(refused: RequestRefused, places: Places) -> RequestRefused:
    """A refusal by Kubernetes with the form's names."""
    fields = [
        FieldError(field=field_of(field.field, places), message=_VALUE.sub("", field.message))
        for field in refused.fields
    ]
    said = "; ".join(f"{field.field}: {field.message}" if field.field else field.message for field in fields)
    return RequestRefused(refused.status, said or refused.detail, *fields, headers=refused.headers)


def need_name(name: str, field: str = "name", longest: int = 253) -> None:
    """Refuses what can be no name, before it is part of a path."""
    if not name:
        raise wrong(field, "give it a name")
    if len(name) > longest:
        raise wrong(field, f"a name has at most {longest} characters, and this one has {len(name)}")
    if not _NAME.fullmatch(name):
        raise wrong(field, "a name is made of a-z, 0-9, - and ., and begins and ends with a letter or a digit")


# Pools.


def new_pool(form: PoolCreate, home: str) -> NetworkPool:
    """The pool that a form describes."""
    need_name(form.name, longest=63)
    spec = NetworkPoolSpec(cidr=form.cidr, reserved=_blocks(form.reserved, ()))
    spec = _with_windows(spec, form.windows)
    spec = _with_defaults(spec, form.defaults)
    return NetworkPool(metadata=ObjectMeta(name=form.name, namespace=home), spec=spec)


def edited_pool(pool: NetworkPool, form: PoolEdit) -> NetworkPool:
    """The pool with what the form says; all that it does not say stays."""
    return msgspec.structs.replace(pool, spec=_edited(pool.spec, form))


def _edited(spec: NetworkPoolSpec, form: PoolEdit) -> NetworkPoolSpec:
    others = (form.cidr, form.reserved, form.windows, form.defaults)
    if form.grow_by is not None:
        if any(other is not None for other in others):
            raise wrong("growBy", "growing says by itself what changes: send it alone")
        return _grown(spec, form.grow_by)
    if all(other is None for other in others):
        raise RequestRefused(422, "say what to change: cidr, reserved, windows, defaults or growBy")
    if form.cidr is not None:
        spec = msgspec.structs.replace(spec, cidr=form.cidr)
    if form.reserved is not None:
        spec = msgspec.structs.replace(spec, reserved=_blocks(form.reserved, spec.reserved))
    if form.windows is not None:
        spec = _with_windows(spec, form.windows)
    return _with_defaults(spec, form.defaults)


def _grown(spec: NetworkPoolSpec, count: int) -> NetworkPoolSpec:
    if not 1 <= count <= LARGEST_GROWTH:
        raise wrong("growBy", f"grow by 1 to {LARGEST_GROWTH} addresses")
    try:
        return grown_by(spec, count)
    except CannotEdit as error:
        raise wrong("growBy", str(error)) from None
    except InvalidPool as error:
        first = error.problems[0]
        raise wrong("growBy", f"the pool has to be put right first: {first.field}: {first.message}") from None


def _blocks(
    wanted: tuple[ReservedWrite, ...] | list[ReservedWrite], before: tuple[ReservedBlock, ...]
) -> tuple[ReservedBlock, ...]:
    if len(wanted) > MOST_RESERVED:
        raise wrong("reserved", f"a pool has at most {MOST_RESERVED} reserved blocks: join some of them")
    said = {reserved_block.cidr: reserved_block.description for reserved_block in before}
    return tuple(
        ReservedBlock(
            cidr=reserved_write.cidr,
            description=said.get(reserved_write.cidr)
            if reserved_write.description is None
            else reserved_write.description or None,
        )
        for reserved_write in wanted
    )


def _with_windows(spec: NetworkPoolSpec, windows: tuple[WindowWrite, ...] | list[WindowWrite]) -> NetworkPoolSpec:
    """One window is written as start and end, several as ranges, none as neither; the defaults beside them stay."""
    if len(windows) > MOST_WINDOWS:
        raise wrong("windows", f"a pool has at most {MOST_WINDOWS} windows: join some of them")
    if not windows and spec.tenant_allocation is None:
        return spec
    one = windows[0] if len(windows) == 1 else None
    allocation = msgspec.structs.replace(
        spec.tenant_allocation or TenantAllocation(),
        start=one.start if one else None,
        end=one.end if one else None,
        ranges=() if one else tuple(AddressRange(start=window.start, end=window.end) for window in windows),
    )
    return msgspec.structs.replace(spec, tenant_allocation=allocation)


def _with_defaults(spec: NetworkPoolSpec, wanted: DefaultsWrite | None) -> NetworkPoolSpec:
    if wanted is None:
        return spec
    allocation = spec.tenant_allocation or TenantAllocation()
    before = allocation.defaults
    nodes, services = wanted.nodes_per_tenant, wanted.lb_pool_per_tenant
    defaults = AllocationDefaults(
        nodes_per_tenant=before.nodes_per_tenant if nodes is None else nodes,
        lb_pool_per_tenant=before.lb_pool_per_tenant if services is None else services,
    )
    return msgspec.structs.replace(spec, tenant_allocation=msgspec.structs.replace(allocation, defaults=defaults))


# Allocations.


def need_names(form: AllocationCreate) -> None:
    """Refuses names that cannot be, before the API server is asked about them."""
    need_name(form.name)
    need_name(form.pool, "pool", 63)
    need_name(form.tenant_namespace, "tenantNamespace", 63)
    need_name(form.tenant, "tenant", 63)


def new_allocation(form: AllocationCreate, home: str, cluster: TenantCluster | None) -> IPAllocation:
    """The request that a form describes. `cluster` is the TenantCluster of that name, where there is one."""
    return request_for(
        Key(form.tenant_namespace, form.tenant),
        IPAllocationType(form.type),
        name=form.name,
        pool=form.pool,
        home=home,
        cluster=cluster,
        count=form.count,
        pinned=_pinned(form),
    )


def _pinned(form: AllocationCreate) -> Range | None:
    if form.start is None and form.end is None:
        return None
    if form.count is not None:
        raise wrong("count", "start and end say already how many there are: leave count out")
    first, last = _address(form.start, "start"), _address(form.end, "end")
    if last < first:
        raise wrong("end", f"{form.end} comes before start {form.start}: swap them")
    return Range(first, last)


def _address(text: str | None, field: str) -> int:
    if text is None:
        raise wrong(field, "a range has a start and an end: give both, the same twice for one address")
    try:
        family, value = parse_address(text)
    except BadAddress as error:
        raise wrong(field, str(error)) from None
    if family is not Family.V4:
        raise wrong(field, "pools hand out IPv4 only: say an IPv4 address")
    return value
