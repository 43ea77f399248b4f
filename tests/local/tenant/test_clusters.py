"""Tenant clusters by their kubeconfig Secrets, their load balancers and their tokens, on both control planes."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from butler.kube.resource import NAMESPACES, SECRETS, SERVICES
from butler.tenant.bootstrap_token import bootstrap_token
from butler.tenant.services import delete_load_balancers, load_balancers

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.kube.client import Client


async def fresh_namespace(tenant: Client) -> str:
    name = f"web-{secrets.token_hex(4)}"
    await tenant.create(NAMESPACES, {"metadata": {"name": name}})
    return name


def service(name: str, kind: str, **metadata: object) -> Json:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"type": kind, "selector": {"app": "web"}, "ports": [{"port": 80, "protocol": "TCP"}]},
    }


async def test_a_tenant_is_reached_by_its_secret(tenant: Client) -> None:
    names = {item["metadata"]["name"] for item in (await tenant.list(NAMESPACES)).items}
    assert "kube-system" in names


async def test_load_balancers_are_found_and_deleted_and_other_services_are_left_alone(tenant: Client) -> None:
    await delete_load_balancers(tenant)  # a real Kubernetes is shared with other tests, which leave some behind
    namespace = await fresh_namespace(tenant)
    for name, kind in (("inner", "ClusterIP"), ("outer", "LoadBalancer"), ("node", "NodePort")):
        await tenant.create(SERVICES, service(name, kind), namespace)
    held = service("held", "LoadBalancer", finalizers=["example.com/held"])
    await tenant.create(SERVICES, held, namespace)
    given = {"status": {"loadBalancer": {"ingress": [{"ip": "10.40.1.8"}]}}}
    await tenant.patch(SERVICES, "outer", given, namespace, subresource="status")
    found = {
        load_balancer.name: load_balancer
        for load_balancer in await load_balancers(tenant)
        if load_balancer.namespace == namespace
    }
    assert {name: (each.addresses, each.deleting) for name, each in found.items()} == {
        "outer": (("10.40.1.8",), False),
        "held": ((), False),
    }
    try:
        assert await delete_load_balancers(tenant) == 2
        assert [(load_balancer.name, load_balancer.deleting) for load_balancer in await load_balancers(tenant)] == [
            ("held", True)
        ]
        assert await delete_load_balancers(tenant) == 1, "one still holds on"
    finally:
        await tenant.patch(SERVICES, "held", {"metadata": {"finalizers": None}}, namespace)
    assert await delete_load_balancers(tenant) == 0
    left = {item["metadata"]["name"] for item in (await tenant.list(SERVICES, namespace)).items}
    assert left == {"inner", "node"}


async def test_a_token_is_reused_while_it_lives_long_enough_and_replaced_in_time(tenant: Client) -> None:
    cluster = f"c-{secrets.token_hex(4)}"
    now = datetime.now(UTC)
    first = await bootstrap_token(tenant, cluster, now=now)
    assert await bootstrap_token(tenant, cluster, now=now + timedelta(hours=23)) == first
    assert await bootstrap_token(tenant, f"{cluster}-other", now=now) != first
    second = await bootstrap_token(tenant, cluster, now=now + timedelta(hours=25))
    assert second != first
    stored = await tenant.get(SECRETS, f"bootstrap-token-{first[:6]}", "kube-system")
    assert stored["type"] == "bootstrap.kubernetes.io/token", "machines that are starting with it still may"
    third = await bootstrap_token(tenant, cluster, now=now + timedelta(hours=60))
    selector = f"butler.butlerlabs.dev/tenant={cluster}"
    kept = await tenant.list(SECRETS, "kube-system", label_selector=selector)
    names = {item["metadata"]["name"] for item in kept.items}
    assert names == {f"bootstrap-token-{second[:6]}", f"bootstrap-token-{third[:6]}"}, "the expired one is gone"
