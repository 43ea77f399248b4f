"""One embedded control plane with controllers and a world for each test module, and people at its prompts.

Tests of a module share it, so each takes a network of its own (`network`) and names that no other uses.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from cli.terminal import Cli
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

_networks = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    options = ("--shrink-after", "5")
    with LocalServer(tmp_path_factory.mktemp("server"), controllers=True, options=options) as running:
        yield running


@pytest.fixture
def fresh_server(tmp_path: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """For a test that needs an estate where nothing is yet."""
    with LocalServer(tmp_path, controllers=True) as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture(scope="module")
def plane(server: LocalServer) -> ControlPlane:
    return server.plane


@pytest.fixture(scope="module")
def adm(plane: ControlPlane) -> Cli:
    return Cli(plane.kubeconfig, "butleradm")


@pytest.fixture(scope="module")
def ctl(plane: ControlPlane) -> Cli:
    return Cli(plane.kubeconfig, "butlerctl")


@pytest.fixture
def network() -> str:
    """The first two numbers of a /16 that no other test uses, such as 10.17."""
    return f"10.{next(_networks) % 256}"
