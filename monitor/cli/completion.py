"""`gpumon completion SHELL`: a script that completes commands and their options, generated from the commands.

bash: ``eval "$(gpumon completion bash)"`` in ~/.bashrc; zsh likewise in ~/.zshrc; fish: ``gpumon completion
fish | source`` in config.fish. The script is static: completing a word starts no Python.
"""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")
RUNS = ("show", "report", "compare", "export")
"""Commands that take runs as arguments."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")


def run(args: argparse.Namespace) -> int:
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell]())
    return 0


def words() -> dict[str, list[str]]:
    """Command → what may follow it: its options and fixed words."""
    from monitor.cli.help import TOPICS
    from monitor.cli.main import COMMANDS, command_parser

    found: dict[str, list[str]] = {}
    for name in COMMANDS:
        actions = command_parser(name)._actions
        options = [
            option for action in actions for option in action.option_strings if option.startswith("--")
        ]
        fixed = [str(one) for action in actions if not action.option_strings for one in action.choices or ()]
        found[name] = [*options, *fixed, *(("last", "last~1") if name in RUNS else ())]
    found["help"] += [*TOPICS, *COMMANDS]
    return found


def bash() -> str:
    known = words()
    cases = "\n".join(f'    {name}) words="{" ".join(more)}" ;;' for name, more in known.items())
    return f"""_gpumon() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{" ".join(known)} --help --version"
  else
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=( $(compgen -W "$words" -- "$word") )
}}
complete -o default -F _gpumon gpumon"""


def zsh() -> str:
    """Through bash's completion, which zsh supports."""
    return f"autoload -Uz compinit bashcompinit && compinit -u && bashcompinit\n{bash()}"


def fish() -> str:
    from monitor.cli.main import COMMANDS

    first = "complete -c gpumon -n __fish_use_subcommand -f"
    lines = [f"{first} -a {name} -d {_quoted(text)}" for name, text in COMMANDS.items()]
    for name, more in words().items():
        given = f"complete -c gpumon -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{given} -l {one[2:]}" if one.startswith("--") else f"{given} -a {one}" for one in more]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
