"""Services, pools and requests for tests of MetalLB's decisions, with everything that does not matter left out."""

from __future__ import annotations

from typing import Any

from butler.ipam.addresses import Family
from butler.local.world.metallb_allocator import Port, ServiceRequest
from butler.local.world.metallb_pools import Address, Pools, configuration, parse_address

Json = dict[str, Any]


def pool(name: str, *addresses: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"addresses": list(addresses), **spec}}


def pools(**lines: str) -> Pools:
    """`pools(a="10.0.0.0/30 10.1.0.0/30")`"""
    return configuration([pool(name, *text.split()) for name, text in lines.items()])


def ip(text: str) -> Address:
    return parse_address(text)


def request(
    name: str = "s",
    *ports: int,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    families: tuple[Family, ...] = (Family.V4,),
    policy: str = "SingleStack",
    sharing: str = "",
    backend: str = "",
) -> ServiceRequest:
    numbers = tuple(Port("TCP", number) for number in ports or (80,))
    return ServiceRequest(f"{namespace}/{name}", namespace, labels or {}, numbers, families, policy, sharing, backend)


def service(
    name: str = "s",
    *,
    shows: tuple[str, ...] = (),
    annotations: dict[str, str] | None = None,
    ports: tuple[int, ...] = (80,),
    **spec: Any,
) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {
            "type": "LoadBalancer",
            "clusterIPs": ["10.96.0.10"],
            "selector": {"app": name},
            "ports": [{"port": port, "protocol": "TCP"} for port in ports],
            **spec,
        },
        "status": {"loadBalancer": {"ingress": [{"ip": text, "ipMode": "VIP"} for text in shows]} if shows else {}},
    }
