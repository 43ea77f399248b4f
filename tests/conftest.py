"""The fixture `control_plane`: each test that takes it runs on the embedded server and on a real Kubernetes.

Servers start when the first test needs them and stop before the next one starts, or when the run ends, however it
ends. `real_programs` builds what is real, `workers` says which tests stay together, and `second_chance` what happens to
those that fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis
import pytest
import real_programs
import second_chance
import workers

import control_planes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

CONTROL_PLANES = ("embedded", "kubernetes")
SELDOM_ON_KUBERNETES = (
    "tests/elastic/faults/",
    "tests/elastic/test_bystanders.py",
    "tests/elastic/test_drift.py",
    "tests/elastic/test_limits.py",
    "tests/elastic/test_metallb.py",
    "tests/tenants/test_all_or_nothing.py",
    "tests/tenants/test_kills.py",
    "tests/tenants/test_requests.py",
    "tests/tenants/flows/test_changes.py",
    "tests/tenants/flows/test_deletion.py",
    "tests/tenants/flows/test_refusals.py",
    "tests/tenants/flows/test_waiting.py",
    "tests/local/world/",
    "tests/local/test_helm.py",
    "tests/local/test_kubectl.py",
    "tests/local/test_kubectl_reading.py",
    "tests/local/test_kubectl_refusals.py",
)
"""What runs every day on the embedded server alone, and on a real Kubernetes as slow tests: stories that take minutes
there (`make test-tenants`, `make test-elastic`), and what kubectl and helm print there, whatever the embedded server
does (`make test-conformance`). Growth, whole lives, the real MetalLB and every fault of address management run on both
every day."""

TOGETHER = ("tests/console",)
"""One browser, and one Butler with eight tenants."""
ON_ONE_KUBERNETES = {"tests/local": "tests/local", "tests/ipam": "tests/ipam", "tests": "facts"}
FIRST = (
    "tests/local kubernetes",
    "tests/elastic/faults",
    "tests/tenants/flows kubernetes",
    "tests/console",
    "tests/ipam kubernetes",
    "tests/elastic",
    "tests/elastic/real_metallb kubernetes",
    "tests/tenants",
    "facts kubernetes",
    "tests/tenants/flows",
    "tests/elastic kubernetes",
    "tests/cli/test_every_interrupt.py",
    "tests/cli/test_every_terminal.py",
    "tests/cli/test_hostile_text.py",
    "tests/cli/test_clusters.py",
    "tests/cli/test_allocation.py",
    "tests/cli/test_fsck.py",
)
"""The longest groups of tests, and what waits most beside what works most; see `workers`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    second_chance.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    # Tests have time limits. An example has none: on a busy machine any takes longer than 200 ms now and then.
    hypothesis.settings.register_profile("busy", deadline=None)
    hypothesis.settings.load_profile("busy")
    config.stash[workers.FIRST] = FIRST
    config.stash[workers.TOGETHER] = TOGETHER
    config.stash[workers.ON_ONE_KUBERNETES] = ON_ONE_KUBERNETES
    for plugin in (real_programs, workers, second_chance):
        config.pluginmanager.register(plugin)


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
        if item.nodeid.startswith(SELDOM_ON_KUBERNETES) and real_programs.wants_kubernetes(item):
            item.add_marker(pytest.mark.slow)
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
