"""A tenant cluster on each control plane: a logical cluster of the embedded server, or the real one itself.

The client comes the way it does in production, out of a kubeconfig Secret.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
from typing import TYPE_CHECKING

import pytest

from butler.api.objects import Json, Key
from butler.kube.errors import AlreadyExists
from butler.kube.resource import NAMESPACES
from butler.tenant import metallb
from butler.tenant.clusters import TenantClients
from local.tenant.metallb_kinds import DEFINITIONS, install_metallb_kinds, remove_metallb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from butler.kube.client import Client
    from control_planes import ControlPlane

KEY = Key("team-payments", "payments")


def kubeconfig_of(control_plane: ControlPlane) -> str:
    """A tenant's kubeconfig with everything inline, as Steward writes it."""
    if control_plane.name == "embedded":
        code, text = control_plane.request("PUT", f"/clusters/payments-1/p{secrets.token_hex(4)}")
        assert code == 201
        return str(text)
    return control_plane.kubectl("config", "view", "--raw", "--minify", "--flatten").stdout


@pytest.fixture
def kubeconfig_secret(control_plane: ControlPlane) -> Json:
    if not control_plane.disposable:
        pytest.skip("these tests remove MetalLB and all load balancers, which is not for a server that was lent")
    content = base64.b64encode(kubeconfig_of(control_plane).encode()).decode()
    return {
        "metadata": {"name": "payments-admin-kubeconfig", "namespace": "payments-1", "resourceVersion": "7"},
        "data": {"admin.conf": content},
    }


@pytest.fixture
async def tenant(kubeconfig_secret: Json) -> AsyncIterator[Client]:
    async with TenantClients() as clients:
        yield await clients.client(KEY, "uid-1", kubeconfig_secret)


@pytest.fixture(scope="module")
def nothing_left(control_plane: ControlPlane) -> Iterator[None]:
    """Other tests on the same server must not find MetalLB's kinds there."""
    yield
    if control_plane.name == "kubernetes":
        control_plane.kubectl(
            "delete", "--ignore-not-found", "crd", *(definition["metadata"]["name"] for definition in DEFINITIONS)
        )
        control_plane.kubectl("delete", "--ignore-not-found", "namespace", metallb.NAMESPACE)


@pytest.fixture
async def without_metallb(tenant: Client, nothing_left: None) -> Client:
    await remove_metallb(tenant)
    return tenant


@pytest.fixture
async def with_metallb(tenant: Client, nothing_left: None) -> Client:
    """MetalLB's kinds and namespace, and no object in it."""
    await install_metallb_kinds(tenant)
    with contextlib.suppress(AlreadyExists):
        await tenant.create(NAMESPACES, {"metadata": {"name": metallb.NAMESPACE}})
    for resource in (metallb.ADDRESS_POOLS, metallb.ADVERTISEMENTS):
        await tenant.delete_collection(resource, metallb.NAMESPACE)
    return tenant
