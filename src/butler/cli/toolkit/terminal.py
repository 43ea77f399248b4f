"""The terminal of a user, or the pipe that a program reads from: width, colour, questions.

Colour only ever repeats what the words say. It is off in pipes, with NO_COLOR set, and on terminals that cannot.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from typing import Any

import click

from butler.api.printable import one_line
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure
from butler.cli.toolkit.streams import encoding_of, own

NARROWEST = 40


def is_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


def has_colour() -> bool:
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def has_unicode() -> bool:
    """Whether what is printed can hold more than ASCII."""
    return "utf" in encoding_of(sys.stdout).lower()


def width() -> int:
    """Columns of the terminal; in a pipe, COLUMNS or 80."""
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def painted(text: str, **style: Any) -> str:
    """Text in colour, where there is colour; the options are those of `click.style`."""
    return styled(text, **style) if has_colour() else text


def styled(text: str, **style: Any) -> str:
    """Text in colour, for an exit that lets our own colours through."""
    before, after = click.style("|", **style).split("|")
    return "".join(own(f"\x1b{part}") for part in before.split("\x1b")[1:]) + text + own(after)


def wrapped(text: str, indent: str = "") -> str:
    """A sentence in lines that fit a terminal, the second and later ones indented; in a pipe it stays one line."""
    text = one_line(text)
    if not is_terminal():
        return text
    import textwrap

    return textwrap.fill(text, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def say(text: str) -> None:
    """What is going on, beside the result: on stderr."""
    click.echo(text, err=True)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone. Without a terminal, only `--yes` agrees."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{question} There is no terminal to ask in: say --yes", Exit.USAGE)
    answer = _asked(f"{question} [y/N]")
    if answer.lower() not in ("y", "yes"):
        raise Failure("nothing was changed")


def confirm_by_name(kind: str, name: str, *, yes: bool, verb: str = "delete") -> None:
    """Ask for the name of what goes for good, so that no user answers by habit."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{verb.capitalize()} {kind} {name}? There is no terminal to ask in: say --yes", Exit.USAGE)
    answer = _asked(f"Type {name} to {verb} it:")
    if answer != name:
        raise Failure("that is not its name; nothing was changed")


def _asked(question: str) -> str:
    """What the user types; nothing when only Enter is pressed. The end of the input counts as Ctrl-C.

    Not with click's own prompt: readline, which it uses, can miss a Ctrl-C that comes while it starts.
    """
    # An event loop takes Ctrl-C for a wish to be cancelled, which it cannot look at while the user is asked.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        click.echo(f"{question} ", nl=False, err=True)
        line = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    if not line:
        raise KeyboardInterrupt
    return line.strip()
