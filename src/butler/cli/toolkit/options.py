"""The options that several commands share, each written once, with the names that kubectl gives them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from butler.cli.toolkit.output import FORMATS, TEMPLATES, Output
from butler.cli.toolkit.session import ClusterAccess

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

F = TypeVar("F", bound="Callable[..., Any]")
IN_HOME = "Namespace of pools, allocations and providers.  [default: butler-system]"
IN_PLACE = "Namespace of the cluster.  [default: the kubeconfig's]"


def access(namespace_help: str = IN_HOME, *, all_namespaces: bool = False) -> Callable[[F], F]:
    """`--kubeconfig`, `--context`, `-n`, `--as`: the command gets them as one argument `access`."""

    def decorate(command: F) -> F:
        @wraps(command)
        def with_access(
            *args: Any,
            kubeconfig: str | None,
            context: str | None,
            namespace: str | None,
            as_user: str | None,
            as_group: tuple[str, ...],
            everywhere: bool = False,
            **rest: Any,
        ) -> Any:
            if as_group and not as_user:
                raise click.UsageError("--as-group needs --as")
            found = ClusterAccess(kubeconfig, context, namespace, everywhere, as_user, as_group)
            return command(*args, access=found, **rest)

        wrapped: Any = with_access
        for option in reversed(_access_options(namespace_help, all_namespaces=all_namespaces)):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def _access_options(namespace_help: str, *, all_namespaces: bool) -> list[Callable[[Any], Any]]:
    found = [
        click.option("-n", "--namespace", metavar="NS", help=namespace_help),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Which API server.  [default: $KUBECONFIG, else ~/.kube/config]",
        ),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current one]"),
        click.option("--as", "as_user", metavar="USER", help="Act as this user, if you may."),
        click.option("--as-group", metavar="GROUP", multiple=True, help="With --as: in this group; may be repeated."),
    ]
    if all_namespaces:
        found.insert(1, click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Look everywhere."))
    return found


class OutputType(click.ParamType[Output]):
    """What `-o` takes."""

    name = "format"

    def __init__(self, formats: tuple[str, ...]) -> None:
        self._formats = formats

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        if isinstance(value, Output):
            return value
        kind, equals, template = str(value).partition("=")
        if kind in TEMPLATES and kind in self._formats:
            if not template:
                self.fail(f"{kind} needs a template, as in -o {kind}={_EXAMPLES[kind]}", param, ctx)
            self._try(kind, template, param, ctx)
            return Output(kind, template)
        if equals or kind not in self._formats:
            self.fail(f"{value!r} is not one of {', '.join(map(_spelled, self._formats))}", param, ctx)
        return Output(kind)

    def _try(self, kind: str, template: str, param: click.Parameter | None, ctx: click.Context | None) -> None:
        from butler.cli.toolkit.template import BadTemplate, custom_columns, jsonpath

        try:
            jsonpath(template) if kind == "jsonpath" else custom_columns(template)
        except BadTemplate as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(_spelled(format_)) for format_ in self._formats if format_.startswith(incomplete)]


_EXAMPLES = {"jsonpath": "'{.items[*].metadata.name}'", "custom-columns": "NAME:.metadata.name"}


def _spelled(format_: str) -> str:
    return f"{format_}=" if format_ in TEMPLATES else format_


def output(*formats: str, default: str = "table") -> Callable[[F], F]:
    """`-o` and `--no-headers`: the command gets an `Output` as argument `output`."""
    taken = formats or (*FORMATS, *TEMPLATES)

    def decorate(command: F) -> F:
        @wraps(command)
        def with_output(*args: Any, output: Output, no_headers: bool = False, **rest: Any) -> Any:
            shown = Output(output.format, output.template, headers=not no_headers)
            return command(*args, output=shown, **rest)

        wrapped: Any = click.option(
            "-o",
            "--output",
            type=OutputType(taken),
            default=default,
            metavar="FORMAT",
            help=f"{', '.join(map(_spelled, taken))}  [default: {default}]",
        )(with_output)
        if "csv" in taken or "custom-columns" in taken:
            wrapped = click.option("--no-headers", is_flag=True, help="Leave out the line with the titles.")(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def watch(command: F) -> F:
    """`-w`."""
    return click.option("-w", "--watch", is_flag=True, help="Show changes as they happen, until Ctrl-C.")(command)


def selector(command: F) -> F:
    """`-l`."""
    return click.option("-l", "--selector", metavar="LABELS", help="Only those with these labels, as in team=web.")(
        command
    )


def wait(seconds: float = 60.0) -> Callable[[F], F]:
    """`--wait/--no-wait` and `--timeout`."""

    def decorate(command: F) -> F:
        timed = click.option(
            "--timeout",
            type=click.FloatRange(0, min_open=True),
            default=seconds,
            metavar="S",
            show_default=True,
            help="With --wait: how many seconds.",
        )(command)
        return click.option("--wait", is_flag=True, help="Return when it is done, and show how far it is.")(timed)

    return decorate


def dry_run(command: F) -> F:
    """`--dry-run=client|server`; the argument is "none" without it."""
    return click.option(
        "--dry-run",
        type=click.Choice(["none", "client", "server"]),
        default="none",
        help="client: only show what would be sent. server: let the server judge it, and change nothing.",
    )(command)


def yes(command: F) -> F:
    """`-y`."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(command)
