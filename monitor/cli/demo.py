"""`gpumon demo`: a slow training run, why it is slow, the remedy, and what it gained; `--scenario` shows one
trouble of another kind.

Everything runs in a temporary folder with a daemon of its own; only the reports that are named stay behind.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
from pathlib import Path

from monitor.cli.train import trainers_command
from monitor.client import Client
from monitor.demo.page import Page
from monitor.demo.scenarios import SCENARIOS, Trouble
from monitor.demo.stage import Props, Stage
from monitor.demo.story import Story
from monitor.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, UserError
from monitor.terminal import is_attended


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", choices=tuple(SCENARIOS), help="one trouble instead of the usual story")
    parser.add_argument("--quick", action="store_true", help="a third of the steps, for a slow machine")
    parser.add_argument("--tui", action="store_true", help="show the screen meanwhile, the story afterwards")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="gpumon-demo.html", help="the report (default: %(default)s)"
    )
    parser.add_argument(
        "--source", choices=("auto", "nvml", "simulated"), default="auto", help="GPU readings"
    )


def run(args: argparse.Namespace) -> int:
    trainers_command("tcn")  # torch missing? say so before anything is started
    output = _checked(Path(args.output).absolute())
    if args.tui and not is_attended(sys.stdout):
        raise UserError("--tui needs a terminal", hint="leave it out to have the story printed")
    before = signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        return _play(args, output)
    except KeyboardInterrupt:
        print("\ngpumon: stopped; every process of the demo was ended", file=sys.stderr)
        return EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _checked(output: Path) -> Path:
    if not output.parent.is_dir():
        raise UserError(f"there is no folder {output.parent} for the report", hint="--output FILE")
    return output


def _raise_interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _play(args: argparse.Namespace, output: Path) -> int:
    scenario = SCENARIOS[args.scenario] if args.scenario else None
    props = scenario.props if scenario else Props(args.source)
    page = Page(sys.stdout, held=args.tui)
    page.draw(["starting …"])
    with (
        tempfile.TemporaryDirectory(prefix="gpumon-demo-") as folder,
        Stage(Path(folder), props) as stage,
        Client(stage.url) as client,
        stage.screen() if args.tui else contextlib.nullcontext(),
    ):
        if scenario is not None:
            done = Trouble(scenario, stage, client, page).tell(sys.executable)
        else:
            trainer = trainers_command("tcn")
            done = Story(stage, client, page, trainer, quick=args.quick, output=output).tell()
    page.release()
    return 0 if done else EXIT_FAILED
