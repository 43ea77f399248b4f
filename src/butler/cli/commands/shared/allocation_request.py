"""What `butleradm allocation create` and `pin` share: the options, the request, and the wait for its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Json, Key
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.follow import Progress
    from butler.cli.toolkit.output import Output
    from butler.cli.toolkit.session import CommandSession
    from butler.ipam.addresses import Range


FORMATS = ("table", "json", "yaml", "name", "jsonpath")


def request_options(command: Any) -> Any:
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


async def ask(
    session: CommandSession,
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
    from butler.cli.toolkit.follow import wait_until
    from butler.cli.toolkit.objects import as_json
    from butler.cli.toolkit.terminal import say
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


async def _cluster(session: CommandSession, whose: Key) -> TenantCluster | None:
    """The TenantCluster, where it exists and may be read."""
    from butler.kube.errors import Forbidden, NotFound
    from butler.kube.kinds import CLUSTERS

    try:
        return await session.client.get(CLUSTERS, whose.name, whose.namespace)
    except (NotFound, Forbidden):
        return None


async def _foretold(session: CommandSession, request: IPAllocation) -> str:
    """What the pool would answer as things stand; Failure where there is no such pool."""
    from datetime import UTC, datetime

    from butler.cli.toolkit.objects import pool_of, read_addresses
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
    from butler.cli.toolkit.output import Output as Shape
    from butler.cli.toolkit.output import done, structured
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
    from butler.cli.toolkit.follow import Progress

    def judge(raw: Json | None) -> Progress:
        if raw is None:
            return Progress(f"{name} is gone: another user released it", failed=True)
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
