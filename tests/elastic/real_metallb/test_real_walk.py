"""The walk of the seeds on the real MetalLB, as `elastic/test_walk.py` has it on the stand-in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from elastic.real_metallb.real_tenant import RealEstate

pytestmark = pytest.mark.real_metallb


def test_the_walk_of_the_seeds_on_the_real_metallb(real: RealEstate) -> None:
    place = real.place()
    walk = place.begin("walk")
    first, second, third = place.addresses(16, 18)

    # A fresh tenant.
    walk.publishes(f"{first}-{second}")
    walk.add_ingress()
    assert walk.gets("traefik", namespace="traefik") == [first]
    assert _balancers(real) == [["traefik", "traefik", first]]

    # A second Service takes the second address.
    walk.add("shop")
    assert walk.gets("shop") == [second]
    assert walk.grown() == {}

    # A third one waits, the tenant grows by one increment, and it is served.
    walk.add("chat")
    assert walk.gets("chat") == [third]
    walk.publishes(f"{first}-{second}", f"{third}-{third}")
    assert list(walk.grown().values()) == [1]
    assert _balancers(real) == [
        ["default", "chat", third],
        ["default", "shop", second],
        ["traefik", "traefik", first],
    ]
    walk.until(lambda: walk.use().get("inUse") == 3, "all three are in use")
    assert walk.use()["lastGrowth"]["addresses"] == 1
    assert walk.use()["platformServices"] == 1
    place.verdict()

    # Deleting it gives the address back after the grace time.
    walk.remove("chat")
    walk.shrinks_to(2)
    walk.publishes(f"{first}-{second}")
    walk.until(lambda: walk.use().get("lastShrink"), "the shrink is told")
    assert walk.use()["lastShrink"]["addresses"] == 1
    assert [walk.address("traefik", "traefik"), walk.address("shop")] == [first, second]
    for reason in ("LoadBalancerGrowth", "LoadBalancerShrink"):
        (event,) = walk.until(partial(walk.events, reason), reason)
        assert event["type"] == "Normal"
    place.verdict()


def _balancers(real: RealEstate) -> list[list[str]]:
    command = "kubectl get services -A --field-selector spec.type=LoadBalancer --no-headers"
    rows = [line.split() for line in real.types(command, real.kubernetes.kubeconfig).splitlines()]
    return [[*row[:2], row[4]] for row in rows]
