"""The numbers that tell the blocks of a tenant apart: they are counted anew after each step, so that states are few."""

from __future__ import annotations

from model.blocks_state import Block, Facts, Intent, Job, Name, Pool, State, Tenant


def next_uid(state: State, tenant: int, kind: int) -> int:
    """A number for a new block."""
    return max(_uids(state).get((tenant, kind), [0])) + 1


def _uids(state: State) -> dict[tuple[int, int], list[int]]:
    """The numbers that blocks of each tenant and kind are known by, anywhere."""
    found: dict[tuple[int, int], set[int]] = {}

    def note(tenant: int, name: Name | None) -> None:
        if name is not None:
            found.setdefault((tenant, name.kind), set()).add(name.uid)

    for facts in (state.now, state.late):
        for tenant, own in enumerate(facts.blocks):
            note(tenant, facts.tenants[tenant].mark)
            for kind, block in enumerate(own):
                note(tenant, None if block is None else Name(kind, block.uid))
        for pool in facts.pools:
            for intent in pool.intents:
                note(intent.tenant, intent.name)
    for job in state.jobs:
        for name in () if job is None else (*job.blocks, job.seen.mark):
            note(job.tenant if job else 0, name)
    for tenant, names in enumerate(state.machines):
        for name in names:
            note(tenant, name)
    return {slot: sorted(uids) for slot, uids in found.items()}


def renumbered(state: State) -> State:
    """The same with the numbers that only tell blocks apart counted from 1, so that there are few states."""
    known = _uids(state)
    if all(uids == list(range(1, len(uids) + 1)) for uids in known.values()):
        return state
    numbers = {slot: {uid: at + 1 for at, uid in enumerate(uids)} for slot, uids in known.items()}

    def name_of(tenant: int, name: Name) -> Name:
        return Name(name.kind, numbers[tenant, name.kind][name.uid])

    def tenant_of(index: int, tenant: Tenant) -> Tenant:
        return tenant if tenant.mark is None else tenant._replace(mark=name_of(index, tenant.mark))

    def block_of(tenant: int, kind: int, block: Block | None) -> Block | None:
        return None if block is None else block._replace(uid=numbers[tenant, kind][block.uid])

    def pool_of(pool: Pool) -> Pool:
        intents = [Intent(intent.tenant, name_of(intent.tenant, intent.name), intent.first) for intent in pool.intents]
        return pool._replace(intents=tuple(sorted(intents)))

    def facts_of(facts: Facts) -> Facts:
        return facts._replace(
            tenants=tuple(tenant_of(index, tenant) for index, tenant in enumerate(facts.tenants)),
            blocks=tuple(
                tuple(block_of(tenant, kind, block) for kind, block in enumerate(own))
                for tenant, own in enumerate(facts.blocks)
            ),
            pools=tuple(map(pool_of, facts.pools)),
        )

    def job_of(job: Job | None) -> Job | None:
        if job is None:
            return None
        blocks = tuple(name_of(job.tenant, name) for name in job.blocks)
        return job._replace(blocks=blocks, seen=tenant_of(job.tenant, job.seen))

    machines = tuple(tuple(name_of(tenant, name) for name in names) for tenant, names in enumerate(state.machines))
    return State(facts_of(state.now), facts_of(state.late), tuple(map(job_of, state.jobs)), machines, state.budget)
