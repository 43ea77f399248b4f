"""`butleradm ipam who`: whose an address is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.cli.drawings.who import LiveAnswer
    from butler.cli.toolkit.output import Output
    from butler.reports.address_lookup import Answer
    from butler.reports.estate import Estate


@click.command(short_help="Tell whose an address is, since when, and whose it was.")
@click.argument("address")
@click.option("--live", is_flag=True, help="Also ask the tenant clusters which Node or Service has it right now.")
@options.access()
@options.output("table", "json", "yaml", "jsonpath")
def who(access: ClusterAccess, address: str, live: bool, output: Output) -> None:
    """Tell whose an address is, since when, and whose it was.

    ADDRESS is one address, a range (START-END) or a network (10.40.1.0/24). The answer names the pool, what the pool
    says of the address, the tenant and the allocation that hold it, since when, and whether it is idle or being taken
    back. Below that stand requests that wait for exactly this address, and earlier owners as far as they are on
    record: released allocations are kept for a day.

    \b
    STATE is one of
      held                 a tenant has it
      held, being taken back  its tenant is just giving it up
      being granted        decided, and written in a moment
      free                 the pool may hand it out
      reserved             the pool keeps it back, with what for
      outside the windows  in the pool's network, and never handed out
      in no pool           no pool has it

    --live asks the tenants that hold it, or all tenants where none does, for the Node or Service that has it.
    Exit code 3: no pool has it and no tenant uses it.

    \b
    Examples:
      butleradm ipam who 10.40.1.7
      butleradm ipam who 10.40.1.7 --live
      butleradm ipam who 10.40.1.0/24 -o json
    """
    from butler.ipam.addresses import BadAddress
    from butler.reports.address_lookup import read_asked

    try:
        family, asked = read_asked(address)
    except BadAddress as error:
        raise Failure(str(error), Exit.USAGE) from None

    async def work(session: CommandSession) -> None:
        from datetime import UTC, datetime

        from butler.cli.drawings.who import drawn
        from butler.cli.toolkit.objects import read_estate
        from butler.cli.toolkit.output import structured
        from butler.reports.address_lookup import answer_json
        from butler.reports.address_lookup import who as answered

        estate = await read_estate(session)
        answer = answered(estate, family, asked)
        told = await _live(session, estate, answer) if live else None
        is_known = answer.is_known or (told is not None and bool(told.uses or told.announced))
        if not output.is_table:
            structured({**answer_json(answer), **_live_json(told)}, output)
        elif is_known:
            click.echo(drawn(answer, told, datetime.now(UTC)))
        if not is_known:
            raise Failure(_unknown(answer, told), Exit.NOT_FOUND)

    run(access, work)


def _unknown(answer: Answer, live: LiveAnswer | None) -> str:
    from butler.ipam.addresses import Family

    if answer.family is Family.V6:
        return f"{answer.text} is unknown: pools hand out IPv4 only"
    if answer.nearest is None:
        return f"{answer.text} is unknown: there are no pools yet; `butleradm pool create` makes one"
    name, cidr = answer.nearest
    where = f"no pool has it, and the nearest one is {name} ({cidr})"
    if live is None:
        return f"{answer.text} is unknown: {where}; --live asks the tenants, too"
    silent = f" ({len(live.silent)} could not be asked)" if live.silent else ""
    return f"{answer.text} is unknown: {where}, and no tenant uses it{silent}; look for it outside of Butler"


async def _live(session: CommandSession, estate: Estate, answer: Answer) -> LiveAnswer:
    """Ask the tenant that holds it, or all tenants where none does."""
    from butler.api.objects import key_of
    from butler.cli.drawings.who import LiveAnswer
    from butler.cli.estate.inventories import inventories
    from butler.reports.tenant.address_use import announced_in, uses_in

    owners = {owner.tenant for owner in answer.owners}
    asked = [cluster for cluster in estate.clusters if key_of(cluster) in owners] if owners else estate.clusters
    said = await inventories(session, asked)
    told = {tenant: used for tenant, used in said.items() if not isinstance(used, str)}
    silent = {tenant: why for tenant, why in said.items() if isinstance(why, str)}
    silent |= dict.fromkeys(owners - said.keys(), "Butler has no such TenantCluster")
    return LiveAnswer(
        uses_in(answer.asked, answer.family, told),
        announced_in(answer.asked, answer.family, told),
        silent,
    )


def _live_json(live: LiveAnswer | None) -> dict[str, Any]:
    if live is None:
        return {}
    return {
        "live": [
            {"tenant": str(use.tenant), "kind": use.kind, "name": use.name, "address": use.address} for use in live.uses
        ],
        "announced": [
            {"tenant": str(announced.tenant), "ipAddressPool": announced.pool, "entry": announced.entry}
            for announced in live.announced
        ],
        "notAsked": [{"tenant": str(tenant), "why": why} for tenant, why in sorted(live.silent.items())],
    }
