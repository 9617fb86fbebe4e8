"""Real training loops with one cause each: is it named, and does the predicted gain come true?"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

from tests.benchmarks.diagnosis import changes, report, rows, steadiness
from tests.benchmarks.diagnosis.catalog import Case
from tests.benchmarks.diagnosis.corpus import CASES
from tests.benchmarks.diagnosis.gpus import gpu_results
from tests.benchmarks.diagnosis.measure import Result, run_case
from tests.benchmarks.diagnosis.peer import Peer


def measure(case: Case, peer: Peer | None) -> Result:
    """The peer takes as long as all the rest, so it is run on the held-out scripts only, unless
    `GPUMON_PEER_EVERYWHERE` is set."""
    result = run_case(case)
    if peer is not None and (case.held_out or os.environ.get("GPUMON_PEER_EVERYWHERE")):
        peer.look(case, result)
    return result


def show(result: Result) -> None:
    mark = "ok  " if result.top1 else "MISS"
    gain = ""
    if result.predicted and result.realised:
        low, likely, high = (result.predicted[key] for key in ("low", "likely", "high"))
        inside = "" if result.inside else "  OUTSIDE"
        gain = f"predicted ×{likely:.2f} ({low:.2f}–{high:.2f}), realised ×{result.realised:.2f}{inside}"
    print(f"{mark} {result.script:<26}{(result.findings or ['nothing'])[0]:<34}{gain}", flush=True)


def main(only: tuple[str, ...] = (), seconds: float = float("inf")) -> int:
    """The cases that this round lacks (or those named, again), as many as fit; after the last one the page.
    A round that is complete is begun anew."""
    chosen = [case for case in CASES if not only or case.script in only]
    if only:
        rows.forget(chosen)
    elif all(rows.kept(case) for case in chosen):
        rows.begin_anew()
    begun, peer = time.monotonic(), Peer.find()
    for case in chosen:
        if rows.kept(case) is None and time.monotonic() - begun < seconds:
            result = measure(case, peer)
            rows.keep(result)
            show(result)
    left = [case for case in CASES if rows.kept(case) is None]
    if only or left:
        print(f"{len(left)} cases of this round are not measured yet")
        return 0
    return finish()


def finish() -> int:
    """What needs no quiet machine, and the pages; 1 when a goal is missed that must hold."""
    changes.check_all()
    steadiness.measure_all()
    gpu = gpu_results()
    report.write_gpu(gpu)
    summary = publish()
    missed = [name for name, found in gpu.items() if not found["named"]]
    return 1 if summary["false_alarms"] or (summary["top1"] or 0) < 0.9 or missed else 0


def publish() -> dict[str, Any]:
    """The page from the rows there are; a case that this round lacks has the row of the page on file."""
    before = report.on_file()
    rows_of = {case: rows.kept(case) for case in CASES}
    older = sum(found is None and case.name in before for case, found in rows_of.items())
    known = {case: found or before.get(case.name) for case, found in rows_of.items()}
    results = [replace(found, fresh=case.fresh) for case, found in known.items() if found is not None]
    missing = [case.script for case, found in known.items() if found is None]
    summary = report.write(results, changes.kept(), steadiness.kept(), missing, older)
    print(summary)
    return summary
