"""Gateways and DNS servers of ProviderConfigs are never handed out, with or without admission, whatever comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipam.estate import named, scales

if TYPE_CHECKING:
    from ipam.estate import Estate
    from ipam.history import Json

GATEWAY, DNS = "10.40.0.1", "10.40.0.9"


async def provider(estate: Estate) -> Json:
    """One that names a pool of the namespace's own name: Butler looks at those of all namespaces."""
    spec = {
        "provider": "local",
        "network": {"mode": "ipam", "poolRefs": [{"name": estate.namespace}], "gateway": GATEWAY, "dnsServers": [DNS]},
    }
    return await estate.api.create(
        "providerconfigs", named("ProviderConfig", {"name": "lab", "namespace": estate.namespace}, spec)
    )


def ready(estate: Estate) -> str:
    conditions = estate.pool_status(estate.namespace).get("conditions") or ()
    return next((str(condition["message"]) for condition in conditions if condition["type"] == "Ready"), "")


def excluded(estate: Estate) -> dict[str, str]:
    return {
        excluded_address["address"]: excluded_address["reason"]
        for excluded_address in estate.pool_status(estate.namespace).get("excludedAddresses") or ()
    }


def addresses(estate: Estate) -> set[str]:
    return {
        address
        for allocation in estate.allocations.values()
        if (allocation.get("status") or {}).get("phase") == "Allocated"
        for address in allocation["status"]["addresses"]
    }


@scales()
async def test_a_pool_without_a_window_hands_out_no_gateway_and_no_dns_server(estate: Estate) -> None:
    await estate.butler("one")
    await provider(estate)
    await estate.pool(estate.namespace, cidr="10.40.0.0/28")
    await estate.until(
        lambda: len(excluded(estate)) == 2, lambda: f"both are left out: {estate.pool_status(estate.namespace)}"
    )
    assert excluded(estate) == {
        GATEWAY: "gateway of ProviderConfig lab",
        DNS: "DNS server of ProviderConfig lab",
    }
    for number in range(13):
        await estate.request(f"r-{number}", 1, pool=estate.namespace)
    answers = ["Allocated"] * 12 + ["Failed"]
    await estate.until(lambda: sorted(estate.phases().values()) == answers, lambda: str(estate.phases()))
    assert addresses(estate) == {f"10.40.0.{number}" for number in range(1, 15)} - {GATEWAY, DNS}
    status = estate.pool_status(estate.namespace)
    assert (status["totalIPs"], status["availableIPs"], status["largestFreeBlock"]) == (12, 0, 0)
    await estate.settle()
    await estate.verdict()


@scales()
async def test_a_range_that_is_pinned_on_a_gateway_is_refused_with_a_sentence(estate: Estate) -> None:
    await estate.butler("one")
    await estate.pool(estate.namespace, cidr="10.40.0.0/28")
    await provider(estate)
    await estate.until(lambda: len(excluded(estate)) == 2, "both are left out")
    await estate.request("pinned", pinned=("10.40.0.1", "10.40.0.4"), pool=estate.namespace)
    await estate.until(lambda: estate.phases().get("pinned") == "Failed", lambda: str(estate.phases()))
    assert estate.reason("pinned") == "PinnedRangeConflict"
    said = next(
        condition["message"]
        for condition in estate.allocations["pinned"]["status"]["conditions"]
        if condition["type"] == "Ready"
    )
    assert said == (
        "10.40.0.1-10.40.0.4 is pinned, but 10.40.0.1 is the gateway of ProviderConfig lab:"
        " pin a range without it, or correct the ProviderConfig"
    )
    await estate.api.patch("providerconfigs", "lab", {"spec": {"network": {"gateway": "10.40.0.14"}}})
    await estate.until(
        lambda: estate.phases()["pinned"] == "Allocated", lambda: str(estate.pool_status(estate.namespace))
    )
    await estate.settle()
    await estate.verdict()


@scales()
async def test_a_gateway_that_is_named_too_late_stays_with_its_holder_and_is_told(estate: Estate) -> None:
    await estate.butler("one")
    await estate.pool(estate.namespace, cidr="10.40.0.0/28")
    await estate.request("early", 4, pool=estate.namespace)
    await estate.until(lambda: estate.phases().get("early") == "Allocated", "it is granted")
    assert GATEWAY in addresses(estate)
    await provider(estate)
    await estate.until(lambda: "held by early" in ready(estate), lambda: f"the pool says who holds it: {ready(estate)}")
    assert f"{GATEWAY} is the gateway of ProviderConfig lab, and held by early" in ready(estate)
    assert GATEWAY in addresses(estate), "what was granted is never taken away"

    async def told() -> str:
        config = await estate.api.get("providerconfigs", "lab")
        conditions = (config.get("status") or {}).get("conditions") or ()
        return next((str(condition["message"]) for condition in conditions if condition["type"] == "PoolAvailable"), "")

    while f"{estate.namespace}: {GATEWAY} is the gateway of ProviderConfig lab, and held by early" not in await told():
        await estate.until(lambda: True, "the ProviderConfig says so too")
    await estate.api.delete("ipallocations", "early")
    await estate.until(lambda: "early" not in estate.phases(), "it goes")
    await estate.request("late", 4, pool=estate.namespace)
    await estate.until(lambda: estate.phases().get("late") == "Allocated", "the next one is granted")
    assert GATEWAY not in addresses(estate)
    await estate.until(lambda: "held by" not in ready(estate), "and there is nothing to say any more")
    await estate.settle()
    await estate.verdict()
