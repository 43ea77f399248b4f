"""A tenant that cannot be reached, in the middle of a shrink: nothing of it changes, and other tenants do not wait."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from elastic.allocations import delete, deleting, found, pinned
from elastic.chronicle import phase
from elastic.faults.drill import GRACE, Moments, writes_pool

if TYPE_CHECKING:
    from elastic.faults.drill import Drill

LONG = 6 * GRACE
"""In place of an hour: by then everything that is due would have been done several times."""


@pytest.mark.parametrize(
    "step", [pytest.param(1, id="held back"), pytest.param(2, id="withdrawn", marks=pytest.mark.slow)]
)
def test_a_tenant_that_goes_dark_in_the_middle_of_a_shrink_keeps_its_range(drill: Drill, step: int) -> None:
    dark, other = drill.tenant(), drill.tenant()
    with drill.replica() as butler:
        drill.grow(dark, "a")
        line = butler.lines.tenants[dark.name]
        line.on_write = Moments(writes_pool, number=step, moment="after", then=partial(butler.lines.go_dark, dark.name))
        dark.remove("a")
        line.on_write.comes()
        (range_,) = dark.growths()
        held = range_["metadata"]["uid"], range_["status"]["phase"], range_["status"]["startAddress"]

        def still_held() -> bool:
            """All but the annotations: the record of the grant comes a moment later."""
            return [
                (growth["metadata"]["uid"], growth["status"]["phase"], growth["status"]["startAddress"])
                for growth in dark.growths()
            ] == [held]

        drill.grow(other, "a", "b")  # others are looked after as ever
        other.remove("a", "b")
        other.shrinks_to(1)
        dark.stays(still_held, "nothing of it changes", LONG)
        butler.lines.go_dark(dark.name, False)
        dark.shrinks_to(1)
        drill.verdict(dark, other)


def test_a_range_that_is_deleted_while_its_tenant_is_dark_goes_to_no_other(drill: Drill) -> None:
    dark = drill.tenant()
    with drill.replica() as butler:
        (address,) = drill.grow(dark, "a")
        (growth,) = [obj["metadata"]["name"] for obj in dark.growths()]
        butler.lines.go_dark(dark.name)
        dark.until(lambda: dark.condition("LoadBalancersReady").get("reason") == "TenantUnreachable", "it is dark")
        delete(drill.place, growth)
        rival = f"{dark.name}-rival"
        pinned(drill.place, rival, address, {"name": "no-tenant", "namespace": drill.place.namespace})
        dark.until(lambda: deleting(dark, growth).get("reason") == "Unknown", "it says that it cannot tell")
        dark.stays(lambda: phase(found(dark, rival)) != "Allocated", "nothing of it is released meanwhile", LONG)
        butler.lines.go_dark(dark.name, False)
        dark.until(lambda: "default/a" in deleting(dark, growth).get("message", ""), "it says who uses it")
        assert dark.gets("a") == [address]
        dark.remove("a")
        dark.until(lambda: phase(found(dark, rival)) == "Allocated", "now it goes to who waits for it")
        delete(drill.place, rival)
        drill.verdict(dark)


@pytest.mark.parametrize(
    ("step", "asks"),
    [
        pytest.param(1, False, id="held back, any address"),
        pytest.param(1, True, id="held back, that address", marks=pytest.mark.slow),
        pytest.param(2, False, id="withdrawn, any address", marks=pytest.mark.slow),
        pytest.param(2, True, id="withdrawn, that address"),
    ],
)
def test_a_service_that_comes_while_its_tenant_is_dark_is_served_afterwards(
    drill: Drill, step: int, asks: bool
) -> None:
    dark = drill.tenant()
    with drill.replica() as butler:
        (address,) = drill.grow(dark, "a")
        line = butler.lines.tenants[dark.name]
        line.on_write = Moments(writes_pool, number=step, moment="after", then=partial(butler.lines.go_dark, dark.name))
        dark.remove("a")
        line.on_write.comes()
        dark.add("b", loadBalancerIP=address if asks else None)
        time.sleep(2 * GRACE)
        butler.lines.go_dark(dark.name, False)
        served = dark.gets("b")
        assert not asks or served == [address]
        drill.verdict(dark)
