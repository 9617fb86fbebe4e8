"""`gpumon try -- COMMAND…`: experiments with the settings of an unchanged script, and what each brought.

Every trial is a process of its own, bounded in steps, whose writing is kept apart. Progress goes to stderr,
the answer to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from monitor.cli.launch import command_words, launch_environment
from monitor.experiments.recipes import recipe_of, write_config
from monitor.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, UserError
from monitor.model.units import duration
from monitor.terminal import Terminal, wrapped

if TYPE_CHECKING:
    from monitor.experiments.experiment import Progress
    from monitor.experiments.study import Answer, Options

WIDTH = 20


def configure(parser: argparse.ArgumentParser) -> None:
    from monitor.experiments.isolation import MODES

    parser.usage = "gpumon try [options] -- COMMAND …"
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", dest="settings",
        help="try this (again for the next; several with spaces are set together); "
        "default: what a first look suggests",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, metavar="N", help="steps of a trial, its first ten are warm-up")
    parser.add_argument(
        "--seconds", type=float, default=5.0, metavar="S", help="length of a trial (default: 5)"
    )
    parser.add_argument("--blocks", type=int, default=3, metavar="N", help="most repetitions (default: 3)")
    parser.add_argument(
        "--most", type=int, metavar="N", help="most remedies tried (default: 4; every option of a trainer)"
    )
    parser.add_argument("--allow-numerics", action="store_true", help="also what changes the training")
    parser.add_argument(
        "--ceilings",
        action="store_true",
        help="also how fast it would be if data, passes, evaluation, checkpoints or logging were free",
    )
    parser.add_argument("--save", metavar="FILE", help="of a trainer: write the best options to FILE")
    parser.add_argument("--isolate", choices=MODES, default="auto", help="where trials may write")
    parser.add_argument("--knobs", action="store_true", help="list the knobs and end")
    parser.add_argument("--json", action="store_true", help="the answer as JSON on stdout")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def run(args: argparse.Namespace) -> int:
    if args.knobs:
        from monitor.cli.try_text import knob_lines

        print("\n".join(knob_lines()))
        return EXIT_OK
    options, words = _options(args), command_words(args.words, "try")
    _check_save(args.save, words)
    answer = _study(args, words, options)
    if args.json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(answer), indent=2))
    else:
        from monitor.cli.try_text import answer_lines

        print("\n".join(answer_lines(answer, Terminal(sys.stdout).width)))
    if args.save and answer.best is not None:
        write_config(args.save, answer.best.arm.options)
    if answer.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_OK if answer.best is not None else EXIT_FAILED


def _check_save(path: str | None, words: list[str]) -> None:
    """Before anything is tried."""
    if path is not None and recipe_of(words) is None:
        raise UserError("--save is for the trainers, whose options a file can hold", hint="gpumon try -- …")
    if path is not None and not os.access(os.path.dirname(path) or ".", os.W_OK):
        raise UserError(f"{path} cannot be written")


def _options(args: argparse.Namespace) -> Options:
    from monitor.experiments.arm import FREE, read_arm
    from monitor.experiments.study import Options

    for name, least in (("steps", 20), ("seconds", 0.5), ("blocks", 1), ("most", 1)):
        value = getattr(args, name)
        if value is not None and not value >= least:
            raise UserError(f"--{name} must be at least {least}, not {value}")
    arms = tuple(read_arm(text) for text in args.settings)
    for arm in arms:
        if arm.effect not in FREE and not args.allow_numerics:
            raise UserError(
                f"{arm.label} may change what is learnt", hint="--allow-numerics tries it all the same"
            )
    return Options(arms, args.steps, args.seconds, args.blocks, args.most, args.allow_numerics, args.ceilings)


def _study(args: argparse.Namespace, words: list[str], options: Options) -> Answer:
    from monitor.experiments.runner import Runner
    from monitor.experiments.study import NAME, Study

    environment = launch_environment(NAME)
    environment.pop("GPUMON_RUN_NAME")
    _stop_tidily()
    runner = Runner(words, environment, args.isolate)
    try:
        _say(f"gpumon try: {runner.isolation.sentence}")
        return Study(runner, options, _tell).run(environment["GPUMON_RUN_ID"], len(os.sched_getaffinity(0)))
    except KeyboardInterrupt:
        _clear_line()
        _say("gpumon try: interrupted during the first look, nothing has been tried yet")
        raise
    finally:
        runner.close()
        _clear_line()


def _stop_tidily() -> None:
    """Being asked to end, or losing the terminal, is no reason to leave a trial or its files behind."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)


def _clear_line() -> None:
    """The progress bar's."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)


def _say(sentence: str) -> None:
    print("\n".join(wrapped(sentence, Terminal(sys.stderr).width)), file=sys.stderr)


def _tell(progress: Progress) -> None:
    """A bar on a terminal, else a line for each trial."""
    whole = progress.done + progress.left
    left = f", about {duration(progress.seconds_left)} left at most" if progress.seconds_left else ""
    count = f"{progress.done + 1}/{whole}"
    terminal = Terminal(sys.stderr)
    if terminal.width is None:
        print(f"{count} {progress.label}{left}", file=sys.stderr, flush=True)
        return
    filled = WIDTH * progress.done // max(1, whole)
    bar = terminal.block * filled + terminal.blank * (WIDTH - filled)
    line, most = f"{bar} {count}{left}  {progress.label}", terminal.width - 1
    line = line if len(line) <= most else f"{line[: most - 1]}…"  # one that breaks cannot be redrawn
    print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
