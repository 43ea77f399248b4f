"""A tenant with an address pool of its own that contains addresses of Butler's pools not granted to the tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.allocations import delete, found, pinned
from elastic.chronicle import phase
from elastic.estate import METALLB
from elastic.stories import early_story
from tenants.estate import HOME

if TYPE_CHECKING:
    from elastic.estate import Elastic, Place
    from tenants.witness import Json

WITHOUT_INGRESS = {"ingress": {"enabled": False}}
CONDITION = "LoadBalancersReady"


def withheld(place: Place) -> list[Json]:
    pool = place.estate.witness.get("networkpools", HOME, place.pool) or {}
    return list((pool.get("status") or {}).get("foreignAddresses") or ())


@early_story
def test_what_a_service_shows_is_told_and_goes_to_no_other_while_it_does(estate: Elastic) -> None:
    place = estate.place(initial=1, size=8)
    web = place.started(addons=WITHOUT_INGRESS)
    web.says(CONDITION, "True", "InStep")
    taken = place.address(20)
    spec = {"addresses": [f"{taken}/32"], "autoAssign": False}
    kind = {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool"}
    web.send("POST", f"{METALLB}/ipaddresspools", {**kind, "metadata": {"name": "mine"}, "spec": spec})
    web.add("a", annotations={"metallb.io/address-pool": "mine"})
    assert web.gets("a") == [taken]
    message = web.says(CONDITION, "False", "ForeignAddresses")
    assert f"default/a ({taken})" in message
    assert web.use()["foreignAddresses"] == [taken]
    web.until(lambda: web.events("LoadBalancerForeignAddresses"), "it is told")
    (kept,) = web.until(lambda: withheld(place), "the pool knows of it")
    assert kept == {"address": taken, "tenantClusterRef": {"name": web.name, "namespace": web.namespace}}
    assert "not allocated to it" in estate.types(f"butleradm pool map {place.pool} -o json")
    # Another tenant wants that very address, and this one all that is left.
    rival = f"{place.namespace}-rival"
    pinned(place, rival, taken, {"name": "no-tenant", "namespace": place.namespace})
    web.until(lambda: phase(found(web, rival)) == "Failed", "it is refused")
    (ready,) = [condition for condition in found(web, rival)["status"]["conditions"] if condition["type"] == "Ready"]
    assert ready["reason"] == "PinnedRangeConflict"
    assert f"TenantCluster {web.namespace}/{web.name}" in ready["message"]
    others = [f"s{number}" for number in range(7)]
    web.add(*others)
    web.gets(*others)
    left = sorted(set(place.addresses(16, 23)) - {taken})
    web.until(lambda: sorted(web.addresses("loadbalancer")) == left, "it has all that is left, and not that address")
    web.remove(*others)
    # Its own tenant may be given it: so a running estate is taken over.
    own = f"{place.namespace}-own"
    delete(place, rival)
    pinned(place, own, taken, {"name": web.name, "namespace": web.namespace})
    web.until(lambda: phase(found(web, own)) == "Allocated", "its own tenant gets it")
    web.until(lambda: not withheld(place), "the pool withholds it no longer")
    assert web.address("a") == taken
    web.remove("a")
    web.send("DELETE", f"{METALLB}/ipaddresspools/mine")
