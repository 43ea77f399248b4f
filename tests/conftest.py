"""The fixture `control_plane`: each test that takes it runs on the embedded server and on a real Kubernetes.

Servers start when the first test needs them and stop before the next one starts, or when the run ends, however it
ends. The real one has to be built once; that takes minutes, so it happens after collection, outside any test's
time limit and with its progress in sight. Where it cannot be built the tests on it are skipped, and the summary
says so in one line that cannot be missed: on such a machine a green run proves half.

The real MetalLB is built in the same way, for tests that are marked `real_metallb` and for those whose fixture
`served` is the real one; they use it through metallb_controller.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import build_kubernetes
import metallb_definitions
import pytest
import run_kubernetes
from build_kubernetes import UnavailableError

import control_planes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from control_planes import ControlPlane

CONTROL_PLANES = ("embedded", "kubernetes")
HOW_TO_PROVIDE_ONE = (
    "Install Go, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kube-controller-manager, "
    "or BUTLER_TEST_KUBECONFIG to the kubeconfig of a server that tests may write to."
)
SELDOM_ON_KUBERNETES = (
    "tests/conformance/",
    "tests/elastic/faults/",
    "tests/elastic/test_bystanders.py",
    "tests/elastic/test_drift.py",
    "tests/elastic/test_limits.py",
    "tests/elastic/test_metallb.py",
    "tests/tenants/test_all_or_nothing.py",
    "tests/tenants/test_kills.py",
    "tests/tenants/flows/test_changes.py",
    "tests/tenants/flows/test_deletion.py",
    "tests/tenants/flows/test_refusals.py",
    "tests/tenants/flows/test_waiting.py",
    "tests/local/world/",
)
"""What runs every day on the embedded server alone, and on a real Kubernetes as slow tests (`make test-conformance`,
`make test-tenants`, `make test-elastic`): facts about the Kubernetes API, which a real one keeps whatever Butler does,
and stories that take minutes there. Growth, whole lives, the real MetalLB, our functions beside those of Kubernetes and
every fault of address management run on both every day."""
WHY_NO_KUBERNETES = pytest.StashKey[str]()
WHY_NO_METALLB = pytest.StashKey[str]()


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


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SELDOM_ON_KUBERNETES) and _wants_kubernetes(item):
            item.add_marker(pytest.mark.slow)


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

    if any(_wants_kubernetes(item) for item in session.items) and not os.environ.get("BUTLER_TEST_KUBECONFIG"):
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
    for why, wants in ((WHY_NO_KUBERNETES, _wants_kubernetes), (WHY_NO_METALLB, _wants_metallb)):
        why_not = item.config.stash.get(why, None)
        if why_not is not None and wants(item):
            pytest.skip(why_not)


def _wants_kubernetes(item: pytest.Item) -> bool:
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
