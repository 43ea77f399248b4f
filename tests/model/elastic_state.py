"""What the model of elastic addresses is made of: the parts of a state, the guards, the bounds.

Everything is a number, a flag or a tuple of them, so that states can be compared, hashed and sorted. Sets of addresses
are bit masks. No version is ever a number: a version is only compared with the newest, so a process that has read
something has a flag that says whether it is still the newest, and every write lowers the flags of all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

CONTROLLERS: Final = ("A", "B")
NO_NAME, FORMER = 0, 3  # whose name stands on the pool: none, 1 and 2 for the controllers, a process that is gone

# How MetalLB keeps up.
PROMPT: Final = "it takes in a change of its pool while Butler waits for it to settle"
SIGNS: Final = "it takes as long as it likes, and shows what it has taken in as version 0.15 does"
MUTE: Final = "it takes as long as it likes, and shows nothing"

# Services: automatic, asking for the first address by name, naming the pool.
NO_SERVICE, AUTOMATIC, BY_ADDRESS, BY_POOL = range(4)
SERVICES: Final = ("", "an automatic Service", "a Service that asks for g1", "a Service that names the pool")

# Where a controller is in its work, and what a write of the pool is for.
IDLE, SIGN, FRESH, WRITE, CONFIRM, LIST_INSIDE, LIST_OUTSIDE, UNMARK, RELEASE = range(9)
PUBLISH, HOLD, WITHDRAW, STAMP = range(4)
PURPOSES: Final = ("publish", "hold back", "withdraw", "stamp")

# How long ago something was done, in the only respect that counts: whether MetalLB has taken it in since.
NOT, LATELY, SETTLED = range(3)


class Allocation(NamedTuple):
    uid: int = 0
    live: bool = False
    """Allocated; before that there is nothing to publish, and after that it is Released."""
    marked: bool = False
    deleting: bool = False
    """A person deleted it, and its finalizer holds it."""


class Cached(NamedTuple):
    """An allocation as a controller knows it."""

    uid: int = 0
    live: bool = False
    marked: bool = False
    deleting: bool = False
    newest: bool = True


class Pool(NamedTuple):
    """`default-pool` on the tenant. What the cluster began with stands in it besides, and is not told."""

    exists: bool
    mask: int
    auto: bool
    by: int = NO_NAME


class Service(NamedTuple):
    kind: int = NO_SERVICE
    address: int = -1
    leaving: bool = False
    """It is being deleted, and its finalizer holds it."""
    spared: bool = False
    """A drain was broken off because it had its address."""


class Job(NamedTuple):
    """What a controller is about, between two requests."""

    stage: int = IDLE
    purpose: int = PUBLISH
    pool: Pool = Pool(exists=False, mask=0, auto=True)
    """The pool as it was read; from WRITE on, as it is to be."""
    newest: bool = True
    """Whether it has not been written since it was read."""
    creates: bool = False
    blocks: int = 0
    unread: int = 0
    """What is to be read afresh before it is added (or dropped)."""
    passed: int = 0
    complete: bool = True
    slots: int = 0
    """What is drained."""


AT_REST: Final = Job()


class Mind(NamedTuple):
    """A controller, as far as one tenant is concerned."""

    cache: tuple[Cached, ...]
    well: bool = False
    """MetalLB was told all, as far as is known: only then something is taken back."""
    held: int = NOT
    signed: bool = False
    """MetalLB has read its pools since its sign was read."""
    out: tuple[int, ...] = ()
    job: Job = AT_REST


class Late(NamedTuple):
    """A write on its way whose process has given it up, or died: of the pool, or of an allocation."""

    purpose: int
    """As for the pool; UNMARK or RELEASE, counted on, for an allocation."""
    pool: Pool
    creates: bool = False
    slot: int = 0


class Tenant(NamedTuple):
    allocations: tuple[Allocation, ...]
    pool: Pool
    known: int
    known_auto: bool
    """The pool as MetalLB has taken it in."""
    taken_in: bool
    """Whether that is the newest."""
    shown: int
    """How many addresses the pool's status counts; -1 before it says anything."""
    services: tuple[Service, ...]
    minds: tuple[Mind, ...]
    by_hand: int = 0
    """Addresses that a user took out of the pool by hand."""
    late: tuple[Late, ...] = ()


class Budget(NamedTuple):
    """How often the world outside may still do something."""

    marks: int = 1
    """How often something may be due to be taken back."""
    services: int = 1
    grants: int = 0
    """How often an address that is free is handed out again."""
    edits: int = 0
    """How often a user changes the pool by hand."""
    given_up: int = 0
    deletions: int = 0
    """How often a person deletes an allocation."""


class State(NamedTuple):
    tenants: tuple[Tenant, ...]
    budget: Budget


@dataclass(frozen=True)
class Rules:
    """The guards of the protocol as it is built; each can be taken away."""

    mark_before_withdrawing: bool = True
    fresh_read_before_adding: bool = True
    marked_is_never_added: bool = True
    pool_for_the_version_read: bool = True
    create_when_absent: bool = True
    pool_is_read_before_the_list: bool = True
    nothing_is_handed_out_meanwhile: bool = True
    """autoAssign: false while Services are looked at."""
    wait_before_the_list: bool = True
    list_before_withdrawing: bool = True
    name_on_the_pool: bool = True
    read_back: bool = True
    wait_before_the_release: bool = True
    list_before_the_release: bool = True
    release_for_the_version_marked: bool = True
    marks_for_the_version_seen: bool = True

    # What the model showed to be missing at first.
    drops_only_what_is_gone: bool = True
    """An entry of the pool that one does not know is taken out only after its allocation was looked for afresh."""
    stamp_what_is_out_already: bool = True
    """Who finds a marked block outside the pool writes the pool, if only a mark of its own, before the release."""
    waits_belong_to_one_mark: bool = True
    """A block that was marked anew is waited for anew."""
    held_only_when_answered: bool = True
    """Whose write is not answered has not held anything back: an older hold does not count for a newer one."""
    every_hold_is_written: bool = True
    """Each hold has a name of its own, not only each process: so it changes the pool even if nothing else does."""
    stamps_hold_nothing: bool = True
    """A stamp looks like a hold where only blocks that were deleted are left; it is waited for anew all the same."""
    count_is_right_before_withdrawing: bool = True
    """The pool's status has to count the block while it is inside, or its not counting it later says nothing."""

    # For allocations that a person deletes.
    deletion_is_a_wish: bool = True
    """It stays Allocated until it is drained; else it is released when it is deleted."""
    deleted_ones_are_drained: bool = True

    # What is not built.
    last_block_stays: bool = False
    """The pool is never emptied by a drain: Butler could not tell a pool that was never there from one that is gone.
    But a tenant that began with no addresses is to give back all that it got."""
    sign_is_read_after_the_hold: bool = False
    """MetalLB has to read its pools once more after the hold was read back, and not only after it was decided on:
    what it would take to rely on signs alone, however long MetalLB hangs."""


@dataclass(frozen=True)
class World:
    metallb: str = PROMPT
    initial: bool = True
    """Whether the cluster has addresses besides, that stay."""
    addresses: int = 1
    tenants: int = 1
    kinds: tuple[int, ...] = (AUTOMATIC,)
    granted: bool = True
    """The first tenant has all addresses at first, published and taken in; else they are free."""
    crashes: bool = True
    lingering: bool = False
    """Services that are deleted may stay for a while."""
    budget: Budget = field(default_factory=Budget)


def bits(mask: int) -> list[int]:
    return [slot for slot in range(mask.bit_length()) if mask >> slot & 1]


def blocks_in(mind: Mind) -> int:
    return sum(1 << slot for slot, allocation in enumerate(mind.cache) if allocation.live)


def draining_in(mind: Mind) -> int:
    return sum(1 << slot for slot, allocation in enumerate(mind.cache) if allocation.live and allocation.marked)


def live_in(tenant: Tenant) -> int:
    return sum(1 << slot for slot, allocation in enumerate(tenant.allocations) if allocation.live)


def told(mask: int) -> str:
    return "+".join(f"g{slot + 1}" for slot in bits(mask)) or "nothing more"


def waits(service: Service) -> bool:
    """Demand: MetalLB would serve it, had it an address. One that asks by name is none."""
    return service.kind in (AUTOMATIC, BY_POOL) and service.address < 0 and not service.leaving


def claims(service: Service, mask: int) -> bool:
    """Whether it has one of these addresses, or asks for one."""
    if service.address >= 0 and mask >> service.address & 1:
        return True
    return service.kind == BY_ADDRESS and not service.leaving and bool(mask & 1)


def pool_told(pool: Pool) -> str:
    """A tenant's pool in words."""
    if not pool.exists:
        return "no pool"
    held = "" if pool.auto else ", autoAssign off"
    by = ("", *(f", by {name}" for name in CONTROLLERS), ", by one that is gone")[pool.by]
    return f"{told(pool.mask)}{held}{by}"
