"""`butleradm local down`."""

from __future__ import annotations

import click

from butler.cli.commands.local import data_dir_option


@click.command(short_help="Stop it, from another terminal; the data stays.")
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
    from butler.cli.local.status import take_down

    take_down(data_dir, timeout)
