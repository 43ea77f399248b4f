"""IPAllocations that the management cluster refuses: the status says so, and says who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.refusing import MESSAGE, refusing_webhook
from elastic.stories import story

if TYPE_CHECKING:
    from elastic.estate import Elastic

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
ALLOCATIONS = ("butler.butlerlabs.dev", "v1alpha1", "ipallocations")
CONDITION = "LoadBalancersReady"


@story
def test_a_service_that_waits_because_allocations_are_refused_is_told(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    web.gets("traefik", namespace="traefik")
    web.says(CONDITION, "True", "InStep")
    own = {"butler.butlerlabs.dev/tenant-uid": web.uid}
    name, kind = f"refuses-{place.namespace}", {"apiVersion": "admissionregistration.k8s.io/v1"}
    with refusing_webhook(estate.directory / name, name=name, kind=ALLOCATIONS, only=own) as hook:
        estate.send("POST", HOOKS, {**kind, "kind": "ValidatingWebhookConfiguration", **hook})
        try:
            web.add("a")
            message = web.says(CONDITION, "False", "AllocationsNotWritten")
            assert "default/a" in message
            assert MESSAGE in message
            web.until(lambda: web.use().get("waitingServices") == 1, "one is said to wait")
            web.until(lambda: web.events("LoadBalancerAllocationsNotWritten"), "it is told")
            web.stays(lambda: not web.address("a"), "it waits", 1.0)
        finally:
            estate.send("DELETE", f"{HOOKS}/{name}")
    web.gets("a")
    web.says(CONDITION, "True", "InStep")
    place.verdict()
