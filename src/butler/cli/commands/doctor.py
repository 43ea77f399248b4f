"""`butleradm doctor`: looking for what keeps Butler from working."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output
    from butler.reports.doctor import Check


@click.command(short_help="Look for what keeps Butler from working.")
@options.access()
@options.output("table", "json", "yaml", "jsonpath")
@click.pass_context
def doctor(ctx: click.Context, access: ClusterAccess, output: Output) -> None:
    """Look for what keeps Butler from working, and tell the next step for each.

    Kubeconfig and API server, their clocks, Butler's definitions, your permissions, the controllers and their
    admission, pools, providers, tenants, and the definitions of Cluster API and Steward. Nothing is changed: admission
    is tried by a dry run.

    PASS is as it should be. WARN works, and an administrator should look. FAIL does not work, or will not for long:
    then the exit code is 8. Whether the books themselves are right is for `butleradm ipam fsck`.

    \b
    Examples:
      butleradm doctor
      butleradm doctor --context production -o json
    """
    from butler.reports.doctor import CheckLevel

    checks = _checks(access)
    _show(checks, output)
    ctx.exit(Exit.FINDINGS if any(check.level is CheckLevel.FAIL for check in checks) else Exit.OK)


def _checks(access: ClusterAccess) -> list[Check]:
    from butler.reports.doctor import Check, CheckLevel

    try:
        connection = access.connection()
    except Failure as failure:
        told = "butleradm local up" in failure.message
        todo = "" if told else "name another with --kubeconfig, or start a server with `butleradm local up`"
        return [Check("Kubeconfig", CheckLevel.FAIL, failure.message, todo)]
    checks = [Check("Kubeconfig", CheckLevel.PASS, f"{connection.source} names {connection.server}")]

    async def work(session: CommandSession) -> None:
        from butler.cli.estate.diagnosis import examine

        async for check in examine(session):
            checks.append(check)  # noqa: PERF401  # what was seen before an error counts

    try:
        run(access, work)
    except Failure as failure:
        checks.append(Check("API server", CheckLevel.FAIL, failure.message))
    return checks


def _show(checks: list[Check], output: Output) -> None:
    from collections import Counter

    from butler.cli.toolkit.output import structured
    from butler.cli.toolkit.screen import listed
    from butler.cli.toolkit.terminal import painted
    from butler.reports.doctor import CheckLevel

    if output.format != "table":
        said = [
            {"check": check.name, "result": str(check.level), "what": check.says, "todo": check.todo or None}
            for check in checks
        ]
        structured({"healthy": not any(check.level is CheckLevel.FAIL for check in checks), "checks": said}, output)
        return
    rows = [(check.level, check.name, f"{check.says}: {check.todo}" if check.todo else check.says) for check in checks]
    click.echo(listed(("Result", "Check", "What"), rows))
    found = Counter(check.level for check in checks)
    colour = "red" if found[CheckLevel.FAIL] else "yellow" if found[CheckLevel.WARN] else "green"
    counts = ", ".join(f"{found[level]} {level}" for level in CheckLevel if found[level])
    click.echo(painted(f"\n{counts}", fg=colour))
