"""`--watch` and `--wait` while the server goes away and comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli.pools import HOME, allocation_body, apply, pool_body
from cli.terminal import Cli
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Without controllers: what happens here, the tests do."""
    with LocalServer(tmp_path_factory.mktemp("restarted")) as running:
        apply(running.plane, pool_body("east", "10.201.0.0/24"))
        yield running


def test_a_watch_goes_on_when_the_server_is_back(server: LocalServer) -> None:
    done: list[str] = []

    def seen(text: str) -> bool:
        if "east" in text and not done:
            done.append("killed")
            server.kill()
        if "the watch broke" in text and done == ["killed"]:
            done.append("back")
            server.start()
            apply(server.plane, pool_body("west", "10.202.0.0/24"))
        return "west" in text

    said = Cli(server.plane.kubeconfig).in_terminal("pool", "list", "--watch", columns=200, until=seen)
    assert said.code == 130, str(said)
    assert "Error" not in said.out
    assert said.out.count("the watch broke") == 1


def test_waiting_goes_on_when_the_server_is_back(server: LocalServer) -> None:
    body = allocation_body("held", "east")
    body["metadata"]["finalizers"] = ["example.org/hold"]
    apply(server.plane, body)
    done: list[str] = []

    def seen(text: str) -> bool:
        if "waiting for its pool" in text and not done:
            done.append("killed")
            server.kill()
        if "the watch broke" in text and done == ["killed"]:
            done.append("back")
            server.start()
            free = json.dumps([{"op": "remove", "path": "/metadata/finalizers"}])
            server.plane.kubectl("patch", "ipa", "held", "-n", HOME, "--type=json", "-p", free)
        return False

    command = ("allocation", "release", "held", "--yes", "--wait", "--timeout", "50")
    said = Cli(server.plane.kubeconfig).in_terminal(*command, columns=200, until=seen)
    assert said.code == 0, str(said)
    assert "held is gone" in said.out


def test_a_server_that_is_away_for_good_ends_the_waiting_in_time(server: LocalServer) -> None:
    body = allocation_body("stuck", "east")
    body["metadata"]["finalizers"] = ["example.org/hold"]
    apply(server.plane, body)

    def seen(text: str) -> bool:
        if "waiting for its pool" in text:
            server.kill()
        return False

    command = ("allocation", "release", "stuck", "--yes", "--wait", "--timeout", "4")
    said = Cli(server.plane.kubeconfig).in_terminal(*command, columns=200, until=seen)
    assert said.code == 7, str(said)
    away = Cli(server.plane.kubeconfig).in_terminal("pool", "list", "--watch", columns=200)
    assert away.code == 5, "who is not there from the beginning is not waited for: " + str(away)
