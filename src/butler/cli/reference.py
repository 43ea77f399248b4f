"""From the commands to their pages in docs/commands.

    python -m butler.cli.reference docs/commands

The pages say what `--help` says, in one piece for each program, so that they can be read and searched. A test holds
that they are up to date: so every command is documented, and every documented command exists.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from butler.api.crd import write_files
from butler.cli import butleradm, butlerctl
from butler.cli.toolkit.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = "<!-- Generated from src/butler/cli by `make generate`. Change the commands there, not this page. -->\n\n"
PROGRAMS = {"butleradm": butleradm.main, "butlerctl": butlerctl.main}
SHARED = ("namespace", "kubeconfig", "context", "as_user", "as_group", "everywhere", "output", "no_headers", "help")
"""Options that nearly every command has: told once."""

COMMON = """\
## Options that nearly every command has

| option | |
|---|---|
| `-n`, `--namespace NS` | butler-system when not given; for clusters, the kubeconfig's |
| `-A`, `--all-namespaces` | look everywhere |
| `--kubeconfig FILE`, `--context NAME` | which API server: `$KUBECONFIG`, else `~/.kube/config`, as with kubectl |
| `--as USER`, `--as-group GROUP` | act as another user, if you may |
| `-o`, `--output FORMAT` | how to show it: `--help` of a command lists its formats |
| `--no-headers` | leave out the line with the titles |
| `-h`, `--help` | what a command does, with examples |

## Exit codes

| code | |
|---|---|
"""

MEANING = {
    Exit.OK: "done",
    Exit.FAILED: "refused or impossible; nothing was changed unless the message says so",
    Exit.USAGE: "the command line makes no sense; nothing was asked of the server",
    Exit.NOT_FOUND: "what was named is not there",
    Exit.FORBIDDEN: "not logged in, or not allowed",
    Exit.UNREACHABLE: "no API server is known, or it does not answer",
    Exit.CONFLICT: "the name is taken, or another user changed the object meanwhile",
    Exit.TIMED_OUT: "accepted, and not done within `--timeout`",
    Exit.FINDINGS: "answered, and the answer is bad: fsck found something, a plan does not fit, pools overlap",
    Exit.INTERRUPTED: "Ctrl-C",
}


def command_pages() -> dict[str, str]:
    """File name and content of every page."""
    return {f"{name}.md": HEADER + _page(name, program) for name, program in PROGRAMS.items()}


def commands(group: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""
    if not isinstance(group, click.Group):
        yield path, group
        return
    context = click.Context(group, info_name=path[-1])
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is not None and not found.hidden:
            yield from commands(found, (*path, name))


def _page(name: str, program: click.Command) -> str:
    found = list(commands(program, (name,)))
    lines = [f"# {name}", "", inspect.cleandoc(program.help or ""), ""]
    lines += ["| | |", "|---|---|"]
    lines += [
        f"| [{' '.join(path)}](#{'-'.join(path)}) | {command.get_short_help_str(200)} |" for path, command in found
    ]
    lines += ["", COMMON + "\n".join(f"| {int(code)} | {MEANING[code]} |" for code in Exit)]
    for path, command in found:
        lines += ["", *_command(path, command)]
    return "\n".join(lines) + "\n"


def _command(path: tuple[str, ...], command: click.Command) -> list[str]:
    context = click.Context(command, info_name=" ".join(path))
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"## {' '.join(path)}", "", "```", re.sub(r"\s+", " ", usage), "```", "", *_prose(command.help or "")]
    own = [
        option
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden and option.name not in SHARED
    ]
    if own:
        lines += ["", "| option | |", "|---|---|", *(_option(option, context) for option in own)]
    return lines


def _option(option: click.Option, context: click.Context) -> str:
    names, said = option.get_help_record(context) or ("", "")
    return f"| `{names.replace('|', '/')}` | {said.replace('|', '/')} |"


def _prose(text: str) -> list[str]:
    """Paragraphs; what click is told not to fold is shown as it is."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            lines += ["```", *paragraph.removeprefix("\b\n").splitlines(), "```", ""]
        else:
            lines += [re.sub(r"\s*\n\s*", " ", paragraph), ""]
    return lines[:-1]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m butler.cli.reference FOLDER")
    write_files(Path(sys.argv[1]), command_pages())
