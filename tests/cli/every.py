"""All commands of both programs, and one call of each: what tests of every command share.

A table of such a test has a row for each command, or says why it has none; `covers_all` fails where one is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from butler.cli.reference import PROGRAMS, commands

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import click

ALONE = {
    "butleradm local up": "starts a server",
    "butleradm local world": "runs until it is stopped; tests/local tries it",
    "butleradm local down": "asks no API server",
    "butleradm local reset": "asks no API server",
    "butleradm local status": "asks no API server but its own",
    "butleradm controller run": "runs until it is stopped, and waits for its server",
    "butleradm server run": "runs until it is stopped; tests/server tries it",
    "butleradm crds": "asks no API server",
    "butleradm completion": "asks no API server",
    "butleradm version": "tells its own version all the same",
    "butleradm doctor": "tells of a server that is away as a finding",
    "butlerctl completion": "asks no API server",
    "butlerctl version": "tells its own version all the same",
    "butlerctl context list": "reads a file",
    "butlerctl context use": "writes a file",
    "butlerctl context namespace": "writes a file",
}
"""Commands that need no server, or say so in their own way; their own tests try them."""
CALLS = {
    "butleradm pool list": "",
    "butleradm pool get": "p",
    "butleradm pool map": "p",
    "butleradm pool free": "p",
    "butleradm pool overlaps": "",
    "butleradm pool create": "p --cidr 10.3.0.0/24",
    "butleradm pool edit": "p",
    "butleradm pool grow": "p --window 10.3.0.1-10.3.0.9 --yes",
    "butleradm pool reserve": "p 10.3.0.0/28",
    "butleradm pool delete": "p --yes",
    "butleradm allocation list": "",
    "butleradm allocation get": "a",
    "butleradm allocation create": "a --pool p --tenant t/x --type nodes --count 1",
    "butleradm allocation pin": "a --pool p --tenant t/x --type nodes --range 10.3.0.1-10.3.0.2",
    "butleradm allocation release": "a --yes",
    "butleradm ipam who": "10.3.0.1",
    "butleradm ipam plan": "--tenants 1",
    "butleradm ipam advise": "",
    "butleradm ipam forecast": "",
    "butleradm ipam fsck": "",
    "butleradm ipam export": "",
    "butleradm ipam import": "--from-tenant t/x --yes",
    "butleradm provider list": "",
    "butleradm provider get": "p",
    "butleradm provider create": "-f {provider}",
    "butleradm provider validate": "p",
    "butleradm tenant list": "",
    "butleradm tenant get": "t/x",
    "butleradm server link": "",
    "butleradm server password": "--login admin",
    "butlerctl cluster list": "",
    "butlerctl cluster get": "x",
    "butlerctl cluster create": "x --kubernetes-version v1.33.2",
    "butlerctl cluster scale": "x --workers 2",
    "butlerctl cluster upgrade": "x --version v1.34.1",
    "butlerctl cluster delete": "x --yes",
    "butlerctl cluster kubeconfig": "x",
    "butlerctl cluster events": "x",
    "butlerctl cluster addresses": "x",
}
"""One call of each command that asks an API server."""
PROVIDER = {
    "apiVersion": "butler.butlerlabs.dev/v1alpha1",
    "kind": "ProviderConfig",
    "metadata": {"name": "cloud", "namespace": "butler-system"},
    "spec": {"provider": "aws", "credentialsRef": {"name": "cloud"}, "aws": {"region": "eu-central-1"}},
}


def every() -> dict[str, click.Command]:
    """Every command that does something, by the words that call it."""
    return {" ".join(path): found for name, program in PROGRAMS.items() for path, found in commands(program, (name,))}


def covers_all(*tables: Iterable[str]) -> None:
    """Each command stands in exactly one of these tables."""
    listed = [call for table in tables for call in table]
    assert sorted(listed) == sorted(every())


def words(call: str, arguments: str, **places: object) -> tuple[str, list[str]]:
    """The program, and what is typed behind it; `places` stand in braces in the arguments."""
    program, *path = call.split()
    return program, [*path, *(part.format(**places) for part in arguments.split())]


def kubeconfig_for(url: str, path: Path) -> Path:
    """A kubeconfig that leads there, without credentials."""
    cluster = {"name": "c", "cluster": {"server": url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    body = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster], "contexts": [context]}
    path.write_text(yaml.safe_dump({**body, "users": [{"name": "u", "user": {}}]}))
    return path
