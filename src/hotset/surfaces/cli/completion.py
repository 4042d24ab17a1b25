"""`hotset completion`: what makes a shell complete hotset's commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_HOTSET_COMPLETE"


@click.command(
    epilog="\b\nExamples:\n"
    "  echo 'eval \"$(hotset completion bash)\"' >> ~/.bashrc\n"
    "  echo 'eval \"$(hotset completion zsh)\"' >> ~/.zshrc\n"
    "  hotset completion fish > ~/.config/fish/completions/hotset.fish"
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands and options.

    The shell asks hotset itself for what fits; commands are named without loading them.
    """
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.find_root().command, {}, "hotset", _VARIABLE).source())
