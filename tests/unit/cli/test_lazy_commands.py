"""An unexpected error is told in one sentence, and in full to those who want to report it."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from butler.cli.toolkit.lazy_commands import Program


@click.group(cls=Program)
def program() -> None:
    """A program."""


@program.command()
def fail() -> None:
    """Fail."""
    raise RuntimeError("the moon is full")


def test_a_defect_is_one_sentence() -> None:
    said = CliRunner().invoke(program, ["fail"])
    assert said.exit_code == 1
    assert "defect of Butler: RuntimeError: the moon is full; BUTLER_TRACEBACK=1" in said.output
    assert "Traceback" not in said.output


def test_a_defect_can_be_seen_whole() -> None:
    with pytest.raises(RuntimeError):
        CliRunner().invoke(program, ["fail"], env={"BUTLER_TRACEBACK": "1"}, catch_exceptions=False)
