"""`butleradm ipam`: questions about all addresses, one module each."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "who": LazyCommand(f"{__name__}.who", "who", "Tell whose an address is, since when, and whose it was."),
    "plan": LazyCommand(f"{__name__}.plan", "plan", "Tell what would happen, without doing it."),
    "advise": LazyCommand(
        f"{__name__}.advise", "advise", "Explain fragmentation, and what would open the largest hole."
    ),
    "forecast": LazyCommand(f"{__name__}.forecast", "forecast", "Tell in how many days a pool is full."),
    "fsck": LazyCommand(
        f"{__name__}.fsck", "fsck", "Hold pools, allocations, MetalLB, Services and nodes against each other."
    ),
    "export": LazyCommand(f"{__name__}.export", "export", "Write all allocations as CSV, JSON or YAML."),
    "import": LazyCommand(
        f"{__name__}.import_", "import_", "Take over addresses that are in use already, moving none."
    ),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def ipam() -> None:
    """Questions about all addresses: who, what if, how long, is all well."""
