"""The model of elastic addresses: two controllers, a tenant or two, MetalLB, and people with their Services.

The addresses g1, g2 are those that come and go; each is one allocation, granted to a tenant, released, and granted to
the same tenant or another. That no address is granted to two at once is what the model of allocations shows, and is
taken for granted here. What a cluster began with is in its pool besides, always, and used up; only a world without
that (`initial=False`) can see the pool itself deleted.

MetalLB takes in the newest pool, at any time; whatever it takes in late is the same as what it did not hear. Then it
looks at one Service at a time: one whose address is not in the pool that it knows loses it, or gets another; one
without is given a free one, if autoAssign is on or it asks by name or by pool. It counts the addresses that it knows in
the pool's status, later or never. People create and delete Services, and change the pool by hand.

What must never be:
  - an address in a tenant's pool that is not allocated to the tenant (S5);
  - an address that a Service has and that is not allocated to its tenant (S4);
  - an automatic Service that loses its address because Butler withdrew it;
  - any Service that loses it though Butler had broken the drain off for its sake.
And from every state a way leads on, without help from outside, to where all is published and nothing is drained.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from model.elastic_controller import ControllerSteps, allocation_written, arrives, began, pool_written
from model.elastic_state import (
    AUTOMATIC,
    BY_ADDRESS,
    CONTROLLERS,
    FORMER,
    LATELY,
    NO_SERVICE,
    SERVICES,
    SETTLED,
    SIGNS,
    Allocation,
    Budget,
    Late,
    Mind,
    Pool,
    Rules,
    Service,
    State,
    Tenant,
    World,
    bits,
    live_in,
    pool_told,
)
from model.search import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_POOL = Pool(exists=False, mask=0, auto=True)


@dataclass(frozen=True)
class ElasticModel:
    rules: Rules = field(default_factory=Rules)
    world: World = field(default_factory=World)
    asks: tuple[str, ...] = ("S4", "S5", "moved")
    """What must never be; fewer, to ask about one alone. "any moved": a Service that asks by name must not, either."""

    def initial(self) -> State:
        world, tenants = self.world, []
        for index in range(world.tenants):
            held = (1 << world.addresses) - 1 if index == 0 and world.granted else 0
            allocation = Allocation(1, live=True) if held else Allocation()
            pool = Pool(exists=True, mask=held, auto=True) if held or world.initial else NO_POOL
            tenant = Tenant(
                allocations=(allocation,) * world.addresses,
                pool=pool,
                known=held,
                known_auto=True,
                taken_in=True,
                shown=held.bit_count() if pool.exists and world.metallb == SIGNS else -1,
                services=(),
                minds=(),
            )
            minds = (began(tenant)._replace(well=True),) * len(CONTROLLERS)
            tenants.append(tenant._replace(minds=minds))
        return State(tuple(tenants), world.budget)

    # What must never be.

    def broken(self, state: State) -> str:
        for tenant in state.tenants:
            live = live_in(tenant)
            if tenant.pool.mask & ~live and "S5" in self.asks:
                return f"S5: g{bits(tenant.pool.mask & ~live)[0] + 1} is in the pool and not the tenant's"
            for service in tenant.services if "S4" in self.asks else ():
                if service.address >= 0 and not live >> service.address & 1:
                    return f"S4: {SERVICES[service.kind]} has g{service.address + 1}, which is not the tenant's"
        return ""

    def unfinished(self, state: State) -> str:
        return "" if self.is_well(state) else "nothing happens any more, and not all is published"

    def is_well(self, state: State) -> bool:
        """All that a tenant has is published and taken in, and nothing is drained."""
        return all(
            not any(allocation.live and allocation.marked for allocation in tenant.allocations)
            and tenant.pool.mask == tenant.known == live_in(tenant)
            and tenant.pool.auto
            and tenant.known_auto
            for tenant in state.tenants
        )

    # What may happen.

    def steps(self, state: State) -> Iterator[Step[State]]:
        for index, tenant in enumerate(state.tenants):
            place = f"tenant {index + 1}: " if len(state.tenants) > 1 else ""
            for words, after, outside, broken, budget in self._in(tenant, state.budget):
                tenants = (*state.tenants[:index], after, *state.tenants[index + 1 :])
                yield Step(f"{place}{words}", State(tenants, budget), broken, outside=outside)
        yield from self._grants(state)

    def _in(self, tenant: Tenant, budget: Budget) -> Iterator[tuple[str, Tenant, bool, str, Budget]]:
        for who, name in enumerate(CONTROLLERS):
            controller = self._controller(tenant, who)
            for words, after in controller.steps():
                yield words, after, False, "", budget
            if budget.marks:
                for words, after in controller.begins():
                    yield words, after, True, "", budget._replace(marks=budget.marks - 1)
            if budget.given_up:
                for words, after in controller.given_up():
                    yield words, after, True, "", budget._replace(given_up=budget.given_up - 1)
            if self.world.crashes:
                yield f"{name} dies, and another process begins", _crashed(tenant, who), True, "", budget
        for late in tenant.late:
            words, after = arrives(self.rules, tenant, late)
            yield words, after, True, "", budget
        for words, after, broken in self._metallb(tenant):
            yield words, after, False, broken, budget
        yield from self._people(tenant, budget)

    def _controller(self, tenant: Tenant, who: int) -> ControllerSteps:
        return ControllerSteps(self.rules, self.world, tenant, who)

    def _grants(self, state: State) -> Iterator[Step[State]]:
        if not state.budget.grants:
            return
        budget = state.budget._replace(grants=state.budget.grants - 1)
        for slot in range(self.world.addresses):
            if any(tenant.allocations[slot].live for tenant in state.tenants):
                continue
            for index, tenant in enumerate(state.tenants):
                granted = Allocation(tenant.allocations[slot].uid + 1, live=True)
                after = allocation_written(self.rules, tenant, slot, granted)
                tenants = (*state.tenants[:index], after, *state.tenants[index + 1 :])
                yield Step(f"g{slot + 1} is granted to tenant {index + 1}", State(tenants, budget), outside=True)

    # MetalLB.

    def _metallb(self, tenant: Tenant) -> Iterator[tuple[str, Tenant, str]]:
        pool = tenant.pool
        if not tenant.taken_in:
            minds = tuple(map(_seen, tenant.minds)) if self.world.metallb != SIGNS else tenant.minds
            if self.world.metallb == SIGNS:
                minds = tuple(mind._replace(signed=True) for mind in minds)
            after = tenant._replace(known=pool.mask, known_auto=pool.auto, taken_in=True, minds=minds)
            after = after._replace(by_hand=tenant.by_hand & ~pool.mask)
            yield f"MetalLB takes in the pool: {pool_told(pool)}", after, ""
        if self.world.metallb == SIGNS and pool.exists and tenant.shown != tenant.known.bit_count():
            yield "MetalLB counts its addresses in the pool", tenant._replace(shown=tenant.known.bit_count()), ""
        taken = sum(1 << item.address for item in tenant.services if item.address >= 0)
        for index, service in enumerate(tenant.services):
            yield from self._serve(tenant, index, service, tenant.known & ~taken)

    def _serve(self, tenant: Tenant, index: int, service: Service, free: int) -> Iterator[tuple[str, Tenant, str]]:
        called = SERVICES[service.kind]
        if service.kind == NO_SERVICE or (service.address >= 0 and tenant.known >> service.address & 1):
            return
        choices = bits(free & 1) if service.kind == BY_ADDRESS else bits(free)
        if service.kind == AUTOMATIC and not tenant.known_auto:
            choices = []
        if service.address < 0:
            for address in choices:
                served = service._replace(address=address)
                yield f"MetalLB gives {called} g{address + 1}", _served(tenant, index, served), ""
            return
        for address in choices or [-1]:
            moved = service._replace(address=address, spared=False)
            words = f"MetalLB takes g{service.address + 1} from {called}"
            yield words, _served(tenant, index, moved), self._lost(tenant, service)

    def _lost(self, tenant: Tenant, service: Service) -> str:
        if tenant.by_hand >> service.address & 1 or not {"moved", "any moved"} & {*self.asks}:
            return ""
        if "any moved" in self.asks:
            return f"moved: {SERVICES[service.kind]} loses g{service.address + 1}"
        if service.kind == AUTOMATIC:
            return f"moved: an automatic Service loses g{service.address + 1}"
        return f"moved: {SERVICES[service.kind]} loses it though it was spared" if service.spared else ""

    # People.

    def _people(self, tenant: Tenant, budget: Budget) -> Iterator[tuple[str, Tenant, bool, str, Budget]]:
        for index, service in enumerate(tenant.services):
            rest = (*tenant.services[:index], *tenant.services[index + 1 :])
            called = SERVICES[service.kind]
            yield f"{called} is deleted", tenant._replace(services=rest), True, "", budget
            if self.world.lingering and not service.leaving:
                leaving = _served(tenant, index, service._replace(leaving=True))
                yield f"{called} is being deleted", leaving, True, "", budget
        if budget.services:
            for kind in self.world.kinds:
                services = tuple(sorted((*tenant.services, Service(kind))))
                left = budget._replace(services=budget.services - 1)
                yield f"{SERVICES[kind]} is created", tenant._replace(services=services), True, "", left
        if budget.edits and tenant.pool.exists:
            left = budget._replace(edits=budget.edits - 1)
            pool = tenant.pool
            edits = {
                NO_POOL,
                pool._replace(auto=not pool.auto),
                *(pool._replace(mask=pool.mask & ~(1 << slot)) for slot in bits(pool.mask)),
            }
            for edited in sorted(edits):
                after = pool_written(self.rules, tenant, edited)
                after = after._replace(by_hand=after.by_hand | (pool.mask & ~edited.mask))
                yield f"a user makes the pool {pool_told(edited)} by hand", after, True, "", left

    # Who is who does not matter.

    def canonical(self, state: State) -> State:
        return min(state, state._replace(tenants=tuple(map(_swapped, state.tenants))))


def _seen(mind: Mind) -> Mind:
    if mind.held != LATELY and LATELY not in mind.out:
        return mind
    held = SETTLED if mind.held == LATELY else mind.held
    return mind._replace(held=held, out=tuple(SETTLED if number == LATELY else number for number in mind.out))


def _served(tenant: Tenant, index: int, service: Service) -> Tenant:
    services = sorted((*tenant.services[:index], service, *tenant.services[index + 1 :]))
    return tenant._replace(services=tuple(services))


def _crashed(tenant: Tenant, who: int) -> Tenant:
    gone = {who + 1: FORMER}
    minds = [_renamed(mind, gone) for mind in tenant.minds]
    minds[who] = began(tenant)
    late = tuple(item._replace(pool=_named(item.pool, gone)) for item in tenant.late)
    return tenant._replace(minds=tuple(minds), pool=_named(tenant.pool, gone), late=late)


def _named(pool: Pool, names: dict[int, int]) -> Pool:
    return pool._replace(by=names[pool.by]) if pool.by in names else pool


def _renamed(mind: Mind, names: dict[int, int]) -> Mind:
    pool = mind.job.pool
    return mind._replace(job=mind.job._replace(pool=_named(pool, names))) if pool.by in names else mind


SWAP = {1: 2, 2: 1}


def _swapped(tenant: Tenant) -> Tenant:
    first, second = tenant.minds
    late: tuple[Late, ...] = tenant.late
    if late:
        late = tuple(sorted(item._replace(pool=_named(item.pool, SWAP)) for item in late))
    return tenant._replace(
        minds=(_renamed(second, SWAP), _renamed(first, SWAP)), pool=_named(tenant.pool, SWAP), late=late
    )
