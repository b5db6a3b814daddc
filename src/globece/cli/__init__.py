"""The command line: ``globece demo``, ``globece explain``, ``globece audit``; one module per subcommand."""

from globece.cli.program import main

__all__ = ["main"]
