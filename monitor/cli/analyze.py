"""`gpumon analyze -- COMMAND…`: time N iterations of any training script in detail, name the bottleneck.

The script runs unchanged and is ended cleanly after the iterations, as `sys.exit()` would at a step
boundary; what it had open is closed by its own `finally` and `atexit`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping

from monitor.cli import probe
from monitor.cli.launch import command_words, launch_environment, run_child
from monitor.model import phase_names
from monitor.model.errors import UserError
from monitor.model.run import Phase, Run
from monitor.model.units import number, percent, seconds, visible, whole
from monitor.report.report import Report
from monitor.report.text import WIDEST, criticality_lines, findings_lines
from monitor.report.watch import RunWatcher
from monitor.terminal import Terminal, wrapped

ITERATIONS, PROBED_ITERATIONS = 100, 2000
"""A hundred steps tell where the time goes; what is critical takes more."""
PROBE_BUDGET = 0.1
"""More than a real run is asked for: this one is made to find out and thrown away."""
WARMUP = 12
"""Iterations on top of those asked for: the first ones are not steady, a few are looked at closely."""
NOTHING: Mapping[str, str] = {}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "gpumon analyze [options] -- COMMAND …"
    parser.add_argument(
        "--iterations", type=int, metavar="N",
        help=f"steps to time (default: {ITERATIONS}, with --probe {PROBED_ITERATIONS})",
    )  # fmt: skip
    probe.configure(parser, PROBE_BUDGET)
    parser.add_argument("--json", action="store_true", help="the analysis as JSON on stdout")
    parser.add_argument("--connect", metavar="URL", help="ask this daemon instead of looking for one")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def run(args: argparse.Namespace) -> int:
    iterations = args.iterations
    if iterations is None:
        iterations = PROBED_ITERATIONS if args.probe else ITERATIONS
    if iterations < 1:
        raise UserError(f"--iterations must be at least 1, not {iterations}")
    words = command_words(args.words, "analyze")
    report, code = analyze(words, iterations, args.connect, probe.environment(args))
    if args.json:
        print(json.dumps(report.as_json() | {"iterations": iterations}, indent=2))
    else:
        print("\n".join(lines(report, min(WIDEST, Terminal(sys.stdout).width or WIDEST))))
        if probe.is_missing(args, report):
            print(f"\n{probe.TOO_SHORT}")
    return code


def analyze(
    words: list[str], iterations: int, connect: str | None = None, more: Mapping[str, str] = NOTHING
) -> tuple[Report, int]:
    """Run the command for this many iterations; its own output goes to stderr."""
    environment = {**launch_environment(None), **more}
    environment["GPUMON_MAX_STEPS"] = str(iterations + WARMUP)
    watcher = RunWatcher(environment["GPUMON_RUN_ID"], connect=connect)
    watcher.start()
    code = run_child(words, environment | watcher.environment(), stdout=sys.stderr.fileno())
    return watcher.finish(code), code


def lines(report: Report, width: int) -> Iterator[str]:
    """Stage times, throughput, bottleneck, advice."""
    run = report.run
    if run is None or not run.steps:
        yield report.verdict
        return
    batch = f", batch {whole(run.batch_size)}" if run.batch_size else ""
    yield f"{run.name}: {whole(run.steps)} iterations{batch}"
    yield ""
    yield from _stages(run)
    yield ""
    yield from _throughput(run)
    yield f"bottleneck   {_bottleneck(run)}"
    yield ""
    yield from wrapped(f"verdict      {report.verdict}", width, hang=" " * 13)
    yield from criticality_lines(run, width)
    yield from findings_lines(report, width)


def _stages(run: Run) -> Iterator[str]:
    yield f"{'stage':<24}{'mean':>10}{'p50':>10}{'p95':>10}{'share':>8}"
    for phase in sorted(run.phases, key=lambda one: -one.share):
        if visible(phase.share):
            yield _stage(phase)
    mean, p50, p95 = (seconds(one) for one in (run.mean_step_seconds, run.step.p50, run.step.p95))
    yield f"{'whole step':<24}{mean:>10}{p50:>10}{p95:>10}"


def _stage(phase: Phase) -> str:
    name = phase_names.phase(phase.name)
    mean, p50, p95 = (seconds(one) for one in (phase.mean_seconds, phase.p50_seconds, phase.p95_seconds))
    return f"{name:<24}{mean:>10}{p50:>10}{p95:>10}{percent(phase.share):>8}"


def _throughput(run: Run) -> Iterator[str]:
    rates = {
        "iterations/s": run.iterations_per_second,
        "samples/s": run.samples_per_second,
        "tokens/s": run.tokens_per_second,
    }
    shown = [f"{number(rate)} {unit}" for unit, rate in rates.items() if rate]
    yield "throughput   " + (", ".join(shown) or "not known")


def _bottleneck(run: Run) -> str:
    longest = max(run.phases, key=lambda phase: phase.share, default=None)
    if longest is None:
        return "not known"
    return f"{phase_names.phase(longest.name)} ({percent(longest.share)} of the step)"
