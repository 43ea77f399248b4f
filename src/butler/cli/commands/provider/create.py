"""`butleradm provider create`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import HOME, ClusterAccess, CommandSession, Failure, run
from butler.cli.toolkit.terminal import say

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.api.providerconfig import ProviderConfig
    from butler.cli.toolkit.follow import Progress
    from butler.kube.resource import Resource

KINDS = ("harvester", "nutanix", "proxmox", "aws", "gcp", "azure")


@click.command("create", short_help="Make a provider from a file, or print one to start from.")
@click.argument("name", required=False)
@click.option("-f", "--filename", "file", metavar="FILE", help="A ProviderConfig in YAML or JSON; - for stdin.")
@click.option("--example", type=click.Choice(KINDS), metavar="KIND", help=f"Print one: {', '.join(KINDS)}.")
@options.access(f"Namespace of the provider.  [default: the file's, else {HOME}]")
@options.dry_run
@options.wait(60.0)
def create(
    name: str | None,
    file: str | None,
    example: str | None,
    access: ClusterAccess,
    dry_run: str,
    wait: bool,
    timeout: float,
) -> None:
    """Make a provider from a file, or print one to start from.

    A provider has many settings, which differ by its kind, so it is written in a file: `--example KIND` prints one
    with comments. Beside the ProviderConfig, the file may hold the NetworkPools that it names and the Secret with its
    credentials; those that exist already are left as they are. Credentials are taken from files only.

    What could not work is refused before anything is written, in the same words as by the server. With --wait, the
    command returns when Butler has found the provider to be ready, or says why it is not.

    \b
    Examples:
      butleradm provider create --example harvester > harvester.yaml
      butleradm provider create -f harvester.yaml --dry-run=server
      butleradm provider create -f harvester.yaml --wait
    """
    if example:
        if file or name:
            raise click.UsageError("--example only prints: leave out -f and NAME, or leave out --example")
        from butler.cli.commands.shared.provider_examples import example as text_of

        click.echo(text_of(example), nl=False)
        return
    if not file:
        raise click.UsageError("a provider is written in a file: -f FILE; --example KIND prints one to start from")
    from butler.cli.toolkit.documents import provider_objects

    objects = provider_objects(file, name)

    async def work(session: CommandSession) -> None:
        for obj in objects:
            meta = obj["metadata"]
            meta["namespace"] = session.access.namespace or meta.get("namespace") or HOME
        await _judge(session, objects)
        if dry_run == "client":
            _print(objects)
            return
        made = [await _make(session, obj, dry_run=dry_run == "server") for obj in objects]
        if wait and dry_run == "none" and made[-1] is not None:
            await _wait(session, made[-1], timeout)

    run(access, work)


async def _judge(session: CommandSession, objects: list[Json]) -> None:
    """Refuse what admission would refuse, and pass on what it would warn of."""
    from butler.cli.estate.permissions import PermittedReads
    from butler.cli.toolkit.objects import IN_FILE, load_object
    from butler.kube.kinds import POOLS, PROVIDERS
    from butler.rules.provider.admission import Surroundings, judge

    config = load_object(PROVIDERS, objects[-1], IN_FILE).obj
    own = [load_object(POOLS, obj, IN_FILE).obj for obj in objects if obj["kind"] == "NetworkPool"]
    known = await PermittedReads(session).pools()
    pools = {pool.metadata.name: pool for pool in (*own, *(known or ()))}
    verdict = judge(None, config, Surroundings(HOME, pools))
    if verdict.problems:
        words = "; ".join(f"{field}: {message}" for field, message in verdict.problems)
        raise Failure(f"{words}; nothing was created")
    for warning in verdict.warnings:
        say(f"Warning: {warning}")


def _resource(body: Json) -> Resource[Json]:
    from butler.cli.toolkit.objects import as_json
    from butler.kube.kinds import POOLS, PROVIDERS
    from butler.kube.resource import SECRETS

    return {"NetworkPool": as_json(POOLS), "Secret": SECRETS, "ProviderConfig": as_json(PROVIDERS)}[body["kind"]]


async def _make(session: CommandSession, body: Json, *, dry_run: bool) -> Json | None:
    """Create one object; None where it was there already."""
    from butler.cli.toolkit.output import done
    from butler.kube.errors import AlreadyExists

    meta, kind = body["metadata"], body["kind"]
    named = f"{kind} {meta['namespace']}/{meta['name']}"
    try:
        made = await session.client.create(
            _resource(body), body, meta["namespace"], dry_run=dry_run, field_validation="Strict"
        )
    except AlreadyExists:
        if kind == "ProviderConfig":
            raise Failure(
                f"{named} exists already: change it with kubectl edit, or choose another name", Exit.CONFLICT
            ) from None
        done(_resource(body), meta["name"], "exists already, and is left as it is")
        return None
    done(_resource(body), meta["name"], "created", "server" if dry_run else "none")
    return made


def _print(objects: list[Json]) -> None:
    """What would be sent, except for the contents of Secrets."""
    from butler.cli.toolkit.yaml_writer import dumped

    for obj in objects:
        if obj["kind"] == "Secret":
            say(f"Secret {obj['metadata']['namespace']}/{obj['metadata']['name']} would be sent too; it is not shown.")
    shown = [obj for obj in objects if obj["kind"] != "Secret"]
    click.echo(dumped(*shown), nl=False)


async def _wait(session: CommandSession, made: Json, timeout: float) -> None:
    from butler.cli.toolkit.follow import Progress, wait_until
    from butler.cli.toolkit.objects import load_object
    from butler.kube.kinds import PROVIDERS

    config = load_object(PROVIDERS, made).obj

    def judge(raw: Json | None) -> Progress:
        if raw is None:
            return Progress("it was deleted meanwhile", failed=True)
        return progress(load_object(PROVIDERS, raw).obj)

    await wait_until(session, PROVIDERS, config.metadata.name, config.metadata.namespace, judge, timeout)


def progress(config: ProviderConfig) -> Progress:
    """How far Butler is with a provider. Pure."""
    from butler.api.conditions import find_condition
    from butler.api.labels import ConditionType
    from butler.cli.toolkit.follow import Progress

    status = config.status
    if status.ready is None or (status.observed_generation or 0) < config.metadata.generation:
        return Progress("waits for Butler to look at it")
    if status.ready:
        room = status.capacity.estimated_tenants if status.capacity else None
        return Progress(f"Ready{f', with room for about {room} tenants' if room is not None else ''}", done=True)
    ready = find_condition(status.conditions, ConditionType.READY)
    return Progress(f"not ready: {ready.message if ready else 'without a reason'}", failed=True)
