"""Which Kubernetes each part runs next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.labels import ConditionType
from butler.rules.blocked import Blocked
from butler.rules.tenant.blueprint import Versions
from butler.rules.tenant.versions import WORKERS_BEHIND, Version, next_versions


@pytest.mark.parametrize(
    ("wanted", "control_plane", "workers", "expected"),
    [
        # A new cluster starts with what is wanted.
        ("v1.31.4", None, None, ("v1.31.4", "v1.31.4")),
        # At rest.
        ("v1.31.4", "v1.31.4", "v1.31.4", ("v1.31.4", "v1.31.4")),
        # The control plane goes first, the workers follow when it has arrived.
        ("v1.32.0", "v1.31.4", "v1.31.4", ("v1.32.0", "v1.31.4")),
        ("v1.32.0", "v1.32.0", "v1.31.4", ("v1.32.0", "v1.32.0")),
        ("v1.31.9", "v1.31.4", "v1.31.4", ("v1.31.9", "v1.31.4")),
        # A vendor's mark does not count.
        ("v1.31.4", "v1.31.4+steward.1", "v1.31.4", ("v1.31.4", "v1.31.4")),
        # Workers may lag by three minor versions, and no more: then they come first.
        ("v1.32.0", "v1.31.4", "v1.29.0", ("v1.32.0", "v1.29.0")),
        ("v1.32.0", "v1.31.4", "v1.28.0", ("v1.31.4", "v1.31.4")),
        # Machines that do not exist yet are not in the way.
        ("v1.32.0", "v1.31.4", None, ("v1.32.0", "v1.32.0")),
        # A control plane that says nothing: workers are not told anything newer, and never more than is wanted.
        ("v1.32.0", None, "v1.31.4", ("v1.32.0", "v1.31.4")),
        ("v1.31.0", None, "v1.32.0", ("v1.31.0", "v1.31.0")),
        ("v1.32.0", "unknown", "v1.31.4", ("v1.32.0", "v1.31.4")),
        # Workers that a user set to a newer version than the control plane are brought back.
        ("v1.32.0", "v1.31.4", "v1.32.0", ("v1.32.0", "v1.31.4")),
    ],
)
def test_what_runs_next(wanted: str, control_plane: str | None, workers: str | None, expected: tuple[str, str]) -> None:
    assert next_versions(wanted, control_plane, workers) == Versions(*expected)


def test_machines_that_are_still_being_replaced_hold_the_control_plane_back() -> None:
    assert next_versions("v1.32.0", "v1.31.4", "v1.31.4", "v1.28.1") == Versions("v1.31.4", "v1.31.4")
    assert next_versions("v1.32.0", "v1.31.4", "v1.31.4", "v1.29.1") == Versions("v1.32.0", "v1.31.4")


@pytest.mark.parametrize(
    ("wanted", "control_plane", "words"),
    [
        ("v1.30.9", "v1.31.4", "runs v1.31.4 and cannot go back to v1.30.9"),
        ("v1.31.3", "v1.31.4", "cannot go back"),
        ("v1.33.0", "v1.31.4", "to v1.32.x first, not to v1.33.0 at once"),
        ("v2.0.0", "v1.31.4", "to v1.32.x first"),
        ("latest", None, "'latest' is no version"),
    ],
)
def test_what_cannot_be_reached_is_refused_with_the_way_to_go(wanted: str, control_plane: str, words: str) -> None:
    found = next_versions(wanted, control_plane, control_plane)
    assert isinstance(found, Blocked)
    assert found.condition == ConditionType.CONTROL_PLANE_READY
    assert found.reason == "VersionNotAllowed"
    assert found.message.startswith("spec.kubernetesVersion: ")
    assert words in found.message


@pytest.mark.parametrize("text", ["", "v1", "v1.31", "1.31.4.5x", "v1.x.3", "one", None, "v1.31.4rc", "v" + "9" * 99])
def test_what_is_no_version_is_not_read_as_one(text: str | None) -> None:
    assert Version.read(text) is None


def test_versions_are_compared_by_number() -> None:
    ten, nine = Version.read("v1.10.0"), Version.read("v1.9.9-rc.1")
    assert ten is not None
    assert nine is not None
    assert ten > nine
    assert str(nine) == "v1.9.9"


VERSIONS = st.tuples(st.integers(1, 1), st.integers(25, 35), st.integers(0, 3)).map(
    lambda of: f"v{of[0]}.{of[1]}.{of[2]}"
)


@given(st.lists(VERSIONS, min_size=1, max_size=6))
def test_however_often_the_wish_changes_workers_are_never_newer_nor_too_old(wishes: list[str]) -> None:
    runs: str | None = None
    told: str | None = None
    for wish in wishes:
        for _ in range(3):
            found = next_versions(wish, runs, told)
            if isinstance(found, Blocked):
                break
            runs, told = found.control_plane, found.workers
            api_server, kubelet = Version.read(runs), Version.read(told)
            assert api_server is not None
            assert kubelet is not None
            assert kubelet <= api_server
            assert api_server.minor - kubelet.minor <= WORKERS_BEHIND
