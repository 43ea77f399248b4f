"""What the model of tenants' blocks is made of: the parts of a state, the guards, the bounds.

Each tenant wants two blocks, one for nodes and one for load balancers. A block that was released is not there any more:
the record that stays for audit holds nothing. Versions are not counted: a write that is valid only for the version that
was seen is valid as long as the object looks as it was seen, which allows a little more than the server does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

PENDING, FAILED, ALLOCATED = "Pending", "Failed", "Allocated"
NODES, BALANCERS = 0, 1
KINDS: Final = (NODES, BALANCERS)
KIND_NAMES: Final = ("nodes", "balancers")
CONTROLLERS: Final = ("A", "B")
PROMPT, LATE = 0, 1
"""A sees everything at once; B sees all of it, or a part, when it likes."""

# Where a controller is, between two requests.
ASK, BEGIN, READ, APPLY, RELEASE = "ask", "begin", "read", "apply", "release"


class Name(NamedTuple):
    """A block, as nothing else is called, ever."""

    kind: int
    uid: int
    """Counts the blocks that a tenant had of this kind."""


class Block(NamedTuple):
    uid: int
    phase: str = PENDING
    reason: str = ""
    """Why it was refused."""
    first: int = 0
    """Its first address in its pool, from 1."""


class Intent(NamedTuple):
    tenant: int
    name: Name
    first: int


class Pool(NamedTuple):
    size: int
    intents: tuple[Intent, ...] = ()
    available: int = 0
    largest: int = 0
    """What its status says of its free addresses."""


class Tenant(NamedTuple):
    mark: Name | None = None
    """The block that it gives back, as its annotation says."""
    started: bool = False
    """Its status names its namespace: it counts as built."""
    labelled: bool = False
    """A person's edit, which means nothing but another version."""


class Facts(NamedTuple):
    """Everything that a controller can see."""

    tenants: tuple[Tenant, ...]
    namespaces: tuple[bool, ...]
    blocks: tuple[tuple[Block | None, ...], ...]
    pools: tuple[Pool, ...]


class Job(NamedTuple):
    """What a controller is about to do for a tenant."""

    stage: str
    tenant: int
    seen: Tenant
    """The tenant as the controller saw it."""
    blocks: tuple[Name, ...]
    """What it builds with, or the one that it releases."""


class Budget(NamedTuple):
    crashes: int = 0
    edits: int = 0
    """How often a pool may be edited."""
    labels: int = 0
    """How often a person may label a cluster, or take the label off."""


class State(NamedTuple):
    now: Facts
    late: Facts
    """As B sees it."""
    jobs: tuple[Job | None, ...]
    machines: tuple[tuple[Name, ...], ...]
    """The blocks that machines of each tenant were made with; none: there are no machines."""
    budget: Budget


@dataclass(frozen=True)
class Rules:
    """The guards; each can be taken away."""

    asked_together: bool = True
    """Requests say that they are granted together; else pools grant each by itself."""
    reserve_for_the_version_decided_on: bool = True
    halves_are_given_back: bool = True
    younger_ones_first: bool = True
    mark_before_releasing: bool = True
    mark_for_the_version_seen: bool = True
    marks_stay: bool = True
    """A mark is not replaced as long as the tenant has the block that it names."""
    look_for_marks: bool = True
    """Who builds goes on only with blocks that are not given back."""
    begin_for_the_version_seen: bool = True
    """The status says that the cluster is built before it is, and is valid only for the cluster that was looked at."""
    all_that_is_not_built_begins: bool = True
    """Also where the namespace is there: its maker may not have begun."""
    read_before_making_machines: bool = True
    """Of a cluster that is built, node allocations are read afresh before objects that name them are written."""
    namespaces_are_left_alone: bool = True
    """Who finds a block given back does not take the namespace away: another one may build in it by now."""
    only_machines_are_in_the_way: bool = True
    """A namespace alone does not keep a block that is marked: its maker may be dead."""


@dataclass(frozen=True)
class World:
    tenants: int = 2
    pools: tuple[int, ...] = (1, 1)
    """How many addresses each pool has. One pool: for both kinds; two: one for each."""
    edited: tuple[int, ...] = ()
    """How many it has by a person's edit; another one may take that back."""
    sizes: tuple[int, int] = (1, 1)
    """How many addresses a block of each kind has."""
    late: bool = True
    """Whether B is there."""
    patient: bool = False
    """An older tenant waits for younger ones as long as it takes; else until it likes no more."""
    others_are_overdue: bool = False
    """A request whose tenant has not asked for its other block is refused at once; else it waits in silence."""
    budget: Budget = field(default_factory=Budget)

    def pool_of(self, kind: int) -> int:
        return kind if len(self.pools) > 1 else 0
