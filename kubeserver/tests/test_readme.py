"""The script of the README, run as it stands: kubectl and the official Python client on one definition."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def blocks(kind: str) -> list[str]:
    """The fenced blocks of a kind, in order."""
    return [part.split("```", 1)[0] for part in README.read_text().split(f"```{kind}\n")[1:]]


def test_the_script_prints_what_the_page_says(tmp_path: Path) -> None:
    script, expected = blocks("python")[0], README.read_text().split("It prints:\n\n```\n")[1].split("```")[0]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == expected
