"""`butleradm local`: Butler on this one machine, without a Kubernetes cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.frame import options
from butler.cli.frame.lazy import CONTEXT

if TYPE_CHECKING:
    from butler.cli.frame.output import Output


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    metavar="DIR",
    envvar="BUTLER_DATA_DIR",
    help="Where everything is kept.  [default: $BUTLER_DATA_DIR, else ~/.butler/local]",
)


@click.group(context_settings=CONTEXT)
def local() -> None:
    """Butler on this one machine, without a Kubernetes cluster."""


@local.command(short_help="Start Butler on this machine, in the foreground.")
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


@local.command(short_help="Tell whether it is up, where, since when, and what is in it.")
@data_dir_option
@options.output("table", "json", "yaml", "jsonpath")
@click.pass_context
def status(ctx: click.Context, data_dir: str | None, output: Output) -> None:
    """Tell whether Butler is up on this machine: its process, address, age, contents and how much it has stored.

    Exit code 0 means that it is up, 3 that it is not (or is just starting), 5 that it runs and does not answer.

    \b
    Examples:
      butleradm local status
      butleradm local status --data-dir ./playground -o json
      butleradm local status > /dev/null || butleradm local up
    """
    from butler.cli.local_status import look, show

    found = look(data_dir)
    show(found, output)
    ctx.exit(found.exit_code)


@local.command(short_help="Stop it, from another terminal; the data stays.")
@data_dir_option
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    metavar="S",
    show_default=True,
    help="How many seconds to wait for its end.",
)
def down(data_dir: str | None, timeout: float) -> None:
    """Stop the embedded control plane that serves a data directory, as Ctrl-C does, and wait until it has stopped.

    The data stays: `butleradm local up` goes on where it was. Where nothing runs there is nothing to do, and the exit
    code is 0 all the same.

    \b
    Examples:
      butleradm local down
      butleradm local down --data-dir ./playground
    """
    from butler.cli.local_status import take_down

    take_down(data_dir, timeout)


@local.command(short_help="Delete all its data, to begin anew.")
@data_dir_option
@options.yes
def reset(data_dir: str | None, yes: bool) -> None:
    """Delete the data directory of an embedded control plane: every pool, cluster and key in it.

    It has to be stopped first (`butleradm local down`). Only a directory that Butler made is deleted, and only if
    nobody put anything else into it.

    \b
    Examples:
      butleradm local reset
      butleradm local down && butleradm local reset --yes && butleradm local up
    """
    from butler.cli.local_status import take_away

    take_away(data_dir, yes=yes)


@local.command(short_help="Stand in for Cluster API, Steward and machines, on any management cluster.")
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
