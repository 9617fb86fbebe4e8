"""`gpumon show RUN`: everything about one run, with its findings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from monitor.catalog.rows import shown
from monitor.cli import fleet_source, run_source, show_nodes
from monitor.language import word
from monitor.model import criticality
from monitor.model.errors import EXIT_FAILED, EXIT_OK
from monitor.model.facts import promises
from monitor.model.finding import Finding
from monitor.model.history import RunRecord
from monitor.model.phase_names import apart, moment
from monitor.model.run import Phase, Rank, Run
from monitor.model.snapshot import encode
from monitor.model.units import (
    ABSENT,
    ago,
    duration,
    number,
    percent,
    seconds,
    size,
    small_percent,
    visible,
    whole,
)
from monitor.terminal import PLAIN, Terminal, code, table, wrapped


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id, beginning of an id, name, or last")
    run_source.configure(parser)
    fleet_source.configure(parser)


def run(args: argparse.Namespace) -> int:
    """With --prometheus the answer is no when ranks of a live run are not reported."""
    record = _record(args)
    if args.json:
        sys.stdout.write(encode(shown(record)).decode() + "\n")
    else:
        print("\n".join(render(record, Terminal(sys.stdout))))
    return EXIT_FAILED if record.run.missing_ranks else EXIT_OK


def _record(args: argparse.Namespace) -> RunRecord:
    fleet_source.check_alone(args)
    if args.prometheus:
        fleet = fleet_source.opened(args)
        record = fleet.record(args.run)
        fleet_source.tell_notes(fleet)
        return record
    with run_source.open_runs(args) as source:
        return source.record(args.run)


def render(record: RunRecord, on: Terminal = PLAIN) -> Iterator[str]:
    """The run as text, most important first."""
    run = record.run
    yield f"{run.name}  {run.id}  {on.paint(word(run.state), run.state)}{word(_live(run))}"
    yield from wrapped(_facts(run), on.width, hang="")
    yield ""
    yield from _findings(record.findings, on)
    if run.nodes:
        yield from show_nodes.nodes(run, on)
    if run.phases:
        yield "where the time goes (a step)"
        rows = [_phase(one) for one in sorted(run.phases, key=lambda phase: -phase.share)]
        yield table(("phase", "mean", "share", "p95"), rows, right=(1, 2, 3), on=on)
        yield ""
    if run.stalls:
        yield word("stalls")
        yield _stalls(run, on)
        yield ""
    if run.criticality:
        yield "criticality (1: a second saved there is a second won; 0: it is hidden)"
        yield table(("where", "slope", ""), criticality.rows(run.criticality), on=on)
        yield ""
    yield word("ranks")
    if run.nodes:
        yield show_nodes.ranks(run, on)
        return
    ranks, figures = [_rank(rank) for rank in run.ranks], range(2, len(RANK_HEAD))
    yield table(RANK_HEAD, ranks, right=figures, spare=RANK_SPARE, on=on)


def _stalls(run: Run, on: Terminal) -> str:
    """Without the last column where no kind of stall is regular."""
    rows = [
        (s.kind, whole(s.count), seconds(s.mean_seconds), percent(s.share), number(s.every_steps))
        for s in run.stalls
    ]
    kept = 5 if any(s.every_steps is not None for s in run.stalls) else 4
    head = ("kind", "count", "mean", "share", "every … steps")
    return table(head[:kept], [row[:kept] for row in rows], right=range(1, kept), on=on)


def _phase(phase: Phase) -> tuple[str, ...]:
    """Without a p95 where fewer than one step in twenty has the phase: 0 beside a mean that is not."""
    late = seconds(phase.p95_seconds) if phase.p95_seconds != 0 else ""
    return phase.name, seconds(phase.mean_seconds), percent(phase.share), late


def _live(run: Run) -> str:
    """Where it hangs, or where it was when it was killed."""
    if run.state == "stalled" and run.current is not None:
        return f" (rank {run.current.rank} in {run.current.phase} for {duration(run.current.seconds)})"
    phase = run.ranks[0].live_phase if run.ranks else None
    if run.interrupted:
        return " (interrupted)"
    return f" {moment(phase)}" if phase and run.state == "killed" else ""


def _facts(run: Run) -> str:
    facts = [
        f"started {ago(run.started)}",
        f"{whole(run.steps)} steps" + (f", {whole(run.lost)} of them not seen" if run.lost else ""),
    ]
    if run.samples_per_second is not None:
        facts.append(f"{number(run.samples_per_second)} samples/s")
    if run.iterations_per_second is not None:
        facts.append(f"{number(run.iterations_per_second)} steps/s")
    if run.step.p50 is not None:
        without = apart(phase.name for phase in run.phases if visible(phase.share))
        facts.append(f"step {seconds(run.step.p50)} (p95 {seconds(run.step.p95)}){without}")
    if run.setup_seconds is not None:
        facts.append(f"set-up {seconds(run.setup_seconds)}")
    if run.micro_batches is not None:
        facts.append(f"{number(run.micro_batches_per_second)} micro-batches/s")
    if run.framework is not None:
        facts.append(f"by {run.framework}")
    if run.batch_size is not None:
        facts.append(f"batch {whole(run.batch_size)}")
    if run.trend_ratio is not None:
        facts.append(f"now at {percent(run.trend_ratio)} of its best throughput")
    if run.starved_ratio is not None:
        facts.append(f"GPU starved {percent(run.starved_ratio)}")
    return " · ".join(facts)


def _findings(findings: tuple[Finding, ...], on: Terminal) -> Iterator[str]:
    for finding in findings:
        title = wrapped(f"{finding.severity}: {finding.title}  [{finding.id}]", on.width)
        yield from (on.paint(line, finding.severity) for line in title)
        if promises(finding) and finding.speedup is not None:
            note = f", {finding.speedup.note}" if finding.speedup.note else ""
            yield from wrapped(f"{finding.promise}{note}", on.width, "  ")
        if finding.remedy.summary:
            yield from wrapped(f"→ {finding.remedy.summary}", on.width, "  ")
        yield from code(finding.remedy.change, on.width, "    ")
        yield ""


RANK_HEAD = ("rank", "state", "pid", "device", "steps", "step p50", "p95", "samples/s", "overhead", "memory")
RANK_SPARE = (2, 8, 6, 3)
"""What a narrow terminal does without: pid, overhead, p95, device."""


def _rank(rank: Rank) -> tuple[str, ...]:
    memory = rank.scalars.get("cuda.max_allocated_bytes", rank.scalars.get("proc.rss_bytes"))
    return (
        str(rank.rank),
        rank.state,
        str(rank.pid),
        rank.device or ABSENT,
        whole(rank.steps),
        seconds(rank.step.p50),
        seconds(rank.step.p95),
        number(rank.samples_per_second),
        small_percent(rank.overhead_ratio),
        size(memory),
    )
