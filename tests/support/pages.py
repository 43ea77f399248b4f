"""The pages that people read, as tests read them: where they are, what they link to, what they tell one to type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


class Step(NamedTuple):
    """A command as a page shows it behind a `$`, and what the page says that it prints."""

    command: str
    shown: str


def links(page: Path) -> list[str]:
    """The targets of the links on a page."""
    prose = re.sub(r"`[^`\n]+`", "", page.read_text())  # a pattern in code may look like one
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def code(page: Path) -> list[str]:
    """All that stands in a code block or between backticks."""
    found = re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", page.read_text(), re.DOTALL)
    return [block or inline for block, inline in found]


def steps(page: Path) -> list[Step]:
    """The commands of a page in their order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Step(command, shown.strip()))
    return found
