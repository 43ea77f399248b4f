"""The fixture `control_plane`: each test that takes it runs on the embedded server and on a real Kubernetes.

Servers start when the first test needs them and stop before the next one starts, or when the run ends, however it
ends. `real_programs` builds what is real, `workers` says which tests stay together, and `second_chance` what happens to
those that fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import api_servers
import hypothesis
import pytest
import real_programs
import second_chance
import workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api_servers import ControlPlane

CONTROL_PLANES = ("embedded", "kubernetes")
SELDOM_ON_KUBERNETES = ("tests/conformance/", "kubeserver/tests/conformance/")
"""What runs every day on kubeserver alone, and on a real Kubernetes as slow tests (`make test-conformance`): facts
about the Kubernetes API, which a real one keeps whatever kubeserver does."""

ON_ONE_KUBERNETES = {"": "agreement"}
FIRST = ("agreement kubernetes",)
"""The longest group of tests; see `workers`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    second_chance.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    # Tests have time limits. An example has none: on a busy machine any takes longer than 200 ms now and then.
    hypothesis.settings.register_profile("busy", deadline=None)
    hypothesis.settings.load_profile("busy")
    config.stash[workers.FIRST] = FIRST
    config.stash[workers.ON_ONE_KUBERNETES] = ON_ONE_KUBERNETES
    for plugin in (real_programs, workers, second_chance):
        config.pluginmanager.register(plugin)


@pytest.fixture(scope="session", params=CONTROL_PLANES)
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running API server with an administrator's access to it."""
    data_dir = tmp_path_factory.mktemp(request.param)
    if request.param == "embedded":
        with api_servers.embedded(data_dir) as server:
            yield server
        return
    with api_servers.kubernetes(data_dir) as server:
        yield server


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SELDOM_ON_KUBERNETES) and real_programs.wants_kubernetes(item):
            item.add_marker(pytest.mark.slow)
