"""Two past runs, their readings, and a prediction that came true."""

from __future__ import annotations

import msgspec

from monitor.catalog.rows import RunRow, row
from monitor.comparison.compare_runs import Comparison, compare
from monitor.model import facts
from monitor.model.finding import Finding
from monitor.model.history import HistoryPage, RunRecord, Series
from monitor.store.ledger import Entry
from monitor.tui.archive import Archive
from tests.tui import scenes

START = scenes.NOW - 3120


def record(
    name: str, shares: dict[str, float], step: float, started: float, findings: tuple[Finding, ...] = ()
) -> RunRecord:
    run = scenes.run(name, shares, step, state="ended")
    ended = msgspec.structs.replace(run, started=started, ended=started + 3000)
    return facts.complete_record(RunRecord(ended, findings, started + 3000))


SLOW = record("resnet50-naive", scenes.STARVED, 0.312, START, (scenes.NO_WORKERS,))
FAST = record("resnet50-fast", scenes.HEALTHY, 0.121, START + 60)


def tuned(made: RunRecord, workers: int, started: float) -> RunRecord:
    """The same script under one name, one run after the other, with so many loader workers."""
    loader = {**made.run.config.get("loader", {}), "num_workers": workers}
    run = msgspec.structs.replace(
        made.run,
        name="resnet50",
        command="python train.py --batch 64",
        config={**made.run.config, "loader": loader},
        started=started,
        ended=started + 3000,
    )
    return msgspec.structs.replace(made, run=run)


def page() -> HistoryPage:
    times = tuple(START + second for second in range(0, 3000, 2))
    use = tuple(0.2 if t < START + 1500 else 0.9 for t in times)
    rate = tuple(100.0 + n for n in range(len(times)))

    def series(subject: str, field: str, values: tuple[float, ...]) -> Series:
        return Series(subject, field, times, values, values, values)

    return HistoryPage(
        START,
        START + 3000,
        2.0,
        (
            series("gpu:GPU-0000", "utilization_ratio", use),
            series(f"run:{SLOW.run.id}", "samples_per_second", rate),
            series(f"run:{SLOW.run.id}", "phase_data_ratio", use),
        ),
    )


class Recorded(Archive):
    """An archive with two runs, their readings, and a realised prediction."""

    where = "from the test"

    def rows(self) -> list[RunRow]:
        return [row(FAST), row(SLOW)]

    def record(self, run: str) -> RunRecord:
        return {FAST.run.id: FAST, SLOW.run.id: SLOW}[run]

    def compare(self, a: str, b: str) -> Comparison:
        return compare(tuned(self.record(a), 0, START - 3000), tuned(self.record(b), 6, START + 60))

    def page(self, start: float, end: float, points: int) -> HistoryPage | None:
        return page()

    def ledger(self, finding: Finding) -> list[Entry]:
        return [Entry(SLOW.run.id, finding.id, "", "train.py", 1.7, 2.1, 2.4, START, FAST.run.id, 2.2)]
