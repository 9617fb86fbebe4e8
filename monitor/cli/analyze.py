"""`gpumon analyze -- COMMAND…`: time N iterations of any training script in detail, name the bottleneck.

The script runs unchanged and is ended cleanly after the iterations, as `sys.exit()` would at a step
boundary; what it had open is closed by its own `finally` and `atexit`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator

from monitor.advice.finding import percent, seconds
from monitor.cli.run import _words as command_words
from monitor.cli.run import launch_environment, run_child
from monitor.errors import UserError
from monitor.snapshot import Phase, Run
from monitor.summary import Report, RunWatcher
from monitor.summary_text import findings_lines

HELP = "time N iterations of a script in detail and name the bottleneck"
WARMUP = 12
"""Iterations on top of those asked for: the first ones are not steady, a few are looked at closely."""
STAGES = {
    "data": "data loading",
    "transfer": "copy to the device",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "between": "between the steps",
    "zero_grad": "zero_grad",
    "validate": "validation",
    "checkpoint": "checkpoint",
    "grad_norm": "gradient norms",
    "sync": "reading values",
    "log": "logging",
    "other": "other code in the step",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "gpumon analyze [options] -- COMMAND …"
    parser.add_argument(
        "--iterations", type=int, default=100, metavar="N", help="steps to time (default: 100)"
    )
    parser.add_argument("--json", action="store_true", help="the analysis as JSON on stdout")
    parser.add_argument("--connect", metavar="URL", help="ask this daemon instead of looking for one")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def run(args: argparse.Namespace) -> int:
    if args.iterations < 1:
        raise UserError(f"--iterations must be at least 1, not {args.iterations}")
    report, code = analyze(command_words(args.words), args.iterations, args.connect)
    if args.json:
        print(json.dumps(report.as_json() | {"iterations": args.iterations}, indent=2))
    else:
        width = max(50, min(100, shutil.get_terminal_size((100, 24)).columns))
        print("\n".join(lines(report, width)))
    return code


def analyze(words: list[str], iterations: int, connect: str | None = None) -> tuple[Report, int]:
    """Run the command for so many iterations; its own output goes to stderr."""
    environment = launch_environment(None)
    environment["GPUMON_MAX_STEPS"] = str(iterations + WARMUP)
    watcher = RunWatcher(environment["GPUMON_RUN_ID"], connect=connect)
    watcher.start()
    code = run_child(words, environment, stdout=sys.stderr.fileno())
    return watcher.finish(code), code


def lines(report: Report, width: int) -> Iterator[str]:
    """Stage times, throughput, bottleneck, advice."""
    run = report.run
    if run is None or not run.steps:
        yield report.verdict
        return
    yield f"{run.name}: {run.steps} iterations" + (f", batch {run.batch_size}" if run.batch_size else "")
    yield ""
    yield from _stages(run)
    yield ""
    yield from _throughput(run)
    yield f"bottleneck   {_bottleneck(run)}"
    yield ""
    yield f"verdict      {report.verdict}"
    yield from findings_lines(report, width)


def _stages(run: Run) -> Iterator[str]:
    yield f"{'stage':<24}{'mean':>10}{'p50':>10}{'p95':>10}{'share':>8}"
    for phase in sorted(run.phases, key=lambda one: -one.share):
        if phase.share >= 0.002:
            yield _stage(phase)
    whole = sum(phase.mean_seconds for phase in run.phases)
    yield f"{'whole step':<24}{seconds(whole):>10}{seconds(run.step.p50):>10}{seconds(run.step.p95):>10}"


def _stage(phase: Phase) -> str:
    name = STAGES.get(phase.name, phase.name)
    p50 = seconds(phase.p50_seconds) if phase.p50_seconds is not None else "—"
    p95 = seconds(phase.p95_seconds) if phase.p95_seconds is not None else "—"
    return f"{name:<24}{seconds(phase.mean_seconds):>10}{p50:>10}{p95:>10}{percent(phase.share):>8}"


def _throughput(run: Run) -> Iterator[str]:
    parts = [f"{run.iterations_per_second:,.1f} iterations/s"] if run.iterations_per_second else []
    parts += [f"{run.samples_per_second:,.0f} samples/s"] if run.samples_per_second else []
    parts += [f"{run.tokens_per_second:,.0f} tokens/s"] if run.tokens_per_second else []
    yield "throughput   " + (", ".join(parts) or "not known")


def _bottleneck(run: Run) -> str:
    longest = max(run.phases, key=lambda phase: phase.share)
    return f"{STAGES.get(longest.name, longest.name)} ({percent(longest.share)} of the step)"
