"""An address that the real MetalLB has lost: no Service has it, and MetalLB takes it for used until it starts again.

That happens when a Service is deleted while MetalLB starts. It goes through all Services first and hears of nothing
else until that has gone well once; a Service that it has chosen an address for, and that is deleted before it can be
told so, is never heard of again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from elastic.chronicle import announced
from elastic.real_metallb.taken_in import seen_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from elastic.real_metallb.real_tenant import RealEstate, RealTenant

pytestmark = pytest.mark.real_metallb
IN_ITS_FIRST_PASS = '"start reconcile":"metallbreload/reload"'
TRIES = 6


def test_a_service_that_waits_for_an_address_that_metallb_lost_gets_another(real: RealEstate) -> None:
    place = real.place(initial=1)
    web = place.begin()
    names = [f"s{number}" for number in range(12)]
    web.add(*names)
    web.gets(*names)
    with real.butler.frozen():  # it would take back what is free
        tried = next((number for number in range(TRIES) if _loses_one(real, web, names[number])), TRIES)
        assert tried < TRIES, f"MetalLB lost nothing in {TRIES} starts: does it do so no more?"
        late = [f"late{number}" for number in range(tried + 1)]
        web.add(*late)
        web.sees(lambda: len([name for name in late if web.address(name)]) == tried, "one waits in vain")
    web.gets(*late)
    place.comes_to_rest()
    web.remove(*late, *names[tried + 1 :])
    web.shrinks_to(1)
    place.comes_to_rest()


def _loses_one(real: RealEstate, web: RealTenant, holder: str) -> bool:
    """Let MetalLB start with a free address and one Service that waits, which is deleted before MetalLB can tell it."""
    real.metallb.kill()
    web.remove(holder)
    web.add(f"instead-of-{holder}")
    asyncio.run(_start(real, partial(web.remove, f"instead-of-{holder}")))
    web.sees(lambda: _pass_is_over(real), "MetalLB went through all Services")
    web.side.catch_up("services", "ipaddresspools")
    pool = web.pool() or {}
    size = len(announced(pool))
    shown = len([obj for obj in web.side.list("services") if web.address(obj["metadata"]["name"])])
    assert seen_size(pool) == size, "MetalLB knows its pool"
    return bool(pool["status"].get("availableIPv4", 0) < size - shown)


async def _start(real: RealEstate, meanwhile: Callable[[], None]) -> None:
    """Start MetalLB, which is frozen for a moment in its first pass."""
    before = len(real.metallb.log())
    starting = asyncio.create_task(real.metallb.start())
    while IN_ITS_FIRST_PASS not in real.metallb.log()[before:]:  # noqa: ASYNC110 (it is another process)
        await asyncio.sleep(0.001)
    real.metallb.freeze()
    meanwhile()
    real.metallb.thaw()
    await starting


def _pass_is_over(real: RealEstate) -> bool:
    """The last pass that began has ended, and none is to follow."""
    lines = [line for line in real.metallb.log().splitlines() if "reprocessAll" in line]
    return '"end reconcile":"metallbreload/reload"' in lines[-1] and "force service reload" not in lines[-2]
