"""What a change would do, before it is made. Nothing here writes anything.

What the reports compute takes its time for a large estate: run it in a thread (`background_work.previewed`). What only
the API server knows (schemas, quotas, permissions) is asked as a dry run in the name of the user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.resource import CustomResource
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import Family, Range
from butler.ipam.capacity import tiers
from butler.ipam.layout import InvalidPool
from butler.kube.errors import KubeError, OutcomeUnknown, Unreachable
from butler.kube.resource import Resource
from butler.reports.estate import Estate
from butler.reports.plan import preview
from butler.reports.plan.new_requests import answers
from butler.reports.plan.simulation import Rehearsal
from butler.reports.pool.edits import change_of
from butler.reports.pool.summary import Standing, standing_of
from butler.rules.admission_verdict import AdmissionVerdict
from butler.rules.allocation.held import readable_range
from butler.rules.allocation.owner import tenant_key
from butler.rules.pool.admission import judge
from butler.server.actions.forms import POOL, Places, field_of, in_words_of
from butler.server.actions.impersonation import refused_write
from butler.server.models.allocations import AllocationPreview
from butler.server.models.common import FieldError
from butler.server.models.pools import Fill, PoolPreview, Stranded
from butler.server.models.tenants import TenantPreview
from butler.server.presenters.common import range_of
from butler.server.presenters.manifest import as_yaml, written
from butler.server.presenters.pools import reserved_of, windows_of
from butler.server.presenters.tenants import shown_block
from butler.server.problems import RequestRefused

T = TypeVar("T")


async def objections(dry_run: Awaitable[T], places: Places) -> tuple[T | None, list[FieldError]]:
    """What a dry run was answered: the object, or what is wrong with it, in the words of the form.

    An API server that is away, or busy, says nothing about the object: that is raised.
    """
    try:
        return await dry_run, []
    except KubeError as error:
        refused = refused_dry_run(error, places)
        if refused.status >= 500:
            raise refused from error
        return None, list(refused.fields) or [FieldError(field="", message=refused.detail)]


def refused_dry_run(error: KubeError, places: Places) -> RequestRefused:
    """The same as a refusal. Whatever was answered, or was not: nothing has been done."""
    if isinstance(error, OutcomeUnknown):
        error = Unreachable(str(error))
    return in_words_of(refused_write(error), places)


def _yaml(obj: CustomResource, resource: Resource[Any]) -> str:
    """An object as a user would write it down: without what is empty because all is as the definition has it."""
    manifest = written(obj, resource)
    for field, value in list(manifest["spec"].items()):
        if isinstance(value, dict):
            manifest["spec"][field] = {key: setting for key, setting in value.items() if setting not in ({}, [])}
        if not manifest["spec"][field]:
            del manifest["spec"][field]
    return as_yaml(manifest)


# Pools.


def of_a_pool(
    old: NetworkPool | None, new: NetworkPool, estate: Estate, now: datetime, resource: Resource[NetworkPool]
) -> PoolPreview:
    """What a new pool would be, or what would become of one that is edited."""
    if old is None:
        verdict = judge(None, new, estate.pools, estate.allocations)
        before, after = None, _standing(new, estate)
    else:
        change = change_of(old, new, estate.pools, estate.allocations)
        verdict, before, after = change.verdict, change.before, change.after
    layout = after.layout if after else None
    return PoolPreview(
        allowed=not verdict.problems,
        errors=_errors(verdict),
        warnings=list(verdict.warnings),
        stranded=_stranded(old, new, estate, now) if old is not None else [],
        before=_fill(before),
        after=_fill(after),
        cidr=new.spec.cidr,
        windows=windows_of(layout) if layout else [],
        reserved=reserved_of(layout) if layout else [],
        yaml=_yaml(new, resource),
    )


def and_also(shown: PoolPreview, errors: Sequence[FieldError]) -> PoolPreview:
    """A preview with what the API server has against it, too."""
    if not errors:
        return shown
    known = {error.field for error in shown.errors}
    more = [error for error in errors if error.field not in known]
    return msgspec.structs.replace(shown, allowed=False, errors=[*shown.errors, *more])


def _standing(pool: NetworkPool, estate: Estate) -> Standing | None:
    try:
        return standing_of(pool, estate.allocations)
    except InvalidPool:
        return None


def _errors(verdict: AdmissionVerdict) -> list[FieldError]:
    return [FieldError(field=field_of(problem.field, POOL), message=problem.message) for problem in verdict.problems]


def _fill(standing: Standing | None) -> Fill | None:
    if standing is None:
        return None
    found = standing.capacity
    return Fill(
        total=found.total,
        allocated=found.allocated,
        available=found.available,
        largest_free_block=found.largest_free_block,
        percent=found.percent,
        tiers=[tier.value for tier, reached in tiers(found).items() if reached],
    )


def _stranded(old: NetworkPool, new: NetworkPool, estate: Estate, now: datetime) -> list[Stranded]:
    """Allocations whose addresses the edit would take out of what the pool hands out, in order of address."""
    name = old.metadata.name
    stage = Rehearsal(Estate(estate.home, (old,), tuple(estate.of_pool(name))), now)
    already = stage.stranded(name)
    stage.edit(new)
    left_out = [stage.find(uid) for uid in stage.stranded(name) if uid not in already]
    found = [
        (held, allocation)
        for allocation in left_out
        if allocation is not None and (held := readable_range(allocation)) is not None
    ]
    return [
        Stranded(name=each.metadata.name, tenant=str(tenant_key(each)), range=range_of(held[1], held[0]))
        for held, each in sorted(found, key=lambda one: one[0][1])
    ]


# Allocations.


def of_a_request(
    request: IPAllocation, estate: Estate, now: datetime, resource: Resource[IPAllocation]
) -> AllocationPreview:
    """What a request would get now."""
    # A pool decides by its own allocations: those of others would only take time.
    own = tuple(estate.of_pool(request.spec.pool_ref.name))
    concerned = Estate(estate.home, estate.pools, own, estate.providers, estate.clusters)
    said = answers(concerned, [request], now).get(request.metadata.name)
    granted = said if isinstance(said, Range) else None
    reason, message = ("", "") if granted is not None or said is None else (str(said[0]), str(said[1]))
    return AllocationPreview(
        granted=granted is not None,
        range=range_of(granted, Family.V4) if granted is not None else None,
        reason=reason,
        message=message,
        yaml=_yaml(request, resource),
    )


# Tenants.


def of_a_tenant(estate: Estate, wanted: TenantCluster, now: datetime, *, exists: bool) -> preview.Preview:
    """The addresses that a tenant would get: a new one all of them, another one those that it has not yet."""
    return (preview.of_a_change if exists else preview.of_a_new_cluster)(estate, wanted, now)


def tenant_preview(
    found: preview.Preview | None, errors: Sequence[FieldError], warnings: Sequence[str]
) -> TenantPreview:
    """The answer. `found` is None where it could not be computed, or the object makes no sense."""
    # What could never work as it is written is as good as refused.
    hopeless = found is not None and bool(found.obstacle) and not found.waits
    return TenantPreview(
        allowed=not errors and not hopeless,
        errors=list(errors),
        warnings=list(warnings),
        provider=found.provider if found else "",
        gets=[shown_block(block) for block in found.gets] if found else [],
        obstacle=found.obstacle if found else "",
        waits=found.waits if found else True,
    )
