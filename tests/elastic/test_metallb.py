"""MetalLB that is not there, that refuses, and that has nothing to announce."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.refusing import MESSAGE, refusing_webhook
from elastic.stories import story

if TYPE_CHECKING:
    from elastic.estate import Elastic

CONDITION = "LoadBalancersReady"
WITHOUT_INGRESS = {"ingress": {"enabled": False}}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@story
def test_a_tenant_that_starts_with_nothing_gets_its_first_address_with_its_first_service(estate: Elastic) -> None:
    place = estate.place(initial=0)
    web = place.started(addons=WITHOUT_INGRESS)
    web.says(CONDITION, "True", "InStep")
    assert web.pool() is None
    assert web.allocations("loadbalancer") == []
    web.add("a")
    assert web.gets("a") == [place.address(16)]
    web.publishes(place.range(16))
    place.verdict()
    web.remove("a")
    web.sees(lambda: web.pool() is None, "default-pool is gone again")
    web.shrinks_to(0)
    assert web.side.get("l2advertisements", "metallb-system", "default"), "the advertisement stays"
    place.verdict()


@story
def test_a_tenant_that_starts_with_nothing_grows_for_its_ingress(estate: Elastic) -> None:
    place = estate.place(initial=0)
    web = place.started()
    assert web.gets("traefik", namespace="traefik") == [place.address(16)]
    assert list(web.grown().values()) == [1]
    place.verdict()


@story
def test_metallb_that_is_not_installed_is_told_and_waited_for(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started(addons=WITHOUT_INGRESS)
    web.publishes(place.range(16))
    definition = web.send("GET", f"{CRDS}/ipaddresspools.metallb.io")
    web.send("DELETE", f"{CRDS}/ipaddresspools.metallb.io")
    web.says(CONDITION, "False", "NotInstalled")
    web.add("a", "b")
    web.stays(lambda: web.grown() == {}, "without MetalLB, an address would help no Service", 2.0)
    kept = {"name": definition["metadata"]["name"], "labels": definition["metadata"].get("labels", {})}
    web.send("POST", CRDS, {"metadata": kept, "spec": definition["spec"]})
    web.gets("a", "b")
    web.says(CONDITION, "True", "InStep")
    place.verdict()


@story
def test_a_refusal_of_metallbs_webhook_is_told_in_its_words(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started(addons=WITHOUT_INGRESS)
    web.publishes(place.range(16))
    with refusing_webhook(estate.directory / place.namespace) as configuration:
        web.send("POST", HOOKS, configuration)
        web.add("a", "b")
        assert MESSAGE in web.says(CONDITION, "False", "Refused")
        (event,) = web.until(lambda: web.events("MetalLBRefused")[-1:], "it is told")
        assert event["type"] == "Warning"
        web.stays(lambda: len(web.grown()) == 1, "a refusal is no reason to grow again", 2.0)
        web.send("DELETE", f"{HOOKS}/{configuration['metadata']['name']}")
        web.gets("a", "b")
    web.says(CONDITION, "True", "InStep")
    place.verdict()


@story
def test_a_webhook_that_does_not_answer_is_waited_for(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started(addons=WITHOUT_INGRESS)
    web.publishes(place.range(16))
    with refusing_webhook(estate.directory / place.namespace) as configuration:
        (hook,) = configuration["webhooks"]
        hook["clientConfig"]["url"] = "https://127.0.0.1:9/"
        web.send("POST", HOOKS, configuration)
        web.add("a", "b")
        web.says(CONDITION, "False", "NotReady")
        web.send("DELETE", f"{HOOKS}/{configuration['metadata']['name']}")
        web.gets("a", "b")
    web.says(CONDITION, "True", "InStep")
    place.verdict()


@story
def test_the_status_tells_platform_services_from_others(estate: Elastic) -> None:
    place = estate.place(initial=2, increment=2)
    web = place.started()
    web.gets("traefik", namespace="traefik")
    web.add("a", "b", "outside", loadBalancerClass=None)
    web.add("named", loadBalancerIP="192.0.2.9")
    web.gets("a", "b", "outside")

    def told() -> dict[str, int]:
        return {name: value for name, value in web.use().items() if isinstance(value, int)}

    figures = {"held": 4, "inUse": 4, "idle": 0, "services": 4, "platformServices": 1, "waitingServices": 0}
    web.until(lambda: told() == figures, f"the figures are {figures}")
    assert web.use()["lastGrowth"]["addresses"] == 2
    assert "lastShrink" not in web.use()
    place.verdict()
