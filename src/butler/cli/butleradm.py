"""butleradm: what operators of the platform do.

Commands are imported when they run, not when the program starts: `butleradm --help` must answer at once.
"""

from __future__ import annotations

import click

from butler import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="butleradm")
def main() -> None:
    """Run and look after the Butler platform."""


@main.group()
def local() -> None:
    """Butler on this one machine, without a Kubernetes cluster."""


@local.command(short_help="Start the embedded control plane in the foreground.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    metavar="DIR",
    envvar="BUTLER_DATA_DIR",
    help="Where everything is kept.  [default: $BUTLER_DATA_DIR, else ~/.butler/local]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="Port on 127.0.0.1.  [default: the one used last time if it is free, else any free one]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but problems.")
def up(data_dir: str | None, port: int, quiet: bool) -> None:
    """Start the embedded control plane in the foreground; Ctrl-C stops it and keeps the data.

    \b
    Examples:
      butleradm local up
      butleradm local up --data-dir ./playground --port 6443
    """
    from butler.cli.local import run_up

    run_up(data_dir, port, quiet=quiet)


if __name__ == "__main__":
    main()
