"""Building the real programs that tests want, before the first test, and skipping where they cannot be had.

A conftest registers this module. Tests on a real Kubernetes are marked `kubernetes`, those beside the real MetalLB
`real_metallb`, so that both can be chosen. The real Kubernetes has to be built once; that takes minutes, so it happens
after collection, outside any test's time limit and with its progress in sight. Where it cannot be built the tests on it
are skipped, and the summary says so in one line that cannot be missed: on such a machine a green run proves half.

The real MetalLB is built in the same way. Workers of pytest-xdist build nothing that is there, and wait for each other
where it is not: `make test` builds everything before.
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
NO_KUBERNETES, NO_METALLB = "NO REAL KUBERNETES", "NO REAL METALLB"
WHY_NO_KUBERNETES = pytest.StashKey[str]()
WHY_NO_METALLB = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if wants_kubernetes(item):
            item.add_marker(pytest.mark.kubernetes)
        if _parameter(item, "served") == "real":
            item.add_marker(pytest.mark.real_metallb)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is real before the first test, if any selected test wants it."""
    if session.config.option.collectonly:
        return
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    capture = session.config.pluginmanager.get_plugin("capturemanager")

    def showing(what: str) -> Callable[[str], None]:
        def show(text: str) -> None:
            if terminal is None or capture is None:  # a worker
                return
            with capture.global_and_fixture_disabled():
                terminal.write_line(f"[{what}] {text}", flush=True)

        return show

    if any(wants_kubernetes(item) for item in session.items) and not os.environ.get("BUTLER_TEST_KUBECONFIG"):
        try:
            run_kubernetes.find_binaries(showing("kubernetes"))
        except UnavailableError as error:
            session.config.stash[WHY_NO_KUBERNETES] = f"{NO_KUBERNETES}: {error}. {HOW_TO_PROVIDE_ONE}"
    if any(_wants_metallb(item) for item in session.items):
        try:
            build_kubernetes.build(build_kubernetes.METALLB, showing("metallb"))
            metallb_definitions.fetch(showing("metallb"))
        except UnavailableError as error:
            session.config.stash[WHY_NO_METALLB] = f"{NO_METALLB}: {error}. Install Go."


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
    return item.get_closest_marker("real_metallb") is not None


def _parameter(item: pytest.Item, fixture: str) -> object:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    return item.callspec.params.get(fixture)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report.longreprtext for report in terminalreporter.stats.get("skipped", ())]
    for why in (NO_KUBERNETES, NO_METALLB):
        # Workers know why, and tell it as the reason of what they skip.
        told = next((text for text in skipped if why in text), None)
        if told is not None:
            terminalreporter.write_line(told[told.index(why) :].strip("')"), red=True, bold=True)
