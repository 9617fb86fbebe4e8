"""Scripts on the stand-in device: are idle time, cause and gain true, and healthy runs left alone?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.benchmarks.device import frozen, report, rows
from tests.benchmarks.device.case import Case
from tests.benchmarks.device.catalog import CASES
from tests.benchmarks.device.figures import figures, goals_met
from tests.benchmarks.device.judge import HEALTHY_IDLE, LEAST_GAIN, Row, judge
from tests.benchmarks.device.measure import Run, bare, watched


def run_case(case: Case) -> Row:
    """Naive, fixed and watched right after each other: neighbours in time see the same machine. A run that
    does not show what the script is made to show is made once more."""
    look = frozen.look(case)
    if case.missing:
        row = Row(case.script, case.cause, list(case.expected), case.digest(), skipped=case.missing)
        row.look, row.product = look, rows.product()
        return row
    row = _attempt(case)
    if row.disturbed and not row.error:
        row = _attempt(case)
    frozen.mark_seen(case)
    row.look, row.product, row.load = look, rows.product(), round(os.getloadavg()[0], 1)
    return row


def _attempt(case: Case) -> Row:
    naive, fixed = (None, None) if case.healthy else (bare(case), bare(case, "--fixed"))
    return judge(case, watched(case), naive, fixed)


def show(row: Row) -> None:
    if row.skipped or row.error:
        print(f"—    {row.script:<22}{row.skipped or row.error}", flush=True)
        return
    right = row.first if row.expected else not row.false_alarm
    idle = f"idle {report.percent(row.idle)}, reported {report.percent(row.reported_idle)}"
    gain = f"×{row.gain:.2f}" if row.gain else ""
    mark = "†   " if row.disturbed else ("ok  " if right else "MISS")
    print(f"{mark} {row.script:<22}{(row.findings or ['nothing'])[0]:<32}{idle:<32}{gain}", flush=True)


def collect(cases: Sequence[Case], jobs: int, measure: Callable[[Case], Row] = run_case) -> list[Row]:
    """A row for every case, those kept from a stopped run included; Ctrl-C gives what there is."""
    earlier = rows.kept()
    made = {case.script: row for case in cases if (row := rows.done_with(case, earlier))}
    missing = [case for case in cases if case.script not in made]
    try:
        for row in map(measure, missing) if jobs == 1 else ThreadPoolExecutor(jobs).map(measure, missing):
            rows.keep(row)
            made[row.script] = row
            show(row)
    except KeyboardInterrupt:
        print("stopped: the same command goes on from here", flush=True)
    return [made[case.script] for case in cases if case.script in made]


def validate(cases: Sequence[Case]) -> int:
    """Without gpumon: is every script what the catalog says?"""
    wrong = 0
    for case in cases:
        if case.missing:
            print(f"—    {case.script:<22}{case.missing}", flush=True)
            continue
        complaint = _complaint(case, bare(case), None if case.healthy else bare(case, "--fixed"))
        wrong += complaint.startswith("WRONG")
        print(f"{case.script:<22}{complaint}", flush=True)
    return 1 if wrong else 0


def _complaint(case: Case, naive: Run, fixed: Run | None) -> str:
    if naive.truth is None or (fixed is not None and fixed.truth is None):
        return f"WRONG {naive.error or (fixed and fixed.error)}"
    idle = naive.truth.idle_share
    told = f"{naive.truth.step_seconds * 1e3:.1f} ms, idle {report.percent(idle)}"
    if fixed is None or fixed.truth is None:
        return f"{'WRONG' if idle > HEALTHY_IDLE else 'right'} {told}"
    gain = naive.truth.step_seconds / fixed.truth.step_seconds * case.work
    right = gain >= LEAST_GAIN and idle >= case.least_idle
    return f"{'right' if right else 'WRONG'} {told}, gain ×{gain:.2f}"


def main(only: Sequence[str] = (), *, quick: bool = False, jobs: int = 1, note: str = "") -> int:
    """All scripts and the page; or those named, or the quick selection, without it."""
    chosen = [case for case in CASES if case.script in only] if only else list(CASES)
    if quick:
        chosen = [case for case in chosen if case.quick]
    made = collect(chosen, jobs)
    complete = len(made) == len(CASES)
    summary = report.write(made, rows.first_looks(), note) if complete else figures(made)
    if complete:
        rows.forget()
    print(summary)
    return 0 if goals_met(summary) else 1
