"""`butleradm local status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output
from butler.cli.commands.local import data_dir_option


@click.command(short_help="Tell whether it is up, where, since when, and what is in it.")
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
    from butler.cli.local.status import look, show

    found = look(data_dir)
    show(found, output)
    ctx.exit(found.exit_code)
