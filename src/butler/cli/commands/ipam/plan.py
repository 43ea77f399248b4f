"""`butleradm ipam plan`: what would happen, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, missing, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output
    from butler.reports.plan.plan import Edit, Single, Tenants

MOST_TENANTS = 1000
MOST_ADDRESSES = 65536
_addresses = click.IntRange(1, MOST_ADDRESSES)


@click.command(short_help="Tell what would happen, without doing it.")
@click.option("--tenants", type=click.IntRange(1, MOST_TENANTS), metavar="N", help="So many more tenant clusters.")
@click.option("--nodes", type=click.IntRange(1, 5000), metavar="N", help="Workers of each.  [default: 1]")
@click.option(
    "--lb",
    type=_addresses,
    metavar="N",
    help="Load-balancer addresses of each.  [default: what the provider or the pool gives]",
)
@click.option(
    "--provider",
    metavar="NAME",
    shell_complete=names_of("providerconfigs"),
    help="Where the tenants go.  [default: where clusters go that name none]",
)
@click.option(
    "--pool",
    "pools",
    metavar="POOL",
    multiple=True,
    shell_complete=names_of("networkpools"),
    help="With --tenants: take addresses from these pools, in this order, by no provider's rules; with --provider too:"
    " only from these of its pools. With --count: the pool that is asked. With an edit: the pool that is edited.",
)
@click.option(
    "--count", "counts", type=_addresses, metavar="N", multiple=True, help="A single request; may be repeated."
)
@click.option(
    "--type",
    "type_",
    type=click.Choice(["nodes", "loadbalancer"]),
    help="With --count: what the addresses are for.  [default: loadbalancer]",
)
@click.option("--cidr", metavar="NETWORK", help="Edit the pool: its network.")
@click.option(
    "--window", "windows", metavar="START-END", multiple=True, help="Edit the pool: its windows; may be repeated."
)
@click.option(
    "--reserve", metavar="NETWORK", multiple=True, help="Edit the pool: keep this back, too; may be repeated."
)
@options.access()
@options.output("table", "json", "yaml", "jsonpath")
def plan(access: ClusterAccess, output: Output, **asked: Any) -> None:
    """Tell what would happen, without doing it.

    The answer comes from the functions that decide in production, played through on a copy of what the API server
    holds: which pool a tenant asks, which range it gets there, when it turns to the next pool, and where quotas end
    it. Nothing is written.

    Requests that wait at present are served first, as they would be. Tenants come one after the other; each gets a
    block for its workers (never fewer addresses than the pool's default) and one for its load balancers. Tenants that
    leave and Services that come are not foreseen, and limits per team do not count, unless the provider is one
    team's own.

    An edit is tried first, as admission would judge it: who would be stranded, and how much there is to hand out
    then. With --tenants, they come after it: would growing help? An edit that would be refused ends the plan.

    In the table of pools, "now -> then" stands where something changes; Tier is the highest of 70, 85 and 95 % that
    is reached. Exit code 8: something does not fit, or the edit would be refused.

    \b
    Examples:
      butleradm ipam plan --tenants 12 --nodes 5 --lb 8
      butleradm ipam plan --tenants 3 --pool rack-12 --pool rack-13
      butleradm ipam plan --count 16 --pool rack-12
      butleradm ipam plan --pool rack-12 --cidr 10.60.0.0/21
      butleradm ipam plan --pool rack-12 --window 10.60.0.32-10.60.3.254 --tenants 40 --provider lab
      butleradm ipam plan --pool rack-12 --reserve 10.60.2.0/24 -o jsonpath='{.edit.stranded[*].name}'
    """
    from datetime import UTC, datetime

    from butler.cli.toolkit.objects import pool_of, read_estate
    from butler.cli.toolkit.output import structured
    from butler.reports.plan.plan import CannotPlan
    from butler.reports.plan.plan_json import plan_json
    from butler.reports.plan.planner import rehearse

    tenants, requests, edit = _question(**asked)

    async def work(session: CommandSession) -> bool:
        estate = await read_estate(session)
        for name in asked["pools"]:
            pool_of(estate, name)
        known = [provider.metadata.name for provider in estate.providers]
        if asked["provider"] is not None and asked["provider"] not in known:
            raise missing("ProviderConfig", asked["provider"], estate.home, known)
        try:
            outcome = rehearse(estate, datetime.now(UTC), tenants=tenants, requests=requests, edit=edit)
        except CannotPlan as error:
            raise Failure(str(error)) from None
        if output.is_table:
            from butler.cli.drawings.plan import plan_text

            click.echo(plan_text(outcome))
        else:
            structured(plan_json(outcome), output)
        return outcome.fits

    if not run(access, work):
        raise click.exceptions.Exit(Exit.FINDINGS)


def _question(
    tenants: int | None,
    nodes: int | None,
    lb: int | None,
    provider: str | None,
    pools: tuple[str, ...],
    counts: tuple[int, ...],
    type_: str | None,
    cidr: str | None,
    windows: tuple[str, ...],
    reserve: tuple[str, ...],
) -> tuple[Tenants | None, list[Single], Edit | None]:
    """What was asked, or a complaint about the command line."""
    from butler.api.ipallocation import IPAllocationType
    from butler.reports.plan.plan import Edit, Single, Tenants

    edits = bool(cidr or windows or reserve)
    if tenants is None and (nodes or lb or provider):
        raise click.UsageError("--nodes, --lb and --provider describe tenants: say how many with --tenants")
    if tenants is None and not counts and not edits:
        raise click.UsageError("say what to try: --tenants N, --count N, or --pool with --cidr, --window or --reserve")
    if type_ and not counts:
        raise click.UsageError("--type says what a single request is for: say how large with --count")
    if (edits or counts) and len(pools) != 1:
        what = "--cidr, --window and --reserve change" if edits else "--count asks"
        raise click.UsageError(f"{what} one pool: name it with --pool")
    wanted = None
    if tenants is not None:
        # The pool of an edit or a request is not where the tenants go, if a provider says that.
        own = () if provider is not None and (edits or counts) else pools
        wanted = Tenants(tenants, nodes, lb, provider, own)
    kind = IPAllocationType(type_ or "loadbalancer")
    edit = Edit(pools[0], cidr, tuple(map(_window, windows)), reserve) if edits else None
    return wanted, [Single(pools[0], count, kind) for count in counts], edit


def _window(text: str) -> tuple[str, str]:
    start, dash, end = text.partition("-")
    if not dash or not start or not end:
        raise click.BadParameter(f"{text!r} is no window: write it as in 10.60.0.32-10.60.0.254", param_hint="--window")
    return start.strip(), end.strip()
