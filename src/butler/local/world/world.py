"""All stand-ins together: Cluster API, Steward, six providers, MetalLB and addons on one machine.

They look after the objects of one management cluster, whichever it is, and the tenants live as logical clusters in a
control plane of this process. They run beside Butler's own controllers, never among them: the only thing that the two
share is the API server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from butler.kube.metrics import Metrics
from butler.kube.operator import Operator
from butler.local.world import definitions
from butler.local.world.addons import add_addons
from butler.local.world.cluster_api import add_clusters
from butler.local.world.machine_deployments import add_machine_deployments
from butler.local.world.machine_sets import add_machine_sets
from butler.local.world.machines import add_machines
from butler.local.world.metallb import add_metallb
from butler.local.world.settings import WorldSettings
from butler.local.world.steward import add_steward
from butler.local.world.tenants import TenantConnections
from butler.local.world.view import WorldView

if TYPE_CHECKING:
    from butler.kube.client import Client
    from butler.local.control_plane import ControlPlane

NAME = "butler-world"


def add_world(operator: Operator, tenants: ControlPlane, settings: WorldSettings | None = None) -> None:
    """Let an operator stand in for all other controllers, once `definitions.install` has written the definitions."""
    settings = settings or WorldSettings()
    view, ways_in = WorldView(operator), TenantConnections(operator, tenants)
    add_clusters(operator, view, settings)
    add_steward(operator, view, tenants, settings)
    add_machine_deployments(operator, view, settings)
    add_machine_sets(operator, view, settings)
    add_machines(operator, view, ways_in, settings)
    add_metallb(operator, ways_in, settings)
    add_addons(operator, ways_in, settings)


class LocalWorld:
    """The stand-ins for one management cluster, from start to stop."""

    def __init__(
        self,
        client: Client,
        tenants: ControlPlane,
        settings: WorldSettings | None = None,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self.operator = Operator(client, NAME, metrics=metrics or Metrics())
        add_world(self.operator, tenants, settings)
        self._installed = False

    @property
    def is_ready(self) -> bool:
        return not self.why_unready()

    def why_unready(self) -> list[str]:
        return self.operator.why_unready() if self._installed else ["the definitions are not installed yet"]

    def stop(self) -> None:
        self.operator.stop()

    async def run(self) -> None:
        """Work until told to stop."""
        await definitions.install(self._client)
        self._installed = True
        await self.operator.run(handle_signals=False)

    async def wait_ready(self) -> None:
        while not self.is_ready:  # noqa: ASYNC110  # a state of many parts, once
            await asyncio.sleep(0.01)
