"""The person's own editor on a piece of text, as `kubectl edit` has it.

The text lives in a file that is removed only when it is of no more use: whatever goes wrong, what was typed is kept,
and the person is told where.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from butler.cli.toolkit.session import Failure

if TYPE_CHECKING:
    from types import TracebackType


class Editing:
    """A file that the user edits, perhaps several times. Use it with `with`."""

    def __init__(self, stem: str) -> None:
        handle, name = tempfile.mkstemp(prefix=f"{stem}-", suffix=".yaml")
        os.close(handle)
        self.path = Path(name)
        self._typed = ""
        self._is_changed = False

    def __enter__(self) -> Editing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_changed or kind is None:
            self.path.unlink(missing_ok=True)
            return
        self.path.write_text(self._typed)
        if isinstance(error, Failure):
            vars(error)["message"] = f"{error.message} (what you wrote is kept in {self.path})"  # click has it final
        else:
            from butler.cli.toolkit.terminal import say

            say(f"\nWhat you wrote is kept in {self.path}")

    def ask(self, text: str, note: str) -> str | None:
        """Open a text below a note in comments. Gives what was saved, or None where that is the same, or empty."""
        opened = "".join(f"# {line}\n" for line in note.splitlines()) + text
        self.path.write_text(opened)
        _open(self.path)
        typed = self.path.read_text(errors="replace")
        if typed == opened or not without_head(typed).strip():
            return None
        self._typed, self._is_changed = without_head(typed), True
        return self._typed


def _open(path: Path) -> None:
    """Returns when the person is done."""
    command = os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or "vi"
    # As with kubectl and git, the variable may hold arguments: a shell reads it.
    code = subprocess.run(["/bin/sh", "-c", f'{command} "$1"', "sh", str(path)], check=False).returncode  # noqa: S603
    if code:
        raise Failure(f"the editor `{command}` ended with code {code}, so nothing was changed: set EDITOR to another")


def without_head(text: str) -> str:
    """A text without the comments that it begins with."""
    lines = text.splitlines(keepends=True)
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        lines.pop(0)
    return "".join(lines)
