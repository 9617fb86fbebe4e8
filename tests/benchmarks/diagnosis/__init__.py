"""Real training scripts with one cause each: is it named, and does the predicted gain come true?"""

from __future__ import annotations

import os

from tests.benchmarks.diagnosis import report
from tests.benchmarks.diagnosis.catalog import CASES, Case
from tests.benchmarks.diagnosis.gpus import gpu_results
from tests.benchmarks.diagnosis.measure import Result, faster, judge, report_of, unsteady
from tests.benchmarks.diagnosis.peer import Peer


def run_case(case: Case, peer: Peer | None) -> Result:
    """Naive, then fixed right after it, then the peer: neighbours in time see the same machine. Where
    that was unsteady both are run once more, and the faster run of each counts. The peer takes as long as
    all the rest, so it is run on the held-out scripts only, unless `GPUMON_PEER_EVERYWHERE` is set."""
    naive = report_of(case)
    fixed = None if case.healthy or not case.comparable else report_of(case, "--fixed")
    if fixed is not None and (unsteady(naive) or unsteady(fixed)):
        naive = faster(case, naive, report_of(case))
        fixed = faster(case, fixed, report_of(case, "--fixed"))
    result = judge(case, naive, fixed)
    if peer is not None and (case.held_out or os.environ.get("GPUMON_PEER_EVERYWHERE")):
        peer.look(case, result)
    return result


def show(result: Result) -> None:
    mark = "ok  " if result.top1 else "MISS"
    gain = ""
    if result.predicted and result.realised:
        gain = f"predicted ×{result.predicted['likely']:.2f}, realised ×{result.realised:.2f}"
    print(f"{mark} {result.script:<22}{(result.findings or ['nothing'])[0]:<34}{gain}", flush=True)


def main(only: tuple[str, ...] = ()) -> int:
    """All cases (or those named), the GPU-side ones with the NVML stand-in, and the page."""
    peer = Peer.find()
    results = []
    for case in CASES:
        if only and case.script not in only:
            continue
        results.append(run_case(case, peer))
        show(results[-1])
    if only:
        return 0
    summary = report.write(results)
    gpu = gpu_results()
    report.write_gpu(gpu)
    print(summary)
    missed = [name for name, found in gpu.items() if not found["named"]]
    return 1 if summary["false_alarms"] or (summary["top1"] or 0) < 0.9 or missed else 0
