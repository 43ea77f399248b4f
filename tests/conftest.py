"""The fixture `control_plane`: each test that takes it runs on the embedded server and on a real Kubernetes.

Servers start when the first test needs them and stop before the next one starts, or when the run ends, however it
ends. The real one has to be built once; that takes minutes, so it happens after collection, outside any test's
time limit and with its progress in sight. Where it cannot be built the tests on it are skipped, and the summary
says so in one line that cannot be missed: on such a machine a green run proves half.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import run_kubernetes
from build_kubernetes import UnavailableError

import control_planes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

CONTROL_PLANES = ("embedded", "kubernetes")
HOW_TO_PROVIDE_ONE = (
    "Install Go, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kube-controller-manager, "
    "or BUTLER_TEST_KUBECONFIG to the kubeconfig of a server that tests may write to."
)
WHY_NO_KUBERNETES = pytest.StashKey[str]()


@pytest.fixture(scope="session", params=CONTROL_PLANES)
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running API server with an administrator's access to it."""
    data_dir = tmp_path_factory.mktemp(request.param)
    if request.param == "embedded":
        with control_planes.embedded(data_dir) as server:
            yield server
        return
    with control_planes.kubernetes(data_dir) as server:
        yield server


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the real Kubernetes before the first test, if any selected test wants it."""
    if session.config.option.collectonly or os.environ.get("BUTLER_TEST_KUBECONFIG"):
        return
    if not any(_wants_kubernetes(item) for item in session.items):
        return
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    capture = session.config.pluginmanager.get_plugin("capturemanager")

    assert terminal is not None
    assert capture is not None

    def show(text: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.write_line(f"[kubernetes] {text}", flush=True)

    try:
        run_kubernetes.find_binaries(show)
    except UnavailableError as error:
        session.config.stash[WHY_NO_KUBERNETES] = f"NO REAL KUBERNETES: {error}. {HOW_TO_PROVIDE_ONE}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip from one place, so that the summary folds hundreds of skipped tests into one line."""
    why_not = item.config.stash.get(WHY_NO_KUBERNETES, None)
    if why_not is not None and _wants_kubernetes(item):
        pytest.skip(why_not)


def _wants_kubernetes(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and (
        hasattr(item, "callspec") and item.callspec.params.get("control_plane") == "kubernetes"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    why_not = config.stash.get(WHY_NO_KUBERNETES, None)
    if why_not is not None:
        terminalreporter.write_line(why_not, red=True, bold=True)
