"""A few at a time, and no caller blocks the gate."""

import asyncio

from butler.kube.gate import Gate


async def test_who_leaves_makes_room_for_the_next() -> None:
    gate = Gate(places=2, hold=3600)
    first, _ = await gate.enter(), await gate.enter()
    third = asyncio.create_task(gate.enter())
    await asyncio.sleep(0.01)
    assert not third.done()
    first()
    first()  # more often is fine, and makes no more room
    await asyncio.wait_for(third, 5)
    fourth = asyncio.create_task(gate.enter())
    await asyncio.sleep(0.01)
    assert not fourth.done()
    fourth.cancel()


async def test_who_stays_too_long_is_no_longer_waited_for() -> None:
    gate = Gate(places=1, hold=0.01)
    late = await gate.enter()
    await asyncio.wait_for(gate.enter(), 5)
    late()
    gate_is_full = asyncio.create_task(gate.enter())
    await asyncio.wait_for(gate_is_full, 5)


async def test_who_gives_up_waiting_takes_no_place() -> None:
    gate = Gate(places=1, hold=3600)
    leave = await gate.enter()
    waiting = asyncio.create_task(gate.enter())
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    leave()
    await asyncio.wait_for(gate.enter(), 5)


async def test_who_failed_before_is_in_no_others_way() -> None:
    gate = Gate(places=1, hold=3600)
    await gate.enter(doubtful=True)
    waiting = asyncio.create_task(gate.enter(doubtful=True))
    await asyncio.wait_for(gate.enter(), 5)
    assert not waiting.done()
    waiting.cancel()
