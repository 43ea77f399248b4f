"""One thing on one screen, wrapped to a terminal and never in a pipe."""

from __future__ import annotations

import pytest

from butler.cli.toolkit import screen

LONG = "needs 2 contiguous addresses; all 32 of production-pool are taken: release an allocation"
ROWS = [("NetworkReady", "no", LONG), ("Ready", "yes", "usable")]
TITLES = ("Condition", "Holds", "Says")


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    monkeypatch.setattr(screen, "is_terminal", lambda: True)
    monkeypatch.setattr(screen, "width", lambda: request.param)
    return int(request.param)


def test_in_a_pipe_one_line_is_one_fact() -> None:
    assert screen.listed(TITLES, ROWS).splitlines()[1].endswith(LONG)
    assert screen.facts([("Phase", "Ready"), ("Empty", ""), ("None", None), ("Zero", 0)]) == "Phase:  Ready\nZero:   0"


@pytest.mark.parametrize("columns", [200, 70, 60, 40], indirect=True)
def test_nothing_is_wider_than_the_terminal_and_nothing_is_lost(columns: int) -> None:
    shown = screen.section("Title", screen.listed(TITLES, ROWS))
    assert max(map(len, shown.splitlines())) <= columns
    words = " ".join(shown.split())
    for word in (*LONG.split(), "NetworkReady", "usable"):
        assert word in words


@pytest.mark.parametrize("columns", [40], indirect=True)
def test_columns_that_do_not_fit_at_all_become_lines(columns: int) -> None:
    shown = screen.listed(("Pool", "For", "CIDR", "Gateway", "State"), [("a" * 12, "b" * 12, "c" * 12, None, "Ready")])
    assert shown.splitlines() == [
        "Pool: aaaaaaaaaaaa",
        "  For:    bbbbbbbbbbbb",
        "  CIDR:   cccccccccccc",
        "  State:  Ready",
    ]
    assert columns == 40
