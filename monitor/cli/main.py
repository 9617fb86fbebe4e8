"""The `gpumon` command. A command is one module here with `HELP`, `configure(parser)` and `run(args)`.

Modules are imported only when their command is asked for: importing Textual alone costs more than
`gpumon status` may take.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from monitor import __version__
from monitor.errors import EXIT_INTERRUPTED, UserError

COMMANDS = {
    "run": "run a training script under gpumon, no code change: gpumon run -- python train.py",
    "tui": "the screen beside the training",
    "status": "what the GPUs and runs do now",
    "daemon": "sample, diagnose and serve metrics",
    "runs": "list training runs, live and past",
    "show": "everything about one run, with its findings",
    "compare": "two runs side by side: is it faster, and as much as predicted?",
    "analyze": "time N iterations of a script in detail and name the bottleneck",
    "train": "run one of the five optimized trainers",
    "demo": "a naive run, its diagnosis, the remedy, and what it gained",
    "doctor": "check this machine: driver, permissions, directories, ports",
    "version": "versions of gpumon and what it stands on",
}


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of `command` only: the other modules stay unimported."""
    parser = argparse.ArgumentParser(
        prog="gpumon",
        description="Why is the GPU not busy, what to change, what it will gain, and whether it did.",
        epilog="exit codes: 0 fine, 1 the answer is no, 2 bad input, 3 no daemon answers, "
        "4 another daemon is in the way, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"gpumon {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        sub = subparsers.add_parser(name, help=text, description=text)
        if name == command:
            module = importlib.import_module(f"monitor.cli.{name}")
            module.configure(sub)
            sub.set_defaults(entry=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    chosen = arguments[0] if arguments and arguments[0] in COMMANDS else None
    try:
        args = build_parser(chosen).parse_args(arguments)
        return int(args.entry(args) or 0)
    except UserError as error:
        print(f"gpumon: {error.sentence}", file=sys.stderr)
        if error.hint:
            print(f"\nhint: {error.hint}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing more to say, and no traceback at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
