"""docs/tour.md, typed from its first line to its last, prints what the page shows.

What differs from run to run is left out: ages and times, ports, process numbers, random names, the lines that tell how
far something is, and which of two Services that come at once gets which address.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from control_planes import BIN
from pages import ROOT, steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = ROOT / "docs" / "tour.md"
HOME = "/home/you/.butler/local"
FINDS_SOMETHING = ("butleradm ipam plan --tenants 7", "butleradm ipam fsck 2>")
"""They leave with exit code 8."""
VARIES = (
    (r"^ *\d+\.\d s  .*\n?", ""),
    (r"\b(\d+m\d+s|\d+s|\d+m)\b", "AGE"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"),
    (r"\(process \d+\)", "(process N)"),
    # A tenant that cannot get both blocks may have had one for a moment: then a record of it is kept.
    (r"-nodes-[0-9a-f]{8}\b", "-nodes"),
    (r"\b21[78] allocations\b", "N allocations"),
    (r"-workers-[a-z0-9]{5}-[a-z0-9]{5}\b", "-workers-X"),
    (r"default/(web|mail|chat)\b", "default/SERVICE"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    yield tmp_path
    # Where the tour ended half way, what it started is still there.
    subprocess.run([BIN / "butleradm", "local", "down"], env=_environment(tmp_path), capture_output=True, check=False)


def _environment(folder: Path) -> dict[str, str]:
    data = folder / "butler"
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    where = {"BUTLER_DATA_DIR": str(data), "KUBECONFIG": str(data / "kubeconfig")}
    return {**os.environ, **where, "PATH": path, "COLUMNS": "120"}


def _comparable(text: str) -> str:
    for pattern, stands_for in VARIES:
        text = re.sub(pattern, stands_for, text, flags=re.MULTILINE)
    return " ".join(text.split())


def test_the_tour_is_as_it_is_told(folder: Path) -> None:
    typed = steps(PAGE)
    assert len(typed) > 30
    for step in typed:
        result = subprocess.run(
            ["/bin/sh", "-c", step.command],
            cwd=folder, env=_environment(folder), capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        told = f"$ {step.command}\n{result.stdout}{result.stderr}"
        wanted = 8 if step.command.startswith(FINDS_SOMETHING) else 0
        assert result.returncode == wanted, told
        printed = (result.stdout + result.stderr).replace(str(folder / "butler"), HOME)
        assert _comparable(printed) == _comparable(step.shown), told
