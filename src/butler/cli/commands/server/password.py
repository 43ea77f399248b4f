"""`butleradm server password`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options

if TYPE_CHECKING:
    from butler.cli.toolkit.session import ClusterAccess
    from butler.server.access.passwords import Admin
from butler.cli.commands.server import IN_RECORDS, RECORDS
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run


@click.command(short_help="Give the console's local administrator a new password.")
@click.option("--login", metavar="NAME", help="What is typed to log in.  [default: as it is, else admin]")
@click.option("--user", metavar="USER", help="Who that is to Kubernetes.  [default: as it is, else butler:admin]")
@click.option(
    "--group",
    "groups",
    metavar="GROUP",
    multiple=True,
    help="In which groups; may be repeated.  [default: as it is, else butler:admins]",
)
@options.access(IN_RECORDS)
def password(access: ClusterAccess, login: str | None, user: str | None, groups: tuple[str, ...]) -> None:
    """Give the console's local administrator a new password, and print it: it is kept nowhere.

    The first call makes the account. Sessions that began with the old password end. The account may do what Kubernetes
    lets its user and groups do, which is nothing until a role is bound to them.

    \b
    Examples:
      butleradm server password
      kubectl create clusterrolebinding butler-admins --clusterrole=cluster-admin --group=butler:admins
    """
    account, made = run(access, lambda session: new_password(session, login, user, groups))
    click.echo(made)
    known = f"user {account.user} in {', '.join(account.groups)}"
    click.echo(f"This is the password of {account.login}, {known}. It is shown this once.", err=True)


async def new_password(
    session: CommandSession, login: str | None, user: str | None, groups: tuple[str, ...]
) -> tuple[Admin, str]:
    """The local administrator's account with a new password."""
    from butler.server.access.passwords import reset_admin
    from butler.server.access.sessions import RESERVED
    from butler.server.access.store import open_store

    for group in (user or "", *groups):
        if group.lower().startswith(RESERVED):
            raise click.UsageError(f"{group} is a name that Kubernetes keeps for itself: bind a role to another one")
    store = await open_store(session.client, session.access.namespace or RECORDS)
    return await reset_admin(store, login=login, user=user, groups=groups)
