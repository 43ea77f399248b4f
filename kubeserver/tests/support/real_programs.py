"""Building the real programs that tests want, before the first test, and skipping where they cannot be had.

A conftest imports the hooks of this module. The real Kubernetes has to be built once; that takes minutes, so it happens
after collection, outside any test's time limit and with its progress in sight. Where it cannot be built the tests on it
are skipped, and the summary says so in one line that cannot be missed: on such a machine a green run proves half.

The real MetalLB is built in the same way, for tests that are marked `real_metallb` and for those whose fixture
`served` is the real one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import build_kubernetes
import metallb_definitions
import pytest
import run_kubernetes
from build_kubernetes import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

HOW_TO_PROVIDE_ONE = (
    "Install Go, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kube-controller-manager, "
    "or BUTLER_TEST_KUBECONFIG to the kubeconfig of a server that tests may write to."
)
WHY_NO_KUBERNETES = pytest.StashKey[str]()
WHY_NO_METALLB = pytest.StashKey[str]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is real before the first test, if any selected test wants it."""
    if session.config.option.collectonly:
        return
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    capture = session.config.pluginmanager.get_plugin("capturemanager")

    assert terminal is not None
    assert capture is not None

    def showing(what: str) -> Callable[[str], None]:
        def show(text: str) -> None:
            with capture.global_and_fixture_disabled():
                terminal.write_line(f"[{what}] {text}", flush=True)

        return show

    if any(wants_kubernetes(item) for item in session.items) and not os.environ.get("BUTLER_TEST_KUBECONFIG"):
        try:
            run_kubernetes.find_binaries(showing("kubernetes"))
        except UnavailableError as error:
            session.config.stash[WHY_NO_KUBERNETES] = f"NO REAL KUBERNETES: {error}. {HOW_TO_PROVIDE_ONE}"
    if any(_wants_metallb(item) for item in session.items):
        try:
            build_kubernetes.build(build_kubernetes.METALLB, showing("metallb"))
            metallb_definitions.fetch(showing("metallb"))
        except UnavailableError as error:
            session.config.stash[WHY_NO_METALLB] = f"NO REAL METALLB: {error}. Install Go."


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip from one place, so that the summary folds hundreds of skipped tests into one line."""
    for why, wants in ((WHY_NO_KUBERNETES, wants_kubernetes), (WHY_NO_METALLB, _wants_metallb)):
        why_not = item.config.stash.get(why, None)
        if why_not is not None and wants(item):
            pytest.skip(why_not)


def wants_kubernetes(item: pytest.Item) -> bool:
    return "kubernetes" in (_parameter(item, "control_plane"), _parameter(item, "restorable"))


def _wants_metallb(item: pytest.Item) -> bool:
    return item.get_closest_marker("real_metallb") is not None or _parameter(item, "served") == "real"


def _parameter(item: pytest.Item, fixture: str) -> object:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    return item.callspec.params.get(fixture)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for why in (WHY_NO_KUBERNETES, WHY_NO_METALLB):
        why_not = config.stash.get(why, None)
        if why_not is not None:
            terminalreporter.write_line(why_not, red=True, bold=True)
