"""`butleradm local reset`."""

from __future__ import annotations

import click

from butler.cli.commands.local import data_dir_option
from butler.cli.toolkit import options


@click.command(short_help="Delete all its data, to begin anew.")
@data_dir_option
@options.yes
def reset(data_dir: str | None, yes: bool) -> None:
    """Delete the data directory of an embedded control plane: every pool, cluster and key in it.

    It has to be stopped first (`butleradm local down`). Only a directory that Butler made is deleted, and only if
    there is nothing else in it.

    \b
    Examples:
      butleradm local reset
      butleradm local down && butleradm local reset --yes && butleradm local up
    """
    from butler.cli.local.status import take_away

    take_away(data_dir, yes=yes)
