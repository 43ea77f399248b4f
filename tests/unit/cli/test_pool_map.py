"""The map of a pool: pictures that people have looked at, and what holds for all of them.

`.venv/bin/python -m unit.cli.test_pool_map` in tests/ draws the pictures anew; look at every one before committing.
"""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.cli.drawings.pool_map import MOST_ROWS, draw, headline, lay_out
from butler.ipam.addresses import Family, Range
from butler.reports.pool.segments import HELD, Kind, PoolSegments, segments_of
from unit.reports.pool_estates import allocation, estate, every_sign
from unit.webhooks.given import pool

GOLDEN = Path(__file__).parents[2] / "cli" / "golden"


def small() -> PoolSegments:
    return estate("10.40.0.0/28", 1, sizes=(2,), tenants=1)


def usual() -> PoolSegments:
    return estate("10.40.0.0/24", 14, sizes=(5, 8, 12), tenants=6)


def large() -> PoolSegments:
    return estate("10.40.0.0/21", 110, sizes=(5, 8, 16, 24), tenants=24)


def larger() -> PoolSegments:
    return estate("10.40.0.0/16", 700, sizes=(8, 16, 64, 256), tenants=60, spread=4)


def largest() -> PoolSegments:
    return estate("10.0.0.0/8", 3000, sizes=(8, 64, 4096, 8192), tenants=300, spread=200)


PICTURES = {
    "28_at_80": (small, 80, True),
    "24_at_60": (usual, 60, True),
    "24_at_80": (usual, 80, True),
    "24_at_160": (usual, 160, True),
    "21_at_60": (large, 60, True),
    "21_at_100": (large, 100, True),
    "16_at_100": (larger, 100, True),
    "16_at_160": (larger, 160, True),
    "8_at_60": (largest, 60, True),
    "8_at_100": (largest, 100, True),
    "every_sign_at_80": (every_sign, 80, True),
    "every_sign_at_60_in_ascii": (every_sign, 60, False),
}


def picture(name: str) -> str:
    made, width, unicode = PICTURES[name]
    shown = made()
    return f"{headline(shown, shown, width)}\n{draw(shown, width, unicode=unicode)}\n"


@pytest.mark.parametrize("name", PICTURES)
def test_a_map_is_as_it_was_looked_at(name: str) -> None:
    assert picture(name) == (GOLDEN / f"pool_map_{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PICTURES)
def test_a_map_fits_the_terminal_and_colour_adds_nothing(name: str) -> None:
    made, width, unicode = PICTURES[name]
    plain = draw(made(), width, unicode=unicode)
    assert max(map(len, plain.splitlines())) <= width
    coloured = draw(made(), width, unicode=unicode, colour=True)
    assert "\x1b[" in coloured
    assert click.unstyle(coloured) == plain
    if not unicode:
        assert plain.isascii()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**24), st.integers(40, 220))
def test_all_addresses_are_on_the_grid_in_rows_that_fit(first: int, more: int, width: int) -> None:
    network = Range(first, min(first + more, 2**32 - 1))
    grid = lay_out(network, Family.V4, width)
    assert grid.rows <= MOST_ROWS
    assert grid.first <= network.first
    assert network.last < grid.first + grid.rows * grid.row
    assert grid.first % grid.row == 0
    assert grid.cells <= width
    assert grid.cell & (grid.cell - 1) == 0


def test_a_cell_of_one_address_shows_what_its_segment_is() -> None:
    shown = usual()
    lines = draw(shown, 160, unicode=False).splitlines()
    rows = [line.split("  ", 1)[1].replace(" ", "") for line in lines if line.startswith("10.40.0.")]
    cells = "".join(rows)
    assert len(cells) == 256
    base = shown.segments[0].first
    for segment in shown.segments:
        signs = set(cells[segment.first - base : segment.last - base + 1])
        assert len(signs) == 1
        expected = {Kind.FREE: ".", Kind.RESERVED: "#", Kind.OUTSIDE: "-"}.get(segment.kind)
        assert signs == {expected} if expected else segment.kind in HELD and signs.pop().isalpha()


def test_one_address_held_twice_marks_its_cell_however_large_the_pool() -> None:
    both = [allocation("one", 10 << 24 | 70_000, 10), allocation("two", 10 << 24 | 70_009, 10)]
    drawn = draw(segments_of(pool(cidr="10.0.0.0/8"), both), 100)
    assert drawn.splitlines()[3].split("  ", 1)[1].count("!") == 1
    assert "10.1.17.121 (one and two)" in drawn


def test_a_part_is_drawn_in_its_true_position() -> None:
    part = usual().within(Range(0x0A28000A, 0x0A280045))
    drawn = draw(part, 80, unicode=False).splitlines()
    assert drawn[3].startswith("10.40.0.0   " + " " * 10)
    assert drawn[4].startswith("10.40.0.64")
    assert len(drawn[4].split()[1]) == 6


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for text in PICTURES:
        (GOLDEN / f"pool_map_{text}.txt").write_text(picture(text), encoding="utf-8")
