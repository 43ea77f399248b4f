"""What the model of node ranges that a person deletes is made of: the parts of a state, the guards, the bounds.

Each node range has one address. A write that is valid only for the version that was seen is valid as long as the object
looks as it was seen: here nothing ever looks again as it did before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

CONTROLLERS: Final = ("A", "B")
PROMPT, LATE = 0, 1
"""A sees everything at once; B sees all of it, or a part, when it likes."""

# Where a controller is, between two requests.
READ, APPLY, LIST, RELEASE = "read", "apply", "list", "release"


class Block(NamedTuple):
    held: bool = True
    """Allocated; else it was released."""
    deleting: bool = False
    marked: bool = False
    """It is taken out of use, for good."""
    insisted: bool = False
    """A person vouches for nothing using it."""


class Cluster(NamedTuple):
    wanted: int
    """How many machines there should be."""
    started: bool = True
    """Its status says that it is built."""
    deleting: bool = False
    gone: bool = False
    mark: int = -1
    """The block that it gives back, not being built."""
    namespace: bool = True


class Objects(NamedTuple):
    """What Cluster API was told: which blocks machines get addresses of, and how many there are to be."""

    named: int = 0
    replicas: int = 0


class Machine(NamedTuple):
    block: int
    shows: bool = False
    """It says which address it has."""


class Facts(NamedTuple):
    blocks: tuple[Block, ...]
    cluster: Cluster
    objects: Objects | None
    machines: tuple[Machine, ...] = ()


class Job(NamedTuple):
    """What a controller is about to do."""

    stage: str
    blocks: tuple[Block, ...]
    """The blocks as it saw them."""
    objects: Objects | None = None
    """What it is to write."""
    seen: Objects | None = None
    """What it saw."""
    going: int = 0
    """The blocks that it takes back."""


class Budget(NamedTuple):
    deletions: int = 1
    insists: int = 0
    cluster_deletions: int = 0
    scalings: int = 0
    machine_deletions: int = 0
    crashes: int = 0


class State(NamedTuple):
    now: Facts
    late: Facts
    """As B sees it."""
    jobs: tuple[Job | None, ...]
    budget: Budget


@dataclass(frozen=True)
class Rules:
    """The guards; each can be taken away."""

    deletion_is_a_wish: bool = True
    """Or else a block is released when it is deleted."""
    list_machines_before_releasing: bool = True
    release_for_the_version_seen: bool = True
    no_machines_are_asked_for: bool = True
    """Where nothing is left to write objects with, they are read afresh: they must not ask for machines."""
    mark_before_taking_back: bool = True
    """On the allocation, so that a process that reads it afresh does not use it any more."""
    what_goes_gets_no_more_machines: bool = True
    """Where a block that is marked is the only one, and machines have it all the same."""
    read_before_writing: bool = True
    """Allocations are read afresh before objects that name them are written."""
    begin_for_the_version_seen: bool = True
    """A cluster says that it is built, or names what it gives back, valid only for the version that was seen."""
    namespace_goes_before_addresses: bool = True
    """Of a cluster that is deleted."""
    deleted_ones_are_taken_back: bool = True


@dataclass(frozen=True)
class World:
    blocks: int = 2
    wanted: int = 1
    scaled_to: tuple[int, ...] = ()
    built: bool = True
    late: bool = True
    sleeps_before_writing: bool = False
    """A controller may stop between reading allocations afresh and writing objects; else the two are one step."""
    budget: Budget = field(default_factory=Budget)


def bits(mask: int) -> list[int]:
    return [slot for slot in range(mask.bit_length()) if mask >> slot & 1]


def told(mask: int) -> str:
    return "+".join(f"n{slot + 1}" for slot in bits(mask)) or "no node range"
