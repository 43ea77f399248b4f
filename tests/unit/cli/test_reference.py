"""The pages of the commands are made from the commands, and no group tells another line of help than the command."""

from __future__ import annotations

import inspect
from pathlib import Path

import click
import pytest

from butler.cli.kubectl_plugin import main as plugin
from butler.cli.reference import PROGRAMS, command_pages, commands
from butler.cli.toolkit.lazy_commands import LazyGroup
from pages import ROOT

EVERY = [(path, command) for name, program in PROGRAMS.items() for path, command in commands(program, (name,))]


def test_the_pages_are_up_to_date() -> None:
    folder = ROOT / "docs" / "commands"
    stored = {page.name: page.read_text() for page in folder.glob("*.md")}
    assert stored == command_pages(), "run `make generate`"


@pytest.mark.parametrize(("path", "command"), EVERY, ids=lambda item: " ".join(item) if isinstance(item, tuple) else "")
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...], command: click.Command) -> None:
    words = " ".join(path)
    assert command.help, words
    assert command.get_short_help_str(200).endswith("."), words
    told = inspect.cleandoc(command.help)
    assert "\b\nExamples:" in told, f"{words} shows no examples"
    assert words in told.partition("Examples:")[2], f"{words} is not called in its examples"
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{words} {option.name} is not explained"


@pytest.mark.parametrize("program", [*PROGRAMS.values(), plugin], ids=["butleradm", "butlerctl", "kubectl butler"])
def test_groups_tell_of_their_commands_what_these_tell_themselves(program: click.Command) -> None:
    waiting, seen = [program], 0
    while waiting:
        group = waiting.pop()
        if not isinstance(group, click.Group):
            continue
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None, name
            assert found.name == name
            if isinstance(group, LazyGroup) and name in group.parts:
                assert group.parts[name].help == found.get_short_help_str(200), name
                seen += 1
            waiting.append(found)
    assert seen > 5


def test_no_page_is_left_over() -> None:
    assert {page.name for page in Path(ROOT / "docs" / "commands").glob("*")} == set(command_pages())
