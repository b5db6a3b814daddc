"""``globece completion``: what a shell reads to complete commands, options, kinds of model and columns."""

from __future__ import annotations

import click

from globece.cli import completing

HELP = """Print what SHELL must read to complete globece's commands, options, and columns of a CSV file.

\b
Put it where the shell reads it:
  bash:  globece completion bash > ~/.local/share/bash-completion/completions/globece
  zsh:   globece completion zsh > ~/.zfunc/_globece      # a folder of $fpath
  fish:  globece completion fish > ~/.config/fish/completions/globece.fish
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("shell", type=click.Choice(completing.SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """``globece completion``."""
    click.echo(completing.script(ctx.find_root().command, shell))
