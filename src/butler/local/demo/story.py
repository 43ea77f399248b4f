"""What happens next in the demo, given what is there: the worked example of the operations page, in acts. Pure.

A wave is told in acts: eight clusters come; their Services come and go, and a third one in a cluster makes it grow;
guests come until the pool warns, is critical, is full and one of them waits; the operator grows the pool; the guests
leave, and the operator takes back what was added. Then the next wave, most of them gentler: it is never over and never
grows beyond `PEAKS`.

An act looks at the scene and says what is missing to its end, so it does not matter who brought things about: an act
whose end is there already is over at once, and what a user deletes comes again. An act that gets nowhere (a user
holds the addresses that it waits for) ends after so many beats. Where the story stands is a `Cursor`, which is all that
has to be kept for it to go on after a restart. Chance is drawn from the seed and the cursor.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.local.demo.cast import EIGHT, GUESTS, SERVICES
from butler.local.demo.scene import DemoService, DemoTenant, Scene, tier

if TYPE_CHECKING:
    from collections.abc import Callable

INITIAL: Final = 2
"""Addresses that a cluster starts with."""
PEAKS: Final = (17, 12, 14)
"""How many clusters a wave comes to, wave by wave: 12 make the pool warn, 14 are critical, the 17th waits."""
PUBLISHING: Final = 5
"""How many of the eight have a Service beside the ingress: both their addresses are in use."""
GROWING: Final = 2
"""How many of these then want a third address."""
CALM: Final = (4, 9)
"""Between how many Services it goes to and fro when nothing else happens."""


# Steps.


@dataclass(frozen=True, slots=True)
class Come:
    """A team asks for a cluster."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Leave:
    """A team gives its cluster back."""

    tenant: DemoTenant


@dataclass(frozen=True, slots=True)
class Publish:
    """A team wants an address for one more Service."""

    tenant: DemoTenant
    service: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """A team takes a Service down."""

    tenant: DemoTenant
    service: DemoService


@dataclass(frozen=True, slots=True)
class Grow:
    """The operator makes the pool larger."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The operator makes the pool as small as it was."""


@dataclass(frozen=True, slots=True)
class StoryWait:
    """Nothing: something is under way."""


Step = Come | Leave | Publish | Withdraw | Grow | TakeBack | StoryWait


class Cursor(NamedTuple):
    """Where the story stands."""

    wave: int = 0
    act: int = 0
    beat: int = 0


@dataclass(frozen=True, slots=True)
class StoryMoment:
    """What an act may look at."""

    scene: Scene
    cursor: Cursor
    chance: random.Random

    @property
    def peak(self) -> int:
        return PEAKS[self.cursor.wave % len(PEAKS)]


class Act(NamedTuple):
    title: str
    next: Callable[[StoryMoment], Step | None]
    beats: int


class Turn(NamedTuple):
    step: Step
    cursor: Cursor
    """Where the story stands after the step."""
    pause: float
    """Seconds until the next one."""
    title: str | None
    """Of the act that begins with this step."""


# Acts.


def eight_come(moment: StoryMoment) -> Step | None:
    here = {tenant.key: tenant for tenant in moment.scene.tenants}
    for role in EIGHT:
        if role not in here and role not in moment.scene.taken:
            return Come(*role)
    return StoryWait() if _unsettled(moment.scene) else None


def services_come(moment: StoryMoment) -> Step | None:
    have = [tenant for tenant in moment.scene.here if tenant.services]
    if len(have) >= PUBLISHING:
        return None
    return _publish(moment, [tenant for tenant in moment.scene.here if tenant.open and not tenant.services])


def third_services(moment: StoryMoment) -> Step | None:
    if sum(_extra(tenant) > 0 for tenant in moment.scene.here) >= GROWING:
        return None
    return _publish(moment, [tenant for tenant in moment.scene.here if tenant.open and _count(tenant) == 1])


def third_services_go(moment: StoryMoment) -> Step | None:
    for tenant in moment.scene.here:
        if tenant.open and tenant.services and _extra(tenant) > 0:
            return Withdraw(tenant, tenant.services[-1])
    given_back = all(
        tenant.held <= INITIAL for tenant in moment.scene.here if not _extra(tenant) and not tenant.lived_in
    )
    return None if given_back else StoryWait()


def guests_come(moment: StoryMoment) -> Step | None:
    scene = moment.scene
    if any(tenant.waiting for tenant in scene.here):
        return None
    if len(scene.here) >= moment.peak:
        return StoryWait() if _unsettled(scene) else None
    there = {tenant.key for tenant in scene.tenants}
    # Of the eight, too, if a user has deleted one.
    free = [role for role in (*EIGHT, *GUESTS) if role not in there and role not in scene.taken]
    return Come(*free[0]) if free else None


def a_service_waits_too(moment: StoryMoment) -> Step | None:
    """Where a cluster waits, a Service that wants a third address waits as well."""
    if not any(tenant.waiting for tenant in moment.scene.here) or any(
        _extra(tenant) > 0 for tenant in moment.scene.here
    ):
        return None
    return _publish(moment, [tenant for tenant in moment.scene.here if tenant.open and _count(tenant) == 1])


def pool_grows(moment: StoryMoment) -> Step | None:
    waits = any(tenant.waiting for tenant in moment.scene.here)
    return Grow() if waits and moment.scene.pool.size == "small" else None


def waiting_ones_get_theirs(moment: StoryMoment) -> Step | None:
    return StoryWait() if any(not tenant.ready for tenant in moment.scene.here) else None


def guests_leave(moment: StoryMoment) -> Step | None:
    """All of them where the pool is to become small again, else all but a few."""
    stay = 0 if moment.scene.pool.size == "grown" else moment.cursor.wave % 3
    guests = [tenant for tenant in moment.scene.here if tenant.key in GUESTS and not tenant.lived_in]
    if len(guests) > stay:
        return Leave(moment.chance.choice(guests))
    return StoryWait() if any(tenant.leaving for tenant in moment.scene.tenants) else None


def pool_is_taken_back(moment: StoryMoment) -> Step | None:
    return TakeBack() if moment.scene.pool.size == "grown" else None


def calm(moment: StoryMoment) -> Step | None:
    """Services come and go, never many."""
    few, many = CALM
    open_ = [tenant for tenant in moment.scene.here if tenant.open]
    number = sum(_count(tenant) for tenant in open_)
    if number >= many or (number > few and moment.chance.random() < 0.5):
        having = [tenant for tenant in open_ if tenant.services]
        if having:
            tenant = moment.chance.choice(having)
            assert tenant.services
            return Withdraw(tenant, tenant.services[-1])
    return _publish(moment, [tenant for tenant in open_ if _count(tenant) < INITIAL]) or StoryWait()


ACTS: Final = (
    Act("eight teams come, with two addresses each: 16 of 32", eight_come, 40),
    Act("five of them publish a Service: both their addresses are in use", services_come, 12),
    Act("two want a third address, and their pools grow by one", third_services, 6),
    Act("these Services go, and after the grace time their addresses too", third_services_go, 20),
    Act("guests come: at 24 of 32 the pool warns, at 28 it is critical", guests_come, 24),
    Act("all 32 are taken: a cluster waits, and a Service with it", a_service_waits_too, 2),
    Act("the operator grows the pool to 48", pool_grows, 2),
    Act("those that waited get their addresses", waiting_ones_get_theirs, 8),
    Act("guests leave, and give theirs back", guests_leave, 20),
    Act("Services that are not needed any more go", third_services_go, 20),
    Act("the operator takes the additional addresses back", pool_is_taken_back, 15),
    Act("quiet days: Services come and go", calm, 12),
)


# The turn.


def turn(scene: Scene, cursor: Cursor, seed: int) -> Turn:
    """What happens now, and where the story stands then."""
    for at in _ahead(cursor):
        act = ACTS[at.act]
        chance = random.Random(f"{seed}/{at.wave}/{at.act}/{at.beat}")  # noqa: S311  # a story, no secret
        step = act.next(StoryMoment(scene, at, chance)) if at.beat < act.beats else None
        if step is not None:
            after = at._replace(beat=at.beat + 1)
            return Turn(step, after, pause(step, scene, at, chance), act.title if at.beat == 0 else None)
    return Turn(StoryWait(), _next_act(cursor), 10.0, None)


def _ahead(cursor: Cursor) -> list[Cursor]:
    """This moment, and the beginnings of all acts that may follow until it is this act's turn again."""
    found = [cursor if 0 <= cursor.act < len(ACTS) else Cursor(cursor.wave)]
    for _ in ACTS:
        found.append(_next_act(found[-1]))
    return found


def _next_act(cursor: Cursor) -> Cursor:
    last = cursor.act + 1 >= len(ACTS)
    return Cursor(cursor.wave + 1) if last else Cursor(cursor.wave, cursor.act + 1)


def pause(step: Step, scene: Scene, cursor: Cursor, chance: random.Random) -> float:
    """Seconds to look at what has happened: longer where a pool grows or its tier changes, and in later waves."""
    if cursor.act == 0:
        return 2.5
    slower = 1.0 if cursor.wave == 0 else 1.6
    if isinstance(step, StoryWait | TakeBack):
        return 6.0
    if isinstance(step, Grow) or (isinstance(step, Come) and _crosses(scene)):
        return 14.0 * slower
    if isinstance(step, Publish) and _count(step.tenant) >= INITIAL - 1:
        return 12.0 * slower
    return chance.uniform(4.0, 8.0) * slower


def _crosses(scene: Scene) -> bool:
    pool = scene.pool
    return pool.allocated >= pool.total or tier(pool.allocated + INITIAL, pool.total) > pool.tier


def _publish(moment: StoryMoment, tenants: list[DemoTenant]) -> Step | None:
    """One more Service in one of these clusters; None where there is none."""
    if not tenants:
        return None
    tenant = moment.chance.choice(tenants)
    there = {service.name for service in tenant.services or ()}
    free = [name for name in SERVICES if name not in there]
    return Publish(tenant, moment.chance.choice(free)) if free else None


def _unsettled(scene: Scene) -> bool:
    """Whether some cluster neither runs nor knows that it has to wait."""
    return any(not tenant.ready and not tenant.waiting for tenant in scene.here)


def _count(tenant: DemoTenant) -> int:
    return len(tenant.services or ())


def _extra(tenant: DemoTenant) -> int:
    """Services beyond those that the first addresses suffice for, of which the ingress has one."""
    return max(0, _count(tenant) - (INITIAL - 1))
