"""Every command, with the server away and by somebody who may do nothing: one sentence, the right exit code, no more.

The table has one call of each command; a command without one fails the first test.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
import yaml

from butler.cli.reference import PROGRAMS, commands
from cli.terminal import Cli

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane

ALONE = {
    "butleradm local up": "starts a server",
    "butleradm local world": "runs until it is stopped; tests/local tries it",
    "butleradm local down": "asks no API server",
    "butleradm local reset": "asks no API server",
    "butleradm local status": "asks no API server but its own",
    "butleradm controller run": "runs until it is stopped, and waits for its server",
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
PROVIDER = {
    "apiVersion": "butler.butlerlabs.dev/v1alpha1",
    "kind": "ProviderConfig",
    "metadata": {"name": "cloud", "namespace": "butler-system"},
    "spec": {"provider": "aws", "credentialsRef": {"name": "cloud"}, "aws": {"region": "eu-central-1"}},
}


def test_no_command_is_forgotten() -> None:
    every = {" ".join(path) for name, program in PROGRAMS.items() for path, _ in commands(program, (name,))}
    assert every == {*ALONE, *CALLS}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "provider.yaml"
    path.write_text(yaml.safe_dump(PROVIDER))
    return path


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig that leads to a port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    path = tmp_path_factory.mktemp("away") / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    body = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster], "contexts": [context]}
    path.write_text(yaml.safe_dump({**body, "users": [{"name": "u", "user": {}}]}))
    return path


def _words(call: str, provider: Path) -> tuple[str, list[str]]:
    program, *path = call.split()
    return program, [*path, *CALLS[call].format(provider=provider).split()]


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_away_is_one_sentence(call: str, away: Path, provider: Path) -> None:
    program, words = _words(call, provider)
    said = Cli(away, program, EDITOR="true").refused(5, *words)
    assert "127.0.0.1" in said, said


@pytest.mark.parametrize("call", CALLS)
def test_who_may_do_nothing_is_told_so(call: str, plane: ControlPlane, provider: Path) -> None:
    program, words = _words(call, provider)
    said = Cli(plane.kubeconfig, program, EDITOR="true").refused(4, *words, "--as", "nobody")
    assert "nobody" in said or "may not" in said, said
