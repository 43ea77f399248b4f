"""`kubectl butler`: the commands of both programs that talk to a cluster, where kubectl finds its plugins."""

from __future__ import annotations

import click

from butler import __version__
from butler.cli import butleradm, butlerctl
from butler.cli.frame.lazy import CONTEXT, Program

NOT_HERE = ("local", "controller")
"""They start something on this machine, and have nothing to do with the cluster that kubectl talks to."""
PARTS = {**butlerctl.PARTS, **{name: part for name, part in butleradm.PARTS.items() if name not in NOT_HERE}}


@click.group(cls=Program, parts=PARTS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="kubectl butler")
def main() -> None:
    """Addresses and tenant clusters, beside what kubectl knows already."""


if __name__ == "__main__":
    main(prog_name="kubectl butler")
