"""The metrics contract as a page: ``python -m monitor.web.contract > docs/metrics.md``."""

from __future__ import annotations

import sys

from monitor.web.families import FAMILIES
from monitor.web.families.base import Family

INTRO = """# Metrics

Generated from the code by `python -m monitor.web.contract > docs/metrics.md`; a test fails when this page
is stale. `/metrics` answers in Prometheus text or OpenMetrics, whichever the client prefers, gzipped when
it may be, and is rendered at most once per snapshot.

- Units are base units: seconds, bytes, joules, watts, hertz, celsius, ratios 0–1. Counters end in `_total`.
- Absent is not zero: what a card, kernel or run does not tell has no series. A GPU that is lost or hung has
  `gpumon_gpu_up` 0 and no readings. Series vanish with their subject; an ended run stays five minutes.
- GPU series carry `uuid` and `gpu`; the rest is on `gpumon_gpu_info`. Runs are joined, not labelled on:
  `gpumon_gpu_utilization_ratio * on(uuid) group_left(run) gpumon_gpu_run` (one run per GPU), and
  `… * on(run) group_left(name, user, slurm_job, pod) gpumon_run_info`.
- No pid and no command line in any label. Runs, ranks, scalars and findings are capped
  (`--max-runs`, `--max-ranks`, `--max-scalars`); `gpumon_metrics_left_out` says what the caps keep out.
- In OpenMetrics the buckets of `gpumon_rank_step_seconds` carry exemplars `{run,step}`.
- Cost is the number of series. Rendering costs about a microsecond a series and happens only on a scrape.

"""


def page() -> str:
    rows = ["| family | type | unit | labels | meaning | source | series |", "|---|---|---|---|---|---|---|"]
    return INTRO + "\n".join([*rows, *map(_row, FAMILIES)]) + "\n"


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "—"
    texts = (family.kind, family.unit or "—", labels, family.help, family.source, family.cost)
    return f"| `{family.name}` | " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


if __name__ == "__main__":
    sys.stdout.write(page())
