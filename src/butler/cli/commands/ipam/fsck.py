"""`butleradm ipam fsck`: whether all that is known about addresses is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.estate.consistency_check import Repaired, Scope
    from butler.cli.toolkit.output import Output
    from butler.reports.fsck import Repair, Report


def _tenant(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and (value.count("/") != 1 or not all(value.split("/"))):
        raise click.BadParameter("give it as NAMESPACE/NAME")
    return value


class _WithCodes(click.Command):
    """Its help ends with what the codes mean."""

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        from butler.reports.fsck import MEANINGS

        with formatter.section("Codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in MEANINGS.items()])


@click.command(cls=_WithCodes, short_help="Hold pools, allocations, MetalLB, Services and nodes against each other.")
@click.option("--pool", metavar="NAME", shell_complete=names_of("networkpools"), help="Only what concerns this pool.")
@click.option(
    "--tenant",
    metavar="NS/NAME",
    callback=_tenant,
    shell_complete=names_of("tenantclusters", whole=True),
    help="Only what concerns this cluster.",
)
@click.option("--no-tenants", is_flag=True, help="Do not ask tenants: check the management cluster alone.")
@click.option("--repair", is_flag=True, help="Repair what can be repaired without any risk, after asking.")
@options.yes
@options.dry_run
@options.access()
@options.output("table", "wide", "json", "yaml", "csv", "jsonpath")
@click.pass_context
def fsck(
    ctx: click.Context,
    access: ClusterAccess,
    pool: str | None,
    tenant: str | None,
    no_tenants: bool,
    repair: bool,
    yes: bool,
    dry_run: str,
    output: Output,
) -> None:
    """Hold pools, allocations, MetalLB, Services and nodes against each other.

    In the management cluster: pools' counters against a recount, grants under way against allocations, allocations
    against each other, their pool and their cluster. On every tenant, through its kubeconfig Secret: MetalLB's pools,
    Services of type LoadBalancer and nodes against what the tenant holds. Tenants are asked side by side, 15 seconds
    each; one that does not answer is a finding, and so is an object that cannot be read.

    Nothing is written. What is found is looked at again after three seconds, and told only if it still stands: a grant
    or a drain under way passes. Exit code 0 means clean; 8 that there are errors or warnings. Notes are no stain.

    --repair lists first what it would do, and asks. It makes the controllers look again (they recount a pool, and put
    MetalLB's pool right), deletes requests that hold nothing and whose cluster is gone, and puts labels right. It never
    releases an address. Then it checks again, and tells what is left.

    The format table tells findings in full; wide and csv have one line for each.

    \b
    Examples:
      butleradm ipam fsck
      butleradm ipam fsck --pool vlan40 --no-tenants
      butleradm ipam fsck --tenant team-web/shop -o json
      butleradm ipam fsck --repair --yes
    """
    from butler.cli.estate.consistency_check import Scope
    from butler.cli.toolkit.session import Failure

    if dry_run != "none" and not repair:
        raise Failure("--dry-run says what --repair would do: give both", Exit.USAGE)
    scope = Scope(not no_tenants, pool, tenant)
    report = run(access, lambda session: _work(session, scope, output, repair=repair, yes=yes, dry_run=dry_run))
    ctx.exit(Exit.OK if report.is_clean else Exit.FINDINGS)


async def _work(
    session: CommandSession, scope: Scope, output: Output, *, repair: bool, yes: bool, dry_run: str
) -> Report:
    from butler.cli.estate.consistency_check import check, repairs_in
    from butler.cli.toolkit.follow import ProgressLine

    line = ProgressLine()
    try:
        report = await check(session, scope, line)
    finally:
        line.end()
    repairs = repairs_in(report.findings) if repair else []
    if not repair or (output.is_table or not repairs):
        _show(report, output, ())
    if repair and not repairs:
        click.echo("There is nothing that could be repaired without any risk.", err=True)
    if not repairs:
        return report
    return await _repair(session, scope, report, repairs, output, yes=yes, dry_run=dry_run)


async def _repair(
    session: CommandSession,
    scope: Scope,
    report: Report,
    repairs: list[Repair],
    output: Output,
    *,
    yes: bool,
    dry_run: str,
) -> Report:
    """List, ask, do, and check again."""
    from butler.cli.estate.consistency_check import await_mending, carry_out, check
    from butler.cli.toolkit.follow import ProgressLine
    from butler.cli.toolkit.terminal import confirm

    click.echo("\nCan be repaired without any risk:", err=True)
    for repair in repairs:
        click.echo(f"  {repair}", err=True)
    if dry_run == "client":
        click.echo("Nothing was done (--dry-run=client).", err=True)
        return report
    if dry_run == "none":
        confirm("Do this?", yes=yes)
    done = await carry_out(session, repairs, dry_run=dry_run == "server")
    for one in done:
        said = (
            f"not done: {one.problem}" if one.problem else "the server would take it" if dry_run != "none" else "done"
        )
        click.echo(f"  {one.repair}: {said}", err=True)
    if dry_run != "none":
        return report
    line = ProgressLine()
    try:
        await await_mending(session, scope, report.findings, line)
        after = await check(session, scope, line)
    finally:
        line.end()
    click.echo("Checked again:\n", err=True)
    _show(after, output, done)
    return after


def _show(report: Report, output: Output, repaired: tuple[Repaired, ...] | list[Repaired]) -> None:
    from butler.cli.drawings.findings import FINDINGS, paragraphs
    from butler.cli.toolkit.output import structured
    from butler.reports.fsck import report_json

    if output.format == "table":
        click.echo(paragraphs(report))
    elif output.format in ("wide", "csv"):
        FINDINGS.many(report.findings, output, empty="Clean: nothing was found.")
    else:
        said: dict[str, Any] = report_json(report)
        if repaired:
            said["repairs"] = [{"what": str(done.repair), "problem": done.problem or None} for done in repaired]
        structured(said, output)
    if not (report.pools or report.allocations or report.findings):
        click.echo("There is nothing to check yet: `butleradm pool create` makes a pool.", err=True)
    if report.passed:
        passed = f"{report.passed} more showed for a moment only: something was under way there."
        click.echo(passed, err=True)
