"""butleradm: what operators of the platform do.

Commands are imported when they run, not when the program starts: `butleradm --help` must answer at once.
"""

from __future__ import annotations

import click

from butler import __version__
from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, Program

COMMANDS = "butler.cli.commands"
PARTS = {
    "pool": LazyCommand(f"{COMMANDS}.pool", "pool", "Networks whose addresses Butler hands out."),
    "allocation": LazyCommand(f"{COMMANDS}.allocation", "allocation", "Addresses that were asked for and granted."),
    "ipam": LazyCommand(
        f"{COMMANDS}.ipam", "ipam", "Questions about all addresses: who, what if, how long, is all well."
    ),
    "provider": LazyCommand(f"{COMMANDS}.provider", "provider", "Where clusters are put: providers and their pools."),
    "tenant": LazyCommand(f"{COMMANDS}.tenant", "tenant", "The clusters of all teams."),
    "local": LazyCommand(f"{COMMANDS}.local", "local", "Butler on this one machine, without a Kubernetes cluster."),
    "controller": LazyCommand(
        f"{COMMANDS}.controller", "controller", "Butler's controllers, against any Kubernetes API server."
    ),
    "server": LazyCommand(
        f"{COMMANDS}.server", "server", "The console and its API, against any Kubernetes API server."
    ),
    "crds": LazyCommand(f"{COMMANDS}.crds", "crds", "Print Butler's definitions, for kubectl apply."),
    "doctor": LazyCommand(f"{COMMANDS}.doctor", "doctor", "Look for what keeps Butler from working."),
    "completion": LazyCommand(
        f"{COMMANDS}.completion", "completion", "Print what makes a shell complete commands and names."
    ),
    "version": LazyCommand(f"{COMMANDS}.version", "version", "Tell the versions of this program and of the server."),
}


@click.group(cls=Program, parts=PARTS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="butleradm")
def main() -> None:
    """Run and look after the Butler platform."""


if __name__ == "__main__":
    main()
