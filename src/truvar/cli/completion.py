"""`truvar completion`: a script that lets a shell complete commands, options and file names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from truvar.cli._common import Command
from truvar.cli._parser import build_parser

# The shells that shtab supports, with the line that installs the completion.
SHELLS = {
    "bash": 'eval "$(truvar completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(truvar completion zsh)"    # in ~/.zshrc, after compinit',
    "fish": "truvar completion fish | source   # in ~/.config/fish/config.fish",
    "tcsh": "truvar completion tcsh | source /dev/stdin   # in ~/.cshrc",
    "powershell": "truvar completion powershell | Out-String | Invoke-Expression   # in $PROFILE",
}


def completion_script(shell: str, commands: Sequence[Command]) -> str:
    """Return the completion script of some commands for one of `SHELLS`."""
    import shtab  # before the parser is built: `add_path` marks the arguments that are files

    return str(shtab.complete(build_parser(commands), shell))


def _completion_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("shell", choices=list(SHELLS), help="the shell")


def _completion(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print(completion_script(arguments.shell, arguments.commands))
    return 0


COMPLETION = Command(
    "completion",
    "print a script that lets a shell complete commands and options",
    "\n".join(SHELLS.values()),
    _completion_arguments,
    _completion,
)
