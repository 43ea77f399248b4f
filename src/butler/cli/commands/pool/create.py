"""`butleradm pool create`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output

Json = dict[str, Any]


@click.command(short_help="Make a pool.")
@click.argument("name", required=False)
@options.access()
@click.option("--cidr", metavar="CIDR", help="The network, such as 10.40.0.0/21.")
@click.option(
    "--window",
    "windows",
    metavar="START-END",
    multiple=True,
    help="Hand out these addresses only; may be repeated.  [default: all but the first and last of the network]",
)
@click.option(
    "--reserve",
    "blocks",
    metavar="CIDR[=TEXT]",
    multiple=True,
    help="Keep a block back, and say what for; may be repeated.",
)
@click.option("--nodes-per-tenant", type=click.IntRange(1), metavar="N", help="Addresses for nodes.  [default: 5]")
@click.option("--lb-per-tenant", type=click.IntRange(1), metavar="N", help="Addresses for Services.  [default: 8]")
@click.option(
    "-f", "--filename", metavar="FILE", help="A NetworkPool as YAML or JSON, in place of all this; - is stdin."
)
@options.wait()
@options.dry_run
@options.output("table", "json", "yaml", "name", "jsonpath")
def create(
    access: ClusterAccess,
    name: str | None,
    cidr: str | None,
    windows: tuple[str, ...],
    blocks: tuple[str, ...],
    nodes_per_tenant: int | None,
    lb_per_tenant: int | None,
    filename: str | None,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Make a pool.

    Its network must not overlap that of another pool. Without --window the whole network is handed out, except its
    first and last address and what is reserved. --nodes-per-tenant and --lb-per-tenant are what a request gets that
    names no number.

    \b
    Examples:
      butleradm pool create vlan40 --cidr 10.40.0.0/21
      butleradm pool create vlan40 --cidr 10.40.0.0/21 --reserve "10.40.0.0/28=Switches and gateways" --wait
      butleradm pool create vlan40 --cidr 10.40.0.0/21 --window 10.40.1.0-10.40.3.255 --window 10.40.6.0-10.40.7.254
      butleradm pool create -f vlan40.yaml --dry-run=server
    """
    if filename:
        if cidr or windows or blocks or nodes_per_tenant or lb_per_tenant:
            raise click.UsageError("-f stands in place of the options that describe a pool: give one or the other")
        body = _from_file(filename, name, access.namespace)
    else:
        if not name or not cidr:
            raise click.UsageError("a pool needs a NAME and --cidr, or -f FILE")
        body = _from_options(name, cidr, windows, blocks, nodes_per_tenant, lb_per_tenant)
    run(access, lambda session: _create(session, body, wait=wait, timeout=timeout, dry_run=dry_run, output=output))


async def _create(
    session: CommandSession, body: Json, *, wait: bool, timeout: float, dry_run: str, output: Output
) -> None:
    from butler.cli.commands.shared.pool_change import refuse_or_warn, report, wait_ready
    from butler.cli.toolkit.objects import IN_FILE, as_json, load_object, read_all
    from butler.kube.errors import Forbidden
    from butler.kube.kinds import POOLS
    from butler.rules.pool.admission import judge

    meta = body["metadata"]
    meta["namespace"] = meta.get("namespace") or session.home
    made = load_object(POOLS, body, IN_FILE)
    try:
        others = [pool.obj for pool in await read_all(session, POOLS, meta["namespace"])]
    except Forbidden:
        others = []  # who may only create is judged by the server alone
    verdict = judge(None, made.obj, others, ())
    if not any(other.metadata.name == meta["name"] for other in others):  # then the server says that the name is taken
        refuse_or_warn(verdict.problems, verdict.warnings)
    if dry_run == "client":
        report(body, "created", output, dry_run)
        return
    answer = await session.client.create(
        as_json(POOLS), body, meta["namespace"], dry_run=dry_run == "server", field_validation="Strict"
    )
    report(answer, "created", output, dry_run)
    if wait and dry_run == "none":
        await wait_ready(session, meta["name"], meta["namespace"], timeout)


def _from_options(
    name: str,
    cidr: str,
    windows: tuple[str, ...],
    blocks: tuple[str, ...],
    nodes: int | None,
    balancers: int | None,
) -> Json:
    from butler.cli.commands.shared.pool_change import bare

    spec: Json = {"cidr": cidr}
    if blocks:
        spec["reserved"] = [_block(block) for block in blocks]
    tenants: Json = {}
    if windows:
        tenants["ranges"] = [dict(zip(("start", "end"), window_ends(window), strict=True)) for window in windows]
    counts = {"nodesPerTenant": nodes, "lbPoolPerTenant": balancers}
    if nodes or balancers:
        tenants["defaults"] = {key: value for key, value in counts.items() if value}
    if tenants:
        spec["tenantAllocation"] = tenants
    return bare(name, "", spec)


def window_ends(text: str) -> tuple[str, str]:
    """Both ends of `START-END`."""
    start, dash, end = (part.strip() for part in text.partition("-"))
    if not (start and dash and end):
        raise Failure(f"{text!r} is no window: write START-END, as in 10.40.1.0-10.40.3.255", Exit.USAGE)
    return start, end


def _block(text: str) -> Json:
    cidr, _, description = text.partition("=")
    return {"cidr": cidr, "description": description} if description else {"cidr": cidr}


def _from_file(filename: str, name: str | None, namespace: str | None) -> Json:
    """The one NetworkPool of a file, under the name and in the namespace that were asked for, if any were."""
    import yaml

    shown = "stdin" if filename == "-" else filename
    try:
        text = sys.stdin.read() if filename == "-" else Path(filename).read_text()
        found = [document for document in yaml.safe_load_all(text) if document is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise Failure(f"{shown} cannot be read ({reason}): name a file with a NetworkPool", Exit.USAGE) from None
    body = found[0] if len(found) == 1 else None
    if not isinstance(body, dict) or body.get("kind") != "NetworkPool" or not isinstance(body.get("spec"), dict):
        raise Failure(f"{shown} does not hold exactly one NetworkPool with a spec: put one into it", Exit.USAGE)
    meta = body.get("metadata")
    meta = body["metadata"] = meta if isinstance(meta, dict) else {}
    for key, wanted in (("name", name), ("namespace", namespace)):
        if wanted and meta.setdefault(key, wanted) != wanted:
            raise Failure(f"{shown} has {key} {meta[key]}, and {wanted} was asked for: say the same", Exit.USAGE)
    if not meta.get("name"):
        raise Failure(f"{shown} gives the pool no name: add metadata.name, or say NAME", Exit.USAGE)
    body.pop("status", None)
    return body
