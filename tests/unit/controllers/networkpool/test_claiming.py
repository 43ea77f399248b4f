"""How a pool's claim follows its spec: grows register first, shrinks status first, and never drops an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from butler.api.conditions import with_condition
from butler.api.objects import Change, Key, key_of
from butler.controllers.networkpool.claim_steps import Claiming, is_overlapped
from butler.controllers.networkpool.claims_writer import ClaimRegister
from butler.ipam.layout import InvalidPool, read_layout
from butler.kube.errors import Invalid, Status
from butler.kube.resource import NAMESPACES
from butler.rules.pool.claims import CLAIMS, NetworkClaim, entry
from unit.controllers.networkpool.pool_server import PoolServer, Shown
from unit.controllers.networkpool.values import NAMESPACE, NOW, POOL, allocation, holdings_of, intent, pool

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool

pytestmark = pytest.mark.usefixtures("api_servers")
CLAIMS_KEY = Key(NAMESPACE, CLAIMS)


class Estate:
    """A claiming over a small server whose caches are up to date."""

    def __init__(self, *objects: Any, register: dict[str, str] | None = None) -> None:
        self.server = PoolServer(*objects, home=NAMESPACE)
        if register is not None:
            named = (entry(Key(NAMESPACE, name), NetworkClaim(cidr, "p1", 1)) for name, cidr in register.items())
            self.server.register(dict(named))
        holdings = holdings_of(*self.server.allocations.values())
        caches: Any = (
            Shown(lambda: {Key(NAMESPACE, CLAIMS): self.server.config_map} if self.server.config_map else {}),
            Shown(lambda: dict(self.server.pools)),
        )
        register_: Any = ClaimRegister(self.server, NAMESPACE)
        self.claiming = Claiming(register_, *caches, holdings)  # type: ignore[call-arg]

    async def step(self, name: str = POOL.name) -> tuple[str | None, str | None, bool]:
        """Takes a step and writes it; gives claim, obstacle and whether another one follows."""
        key = Key(NAMESPACE, name)
        subject = self.server.pools[key]
        try:
            layout = read_layout(subject.spec)
        except InvalidPool:
            layout = None
        made = await self.claiming.step(subject, layout)
        status = msgspec.structs.replace(subject.status, claimed_cidr=made.cidr)
        self.server.pools[key] = msgspec.structs.replace(subject, status=status)
        said = None if made.obstacle is None else f"{made.obstacle.reason}: {made.obstacle.message}"
        return made.cidr, said, made.again


def overlapped(subject: NetworkPool) -> NetworkPool:
    conditions = with_condition((), type="Ready", status=False, reason="Overlap", message="", now=NOW)
    return msgspec.structs.replace(subject, status=msgspec.structs.replace(subject.status, conditions=conditions))


async def test_a_new_pool_claims_its_network() -> None:
    estate = Estate(pool())
    assert await estate.step() == ("10.0.0.0/24", None, False)
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}


async def test_a_pool_that_has_what_it_wants_asks_for_nothing() -> None:
    estate = Estate(pool(claimed_cidr="10.0.0.0/24"), register={"vlan40": "10.0.0.0/24"})
    assert await estate.step() == ("10.0.0.0/24", None, False)
    await estate.claiming.settle(estate.server.pools[POOL])
    assert not estate.server.counts


async def test_a_claim_that_a_user_took_out_of_the_register_is_entered_again() -> None:
    estate = Estate(pool(claimed_cidr="10.0.0.0/24"), register={})
    assert await estate.step() == ("10.0.0.0/24", None, False)
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}


async def test_a_pool_says_so_when_its_claim_cannot_be_recorded() -> None:
    estate = Estate(pool())
    estate.server.drop(NAMESPACES, Key("", "butler-system"))
    claimed, obstacle, _ = await estate.step()
    assert claimed is None
    assert obstacle == (
        'NotClaimed: Butler cannot record which pool has which network: namespaces "butler-system" not found'
    )


@pytest.mark.parametrize(
    "subject",
    [pool(deleting=True), pool("10.0.0.0-10.0.0.9", reserved=("10.0.0.0/30", "10.0.0.0/31"))],
    ids=["being deleted", "invalid"],
)
async def test_a_pool_that_hands_out_nothing_anyhow_claims_nothing_new(subject: NetworkPool) -> None:
    estate = Estate(subject)
    assert await estate.step() == (None, None, False)
    assert not estate.server.counts


async def test_a_pool_grows_in_the_register_before_its_status() -> None:
    estate = Estate(pool(cidr="10.0.0.0/16", claimed_cidr="10.0.0.0/24"), register={"vlan40": "10.0.0.0/24"})
    assert await estate.step() == ("10.0.0.0/16", None, False)
    assert estate.server.entries == {"vlan40": "10.0.0.0/16"}


async def test_a_pool_that_cannot_grow_keeps_its_old_claim_and_waits() -> None:
    """Its cidr now overlaps, so it hands out nothing, but what it has granted stays claimed."""
    estate = Estate(
        pool(cidr="10.0.0.0/16", claimed_cidr="10.0.0.0/24"),
        pool(cidr="10.0.7.0/24", name="b", uid="p2", claimed_cidr="10.0.7.0/24", age=-5),
        register={"vlan40": "10.0.0.0/24", "b": "10.0.7.0/24"},
    )
    claimed, obstacle, again = await estate.step()
    assert (claimed, again) == ("10.0.0.0/24", False)
    assert obstacle == (
        "Overlap: 10.0.0.0/16 overlaps NetworkPool butler-system/b (10.0.7.0/24):"
        " change or delete one of them, nothing is granted from this one until then"
    )


async def test_a_pool_shrinks_in_its_status_before_the_register() -> None:
    estate = Estate(pool(cidr="10.0.0.0/25", claimed_cidr="10.0.0.0/24"), register={"vlan40": "10.0.0.0/24"})
    assert await estate.step() == ("10.0.0.0/25", None, False)
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}
    await estate.claiming.settle(estate.server.pools[POOL])
    assert estate.server.entries == {"vlan40": "10.0.0.0/25"}


@pytest.mark.parametrize("held", ["by an allocation", "by an intent"])
async def test_a_pool_keeps_the_claim_to_what_is_held_while_it_hands_out_from_less(held: str) -> None:
    promise = (intent("a", "10.0.0.200-10.0.0.201"),) if held == "by an intent" else ()
    live = [] if promise else [allocation("a", holds="10.0.0.200-10.0.0.201")]
    shrunk = pool(cidr="10.0.0.0/25", claimed_cidr="10.0.0.0/24", intents=promise)
    estate = Estate(shrunk, *live, register={"vlan40": "10.0.0.0/24"})
    assert await estate.step() == ("10.0.0.0/24", None, False)
    await estate.claiming.settle(estate.server.pools[POOL])
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}


async def test_a_pool_moves_by_giving_up_first() -> None:
    estate = Estate(pool(cidr="10.9.0.0/24", claimed_cidr="10.0.0.0/24"), register={"vlan40": "10.0.0.0/24"})
    assert await estate.step() == (None, "Overlap: it is moving from 10.0.0.0/24 to 10.9.0.0/24", True)
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}, "the register comes last"
    assert await estate.step() == ("10.9.0.0/24", None, False)
    assert estate.server.entries == {"vlan40": "10.9.0.0/24"}


async def test_a_pool_made_anew_elsewhere_says_who_still_holds_addresses_of_the_one_before() -> None:
    """A user removed the old one by force, with its finalizer."""
    left = allocation("a", holds="10.0.0.7-10.0.0.8")
    estate = Estate(pool(cidr="10.9.0.0/24", uid="p2"), left, register={"vlan40": "10.0.0.0/24"})
    claimed, obstacle, again = await estate.step()
    assert (claimed, again) == (None, False)
    assert obstacle == (
        "ValidationFailed: it cannot move from 10.0.0.0/24 to 10.9.0.0/24 while a holds addresses there:"
        " change the cidr back, or release them"
    )
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}


async def test_a_pool_does_not_move_away_from_those_who_hold_addresses() -> None:
    moved = pool(cidr="10.9.0.0/24", claimed_cidr="10.0.0.0/24")
    estate = Estate(moved, allocation("a", holds="10.0.0.1-10.0.0.2"), register={"vlan40": "10.0.0.0/24"})
    claimed, obstacle, again = await estate.step()
    assert (claimed, again) == ("10.0.0.0/24", False)
    assert obstacle == (
        "ValidationFailed: it cannot move from 10.0.0.0/24 to 10.9.0.0/24 while a holds addresses there:"
        " change the cidr back, or release them"
    )


# Rivals.


async def test_of_two_new_pools_the_older_goes_first_whichever_is_looked_at_first() -> None:
    estate = Estate(pool(name="young", uid="y"), pool(name="old", uid="o", age=60, cidr="10.0.0.0/16"))
    claimed, obstacle, _ = await estate.step("young")
    assert claimed is None
    assert obstacle is not None
    assert "butler-system/old" in obstacle
    assert await estate.step("old") == ("10.0.0.0/16", None, False)


async def test_of_two_pools_of_one_second_the_uid_decides() -> None:
    estate = Estate(pool(name="b", uid="b"), pool(name="a", uid="a"))
    assert (await estate.step("b"))[0] is None
    assert (await estate.step("a"))[0] == "10.0.0.0/24"


async def test_a_pool_that_has_the_claim_keeps_it_however_young_it_is() -> None:
    estate = Estate(
        pool(name="old", uid="o", age=60),
        pool(name="young", uid="y", claimed_cidr="10.0.0.0/24"),
        register={"young": "10.0.0.0/24"},
    )
    assert (await estate.step("old"))[0] is None
    assert await estate.step("young") == ("10.0.0.0/24", None, False)


@pytest.mark.parametrize(
    "older",
    [
        pool(name="o", uid="o", age=60, deleting=True),
        overlapped(pool(name="o", uid="o", age=60)),
        pool(name="o", uid="o", age=60, cidr="10.0.1.0/24"),
        pool(name="o", uid="o", age=60, cidr="10.0.0.7/24"),
    ],
    ids=["goes", "waits itself", "is elsewhere", "is no network"],
)
async def test_no_pool_waits_for_an_older_pool_that(older: NetworkPool) -> None:
    estate = Estate(older, pool(name="young", uid="y"))
    assert (await estate.step("young"))[0] == "10.0.0.0/24"


async def test_a_rival_that_is_not_seen_any_more_is_named_all_the_same() -> None:
    """The claim of a pool that went while its addresses are still allocated, or of one in a scope we do not watch."""
    estate = Estate(pool(), register={"gone": "10.0.0.0/16"})
    _, obstacle, _ = await estate.step()
    assert obstacle is not None
    assert "overlaps NetworkPool butler-system/gone (10.0.0.0/16):" in obstacle


async def test_a_rival_that_the_cache_has_not_heard_of_is_named_all_the_same() -> None:
    estate = Estate(pool(), register={})
    newer = dict([entry(Key(NAMESPACE, "quick"), NetworkClaim("10.0.0.0/16", "q", 1))])
    behind = estate.server.config_map
    estate.server.register(newer)
    estate.claiming._claims = Shown(lambda: {Key(NAMESPACE, CLAIMS): behind})  # type: ignore[assignment]
    _, obstacle, _ = await estate.step()
    assert obstacle is not None
    assert "overlaps NetworkPool butler-system/quick:" in obstacle


# Whom a change concerns.


def claims(**entries: str) -> dict[str, Any]:
    named = (entry(Key(NAMESPACE, name), NetworkClaim(cidr, f"u-{name}", 1)) for name, cidr in entries.items())
    return {"data": dict(named)}


def pools(count: int) -> dict[str, NetworkPool]:
    return {f"p{n}": pool(name=f"p{n}", uid=f"u-p{n}", cidr=f"10.{n}.0.0/24") for n in range(count)}


@pytest.mark.parametrize("count", [3, 100])
async def test_an_entry_as_its_pool_wants_it_concerns_no_pool_however_many_there_are(count: int) -> None:
    known = pools(count)
    estate = Estate(*known.values())
    entries = {name: pool.spec.cidr for name, pool in known.items()}
    last = entries.pop(f"p{count - 1}")
    change = Change(CLAIMS_KEY, claims(**entries), claims(**entries, **{f"p{count - 1}": last}))
    assert list(estate.claiming.concerned_by_claims(change)) == []
    again = Change(CLAIMS_KEY, None, claims(**entries))
    assert list(estate.claiming.concerned_by_claims(again)) == []


@pytest.mark.parametrize("was", ["taken away", "shrunk", "of another pool of this name", "no entry any more"])
async def test_an_entry_that_was_edited_by_hand_concerns_its_pool(was: str) -> None:
    estate = Estate(*pools(3).values())
    before = claims(p0="10.0.0.0/24", p1="10.1.0.0/24", p2="10.2.0.0/24")
    after = {"data": dict(before["data"])}
    after["data"][f"{NAMESPACE}.p1"] = {
        "taken away": "",
        "shrunk": "10.1.0.0/25 u-p1 1",
        "of another pool of this name": "10.1.0.0/24 u-other 1",
        "no entry any more": "10.1.0.0/24",
    }[was]
    if was == "taken away":
        del after["data"][f"{NAMESPACE}.p1"]
    assert list(estate.claiming.concerned_by_claims(Change(CLAIMS_KEY, before, after))) == [Key(NAMESPACE, "p1")]


async def test_a_register_that_is_gone_concerns_all_who_had_an_entry() -> None:
    estate = Estate(*pools(2).values())
    entries = claims(p0="10.0.0.0/24", p1="10.1.0.0/24")
    concerned = estate.claiming.concerned_by_claims(Change(CLAIMS_KEY, entries, None))
    assert sorted(concerned) == [Key(NAMESPACE, "p0"), Key(NAMESPACE, "p1")]


async def test_an_entry_without_a_pool_concerns_the_pool_that_forgets_it() -> None:
    estate = Estate(*pools(1).values())
    concerned = estate.claiming.concerned_by_claims(Change(CLAIMS_KEY, None, claims(p0="10.0.0.0/24", x="10.9.0.0/24")))
    assert list(concerned) == [Key(NAMESPACE, "x")]


async def test_who_waits_for_a_rival_hears_of_it_and_of_no_other() -> None:
    waits = pool(name="waits", uid="u-waits", cidr="10.1.0.0/16")
    known = pools(40)
    entries = {name: pool.spec.cidr for name, pool in known.items()}
    estate = Estate(waits, *known.values(), register=entries)
    assert (await estate.step("waits"))[0] is None
    rival = known["p1"]
    others = Change(CLAIMS_KEY, claims(**entries), claims(**{**entries, "p2": "10.2.0.0/25"}))
    assert list(estate.claiming.concerned_by_claims(others)) == [Key(NAMESPACE, "p2")]
    without = {name: cidr for name, cidr in entries.items() if name != "p1"}
    its = Change(CLAIMS_KEY, claims(**entries), claims(**without))
    assert set(estate.claiming.concerned_by_claims(its)) == {Key(NAMESPACE, "p1"), Key(NAMESPACE, "waits")}
    assert list(estate.claiming.concerned_by_pool(Change(Key(NAMESPACE, "p2"), known["p2"], None))) == [
        Key(NAMESPACE, "p2")
    ]
    gone = estate.claiming.concerned_by_pool(Change(Key(NAMESPACE, "p1"), rival, None))
    assert list(gone) == [Key(NAMESPACE, "p1"), Key(NAMESPACE, "waits")]
    told = pool(name="p1", uid="u-p1", cidr="10.1.0.0/24", allocated_ips=3)
    assert list(estate.claiming.concerned_by_pool(Change(Key(NAMESPACE, "p1"), rival, told))) == [Key(NAMESPACE, "p1")]


async def test_who_waits_no_longer_is_not_told_either() -> None:
    known = pools(2)
    waits = pool(name="waits", uid="u-waits", cidr="10.1.0.0/16")
    estate = Estate(waits, *known.values(), register={"p1": "10.1.0.0/24"})
    assert (await estate.step("waits"))[0] is None
    estate.server.register({})
    del estate.server.pools[Key(NAMESPACE, "p1")]
    assert (await estate.step("waits"))[0] == "10.1.0.0/16"
    gone = estate.claiming.concerned_by_pool(Change(Key(NAMESPACE, "p1"), known["p1"], None))
    assert list(gone) == [Key(NAMESPACE, "p1")]


async def test_a_rival_whose_end_may_have_been_missed_is_looked_for_again_soon() -> None:
    """The register that was read shows it, the one that we follow does not: it is behind, or ahead."""
    estate = Estate(pool(), register={"quick": "10.0.0.0/16"})
    estate.claiming._claims = Shown(dict)  # type: ignore[assignment]
    made = await estate.claiming.step(estate.server.pools[POOL], read_layout(estate.server.pools[POOL].spec))
    assert made.rival == Key(NAMESPACE, "quick")
    assert made.retry is not None


# Edited by hand.


@pytest.mark.parametrize("found", ["10.0.0.0/25", "10.9.0.0/24"])
async def test_an_entry_that_does_not_cover_what_the_pool_claims_is_put_right(found: str) -> None:
    """Else another pool could claim what this one hands out."""
    estate = Estate(pool(claimed_cidr="10.0.0.0/24"), register={"vlan40": found})
    assert await estate.step() == ("10.0.0.0/24", None, False)
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}


@pytest.mark.parametrize("error", [Invalid(422, Status(reason="Invalid", message="Too long: may not be more than"))])
async def test_a_pool_that_does_not_fit_into_the_register_says_so_and_tries_again(error: Exception) -> None:
    estate = Estate(pool(), register={})
    estate.server.objection = lambda asked: error if asked.verb == "patch" else None
    made = await estate.claiming.step(estate.server.pools[POOL], read_layout(estate.server.pools[POOL].spec))
    assert made.cidr is None
    assert made.obstacle is not None
    assert made.obstacle.reason == "NotClaimed"
    assert "Too long" in made.obstacle.message
    assert made.retry is not None


# Nonsense, and the end.


async def test_a_claim_that_was_edited_into_nonsense_is_made_anew() -> None:
    estate = Estate(pool(claimed_cidr="all of it"), register={"vlan40": "10.0.0.0/24"})
    assert await estate.step() == ("10.0.0.0/24", None, False)


async def test_an_intent_that_was_edited_into_nonsense_does_not_keep_a_pool_from_moving() -> None:
    moved = pool(cidr="10.9.0.0/24", claimed_cidr="10.0.0.0/24", intents=(intent("a", "x-y"),))
    estate = Estate(moved, register={"vlan40": "10.0.0.0/24"})
    assert (await estate.step())[0] is None


async def test_a_claim_under_live_allocations_is_kept_without_a_question_until_they_end() -> None:
    estate = Estate(allocation("a", holds="10.0.0.1-10.0.0.2"), register={"vlan40": "10.0.0.0/24"})
    await estate.claiming.forget(POOL)
    assert estate.server.entries == {"vlan40": "10.0.0.0/24"}
    assert not estate.server.counts


async def test_a_pool_that_we_let_go_empty_is_forgotten_without_a_list() -> None:
    estate = Estate(register={"vlan40": "10.0.0.0/24"})
    estate.claiming.emptied(pool())
    await estate.claiming.forget(POOL)
    assert estate.server.entries == {}
    assert estate.server.counts["list ipallocations"] == 0


async def test_a_pool_that_is_gone_is_forgotten_and_one_never_known_costs_nothing() -> None:
    estate = Estate(register={"vlan40": "10.0.0.0/24"})
    assert estate.claiming.knows(POOL)
    await estate.claiming.forget(POOL)
    assert estate.server.entries == {}
    before = estate.server.counts.copy()
    await estate.claiming.forget(POOL)
    assert estate.server.counts == before


def test_a_pool_is_overlapped_when_its_condition_says_so() -> None:
    assert is_overlapped(overlapped(pool()))
    assert not is_overlapped(pool())
    assert key_of(pool()) == POOL
