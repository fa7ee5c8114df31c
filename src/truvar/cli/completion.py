"""`truvar completion`: what a shell needs to complete commands and options, read off the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from truvar.cli._common import Command

HOW = {
    "bash": 'eval "$(truvar completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(truvar completion zsh)"    # in ~/.zshrc, after compinit',
    "fish": "truvar completion fish | source   # in ~/.config/fish/config.fish",
}


@dataclass(frozen=True)
class _Option:
    flags: tuple[str, ...]
    help: str
    takes_value: bool


@dataclass(frozen=True)
class _Sub:
    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]  # what may stand there besides files


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of the shells."""
    write: dict[str, Callable[[list[_Sub]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return f"# {HOW[shell]}\n{write[shell](_subs(parser))}\n"


def _subs(parser: argparse.ArgumentParser) -> list[_Sub]:
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    return [_sub(name, helps[name], sub) for name, sub in commands.choices.items()]


def _sub(name: str, help: str, parser: argparse.ArgumentParser) -> _Sub:
    options, words = [], []
    for action in parser._actions:
        if action.option_strings:
            options.append(_Option(tuple(action.option_strings), action.help or "", action.nargs != 0))
        elif action.choices:
            words += list(action.choices)
    return _Sub(name, help, tuple(options), tuple(words))


def _bash(subs: list[_Sub]) -> str:
    cases = "\n".join(
        f"    {sub.name}) options='{' '.join(flag for option in sub.options for flag in option.flags)}' "
        f"words='{' '.join(sub.words)}' ;;"
        for sub in subs
    )
    return f"""_truvar() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} options words
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(sub.name for sub in subs)} --help --version' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _truvar truvar"""


def _zsh(subs: list[_Sub]) -> str:
    commands = " ".join(_quoted(f"{sub.name}:{sub.help}") for sub in subs)
    cases = "\n".join(
        f"    {sub.name}) _arguments {' '.join(_zsh_option(option) for option in sub.options)} "
        f"{_quoted('*::file:' + ('(' + ' '.join(sub.words) + ')' if sub.words else '_files'))} ;;"
        for sub in subs
    )
    return f"""#compdef truvar
_truvar() {{
  local -a commands=({commands})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{cases}
  esac
}}
compdef _truvar truvar"""


def _zsh_option(option: _Option) -> str:
    said = option.help.replace("[", "(").replace("]", ")").replace(":", r"\:")
    value = ":value:_files" if option.takes_value else ""
    return " ".join(_quoted(f"{flag}[{said}]{value}") for flag in option.flags)


def _fish(subs: list[_Sub]) -> str:
    lines = [f"complete -c truvar -n __fish_use_subcommand -f -a {sub.name} -d {_quoted(sub.help)}" for sub in subs]
    for sub in subs:
        here = f"complete -c truvar -n '__fish_seen_subcommand_from {sub.name}'"
        for option in sub.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            lines.append(f"{here} {flags}{' -r' * option.takes_value} -d {_quoted(option.help)}")
        if sub.words:
            lines.append(f"{here} -f -a {_quoted(' '.join(sub.words))}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """In single quotes, which mean the same in all of them if there is none inside."""
    return "'" + text.replace("'", "’") + "'"


def _completion_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("shell", choices=list(HOW), help="the shell that is to complete")


def _completion(arguments: argparse.Namespace) -> int:
    from truvar.cli import parser

    print(script(parser(), arguments.shell), end="")
    return 0


COMPLETION = Command(
    "completion",
    "print what makes a shell complete commands and options",
    "\n".join(HOW.values()),
    _completion_arguments,
    _completion,
)
