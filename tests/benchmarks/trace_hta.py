"""The figures of Holistic Trace Analysis for one trace, as JSON; run in a process of its own.

    python -m tests.benchmarks.trace_hta FILE [--as-shipped]

As shipped, it rounds begins up and ends down to whole microseconds (a workaround for old traces that makes
every kernel shorter), and counts the profiler's `cuda_sync` events, in which a host waits, as work.
Without `--as-shipped` both are off, which its own setting and a filter allow.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from typing import Any

EXACT = "HTA_DISABLE_NS_ROUNDING"


def figures(path: str, *, as_shipped: bool) -> dict[str, Any]:
    if not as_shipped:
        os.environ[EXACT] = "1"
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]

    found = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path))
    if not as_shipped:
        _without_syncs(found.t)
    time = found.get_temporal_breakdown(visualize=False).iloc[0]
    idle = found.get_idle_time_breakdown(visualize=False)[0]
    queue = found.get_queue_length_summary()
    result = {
        "idle": time["idle_time(us)"] / time["kernel_time(us)"],
        "compute": time["compute_time(us)"] / time["kernel_time(us)"],
        "non_compute": time["non_compute_time(us)"] / time["kernel_time(us)"],
        "overlap": found.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"] / 100,
    }
    for stream, rows in idle.groupby("stream"):
        whole = rows["idle_time"].sum()
        for row in rows.itertuples():
            share = row.idle_time / whole if whole else 0.0
            result[f"stream {stream} {row.idle_category}"] = share
    for (_, stream), row in queue.iterrows():
        result[f"stream {stream} queue mean"] = row["queue_length", "mean"]
        result[f"stream {stream} queue max"] = row["queue_length", "max"]
    return {key: float(value) for key, value in result.items() if value == value}


def _without_syncs(trace: Any) -> None:
    sync = trace.symbol_table.get_sym_id_map().get("cuda_sync")
    for rank, frame in trace.traces.items():
        trace.traces[rank] = frame[frame["cat"] != sync]


if __name__ == "__main__":
    print(json.dumps(figures(sys.argv[1], as_shipped="--as-shipped" in sys.argv[2:])))
