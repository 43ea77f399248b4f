"""`butleradm controller run`."""

from __future__ import annotations

import click


@click.command(short_help="Run the controllers in the foreground.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), metavar="FILE", help="As kubectl has it.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current one]")
@click.option("-n", "--namespace", default="", metavar="NS", help="Look after this namespace only.  [default: all]")
@click.option(
    "--home-namespace",
    default="",
    metavar="NS",
    help="Where Butler keeps its own records.  [default: butler-system, or the one of --namespace]",
)
@click.option("--lease/--no-lease", default=True, help="Of several replicas let one work at a time.", show_default=True)
@click.option(
    "--lease-seconds",
    type=click.FloatRange(1),
    default=15.0,
    metavar="S",
    show_default=True,
    help="A leader that falls silent is replaced after this long.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve /healthz, /readyz and /metrics on this port; 0: any free one.  [default: none]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    show_default=True,
    help="Address that probes, metrics and webhooks listen on.",
)
@click.option(
    "--webhook-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve admission on this port and register it; 0: any free one.  [default: no admission]",
)
@click.option(
    "--webhook-service",
    metavar="NS/NAME",
    help="The Service through which the API server reaches --webhook-port.  [default: --host, on the same machine]",
)
@click.option(
    "--webhook-certs",
    type=click.Path(file_okay=False, exists=True),
    metavar="DIR",
    help="tls.crt, tls.key and ca.crt for admission.  [default: Butler makes its own]",
)
@click.option(
    "--retention",
    type=click.FloatRange(0),
    default=86400.0,
    metavar="S",
    show_default=True,
    help="How long a released allocation is kept for audit.",
)
@click.option(
    "--sweep-every",
    type=click.FloatRange(0.05),
    default=60.0,
    metavar="S",
    show_default=True,
    help="Time between looks for allocations whose tenant is gone.",
)
@click.option(
    "--sighting-gap",
    type=click.FloatRange(0.05),
    default=60.0,
    metavar="S",
    show_default=True,
    help="Time between the two looks that a missing tenant takes.",
)
@click.option(
    "--addresses-only", is_flag=True, help="Look after pools and allocations, not after providers and tenant clusters."
)
@click.option(
    "--clean-up-limit",
    type=click.FloatRange(0),
    default=300.0,
    metavar="S",
    show_default=True,
    help="How long a cluster that is deleted waits for its load balancers, and for its addons.",
)
@click.option(
    "--shrink-after",
    type=click.FloatRange(0),
    default=600.0,
    metavar="S",
    show_default=True,
    help="How long added load-balancer addresses have to be unused before they are given back.",
)
@click.option(
    "--drain-settle",
    type=click.FloatRange(0),
    default=2.0,
    metavar="S",
    show_default=True,
    help="How long MetalLB gets to take in a change of its pool, before addresses are given back.",
)
@click.option(
    "--check-tenants-every",
    type=click.FloatRange(0.1),
    default=300.0,
    metavar="S",
    show_default=True,
    help="How often MetalLB's configuration on a tenant is compared with what it should be, without other reason.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
def run(
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    home_namespace: str,
    lease: bool,
    lease_seconds: float,
    metrics_port: int | None,
    host: str,
    webhook_port: int | None,
    webhook_service: str | None,
    webhook_certs: str | None,
    retention: float,
    sweep_every: float,
    sighting_gap: float,
    addresses_only: bool,
    clean_up_limit: float,
    shrink_after: float,
    drain_settle: float,
    check_tenants_every: float,
    verbose: bool,
) -> None:
    """Run the controllers in the foreground, against the API server of the kubeconfig.

    Several may run at once: one works, the others stand by.

    \b
    Examples:
      butleradm controller run
      butleradm controller run --kubeconfig admin.conf --metrics-port 8080
      butleradm controller run --host 0.0.0.0 --webhook-port 9443 --webhook-service butler-system/butler-controller
    """
    from datetime import timedelta

    from butler.processes.controller import admission_settings, run_controller
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.pool.settings import IpamSettings
    from butler.rules.tenant.settings import TenantSettings

    settings = IpamSettings(
        namespace=namespace,
        home_namespace=home_namespace or namespace or IpamSettings().home_namespace,
        retention=timedelta(seconds=retention),
        sweep_every=sweep_every,
        sighting_gap=sighting_gap,
    )
    run_controller(
        kubeconfig,
        context,
        settings,
        admission_settings(settings, host, webhook_port, webhook_service, webhook_certs),
        tenants=None
        if addresses_only
        else TenantSettings(
            home_namespace=settings.home_namespace,
            clean_up_limit=timedelta(seconds=clean_up_limit),
            load_balancers=LoadBalancerSettings(
                grace=timedelta(seconds=shrink_after), settle=drain_settle, check_every=check_tenants_every
            ),
        ),
        lease_seconds=lease_seconds if lease else None,
        host=host,
        port=metrics_port,
        verbose=verbose,
    )
