"""Which Services of a tenant hold addresses, and that only those are ever deleted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.errors import BadAnswer
from butler.rules.loadbalancer.service import Balancer
from butler.tenant import services
from butler.tenant.services import delete_load_balancers, load_balancers
from unit.kube.fake_api import FakeApi, refusal

Json = dict[str, Any]


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with Client(Connection(api.url)) as connected:
        yield connected


def put(api: FakeApi, name: str, kind: str = "LoadBalancer", **status: Any) -> str:
    path = f"/api/v1/namespaces/web/services/{name}"
    made = api.put(path, {"spec": {"type": kind}, "status": status} if kind else {})
    return str(made["metadata"]["uid"])


async def test_only_load_balancers_are_told_with_what_they_were_given(api: FakeApi, client: Client) -> None:
    put(api, "inner", "ClusterIP")
    put(api, "bare", "")
    waiting = put(api, "waiting", loadBalancer={})
    given = put(api, "given", loadBalancer={"ingress": [{"ip": "10.40.1.8"}, {"ip": "fd00::1", "ipMode": "VIP"}]})
    named = put(api, "named", loadBalancer={"ingress": [{"hostname": "lb.example"}, {}]})
    empty = put(api, "empty", loadBalancer={"ingress": None})
    assert await load_balancers(client) == [
        Balancer("web", "empty", empty),
        Balancer("web", "given", given, addresses=("10.40.1.8", "fd00::1")),
        Balancer("web", "named", named, has_hostname=True),
        Balancer("web", "waiting", waiting),
    ]
    assert "fieldSelector=spec.type%3DLoadBalancer" in api.requests[-1][1], "the server need not send the others"


async def test_pages_are_put_together(api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "PAGE", 3)
    for number in range(10):
        put(api, f"s{number}")
    assert len(await load_balancers(client)) == 10
    assert api.counts["GET"] == 4


async def test_more_services_than_a_tenant_can_have_are_refused(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PAGE", 3)
    monkeypatch.setattr(services, "MOST_SERVICES", 6)
    for number in range(10):
        put(api, f"s{number}")
    with pytest.raises(BadAnswer, match="no end"):
        await load_balancers(client)


async def test_a_service_of_the_wrong_shape_is_an_error_and_not_passed_over(api: FakeApi, client: Client) -> None:
    """Passed over, its address would look free."""
    put(api, "odd", loadBalancer={"ingress": 7})
    with pytest.raises(BadAnswer):
        await load_balancers(client)


async def test_only_load_balancers_are_deleted_by_uid_and_counted_until_gone(api: FakeApi, client: Client) -> None:
    put(api, "inner", "ClusterIP")
    put(api, "a")
    put(api, "b")
    api.put("/api/v1/namespaces/web/services/leaving", {"spec": {"type": "LoadBalancer"}})
    api.objects["/api/v1/namespaces/web/services/leaving"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await delete_load_balancers(client) == 3
    assert sorted(path.rpartition("/")[2] for path in api.objects) == ["inner", "leaving"]
    assert api.counts["DELETE"] == 2
    assert await delete_load_balancers(client) == 1


async def test_a_service_that_went_or_was_replaced_meanwhile_is_no_error(api: FakeApi, client: Client) -> None:
    put(api, "a")
    put(api, "b")
    api.refuse.extend([None, refusal(404, "NotFound"), refusal(409, "Conflict")])
    assert await delete_load_balancers(client) == 2
