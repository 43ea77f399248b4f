"""The Services of platform addons carry a label, so that people can tell them from the tenant's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.labels import FieldManager, Label
from butler.api.tenantcluster import ManagementMode
from butler.kube.errors import ApiError
from butler.tenant.services import SERVICES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.tenantcluster import TenantCluster
    from butler.kube.client import Client
    from butler.rules.loadbalancer.service import Balancer

PLATFORM_SERVICES: Final = {("traefik", "traefik"), ("ingress-nginx", "ingress-nginx-controller")}
"""Namespace and name, as the charts of the ingress controllers give them."""


def unlabelled(cluster: TenantCluster, services: Iterable[Balancer]) -> list[Balancer]:
    """Platform Services without the label; none where Butler does not manage the addons. Pure."""
    if cluster.spec.management_policy.mode is not ManagementMode.ACTIVE:
        return []
    return [
        service
        for service in services
        if (service.namespace, service.name) in PLATFORM_SERVICES and not service.platform and not service.deleting
    ]


async def label(tenant: Client, services: Iterable[Balancer]) -> None:
    """Put the label on."""
    for service in services:
        patch = {"metadata": {"uid": service.uid, "labels": {Label.PLATFORM_LOAD_BALANCER.value: "true"}}}
        try:
            await tenant.patch(SERVICES, service.name, patch, service.namespace, field_manager=FieldManager.TENANTS)
        except ApiError:
            continue  # gone, or another by now; or refused by the tenant: a label is not worth stopping for
