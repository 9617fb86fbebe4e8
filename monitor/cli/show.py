"""`gpumon show RUN`: everything about one run, with its findings."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from monitor.cli import catalog
from monitor.cli.table import ABSENT, ago, number, seconds, share, size, table
from monitor.runs.listing import shown
from monitor.snapshot import Finding, Rank, Run, encode
from monitor.store.history import RunRecord


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id, beginning of an id, name, or last")
    catalog.configure(parser)


def run(args: argparse.Namespace) -> int:
    record = catalog.open_catalog(args).record(args.run)
    if args.json:
        sys.stdout.write(encode(shown(record)).decode() + "\n")
    else:
        print("\n".join(render(record)))
    return 0


def render(record: RunRecord) -> Iterator[str]:
    """The run as text, most important first."""
    run = record.run
    yield f"{run.name}  {run.id}  {run.state}{_live(run)}"
    yield _facts(run)
    yield ""
    yield from _findings(record.findings)
    if run.phases:
        yield "where the time goes (a step)"
        rows = [
            (p.name, seconds(p.mean_seconds), share(p.share), seconds(p.p95_seconds))
            for p in sorted(run.phases, key=lambda phase: -phase.share)
        ]
        yield table(("phase", "mean", "share", "p95"), rows, right=(1, 2, 3))
        yield ""
    if run.stalls:
        yield "stalls"
        lines = [
            (s.kind, str(s.count), seconds(s.mean_seconds), share(s.share), number(s.every_steps))
            for s in run.stalls
        ]
        yield table(("kind", "count", "mean", "share", "every … steps"), lines, right=(1, 2, 3, 4))
        yield ""
    yield "ranks"
    yield table(RANK_HEAD, [_rank(rank) for rank in run.ranks], right=range(2, len(RANK_HEAD)))


def _live(run: Run) -> str:
    rank = run.ranks[0]
    if rank.live_seconds is None or rank.live_phase is None:
        return f" in {rank.live_phase}" if rank.live_phase and run.state == "killed" else ""
    return f" ({rank.live_phase}, {seconds(rank.live_seconds)})" if run.state == "stalled" else ""


def _facts(run: Run) -> str:
    setup = run.first_step_time - run.started if run.first_step_time is not None else None
    facts = [
        f"started {ago(time.time() - run.started)}",
        f"{run.steps} steps" + (f", {run.lost} of them not seen" if run.lost else ""),
        f"{number(run.samples_per_second)} samples/s",
        f"{number(run.iterations_per_second)} steps/s",
        f"step {seconds(run.step.p50)} (p95 {seconds(run.step.p95)})",
        f"set-up {seconds(setup)}",
    ]
    if run.batch_size is not None:
        facts.append(f"batch {run.batch_size}")
    if run.trend_ratio is not None:
        facts.append(f"now at {share(run.trend_ratio)} of its best pace")
    if run.starved_ratio is not None:
        facts.append(f"GPU starved {share(run.starved_ratio)}")
    return " · ".join(facts)


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        gain = finding.speedup
        promise = f"  ×{gain.likely:.2f} ({gain.low:.2f}–{gain.high:.2f})" if gain else ""
        yield f"{finding.severity}: {finding.title}  [{finding.id}]{promise}"
        if finding.remedy.summary:
            yield f"  → {finding.remedy.summary}"
        yield from (f"    {line}" for line in finding.remedy.change.splitlines())
        yield ""


RANK_HEAD = ("rank", "state", "pid", "device", "steps", "step p50", "p95", "samples/s", "overhead", "memory")


def _rank(rank: Rank) -> tuple[str, ...]:
    memory = rank.scalars.get("cuda.max_allocated_bytes", rank.scalars.get("proc.rss_bytes"))
    return (
        str(rank.rank),
        rank.state,
        str(rank.pid),
        rank.device or ABSENT,
        str(rank.steps),
        seconds(rank.step.p50),
        seconds(rank.step.p95),
        number(rank.samples_per_second),
        share(rank.overhead_ratio),
        size(memory),
    )
