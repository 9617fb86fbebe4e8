"""The `gpumon` command. Each command is one module here with `configure(parser)` and `run(args)`, and a line
in `COMMANDS` below.

Modules are imported only for their own command: importing Textual alone takes longer than `gpumon status`
may.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import keyword
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import NoReturn

from monitor import __version__, language
from monitor.cli import plain_characters, standard_streams
from monitor.language import cells
from monitor.model.errors import EXIT_INTERRUPTED, UserError

COMMANDS = {
    "run": "run a training script under gpumon, no code change: gpumon run -- python train.py",
    "tui": "a live screen for the terminal",
    "status": "what GPUs and runs are doing now",
    "daemon": "sample, diagnose and serve metrics",
    "runs": "list training runs, live and past",
    "show": "everything about one run, with its findings",
    "report": "a run as one HTML file to keep and to send (or Markdown, JSON)",
    "export": "per-step records of a run as CSV, JSON Lines, Parquet, or a trace for Perfetto",
    "track": "write a run's figures and findings into its script's W&B, MLflow or TensorBoard run",
    "compare": "two runs side by side: is it faster, and as much as predicted?",
    "try": "experiment with settings of an unchanged script: what does each gain?",
    "boost": "run a script with the best settings `gpumon try` has verified for it",
    "analyze": "time N iterations of a script in detail and name the bottleneck",
    "trace": "what a torch.profiler trace says: idle time by cause, and what to change",
    "profile": "record a torch.profiler window in a running job and diagnose it",
    "train": "run one of the five optimized trainers",
    "demo": "a naive run, its diagnosis, the remedy, and what it gained",
    "doctor": "check this machine: driver, permissions, directories, ports",
    "version": "versions of gpumon and its dependencies",
    "help": "more about a command, a rule or a topic: gpumon help input.no_workers",
    "completion": "completion for a shell: gpumon completion bash",
}
HOME = "home"
"""What `gpumon` alone does: a command without a name."""


SILENT = ("daemon", "completion", "train", "version")
"""Commands whose output is for programs, logs or a trainer's own: it is the same in every language."""


class Formatter(argparse.HelpFormatter):
    """Help in the reader's language, with every command's text beside its name."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = self._current_indent + max(map(len, COMMANDS)) + 6

    def _split_lines(self, text: str, width: int) -> list[str]:
        return cells.wrap(language.word(text), width, "", "")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(cells.wrap(language.said(text), width, indent, indent))

    def start_section(self, heading: str | None) -> None:
        super().start_section(language.word(heading) if heading else heading)

    def add_usage(self, usage, actions, groups, prefix=None):  # type: ignore[no-untyped-def]
        named = language.word("usage: ") if prefix is None else prefix
        super().add_usage(usage and language.said(usage), actions, groups, named)


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong, and what may have been meant."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        return Formatter(prog=self.prog)

    def error(self, message: str) -> NoReturn:
        raise UserError(message, hint=self._meant(message) or f"{self.prog} --help")

    def _meant(self, message: str) -> str:
        """The closest match to an option that does not exist; the dashes are no likeness."""
        if "unrecognized" not in message:
            return ""
        unknown = [word.partition("=")[0][2:] for word in message.split() if word.startswith("--")]
        known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        near = [f"--{one}" for word in unknown for one in _alike(word, known)]
        return f"did you mean {', '.join(near)}?" if near else ""


def _alike(word: str, known: Iterable[str]) -> list[str]:
    """The one that was probably meant, if any."""
    from difflib import get_close_matches  # only after a mistake

    return get_close_matches(word, list(known), 1)


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser: with `command` and its options only, so that the other modules stay unimported; with all
    commands, but without their options, if there is no such command."""
    parser = Parser(
        prog="gpumon",
        formatter_class=Formatter,
        description="Why is the GPU not busy, what to change, what it will gain, and whether it did.",
        epilog="exit codes: 0 fine, 1 the answer is no, 2 bad input, 3 no daemon or Prometheus answers, "
        "4 another daemon is already running, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"gpumon {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    if command in COMMANDS:
        text = COMMANDS[command]
        sub = subparsers.add_parser(command, help=text, description=text)
        module = _module(command)
        module.configure(sub)
        sub.set_defaults(entry=module.run)
        return parser
    for name, text in COMMANDS.items():
        subparsers.add_parser(name, help=text, description=text)
    return parser


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """The command's own parser checks the options, so that it can suggest what was meant."""
    chosen = arguments[0]
    if chosen.startswith("-") and chosen not in ("-h", "--help", "--version"):
        raise UserError(
            f"there is no option {chosen!r}", hint="the command comes first: gpumon COMMAND --help"
        )
    if not chosen.startswith("-") and chosen not in COMMANDS:
        near = _alike(chosen, COMMANDS)
        hint = f"did you mean gpumon {near[0]}?" if near else "gpumon --help lists the commands"
        raise UserError(f"there is no command {chosen!r}", hint=hint)
    args, unknown = build_parser(chosen).parse_known_args(arguments)
    if unknown:
        command_parser(chosen).error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def command_parser(name: str) -> argparse.ArgumentParser:
    """The parser of one command alone."""
    parser = Parser(prog=f"gpumon {name}", description=COMMANDS[name])
    _module(name).configure(parser)
    return parser


def _module(name: str) -> ModuleType:
    """If the command is a Python keyword, its module's name ends in an underscore."""
    return importlib.import_module(
        f"monitor.cli.{name}_" if keyword.iskeyword(name) else f"monitor.cli.{name}"
    )


def _choose_language(arguments: Sequence[str]) -> None:
    """Of what people read; `--json` is read by programs."""
    if language.chosen() == "en" or "".join(arguments[:1]) in SILENT:
        return
    from monitor.language import stream

    if all(stream.can_show(one) for one in (sys.stdout, sys.stderr)):
        language.use(language.chosen())
        if arguments[:1] != ["tui"]:  # the screen is said where it is laid out
            stream.use()


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    standard_streams.use()
    plain_characters.use()
    _choose_language(arguments)
    try:
        code = int(_module(HOME).run() if not arguments else _entered(arguments))
        sys.stdout.flush()
        return code
    except UserError as error:
        return _told(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        standard_streams.discard()  # the reader (head, less) has gone: there is nothing more to say
        return 0
    except OSError as error:
        unwritten = standard_streams.cannot_write(error)
        if unwritten is not None:
            standard_streams.discard()
            return _told(unwritten)
        if _is_nowhere():
            return _told(UserError("the current folder no longer exists", hint="cd to another one"))
        raise


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _entered(arguments: list[str]) -> int:
    args = _parsed(arguments)
    return int(args.entry(args) or 0)


def _told(error: UserError) -> int:
    """Say what is wrong, if anybody can be told; returns the exit code."""
    with contextlib.suppress(OSError):
        print(language.said(f"gpumon: {error.sentence}"), file=sys.stderr)
        if error.hint:
            print("\n" + language.said(f"hint: {error.hint}"), file=sys.stderr)
    return error.code


if __name__ == "__main__":
    sys.exit(main())
