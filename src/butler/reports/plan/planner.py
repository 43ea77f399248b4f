"""What would happen if: more tenants, single requests, a pool that is edited. Pure, and decided by the controllers' own
functions on a `Rehearsal`; nothing is written.

An edit comes first. What waits at present is served before any new request, as in reality. Then the tenants come, one
after the other, and then the single requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from butler.api.ipallocation import IPAllocation, IPAllocationSpec
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.api.networkpool import AddressRange, ReservedBlock, TenantAllocation
from butler.ipam.capacity import tiers
from butler.reports.plan.new_tenants import NAMELESS, block_of, let_in, provider_for
from butler.reports.plan.plan import (
    Block,
    CannotPlan,
    Edit,
    EditOutcome,
    FillEstimate,
    PlanOutcome,
    PoolOutcome,
    Single,
    StrandedRange,
    TenantOutcome,
    Tenants,
)
from butler.reports.plan.simulation import Rehearsal
from butler.rules.allocation.held import readable_range
from butler.rules.allocation.owner import tenant_key
from butler.rules.pool.admission import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.reports.estate import Estate


def rehearse(
    estate: Estate,
    now: datetime,
    *,
    tenants: Tenants | None = None,
    requests: Sequence[Single] = (),
    edit: Edit | None = None,
    check: Callable[[], None] = lambda: None,
) -> PlanOutcome:
    """What would happen. Raises `CannotPlan`; an edit that is refused leaves everything else unasked.

    `check` is called now and then, and may raise to end it.
    """
    stage = Rehearsal(estate, now, check)
    before = {name: _fill(stage, name) for name in stage.pools}
    waiting = [allocation.metadata.uid for allocation in stage.waiting()]
    edited = _edit(stage, estate, edit) if edit is not None else None
    provider = provider_for(stage, tenants) if tenants is not None else None
    served: tuple[TenantOutcome, ...] = ()
    single: tuple[Block, ...] = ()
    settled: tuple[Block, ...] = ()
    if edited is None or not edited.problems:
        stage.settle()
        settled = tuple(block_of(each) for uid in waiting if (each := stage.find(uid)))
        if tenants is not None and provider is not None:
            served = let_in(stage, provider, tenants)
        single = tuple(_ask(stage, number, request) for number, request in enumerate(requests, 1))
    concerned = _concerned(edit, provider, served, single)
    return PlanOutcome(
        edit=edited,
        provider=provider.metadata.name if provider is not None and tenants and tenants.by_a_provider else None,
        waiting=tuple(block for block in settled if block.pool in concerned or block.range is not None),
        tenants=served,
        requests=single,
        pools=tuple(_pools(stage, before, concerned)),
        shared=any(_comes_from_one_pool(outcome) for outcome in served),
    )


def edited_pool(pool: NetworkPool, edit: Edit) -> NetworkPool:
    """The pool as it would be."""
    spec = pool.spec
    if edit.cidr is not None:
        spec = msgspec.structs.replace(spec, cidr=edit.cidr)
    if edit.windows:
        windows = tuple(AddressRange(start=start, end=end) for start, end in edit.windows)
        one = windows[0] if len(windows) == 1 else None
        allocation = msgspec.structs.replace(
            spec.tenant_allocation or TenantAllocation(),
            start=one.start if one else None,
            end=one.end if one else None,
            ranges=() if one else windows,
        )
        spec = msgspec.structs.replace(spec, tenant_allocation=allocation)
    if edit.reserve:
        blocks = tuple(ReservedBlock(cidr=text) for text in edit.reserve)
        spec = msgspec.structs.replace(spec, reserved=(*spec.reserved, *blocks))
    return msgspec.structs.replace(pool, spec=spec)


def _edit(stage: Rehearsal, estate: Estate, edit: Edit) -> EditOutcome:
    """Do it on the stage, and say what admission would say."""
    old = stage.pools.get(edit.pool)
    if old is None:
        raise CannotPlan(f"there is no NetworkPool {edit.pool} in namespace {estate.home}")
    new = edited_pool(old, edit)
    verdict = judge(old, new, estate.pools, estate.allocations)
    already = stage.stranded(edit.pool)
    stage.edit(new)
    left_out = [stage.find(uid) for uid in stage.stranded(edit.pool) if uid not in already]
    return EditOutcome(
        pool=edit.pool,
        before=old.spec,
        after=new.spec,
        problems=verdict.problems,
        warnings=verdict.warnings,
        stranded=tuple(sorted(_stranded(left_out), key=lambda stranded: stranded.range)),
    )


def _stranded(allocations: Iterable[IPAllocation | None]) -> Iterator[StrandedRange]:
    for allocation in allocations:
        held = readable_range(allocation) if allocation is not None else None
        if allocation is not None and held is not None:
            yield StrandedRange(allocation.metadata.name, str(tenant_key(allocation)), held[1], held[0])


def _ask(stage: Rehearsal, number: int, wanted: Single) -> Block:
    if wanted.pool not in stage.pools:
        raise CannotPlan(f"there is no NetworkPool {wanted.pool} in namespace {stage.home}")
    stage.later()
    name = f"{NAMELESS}-request-{number}"
    uid = stage.ask(
        IPAllocation(
            metadata=ObjectMeta(name=name, namespace=stage.home),
            spec=IPAllocationSpec(
                pool_ref=LocalObjectReference(name=wanted.pool),
                tenant_cluster_ref=NamespacedObjectReference(name=name, namespace=NAMELESS),
                type=wanted.type,
                count=wanted.count,
            ),
        )
    )
    stage.serve(wanted.pool)
    asked = stage.find(uid)
    assert asked is not None
    return block_of(asked)


def _comes_from_one_pool(tenant: TenantOutcome) -> bool:
    granted = [block.pool for block in tenant.blocks if block.range is not None]
    return len(granted) > len(set(granted))


def _fill(stage: Rehearsal, name: str) -> FillEstimate | None:
    capacity = stage.capacity(name)
    if capacity is None:
        return None
    return FillEstimate(capacity, tuple(tier for tier, reached in tiers(capacity).items() if reached))


def _concerned(
    edit: Edit | None,
    provider: ProviderConfig | None,
    tenants: Sequence[TenantOutcome],
    blocks: Sequence[Block],
) -> dict[str, None]:
    """The pools that the answer speaks of, in the order in which they are tried."""
    refs = sorted(provider.spec.network.pool_refs, key=lambda ref: ref.priority) if provider is not None else ()
    every = [*blocks, *(block for tenant in tenants for block in tenant.blocks)]
    edited = [edit.pool] if edit is not None else []
    return dict.fromkeys([*edited, *(ref.name for ref in refs), *(block.pool for block in every)])


def _pools(stage: Rehearsal, before: Mapping[str, FillEstimate | None], names: Iterable[str]) -> Iterator[PoolOutcome]:
    for name in names:
        if name in stage.pools:
            yield PoolOutcome(name, stage.pools[name].spec.cidr, before.get(name), _fill(stage, name))
