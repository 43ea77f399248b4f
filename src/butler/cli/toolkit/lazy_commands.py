"""Groups whose commands are imported only when they are called: `--help` must answer at once.

A group knows of each command its module and one line of help, so that listing them imports none. A test holds these
lines against the commands themselves.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from butler.cli.toolkit import streams
from butler.cli.toolkit.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from click.shell_completion import CompletionItem

TRACEBACK = "BUTLER_TRACEBACK"
BEFORE_TOO = ("-n", "--namespace", "--kubeconfig", "--context", "--as", "--as-group")
"""Options with a value that kubectl takes before its command, too; here they belong to the commands."""
FLAGS_BEFORE_TOO = ("-A", "--all-namespaces")
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyCommand(NamedTuple):
    """A command in another module."""

    module: str
    attribute: str
    help: str


class LazyGroup(click.Group):
    """A group of commands that live elsewhere."""

    def __init__(self, *args: Any, parts: Mapping[str, LazyCommand] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.parts = dict(parts or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.parts, *(name for name in super().list_commands(ctx) if name not in self.parts)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        part = self.parts.get(cmd_name)
        if part is None:
            return super().get_command(ctx, cmd_name)
        found = getattr(import_module(part.module), part.attribute)
        assert isinstance(found, click.Command)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click has it, without importing every command for its one line of help."""
        from click.shell_completion import CompletionItem

        lazy = [
            CompletionItem(name, help=part.help) for name, part in self.parts.items() if name.startswith(incomplete)
        ]
        here = [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in self.commands.items()
            if name.startswith(incomplete) and name not in self.parts and not command.hidden
        ]
        return [*lazy, *here, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            part = self.parts.get(name)
            command = None if part else self.get_command(ctx, name)
            if command is None or not command.hidden:
                rows.append((name, part.help if part else command.get_short_help_str(100) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Program(LazyGroup):
    """A whole program: Ctrl-C ends it quietly, with the exit code that shells expect."""

    def main(self, *args: Any, **options: Any) -> Any:
        streams.install()
        return super().main(*args, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As with kubectl, `-n x pool list` is `pool list -n x`."""
        before = _leading(args)
        rest = args[len(before) :]
        if rest and not rest[0].startswith("-"):
            end = rest.index("--") if "--" in rest else len(rest)
            args = [*rest[:end], *before, *rest[end:]]
        elif ctx.resilient_parsing:  # a shell that completes what stands behind them
            args = rest
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            said = f"{type(error).__name__}: {error}"
            click.echo(f"Error: this is a defect of Butler: {said}; {TRACEBACK}=1 shows where, for a report", err=True)
            ctx.exit(Exit.FAILED)
        except KeyboardInterrupt:
            click.echo("", err=True)  # what was printed stands on the line with ^C
            ctx.exit(Exit.INTERRUPTED)


def _leading(args: Sequence[str]) -> list[str]:
    """What stands before the command of the options that belong to commands, with their values."""
    place = 0
    while place < len(args):
        name, equals, _ = args[place].partition("=")
        if name in FLAGS_BEFORE_TOO or (equals and name in BEFORE_TOO):
            place += 1
        elif name in BEFORE_TOO and place + 1 < len(args):
            place += 2
        elif name.startswith("-n") and not name.startswith("--") and len(name) > 2:
            place += 1
        else:
            break
    return list(args[:place])
