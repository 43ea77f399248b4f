"""`kubectl butler`: the commands of both programs that talk to a cluster, where kubectl finds its plugins."""

from __future__ import annotations

import sys
from typing import Final

import click

from butler import __version__
from butler.cli import butleradm, butlerctl
from butler.cli.toolkit import streams
from butler.cli.toolkit.lazy_commands import CONTEXT, Program

NOT_HERE = ("local", "controller")
"""They start something on this machine, and have nothing to do with the cluster that kubectl talks to."""
PARTS = {**butlerctl.PARTS, **{name: part for name, part in butleradm.PARTS.items() if name not in NOT_HERE}}

_NO_SPACE: Final = 2
_NO_FILES: Final = 4


@click.group(cls=Program, parts=PARTS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="kubectl butler")
def main() -> None:
    """Addresses and tenant clusters, beside what kubectl knows already."""


def complete() -> None:
    """The executable `kubectl_complete-butler`, which kubectl's own completion asks: choices, then how to go on.

    What it answers is what cobra programs answer each other: a line for each choice, with a tab before its
    description, and in the last line a number with the bits below.
    """
    from click.shell_completion import ShellComplete

    streams.install()
    *before, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(main, {}, "kubectl butler", "_KUBECTL_BUTLER_COMPLETE").get_completions(before, incomplete)
    plain = [completion_item for completion_item in found if completion_item.type == "plain"]
    for completion_item in plain:
        click.echo(
            f"{completion_item.value}\t{completion_item.help}" if completion_item.help else completion_item.value
        )
    files = len(plain) < len(found)
    unfinished = bool(plain) and all(completion_item.value.endswith("=") for completion_item in plain)
    click.echo(f":{(0 if files else _NO_FILES) + (_NO_SPACE if unfinished else 0)}")


if __name__ == "__main__":
    main(prog_name="kubectl butler")
