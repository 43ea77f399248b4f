"""What the commands that write pools share: the preview, the fence, and the word at the end.

An edit is shown and judged against what was read, so it is written only over the version that was read. A pool's
status changes with every grant; where only that came between, the edit is judged anew and sent again. Where another
client changed the spec, the operator has to look again. The server's admission has the last word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from butler.api.codec import merge_patch, to_json
from butler.cli.tables.pools import pools_table
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.follow import Progress, wait_until
from butler.cli.toolkit.objects import LoadedObject, as_json, load_object, pool_of, read_addresses
from butler.cli.toolkit.output import done, structured, table
from butler.cli.toolkit.session import Failure
from butler.cli.toolkit.terminal import confirm, say
from butler.ipam.addresses import range_cidr
from butler.kube.errors import Conflict
from butler.kube.kinds import POOLS
from butler.reports.pool.edits import CannotEdit, Change, change_of, windows_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from butler.api.networkpool import NetworkPool, NetworkPoolSpec
    from butler.api.objects import Json
    from butler.cli.toolkit.output import Output
    from butler.cli.toolkit.session import CommandSession
    from butler.reports.pool.summary import Standing

    Edit = Callable[[NetworkPoolSpec], NetworkPoolSpec]

ATTEMPTS = 40
"""How often an edit is made anew on a pool whose status changed meanwhile: busy pools grant many times a second."""
GIVEN_UP = ("ValidationFailed", "Overlap", "Deleting")
"""Reasons of condition Ready that no waiting mends."""


async def change_pool(
    session: CommandSession,
    name: str,
    edit: Edit,
    *,
    verb: str,
    dry_run: str,
    output: Output,
    question: Callable[[Change], str | None] = lambda _: None,
    yes: bool = True,
) -> LoadedObject[NetworkPool] | None:
    """Show what an edit does, ask where there is a question, and write it; None where it changes nothing."""
    shown: NetworkPoolSpec | None = None
    for _ in range(ATTEMPTS):
        estate = await read_addresses(session)
        old = pool_of(estate, name)
        try:
            new = msgspec.structs.replace(old, spec=edit(old.spec))
        except CannotEdit as error:
            raise Failure(str(error)) from None
        if new.spec == old.spec:
            say(f"{name} is like that already: nothing was changed")
            return None
        change = change_of(old, new, estate.pools, estate.allocations)
        if shown is None:
            say(before_and_after(change))
            refuse_or_warn(change.verdict.problems, change.verdict.warnings)
            asked = question(change)
            if asked and dry_run == "none":
                confirm(asked, yes=yes)
        elif shown != old.spec:
            raise Failure(f"another user changed {name} meanwhile: look at it and repeat the command", Exit.CONFLICT)
        else:
            refuse_or_warn(change.verdict.problems, ())
        shown = old.spec
        if dry_run == "client":
            report(_bare(new), verb, output, dry_run)
            return None
        patch: Json = {
            "metadata": {"uid": old.metadata.uid, "resourceVersion": old.metadata.resource_version},
            "spec": merge_patch(old.spec, new.spec),
        }
        try:
            made = await session.client.patch(as_json(POOLS), name, patch, session.home, dry_run=dry_run == "server")
        except Conflict:
            continue
        report(made, verb, output, dry_run)
        return load_object(POOLS, made)
    raise Failure(f"{name} changes faster than it can be edited: try again", Exit.CONFLICT)


def refuse_or_warn(problems: Sequence[tuple[str, str]], warnings: Sequence[str]) -> None:
    """Stop where the rules of admission say no, and pass on what they only mind."""
    for warning in warnings:
        say(f"Warning: {warning}")
    if problems:
        raise Failure("; ".join(f"{field}: {message}" for field, message in problems))


def before_and_after(change: Change) -> str:
    """The numbers of a pool side by side."""
    rows = [
        ("network", lambda standing: range_cidr(standing.layout.network, standing.layout.family) or ""),
        ("windows", lambda standing: windows_text(standing.layout)),
        ("addresses", lambda standing: f"{standing.capacity.total:,}"),
        ("held", lambda standing: f"{standing.capacity.allocated:,} ({standing.capacity.percent}%)"),
        ("free", lambda standing: f"{standing.capacity.available:,}"),
        ("largest free block", lambda standing: f"{standing.capacity.largest_free_block:,}"),
        ("tier", _tier),
    ]  # type: list[tuple[str, Callable[[Standing], str]]]
    lines = []
    for title, cell in rows:
        before, after = (cell(standing) if standing else "invalid" for standing in (change.before, change.after))
        lines.append([title, before, after if before != after else "the same"])
    return table(["", "before", "after"], lines)


def _tier(standing: Standing) -> str:
    return standing.tier.removeprefix("Capacity").lower() if standing.tier else "none reached"


def report(raw: Json, verb: str, output: Output, dry_run: str) -> None:
    """What was written: a line as kubectl says it, or the object. A dry run of the client shows what would be sent."""
    name = f"networkpool.butler.butlerlabs.dev/{raw['metadata']['name']}"
    if output.format == "table" and dry_run == "client":
        from butler.cli.toolkit.yaml_writer import dumped

        click.echo(dumped(raw), nl=False)
    elif output.format == "table":
        done(POOLS, raw["metadata"]["name"], verb, dry_run)
    elif output.format == "name":
        click.echo(name)
    else:
        structured(pools_table().raw(load_object(POOLS, raw)), output)


def _bare(pool: NetworkPool) -> Json:
    """A pool as an operator would write it down."""
    spec = to_json(pool.spec)
    tenants = spec.get("tenantAllocation") or {}
    if tenants.get("defaults") == {}:  # all as the definition has it
        del tenants["defaults"]
    return bare(pool.metadata.name, pool.metadata.namespace, spec)


def bare(name: str, namespace: str, spec: Any) -> Json:
    return {
        "apiVersion": POOLS.api_version,
        "kind": POOLS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


async def wait_ready(session: CommandSession, name: str, namespace: str, timeout: float) -> None:
    """Follow a pool until it hands out addresses by its newest spec."""

    def judge(raw: Json | None) -> Progress:
        if raw is None:
            return Progress(f"{name} is gone", failed=True)
        status = raw.get("status") or {}
        ready = next((condition for condition in status.get("conditions") or () if condition["type"] == "Ready"), None)
        if ready is None or status.get("observedGeneration", 0) < raw["metadata"].get("generation", 0):
            return Progress(f"{name}: waiting for Butler to look at it")
        if ready["status"] == "True":
            return Progress(f"{name} is ready: {ready['message']}", done=True)
        return Progress(f"{name} is not ready: {ready['message']}", failed=ready["reason"] in GIVEN_UP)

    await wait_until(session, POOLS, name, namespace, judge, timeout)
