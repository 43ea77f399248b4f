"""What only the real MetalLB can be asked: how it comes through faults.

The controller that withdraws addresses from a running cluster relies on these facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from butler.local.world.metallb_allocator import Counts
from local.world_metallb.estate import until
from local.world_metallb.served import Served
from metallb_controller import MetallbController

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from control_planes import ControlPlane

pytestmark = pytest.mark.real_metallb


@pytest.fixture
async def real(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Served]:
    async with Served.open("real", control_plane, tmp_path) as opened:
        yield opened


def process(real: Served) -> MetallbController:
    assert isinstance(real.metallb, MetallbController)
    return real.metallb


async def test_a_pool_without_addresses_is_refused_where_its_webhook_does_not_do_so_before(real: Served) -> None:
    tenant = real.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    await until(lambda: _equal(tenant.counts(), {"default-pool": Counts(0, 10)}))
    await tenant.set_pool()  # its definition allows that
    await until(lambda: _equal(tenant.refusal(), "parsing address pool default-pool: pool has no prefixes defined"))
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")  # from what it had before


async def test_one_that_is_frozen_serves_no_service_and_catches_up(real: Served) -> None:
    """It may act on every state that there was meanwhile, so none of them may lack an address that is in use."""
    tenant = real.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.10")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    await real.settle()
    process(real).freeze()
    await tenant.set_pool("10.0.0.10-10.0.0.10", autoAssign=False)
    await tenant.add_service("b")
    await tenant.set_pool("10.0.0.10-10.0.0.11")
    await tenant.until_addresses(a="10.0.0.10", b=None)
    process(real).thaw()
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
    await until(lambda: _equal(tenant.counts(), {"default-pool": Counts(2, 0)}))


async def test_one_that_was_killed_moves_only_whose_address_went_meanwhile(real: Served) -> None:
    tenant = real.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.12")
    for name, address in (("a", "10.0.0.10"), ("b", "10.0.0.11"), ("c", "10.0.0.12")):
        await tenant.add_service(name)
        await until(lambda name=name, address=address: _equal(_address(real, name), address))  # type: ignore[misc]
    await real.settle()
    process(real).kill()
    await tenant.delete_service("b")
    await tenant.add_service("aa")
    await tenant.set_pool("10.0.0.10-10.0.0.11", "10.0.0.20-10.0.0.29", autoAssign=False)
    await process(real).start()
    await tenant.until_addresses(a="10.0.0.10", c=None, aa=None)
    await tenant.set_pool("10.0.0.10-10.0.0.11", "10.0.0.20-10.0.0.29")
    await until(lambda: _all_served(real))
    assert (await tenant.addresses())["a"] == ["10.0.0.10"]


async def _equal(found: Any, wanted: object) -> bool:
    return bool(await found == wanted)


async def _address(real: Served, name: str) -> str:
    return ",".join((await real.tenant.addresses())[name])


async def _all_served(real: Served) -> bool:
    return all((await real.tenant.addresses()).values())
