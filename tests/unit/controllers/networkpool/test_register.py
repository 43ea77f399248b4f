"""Many pools at once: one read, one swap, and each is treated as if it had come alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from butler.api.objects import Key
from butler.controllers.networkpool.claims_writer import ATTEMPTS, ClaimRegister, StillHeld
from butler.kube.errors import Conflict, Forbidden, Invalid, Status
from butler.rules.pool.claims import NetworkClaim, entry
from unit.controllers.networkpool.pool_server import PoolServer
from unit.controllers.networkpool.values import NAMESPACE, allocation, pool

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.kube.transport import ApiRequest

pytestmark = pytest.mark.usefixtures("api_servers")


def many(count: int) -> list[NetworkPool]:
    return [pool(cidr=f"10.{n // 256}.{n % 256}.0/24", name=f"p{n}", uid=f"u{n}", age=n) for n in range(count)]


def opened(server: PoolServer, **entries: str) -> tuple[PoolServer, ClaimRegister]:
    named = (entry(Key(NAMESPACE, name), NetworkClaim(cidr, f"u-{name}", 1)) for name, cidr in entries.items())
    server.register(dict(named))
    return server, ClaimRegister(server, "home")


@pytest.mark.parametrize("count", [1, 10, 300])
async def test_pools_that_ask_at_the_same_time_share_one_read_and_one_write(count: int) -> None:
    pools = many(count)
    server, register = opened(PoolServer(*pools))
    assert await asyncio.gather(*map(register.claim, pools)) == [None] * count
    assert len(server.entries) == count
    assert server.counts == {"get configmaps": 1, "get networkpools": count, "patch configmaps": 1}


async def test_who_asks_while_a_write_is_under_way_comes_with_the_next_one() -> None:
    pools = many(20)
    server, register = opened(PoolServer(*pools))
    asking: list[asyncio.Task[Key | None]] = []
    server.meanwhile = lambda: asking.extend(asyncio.create_task(register.claim(item)) for item in pools[1:])
    assert await register.claim(pools[0]) is None
    assert await asyncio.gather(*asking) == [None] * 19
    assert server.counts["patch configmaps"] == 2


async def test_of_pools_that_overlap_in_one_write_only_the_oldest_gets_its_network() -> None:
    pools = [pool(cidr="10.0.0.0/16", name=f"p{n}", uid=f"u{n}", age=n % 7) for n in range(7)]
    server, register = opened(PoolServer(*pools, *many(3)[1:]))
    answers = await asyncio.gather(*map(register.claim, reversed(pools)))
    assert answers == [None, *[Key(NAMESPACE, "p6")] * 6]
    assert server.entries == {"p6": "10.0.0.0/16"}


async def test_what_one_pool_gives_back_another_gets_in_the_same_write() -> None:
    young = pool(cidr="10.0.0.0/16", name="young", uid="u-young")
    server, register = opened(PoolServer(young), gone="10.0.1.0/24")
    rival, _ = await asyncio.gather(register.claim(young), register.drop(Key(NAMESPACE, "gone")))
    assert rival is None
    assert server.entries == {"young": "10.0.0.0/16"}
    assert server.counts["patch configmaps"] == 1


async def test_what_cannot_be_given_back_is_still_in_the_way_of_others_in_the_same_write() -> None:
    young = pool(cidr="10.0.0.0/16", name="young", uid="u-young")
    live = allocation("a", holds="10.0.1.1-10.0.1.2", of="gone")
    server, register = opened(PoolServer(young, live), gone="10.0.1.0/24")
    rival, failure = await asyncio.gather(
        register.claim(young), register.drop(Key(NAMESPACE, "gone")), return_exceptions=True
    )
    assert rival == Key(NAMESPACE, "gone")
    assert isinstance(failure, StillHeld)
    assert server.entries == {"gone": "10.0.1.0/24"}


async def test_a_swap_that_comes_too_late_is_decided_anew() -> None:
    pools = many(5)
    server, register = opened(PoolServer(*pools))

    def quicker() -> None:
        server.register(dict([entry(Key("elsewhere", "theirs"), NetworkClaim("10.0.2.0/23", "x", 1))]))

    server.meanwhile = quicker
    theirs = Key("elsewhere", "theirs")
    assert await asyncio.gather(*map(register.claim, pools)) == [None, None, theirs, theirs, None]
    assert server.counts["patch configmaps"] == 2


async def test_a_writer_that_is_always_too_late_says_so_after_a_while() -> None:
    server, register = opened(PoolServer(*many(2)))
    server.objection = lambda asked: Conflict(409, Status(reason="Conflict")) if asked.verb == "patch" else None
    failures = await asyncio.gather(*map(register.claim, many(2)), return_exceptions=True)
    assert [type(failure) for failure in failures] == [Conflict, Conflict]
    assert server.counts["patch configmaps"] == ATTEMPTS


async def test_an_entry_that_the_server_does_not_take_keeps_no_other_from_being_written() -> None:
    pools = many(5)
    server, register = opened(PoolServer(*pools))

    def too_long(asked: ApiRequest) -> Exception | None:
        return Invalid(422, Status(reason="Invalid")) if f"{NAMESPACE}.p3".encode() in (asked.body or b"") else None

    server.objection = too_long
    answers = await asyncio.gather(*map(register.claim, pools), return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * 3 + [Invalid, type(None)]
    assert sorted(server.entries) == ["p0", "p1", "p2", "p4"]


async def test_a_register_that_cannot_be_read_is_told_to_all_who_asked_and_to_none_who_asks_later() -> None:
    pools = many(3)
    server, register = opened(PoolServer(*pools))
    server.objection = lambda _: Forbidden(403, Status(reason="Forbidden"))
    failures = await asyncio.gather(*map(register.claim, pools), return_exceptions=True)
    assert [type(failure) for failure in failures] == [Forbidden] * 3
    server.objection = lambda _: None
    assert await register.claim(pools[0]) is None


async def test_a_pool_that_cannot_be_read_keeps_no_other_waiting() -> None:
    pools = many(3)
    server, register = opened(PoolServer(*pools))
    forbidden = Forbidden(403, Status(reason="Forbidden"))
    server.objection = lambda asked: forbidden if asked.path.endswith("/networkpools/p1") else None
    answers = await asyncio.gather(*map(register.claim, pools), return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), Forbidden, type(None)]


async def test_who_asked_and_was_cut_off_keeps_no_other_waiting() -> None:
    pools = many(3)
    _, register = opened(PoolServer(*pools))
    asking = [asyncio.create_task(register.claim(item)) for item in pools]
    await asyncio.sleep(0)
    asking[1].cancel()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), asyncio.CancelledError, type(None)]


@pytest.mark.parametrize(("emptied", "lists"), [("u-gone", 0), ("u-another", 1), (None, 1)])
async def test_allocations_are_listed_unless_we_let_this_very_pool_go_empty(emptied: str | None, lists: int) -> None:
    server, register = opened(PoolServer(), gone="10.0.1.0/24")
    await register.drop(Key(NAMESPACE, "gone"), emptied)
    assert server.entries == {}
    assert server.counts["list ipallocations"] == lists


async def test_allocations_are_listed_once_for_all_that_give_something_back() -> None:
    names = [f"g{n}" for n in range(50)]
    server, register = opened(PoolServer(), **{name: f"10.0.{n}.0/24" for n, name in enumerate(names)})
    await asyncio.gather(*(register.drop(Key(NAMESPACE, name)) for name in names))
    assert server.entries == {}
    assert (server.counts["list ipallocations"], server.counts["patch configmaps"]) == (1, 1)
