"""The fixture `control_plane`: each test that takes it runs on the embedded server and on a real Kubernetes.

Servers start when the first test needs them and stop before the next one starts, or when the run ends, however it
ends. `real_programs` builds what is real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from real_programs import (  # noqa: F401 - pytest finds hooks by their names
    pytest_collection_finish,
    pytest_runtest_setup,
    pytest_terminal_summary,
    wants_kubernetes,
)

import control_planes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

settings.register_profile("no clock", deadline=None)  # no test fails because the machine is busy
settings.load_profile("no clock")

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
)
"""What runs every day on the embedded server alone, and on a real Kubernetes as slow tests (`make test-tenants`,
`make test-elastic`): stories that take minutes there. Growth, whole lives, the real MetalLB and every fault of address
management run on both every day."""


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
        if item.nodeid.startswith(SELDOM_ON_KUBERNETES) and wants_kubernetes(item):
            item.add_marker(pytest.mark.slow)
