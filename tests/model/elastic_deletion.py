"""The model of load-balancer addresses whose allocations a person deletes while the tenant lives.

It is the model of elastic addresses with one more thing that happens: an allocation is deleted by hand, and stays with
its finalizer. What that makes different is asked of Butler's own code (`elastic_product`): what is published still,
whether MetalLB may hand it out, when it is taken back, and what keeps it. The watch of a controller shows the Services
as they are, or none of them.

What must never be is as it was; besides, from every state a way leads on to where what was deleted is released, unless
a Service has its address or asks for it by name: that one has to go first, and then a way leads on, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from model import elastic_product as product
from model.elastic import ElasticModel
from model.elastic_controller import ControllerSteps, allocation_written
from model.elastic_state import Cached, Service, bits, claims, live_in
from model.search import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from model.elastic_controller import Happening
    from model.elastic_state import State, Tenant


class DeletionSteps(ControllerSteps):
    """A controller that knows of deletions."""

    def _watched(self) -> set[tuple[Service, ...]]:
        return {(), tuple(service._replace(spared=False) for service in self.tenant.services)}

    def _blocks(self) -> tuple[Cached, ...]:
        return tuple(block._replace(newest=True) for block in self.mind.cache)

    def _to_publish(self, blocks: int) -> Iterable[int]:
        there = self.tenant.pool.mask
        return sorted({product.published(self._blocks(), services, there) for services in self._watched()})

    def _hands_out(self, mask: int) -> bool:
        return product.hands_out(self._blocks(), self.tenant.services, mask)

    def _deleted_ones_go(self) -> Iterator[Happening]:
        """They are marked when no Service uses them, by the watch, and MetalLB was told all."""
        if not self.mind.well or not self.rules.deleted_ones_are_drained:
            return
        for mask in sorted({product.due(self._blocks(), services) for services in self._watched()}):
            for slot in bits(mask):
                if not self.rules.mark_before_withdrawing:
                    yield self._begins_unmarked(slot)
                elif self._may_write(slot):
                    after = self._allocated(slot, marked=True)
                    yield self._now(after.minds[self.who], f"marks g{slot + 1}, which was deleted", after)

    def _is_needed(self, slots: int, staying: int) -> bool:
        return product.is_needed(self._blocks(), self.tenant.services, staying, slots)


@dataclass(frozen=True)
class DeletionModel(ElasticModel):
    def is_well(self, state: State) -> bool:
        """Nothing is drained, all that stays is published, and what was deleted is released or in use."""
        return all(map(self._is_well, state.tenants))

    def _is_well(self, tenant: Tenant) -> bool:
        going = sum(
            1 << slot for slot, allocation in enumerate(tenant.allocations) if allocation.live and allocation.deleting
        )
        if (
            any(allocation.live and allocation.marked for allocation in tenant.allocations)
            or tenant.pool.mask != tenant.known
        ):
            return False
        used = [slot for slot in bits(going) if any(claims(service, 1 << slot) for service in tenant.services)]
        return len(used) == going.bit_count() and tenant.pool.mask & ~going == live_in(tenant) & ~going

    def steps(self, state: State) -> Iterator[Step[State]]:
        yield from super().steps(state)
        if not state.budget.deletions:
            return
        left = state.budget._replace(deletions=state.budget.deletions - 1)
        for index, tenant in enumerate(state.tenants):
            for slot, allocation in enumerate(tenant.allocations):
                if allocation.live and not allocation.deleting:
                    # Were it no wish, it would be released there and then.
                    deleted = allocation._replace(deleting=True, live=self.rules.deletion_is_a_wish)
                    after = allocation_written(self.rules, tenant, slot, deleted)
                    tenants = (*state.tenants[:index], after, *state.tenants[index + 1 :])
                    words = f"a person deletes the allocation of g{slot + 1}"
                    yield Step(words, state._replace(tenants=tenants, budget=left), outside=True)

    def _controller(self, tenant: Tenant, who: int) -> ControllerSteps:
        return DeletionSteps(self.rules, self.world, tenant, who)
