"""Which tests stay together on one worker of pytest-xdist (`--dist loadgroup --no-loadscope-reorder`), and which begin.

A conftest registers this module. Tests that share something dear stay together: those of a module, which may share a
server, those behind a fixture of a whole folder, such as an estate that is brought up once, and those on the real
Kubernetes of a run. Everything else that lives as long as the run, each worker has for itself.

Groups begin in the order of `config.stash[FIRST]`, the longest first; the others follow in the order of their files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from real_programs import wants_kubernetes

FIRST = pytest.StashKey[Sequence[str]]()
"""The names of groups that begin first."""
TOGETHER = pytest.StashKey[Sequence[str]]()
"""Folders whose tests share something that lives as long as the run, and is too dear for each worker to have."""
ON_ONE_KUBERNETES = pytest.StashKey[Mapping[str, str]]()
"""Folders whose tests share the real Kubernetes of a run, and the name of their group."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item, config)))


class InOrder:
    """Tells xdist the groups, and sorts the tests, when pytest has put those together that share a parameter.

    xdist reads the group of a test at the end of its id. It writes it there into an attribute that pytest 9.2 does not
    have any more, and would then spread every group over all workers; so it is written here, if it is not there.
    """

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if not config.getoption("loadgroup", False):
            return
        first = config.stash.get(FIRST, ())
        ranks: dict[str, tuple[int, int]] = {}
        for item in items:
            name = _group(item)
            ranks.setdefault(name, (first.index(name) if name in first else len(first), len(ranks)))
            if not item.nodeid.endswith(f"@{name}"):
                item._id = type(item.id).parse(f"{item.nodeid}@{name}")
        items.sort(key=lambda item: ranks[_group(item)])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "xdist_group(name): what a test shares with others, known without xdist, too")
    config.pluginmanager.register(InOrder())


def group_of(item: pytest.Item, config: pytest.Config) -> str:
    """The name of what a test shares with others, without "@" or "]", by which xdist parts it from the test."""
    server = " kubernetes" if wants_kubernetes(item) else ""
    module = item.nodeid.partition("::")[0]
    for folder in config.stash.get(TOGETHER, ()):
        if module.startswith(folder):
            return folder
    found = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    folders = [found[name][-1].baseid for name in found if found[name][-1].scope == "package"]
    if folders:
        return f"{max(folders, key=len)}{server}"
    if server and "control_plane" in found and found["control_plane"][-1].scope == "session":
        shared = config.stash.get(ON_ONE_KUBERNETES, {})
        return next((group for folder, group in shared.items() if module.startswith(folder)), module) + server
    return f"{module}{server}"


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    assert mark is not None
    return str(mark.args[0])
