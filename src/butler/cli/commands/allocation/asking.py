"""`butleradm allocation create` and `butleradm allocation pin`: asking for addresses by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.frame import options
from butler.cli.frame.exits import Exit
from butler.cli.frame.names import names_of
from butler.cli.frame.session import Access, Failure, Session, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Json, Key
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.frame.following import Progress
    from butler.cli.frame.output import Output
    from butler.ipam.addresses import Range

FORMATS = ("table", "json", "yaml", "name", "jsonpath")


def _request_options(command: Any) -> Any:
    """What both commands need to know."""
    for option in (
        options.output(*FORMATS),
        options.access(),
        options.dry_run,
        options.wait(),
        click.option("--type", "type_", type=click.Choice(["nodes", "loadbalancer"]), required=True, help="What for."),
        click.option("--tenant", metavar="NS/NAME", required=True, help="For which tenant cluster."),
        click.option(
            "--pool", metavar="POOL", required=True, help="From which pool.", shell_complete=names_of("networkpools")
        ),
        click.argument("name"),
    ):
        command = option(command)
    return command


@click.command(short_help="Ask a pool for addresses, for a tenant.")
@click.option(
    "--count", type=click.IntRange(1, 65536), metavar="N", help="How many.  [default: the pool's, for the type]"
)
@_request_options
def create(
    access: Access,
    name: str,
    pool: str,
    tenant: str,
    type_: str,
    count: int | None,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Ask a pool for addresses, for a tenant.

    The pool grants one block: the smallest free one that is large enough, from its start. Where it cannot, the
    request stays, Failed with the reason, and is tried again whenever the pool changes; `allocation release` takes it
    back. The tenant cluster need not exist yet: the addresses are kept for it.

    --wait returns when the addresses are there, or with the pool's own words why not. --dry-run tells which addresses
    it would be, as things stand.

    \b
    Examples:
      butleradm allocation create shop-extra --pool vlan40 --tenant team-web/shop --type loadbalancer --count 4 --wait
      butleradm allocation create shop-extra --pool vlan40 --tenant team-web/shop --type nodes --dry-run=client
    """
    run(access, lambda session: _ask(session, name, pool, tenant, type_, count, None, wait, timeout, dry_run, output))


@click.command(short_help="Ask for exactly these addresses, for a tenant that uses them.")
@click.option("--range", "range_", metavar="START-END", required=True, help="Which; one address, a range or a network.")
@_request_options
def pin(
    access: Access,
    name: str,
    pool: str,
    tenant: str,
    type_: str,
    range_: str,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Ask for exactly these addresses, for a tenant that uses them.

    For addresses that are in use before Butler knows of them. They must lie in one window of the pool, outside what
    is reserved, and nobody may hold any of them; otherwise the request stays, Failed with the reason, until that
    changes. Pinned addresses are never taken back because they are idle. Many at once: `butleradm ipam import`.

    \b
    Examples:
      butleradm allocation pin shop-lb --pool vlan40 --tenant team-web/shop --type loadbalancer \\
        --range 10.40.1.16-10.40.1.23 --wait
      butleradm allocation pin old-node --pool vlan40 --tenant team-web/old --type nodes --range 10.40.2.7
    """
    from butler.ipam.addresses import BadAddress, Family
    from butler.reports.address_lookup import read_asked

    try:
        family, wanted = read_asked(range_)
    except BadAddress as error:
        raise Failure(f"--range: {error}", Exit.USAGE) from None
    if family is not Family.V4:
        raise Failure("--range: pools hand out IPv4 only: say IPv4 addresses", Exit.USAGE)
    run(access, lambda session: _ask(session, name, pool, tenant, type_, None, wanted, wait, timeout, dry_run, output))


async def _ask(
    session: Session,
    name: str,
    pool: str,
    tenant: str,
    type_: str,
    count: int | None,
    pinned: Range | None,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    from butler.api.codec import to_json
    from butler.api.ipallocation import IPAllocationType
    from butler.cli.frame.following import wait_until
    from butler.cli.frame.reading import as_json
    from butler.cli.frame.terminal import say
    from butler.kube.kinds import ALLOCATIONS
    from butler.reports.plan.new_requests import request_for

    whose = tenant_named(tenant)
    cluster = await _cluster(session, whose)
    request = request_for(
        whose,
        IPAllocationType(type_),
        name=name,
        pool=pool,
        home=session.home,
        cluster=cluster,
        count=count,
        pinned=pinned,
    )
    if cluster is None:
        say(f"Note: TenantCluster {whose} is not known; the addresses are kept for one of that name.")
    foretold = await _foretold(session, request)
    if (foretold and dry_run != "none") or (foretold.startswith("Warning") and not wait):
        say(foretold)
    body = {key: value for key, value in to_json(request).items() if key != "status"}
    if dry_run == "client":
        _report(body, output, dry_run)
        return
    made = await session.client.create(as_json(ALLOCATIONS), body, dry_run=dry_run == "server")
    _report(made, output, dry_run)
    if wait and dry_run == "none":
        await wait_until(session, ALLOCATIONS, name, session.home, judge_of(name, pool), timeout)


def tenant_named(text: str) -> Key:
    """`namespace/name`; UsageError for anything else."""
    from butler.api.objects import Key

    namespace, slash, name = text.partition("/")
    if not namespace or not slash or not name or "/" in name:
        raise click.UsageError(f"{text!r} is no tenant: write NAMESPACE/NAME, as in team-web/shop")
    return Key(namespace, name)


async def _cluster(session: Session, whose: Key) -> TenantCluster | None:
    """The TenantCluster, where it exists and may be read."""
    from butler.kube.errors import Forbidden, NotFound
    from butler.kube.kinds import CLUSTERS

    try:
        return await session.client.get(CLUSTERS, whose.name, whose.namespace)
    except (NotFound, Forbidden):
        return None


async def _foretold(session: Session, request: IPAllocation) -> str:
    """What the pool would answer as things stand; Failure where there is no such pool."""
    from datetime import UTC, datetime

    from butler.cli.frame.reading import pool_of, read_addresses
    from butler.ipam.addresses import Family, Range, range_text
    from butler.kube.errors import Forbidden
    from butler.reports.plan.new_requests import answers

    try:
        estate = await read_addresses(session)
    except Forbidden:
        return ""  # who may only ask is told by the pool
    pool_of(estate, request.spec.pool_ref.name)
    if estate.allocation(request.metadata.name) is not None:
        return ""  # the server says that the name is taken
    answer = answers(estate, [request], datetime.now(UTC)).get(request.metadata.name)
    if isinstance(answer, Range):
        return f"As things stand it would get {range_text(answer, Family.V4)} ({answer.size})."
    return f"Warning: as things stand the pool refuses it ({answer[0]}): {answer[1]}" if answer else ""


def _report(raw: Json, output: Output, dry_run: str) -> None:
    """A line as kubectl says it, or the object. A dry run of the client shows what would be sent."""
    from butler.cli.frame.output import Output as Shape
    from butler.cli.frame.output import done, structured
    from butler.kube.kinds import ALLOCATIONS

    name = f"ipallocation.butler.butlerlabs.dev/{raw['metadata']['name']}"
    if output.format == "table" and dry_run == "client":
        structured(raw, Shape("yaml"))
    elif output.format == "table":
        done(ALLOCATIONS, raw["metadata"]["name"], "created", dry_run)
    elif output.format == "name":
        click.echo(name)
    else:
        structured(raw, output)


def judge_of(name: str, pool: str) -> Callable[[Json | None], Progress]:
    """How far a request is."""
    from butler.cli.frame.following import Progress

    def judge(raw: Json | None) -> Progress:
        if raw is None:
            return Progress(f"{name} is gone: somebody released it", failed=True)
        status = raw.get("status") or {}
        phase = status.get("phase", "Pending")
        ready: Json = next(
            (condition for condition in status.get("conditions") or () if condition["type"] == "Ready"), {}
        )
        if phase == "Allocated":
            start, end = status.get("startAddress"), status.get("endAddress")
            count = status.get("allocatedCount")
            return Progress(f"{name} has {start if start == end else f'{start}-{end}'} ({count})", done=True)
        if phase == "Pending":
            return Progress(f"{name} waits for pool {pool}")
        again = (
            f"; it is tried again whenever the pool changes, and `butleradm allocation release {name}` takes it back"
        )
        return Progress(f"{name} is {phase}: {ready.get('message', 'no reason was given')}{again}", failed=True)

    return judge
