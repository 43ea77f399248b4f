"""One connection to one API server for the time of a command, and its errors as sentences with an exit code.

Every command that talks to a server is a coroutine that gets a `Session`; `run` connects, runs it, and turns whatever
the server or the network says into one sentence on stderr that ends with what to do next.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import click

from butler.cli.toolkit.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from butler.kube.client import Client
    from butler.kube.config import Connection
    from butler.kube.errors import ApiError, KubeError

T = TypeVar("T")
HOME = "butler-system"
"""Where pools, allocations and providers live."""
FIELD_MANAGER = "butler-cli"
NO_BUTLER = "this cluster does not know Butler: `butleradm crds | kubectl apply --server-side -f -` makes it"


class Failure(click.ClickException):
    """A command that did not do what it was asked, told in one sentence."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        vars(self)["exit_code"] = int(code)  # click has it as a constant of the class


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Which API server, as whom, and in which namespace, as the options say."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    """None: not given."""
    all_namespaces: bool = False
    user: str | None = None
    groups: tuple[str, ...] = ()

    def connection(self) -> Connection:
        from butler.kube import config
        from butler.kube.errors import ConfigError

        try:
            found = config.load(self.kubeconfig, self.context)
        except ConfigError as error:
            raise Failure(str(error), Exit.UNREACHABLE) from None
        if self.user is None:
            return found
        return replace(found, impersonate=config.Impersonation(user=self.user, groups=self.groups))


@dataclass(frozen=True, slots=True)
class CommandSession:
    """A connected command."""

    client: Client
    access: ClusterAccess

    @property
    def home(self) -> str:
        """The namespace of pools, allocations and providers."""
        return self.access.namespace or HOME

    @property
    def homes(self) -> str:
        """The same for lists, where "" stands for all namespaces."""
        return "" if self.access.all_namespaces else self.home

    @property
    def place(self) -> str:
        """The namespace of a tenant cluster: as given, else the kubeconfig's."""
        return self.access.namespace or self.client.connection.namespace

    @property
    def places(self) -> str:
        return "" if self.access.all_namespaces else self.place


def run(access: ClusterAccess, work: Callable[[CommandSession], Awaitable[T]]) -> T:
    """Connect, do it, and leave with one sentence and an exit code if it cannot be done."""
    from butler.kube.client import Client
    from butler.kube.errors import KubeError
    from butler.kube.resource import BadName
    from butler.kube.transport import Timeouts

    connection = access.connection()

    async def connected() -> T:
        timeouts = Timeouts(connect=5.0, attempt=20.0, total=30.0)
        async with Client(
            connection, field_manager=FIELD_MANAGER, timeouts=timeouts, attempts=2, user_agent="butler-cli"
        ) as client:
            return await work(CommandSession(client, access))

    try:
        return asyncio.run(connected())
    except KubeError as error:
        raise explained(error, connection) from None
    except BadName as error:
        raise Failure(f"{error}: give a name alone, and its namespace with -n", Exit.USAGE) from None


def explained(error: KubeError, connection: Connection) -> Failure:
    """An error of the API server as a sentence that says what to do."""
    from butler.kube import errors

    if isinstance(error, errors.ConfigError):
        return Failure(str(error), Exit.UNREACHABLE)
    if isinstance(error, errors.Unreachable):
        # The error names the server and the kubeconfig, too: once is enough.
        why = str(error).removeprefix(f"{connection.server} ({connection.source})").removeprefix(" cannot be reached")
        return Failure(
            f"the API server at {connection.server} cannot be reached ({why.removeprefix(': ')}):"
            f" check that it runs, and that {connection.source} names the right one",
            Exit.UNREACHABLE,
        )
    if isinstance(error, errors.OutcomeUnknown):
        return Failure(
            f"the API server at {connection.server} did not answer ({error}):"
            " what was asked may have been done; look before trying again",
            Exit.UNREACHABLE,
        )
    if isinstance(error, errors.ApiError):
        return _refused(error, connection)
    return Failure(str(error))


def _refused(error: ApiError, connection: Connection) -> Failure:
    from butler.kube import errors

    said = error.message or error.reason or f"HTTP {error.code}"
    if isinstance(error, errors.Unauthorized):
        return Failure(
            f"the API server does not know who you are ({said}): log in again; the credentials are those of"
            f" {connection.source}",
            Exit.FORBIDDEN,
        )
    if isinstance(error, errors.Forbidden):
        return Failure(f"{said}: ask an administrator of the cluster for this permission", Exit.FORBIDDEN)
    if isinstance(error, errors.NotFound):
        if not error.status.details.name:
            return Failure(NO_BUTLER, Exit.NOT_FOUND)
        return Failure(said, Exit.NOT_FOUND)
    if isinstance(error, errors.AlreadyExists):
        return Failure(f"{said}: choose another name, or change the one that is there", Exit.CONFLICT)
    if isinstance(error, errors.Conflict):
        return Failure(f"{said}: look at it again and repeat the command", Exit.CONFLICT)
    if isinstance(error, errors.Invalid) and error.causes:
        return Failure(
            "; ".join(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in error.causes)
        )
    return Failure(said)


SHOWN_BY = {
    "NetworkPool": "butleradm pool list",
    "IPAllocation": "butleradm allocation list",
    "ProviderConfig": "butleradm provider list",
    "TenantCluster": "butlerctl cluster list",
}


def missing(kind: str, name: str, where: str, known: Iterable[str] = (), elsewhere: Iterable[str] = ()) -> Failure:
    """An object that is not there, with where there is one of that name, or those that sound like it."""
    from difflib import get_close_matches

    close, others = get_close_matches(name, list(known), 3, 0.5), sorted(elsewhere)
    if others:
        hint = f"; there is one in {' and in '.join(others[:3])}: say -n {others[0]}"
    elif close:
        hint = f"; did you mean {' or '.join(close)}?"
    else:
        hint = f": `{SHOWN_BY[kind]} -A` shows all" if kind in SHOWN_BY else ""
    return Failure(f"there is no {kind} {name} in namespace {where}{hint}", Exit.NOT_FOUND)
