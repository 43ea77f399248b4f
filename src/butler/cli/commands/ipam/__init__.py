"""`butleradm ipam`: questions about all addresses, one module each."""

from __future__ import annotations

import click

from butler.cli.frame.lazy import CONTEXT, Elsewhere, LazyGroup

HERE = "butler.cli.commands.ipam"
PARTS = {
    "who": Elsewhere(f"{HERE}.who", "who", "Tell whose an address is, since when, and whose it was."),
    "plan": Elsewhere(f"{HERE}.plan", "plan", "Tell what would happen, without doing it."),
    "advise": Elsewhere(f"{HERE}.advise", "advise", "Explain fragmentation, and what would open the largest hole."),
    "forecast": Elsewhere(f"{HERE}.forecast", "forecast", "Tell in how many days a pool is full."),
    "fsck": Elsewhere(
        f"{HERE}.fsck", "fsck", "Hold pools, allocations, MetalLB, Services and nodes against each other."
    ),
    "export": Elsewhere(f"{HERE}.export", "export", "Write all allocations as CSV, JSON or YAML."),
    "import": Elsewhere(f"{HERE}.importing", "import_", "Take over addresses that are in use already, moving none."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def ipam() -> None:
    """Questions about all addresses: who, what if, how long, is all well."""
