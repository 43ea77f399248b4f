"""`butleradm local world`."""

from __future__ import annotations

import click


@click.command(short_help="Stand in for Cluster API, Steward and machines, on any management cluster.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), metavar="FILE", help="The management cluster.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current one]")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where the tenants' control planes are kept.  [default: ~/.butler/world]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="Port of the tenants on 127.0.0.1.  [default: the one used last time if it is free, else any free one]",
)
@click.option(
    "--machine-seconds",
    type=click.FloatRange(0),
    metavar="S",
    default=1.0,
    show_default=True,
    help="How long machines take.",
)
@click.option(
    "--machine-deletion-seconds",
    type=click.FloatRange(0),
    metavar="S",
    default=0.3,
    show_default=True,
    help="How long machines take to go.",
)
@click.option(
    "--control-plane-seconds",
    type=click.FloatRange(0),
    metavar="S",
    default=0.5,
    show_default=True,
    help="How long a control plane, or its upgrade, takes.",
)
@click.option(
    "--addon-seconds",
    type=click.FloatRange(0),
    metavar="S",
    default=0.3,
    show_default=True,
    help="How long addons take.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but problems.")
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
def world(
    kubeconfig: str | None,
    context: str | None,
    data_dir: str | None,
    port: int,
    machine_seconds: float,
    machine_deletion_seconds: float,
    control_plane_seconds: float,
    addon_seconds: float,
    quiet: bool,
    verbose: bool,
) -> None:
    """Stand in for what Butler works with, in the foreground: Cluster API, Steward, providers, MetalLB and addons.

    Tenants become logical clusters of an embedded control plane in this process. For trying out and for tests, never
    beside the real controllers.

    \b
    Examples:
      butleradm local world --kubeconfig admin.conf
      butleradm local world --kubeconfig admin.conf --machine-seconds 30
    """
    from butler.local.world.settings import WorldSettings
    from butler.processes.world import run_world

    settings = WorldSettings(
        machine_seconds=machine_seconds,
        machine_deletion_seconds=machine_deletion_seconds,
        control_plane_seconds=control_plane_seconds,
        addon_seconds=addon_seconds,
    )
    run_world(kubeconfig, context, data_dir, port, settings, quiet=quiet, verbose=verbose)
