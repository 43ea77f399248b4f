"""What `butleradm controller run` says when it cannot start."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from butler.cli.butleradm import main

if TYPE_CHECKING:
    from pathlib import Path

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.mark.parametrize("option", ["--metrics-port", "--webhook-port"])
def test_a_port_that_is_taken_is_one_sentence_and_no_traceback(tmp_path: Path, option: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = ["controller", "run", "--kubeconfig", str(kubeconfig), "--no-lease", option, port]
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert result.output.splitlines()[-1].startswith("Error: cannot serve: ")
    assert "address already in use" in result.output
