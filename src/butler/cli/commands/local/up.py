"""`butleradm local up`."""

from __future__ import annotations

import click

from butler.cli.commands.local import data_dir_option


@click.command(short_help="Start Butler on this machine, in the foreground.")
@data_dir_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="Port on 127.0.0.1.  [default: the one used last time if it is free, else any free one]",
)
@click.option("--no-controllers", is_flag=True, help="Start the API server alone, without controllers and world.")
@click.option(
    "--no-world", is_flag=True, help="Leave out the stand-ins for Cluster API, Steward, MetalLB and machines."
)
@click.option(
    "--shrink-after",
    type=click.FloatRange(0),
    metavar="S",
    help="How long added load-balancer addresses have to be unused before they are given back."
    "  [default: 600, with --demo 45]",
)
@click.option(
    "--console-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="Port of the console on 127.0.0.1.  [default: the one used last time if it is free, else any free one]",
)
@click.option("--no-console", is_flag=True, help="Leave out the console. --no-controllers leaves it out too.")
@click.option("--demo", is_flag=True, help="Let clusters and Services come and go, for watching.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but problems.")
def up(
    data_dir: str | None,
    port: int,
    no_controllers: bool,
    no_world: bool,
    shrink_after: float | None,
    console_port: int,
    no_console: bool,
    demo: bool,
    quiet: bool,
) -> None:
    """Start the embedded control plane, Butler's controllers, a small world and the console in the foreground.

    The world has a stand-in for everything that Butler works with, so that tenant clusters come to life. A link that
    opens the console is printed; with --quiet, `butleradm server link` makes one.

    --demo plays the worked example: eight teams come, their Services come and go, guests fill the pool until one has to
    wait, and the pool grows. It goes on where it was when it is started again, and touches nothing but objects with the
    label butler.butlerlabs.dev/demo, which all of its own have.

    Ctrl-C stops it all and keeps the data.

    \b
    Examples:
      butleradm local up
      butleradm local up --demo
      butleradm local up --data-dir ./playground --port 6443 --console-port 8443
      butleradm local up --shrink-after 20
    """
    from butler.processes import local

    if demo and (no_controllers or no_world):
        raise click.UsageError("--demo needs the controllers and the world: leave out --no-controllers and --no-world")
    if no_console and console_port:
        raise click.UsageError("--console-port is for a console: leave out --no-console")
    wanted = local.Up(
        local.data_dir(data_dir),
        port,
        controllers=not no_controllers,
        world=not (no_controllers or no_world),
        console=not (no_controllers or no_console),
        console_port=console_port,
        demo=demo,
        shrink_after=shrink_after,
        quiet=quiet,
    )
    local.run_up(wanted)
