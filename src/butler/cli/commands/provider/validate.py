"""`butleradm provider validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import HOME, ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.api.providerconfig import ProviderConfig
    from butler.cli.toolkit.output import Output
    from butler.reports.provider.findings import ProviderIssue, SecretSeen


@click.command("validate", short_help="Say everything that is wrong with a provider.")
@click.argument("name", required=False, shell_complete=names_of("providerconfigs"))
@click.option(
    "-f", "--filename", "file", metavar="FILE", help="Judge what is in this file, as if it were created; - for stdin."
)
@options.access(f"Namespace of the provider.  [default: {HOME}]")
@options.output("table", "json", "yaml", "jsonpath")
def validate(name: str | None, file: str | None, access: ClusterAccess, output: Output) -> None:
    """Say everything that is wrong with a provider: one that exists, or one in a file.

    Looked at are its settings, its pools (that they exist, hand out addresses, hold the gateway and have room), the
    shape of its credentials, and for one that exists, what Butler found when it asked the provider. A file is also
    shown to the server, which judges it and stores nothing. This command itself connects to no provider.

    Exit code 0 means that nothing was found, 8 that something was. A note is no finding: it says what could not be
    looked at.

    \b
    Examples:
      butleradm provider validate harvester-production
      butleradm provider validate -f harvester.yaml
      butleradm provider validate harvester-production -o json
    """
    if bool(name) == bool(file):
        raise click.UsageError("say what to validate: the NAME of a provider, or -f FILE")

    async def work(session: CommandSession) -> tuple[str, list[ProviderIssue]]:
        return await (_of_file(session, file) if file else _of_stored(session, name or ""))

    judged, found = run(access, work)
    _show(judged, found, output)


async def _of_stored(session: CommandSession, name: str) -> tuple[str, list[ProviderIssue]]:
    from butler.cli.toolkit.objects import read_one
    from butler.kube.kinds import PROVIDERS

    config = (await read_one(session, PROVIDERS, name, session.home)).obj
    return name, await _look(session, config, [], stored=True)


async def _of_file(session: CommandSession, file: str) -> tuple[str, list[ProviderIssue]]:
    from butler.cli.toolkit.documents import provider_objects
    from butler.cli.toolkit.objects import IN_FILE, load_object
    from butler.kube.kinds import PROVIDERS
    from butler.reports.provider.findings import IssueSeverity

    objects = provider_objects(file, None)
    for obj in objects:
        obj["metadata"]["namespace"] = session.access.namespace or obj["metadata"].get("namespace") or HOME
    config = load_object(PROVIDERS, objects[-1], IN_FILE).obj
    found = await _look(session, config, objects, stored=False)
    known = " ".join(finding.message for finding in found)
    # Admission says the same in the same words; once is enough.
    more = [finding for finding in await _shown_to_server(session, objects[-1]) if finding.message not in known]
    every = [*more, *found]
    return config.metadata.name, sorted(every, key=lambda finding: list(IssueSeverity).index(finding.severity))


async def _shown_to_server(session: CommandSession, body: Json) -> list[ProviderIssue]:
    """What the server says to it, which has rules of its own; nothing is stored."""
    from butler.cli.toolkit.objects import as_json
    from butler.kube.errors import ApiError, Forbidden, Invalid
    from butler.kube.kinds import PROVIDERS
    from butler.reports.provider.findings import IssueSeverity, ProviderIssue

    try:
        await session.client.apply(as_json(PROVIDERS), body, force=True, dry_run=True, field_validation="Strict")
    except Forbidden as error:
        if "admission webhook" in error.message:
            return []  # the same rules, and the same words, as here
        return [
            ProviderIssue(
                IssueSeverity.NOTE, "server", "you may not write ProviderConfigs, so it was not shown to the server"
            )
        ]
    except Invalid as error:
        causes = [(cause.field or "spec", cause.message) for cause in error.causes] or [("spec", error.message)]
        return [ProviderIssue(IssueSeverity.PROBLEM, field, message) for field, message in causes]
    except ApiError as error:
        return [ProviderIssue(IssueSeverity.PROBLEM, "server", error.message)]
    return []


async def _look(
    session: CommandSession, config: ProviderConfig, objects: list[Json], *, stored: bool
) -> list[ProviderIssue]:
    """Read what belongs to a provider, with what stands in the same file, and judge it."""
    from butler.cli.estate.permissions import PermittedReads
    from butler.cli.toolkit.objects import IN_FILE, load_object
    from butler.kube.kinds import POOLS
    from butler.reports.provider.findings import findings

    reads = PermittedReads(session)
    known = await reads.pools()
    pools = None if known is None else {pool.metadata.name: pool for pool in known}
    for obj in objects:
        if pools is not None and obj["kind"] == "NetworkPool":
            pools.setdefault(obj["metadata"]["name"], load_object(POOLS, obj, IN_FILE).obj)
    secret = await _secret(session, config, objects)
    return findings(config, pools, await reads.allocations(), secret, HOME, stored=stored)


async def _secret(session: CommandSession, config: ProviderConfig, objects: list[Json]) -> SecretSeen:
    from butler.api.objects import Key
    from butler.kube.errors import Forbidden, NotFound
    from butler.kube.resource import SECRETS
    from butler.providers.credentials import decode_data
    from butler.reports.provider.findings import SecretSeen
    from butler.rules.provider.settings import secret_key

    key = secret_key(config)
    if key is None:
        return SecretSeen(None)
    for obj in objects:
        if obj["kind"] == "Secret" and Key(obj["metadata"]["namespace"], obj["metadata"]["name"]) == key:
            plain = {name: str(value).encode() for name, value in (obj.get("stringData") or {}).items()}
            return SecretSeen(key, {**decode_data(obj.get("data")), **plain})
    try:
        found = await session.client.get(SECRETS, key.name, key.namespace)
    except Forbidden:
        return SecretSeen(key, hidden=True)
    except NotFound:
        return SecretSeen(key)
    return SecretSeen(key, decode_data(found.get("data")))


def _show(name: str, found: list[ProviderIssue], output: Output) -> None:
    from butler.cli.drawings.provider import findings_screen
    from butler.cli.toolkit.output import structured
    from butler.cli.toolkit.terminal import wrapped
    from butler.reports.provider.findings import findings_json, is_bad

    if output.format != "table":
        structured(findings_json(name, found), output)
    elif found:
        click.echo(findings_screen(found))
    if output.format == "table" and not is_bad(found):
        click.echo(wrapped(f"provider {name}: nothing is wrong with it"))
    if is_bad(found):
        click.get_current_context().exit(Exit.FINDINGS)
