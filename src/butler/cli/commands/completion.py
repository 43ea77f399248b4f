"""`completion`: what makes a shell complete commands, options and names from the cluster. Shared by both programs."""

from __future__ import annotations

import click

from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print what makes a shell complete commands and names.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes bash (4.4 or newer), zsh or fish complete commands, options and names.

    Names of pools, allocations, providers and clusters come from the API server, within two seconds or not at all.
    For a shell that is open, source what is printed; for every new one, write that into its start-up file. In zsh,
    compinit has to be called before. kubectl completes `kubectl butler` by its own completion (`kubectl completion
    --help`), which asks the executable kubectl_complete-butler, installed beside it.

    \b
    Examples:
      source <(butleradm completion bash)
      echo 'source <(butleradm completion bash)' >> ~/.bashrc
      echo 'source <(butlerctl completion zsh)' >> ~/.zshrc
      butlerctl completion fish > ~/.config/fish/completions/butlerctl.fish
    """
    from click.shell_completion import get_completion_class

    root = ctx.find_root()
    program = root.info_name or ""
    if program.startswith("kubectl"):
        raise Failure(
            f"kubectl completes `kubectl butler` by its own completion: source <(kubectl completion {shell})",
            Exit.USAGE,
        )
    scripts = get_completion_class(shell)
    assert scripts is not None
    # The name by which click's own programs ask for completions, see click.Command.main.
    variable = f"_{program}_COMPLETE".replace("-", "_").upper()
    click.echo(scripts(root.command, {}, program, variable).source())
