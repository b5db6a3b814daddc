"""The command line: one module per subcommand; they share ``options``, ``config``, ``task`` and ``delivery``."""

from globece.cli.program import main

__all__ = ["main"]
