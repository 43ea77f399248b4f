"""butlerctl: what teams do with their clusters.

Commands are imported when they run, not when the program starts: `butlerctl --help` must answer at once.
"""

from __future__ import annotations

import click

from butler import __version__
from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, Program

COMMANDS = "butler.cli.commands"
PARTS = {
    "cluster": LazyCommand(f"{COMMANDS}.cluster", "cluster", "Your clusters: make, change, use and delete them."),
    "context": LazyCommand(f"{COMMANDS}.context", "context", "Which API server and namespace commands talk to."),
    "completion": LazyCommand(
        f"{COMMANDS}.completion", "completion", "Print what makes a shell complete commands and names."
    ),
    "version": LazyCommand(f"{COMMANDS}.version", "version", "Tell the versions of this program and of the server."),
}


@click.group(cls=Program, parts=PARTS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="butlerctl")
def main() -> None:
    """Make and look after your Kubernetes clusters."""


if __name__ == "__main__":
    main()
