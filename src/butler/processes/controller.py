"""The commands under `butleradm controller`: Butler's controllers as one process against any API server."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import secrets
import sys
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvloop

from butler.controllers.networkpool.setup import add_ipam
from butler.controllers.providerconfig.settings import ProviderSettings
from butler.controllers.providerconfig.setup import add_providers
from butler.controllers.service_looks import ServiceLooks
from butler.controllers.tenantcluster.setup import add_tenants
from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import ConfigError
from butler.kube.kinds import CLUSTERS
from butler.kube.lease import LeaderLease, LeaseTerms
from butler.kube.metrics import Metrics
from butler.kube.operator import Operator
from butler.processes.open_files import allow_many_connections
from butler.webhooks.registration import AtService
from butler.webhooks.service import AdmissionSettings, add_admission

if TYPE_CHECKING:
    from butler.kube.config import Connection
    from butler.rules.pool.settings import IpamSettings
    from butler.rules.tenant.settings import TenantSettings

NAME = "butler-controller"


@dataclass(frozen=True, slots=True)
class Process:
    """How one controller process runs."""

    connection: Connection
    ipam: IpamSettings
    admission: AdmissionSettings | None
    lease_seconds: float | None
    tenants: TenantSettings | None = None
    """None: addresses only."""
    host: str = "127.0.0.1"
    port: int | None = None


def build(process: Process, client: Client, metrics: Metrics) -> Operator:
    """All of Butler's controllers, and admission where it is asked for, in one operator."""
    lease = None
    if process.lease_seconds is not None:
        identity = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        lease = LeaderLease(
            client, NAME, process.ipam.home_namespace, identity, terms=_terms(process.lease_seconds), metrics=metrics
        )
    operator = Operator(client, NAME, metrics=metrics, lease=lease, host=process.host, port=process.port)
    looks = None
    if process.tenants is not None:
        looks = ServiceLooks(operator.cache(CLUSTERS), client.timeline, lambda: datetime.now(UTC), time.monotonic)
    ipam = add_ipam(operator, process.ipam, looks)
    if process.tenants is not None:
        add_providers(operator, ProviderSettings(process.ipam.namespace, process.tenants.home_namespace))
        tenants = replace(process.tenants, force_is_checked=process.admission is not None)
        add_tenants(operator, tenants, ipam, namespace=process.ipam.namespace, looks=looks)
    if process.admission is not None:
        add_admission(operator, process.admission)
    return operator


def run_controller(
    kubeconfig: str | None,
    context: str | None,
    ipam: IpamSettings,
    admission: AdmissionSettings | None,
    *,
    tenants: TenantSettings | None,
    lease_seconds: float | None,
    host: str,
    port: int | None,
    verbose: bool,
) -> None:
    """Run until a signal says to stop; leaves with code 1 and one sentence if it cannot start."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        connection = config.load(kubeconfig, context)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    allow_many_connections()
    process = Process(connection, ipam, admission, lease_seconds, tenants, host, port)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            uvloop.run(_run(process))
    except OSError as error:  # all that concerns the API server has errors of its own
        raise click.ClickException(f"cannot serve: {error.strerror or error}") from None


def admission_settings(
    ipam: IpamSettings, host: str, port: int | None, service: str | None, certificates: str | None
) -> AdmissionSettings | None:
    """What the options about webhooks mean; None: no admission."""
    if port is None:
        if service or certificates:
            raise click.UsageError("--webhook-service and --webhook-certs need --webhook-port")
        return None
    namespace, _, name = (service or "").partition("/")
    if service and not (namespace and name):
        raise click.BadParameter("give it as NAMESPACE/NAME", param_hint="--webhook-service")
    folder = Path(certificates) if certificates else None
    return AdmissionSettings(
        namespace=ipam.namespace,
        home_namespace=ipam.home_namespace,
        host=host,
        port=port,
        service=AtService(namespace, name) if service else None,
        certificate=folder / "tls.crt" if folder else None,
        key=folder / "tls.key" if folder else None,
        authorities=folder / "ca.crt" if folder else None,
    )


async def _run(process: Process) -> None:
    metrics = Metrics()
    async with Client(process.connection, field_manager=NAME, observe=metrics.observe_request) as client:
        operator = build(process, client, metrics)
        logging.getLogger(__name__).info("butler-controller works on %s", process.connection.server)
        await operator.run()


def _terms(seconds: float) -> LeaseTerms:
    """A lease of that duration, given up by its holder after two thirds and renewed several times before."""
    return LeaseTerms(duration=seconds, deadline=seconds * 2 / 3, retry=min(2.0, seconds / 7.5))
