"""`gpumon run -- COMMAND…`: run a training script under gpumon, without code changes.

The command gets our environment and nothing else changes for it: same terminal, stdin, process group and
signals, and its exit code is ours. Our own output comes afterwards, on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from monitor.cli import probe
from monitor.cli.launch import command_words, launch_environment, run_child
from monitor.model.errors import UserError
from monitor.terminal import is_attended

if TYPE_CHECKING:
    from monitor.report.report import Report


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "gpumon run [options] -- COMMAND …"
    parser.add_argument("--name", help="name of the run (default: the script's name)")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON to FILE (- is stdout)")
    parser.add_argument("--connect", metavar="URL", help="ask this daemon instead of looking for one")
    probe.configure(parser)
    parser.add_argument(
        "--track",
        action="store_true",
        help="afterwards, the findings into the script's own tracker, as gpumon track",
    )
    parser.add_argument("--no-live", action="store_true", help="no status line at the bottom of the terminal")
    parser.add_argument("--no-summary", action="store_true", help="print no report afterwards")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def run(args: argparse.Namespace) -> int:
    words = command_words(args.words, "run")
    environment = launch_environment(args.name) | probe.environment(args)
    if args.no_summary and not args.json and not args.probe and not args.track:
        _become(words, environment)
    return _watched(words, environment, args)


def _become(words: list[str], environment: dict[str, str]) -> None:
    """There is nothing to say afterwards, so one process is enough."""
    sys.stdout.flush()
    os.execvpe(words[0], words, environment)


def _watched(words: list[str], environment: dict[str, str], args: argparse.Namespace) -> int:
    """The report goes to stderr: stdout belongs to the command."""
    from monitor.report.watch import RunWatcher, terminal_line

    line = terminal_line if not args.no_live and is_attended(sys.stderr) else None
    watcher = RunWatcher(environment["GPUMON_RUN_ID"], connect=args.connect, line=line)
    watcher.start()
    code = run_child(words, environment | watcher.environment())
    try:
        report = watcher.finish(code)
        _tell(report, args)
        if probe.is_missing(args, report):
            _say(f"\n{probe.TOO_SHORT}")
        if args.track:
            _track(report, words[0])
    except UserError as error:
        _say(f"gpumon: {error.sentence}")
    except Exception as error:  # noqa: BLE001 — the command has run, and its exit code is ours whatever fails here
        _say(f"gpumon: no report: {type(error).__name__}: {error}")
    return code


def _say(text: str) -> None:
    """If stderr cannot be written, nobody reads it."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr)


def _track(report: Report, program: str) -> None:
    """Uses the Python that trained, if the command names it; never changes the command's exit code."""
    from monitor.cli.track import track
    from monitor.model import settings

    is_python = os.path.basename(program).startswith("python")
    for one in (report, *report.others):
        if one.run is not None and one.run.steps:
            track(one.run.id, program if is_python else sys.executable, settings.load())


def _tell(report: Report, args: argparse.Namespace) -> None:
    from monitor.report.text import show, write_json

    if args.json:
        write_json(report, args.json)
    if not args.no_summary:
        show(report, sys.stderr)
