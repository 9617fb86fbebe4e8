"""The metrics contract as a page: ``python -m monitor.web.contract > docs/metrics.md``."""

from __future__ import annotations

import sys

from monitor.web.families import FAMILIES
from monitor.web.families.base import Family
from monitor.web.families.dcgm import ROWS, Row
from monitor.web.peers import who_else

INTRO = """# Metrics

Generated from the code by `python -m monitor.web.contract > docs/metrics.md`; a test fails when this page
is stale. `/metrics` answers in Prometheus text or OpenMetrics, whichever the client prefers, gzipped when
it may be, and is rendered at most once per snapshot.

- "Who else has it" is about the figure, not its name; "not by default" needs a setting of that exporter.
- Units are base units: seconds, bytes, joules, watts, hertz, celsius, ratios 0–1. Counters end in `_total`.
- Absent is not zero: what a card, kernel or run does not report has no series. A GPU that is lost or hung has
  `gpumon_gpu_up` 0 and no readings. Series vanish with their subject; an ended run stays five minutes.
- GPU series carry `uuid` and `gpu`; the rest is on `gpumon_gpu_info`. Runs are joined, not labelled on:
  `gpumon_gpu_utilization_ratio * on(uuid) group_left(run) gpumon_gpu_run` (one run per GPU), and
  `… * on(run) group_left(name, user, slurm_job, pod) gpumon_run_info`.
- No command line in any label, and a pid only in `gpumon_gpu_process_*`: whose GPU it is, without the SDK. A
  GPU shows its `--max-processes` largest, the others as one sum; 0 leaves these series out.
- Runs, ranks, scalars and findings are capped (`--max-runs`, `--max-ranks`, `--max-scalars`);
  `gpumon_metrics_left_out` says what the caps keep out.
- In OpenMetrics the buckets of `gpumon_rank_step_seconds` carry exemplars `{run,step}`.
- What the page says of the daemon's own process (`process_*`, `python_gc_*`, `python_info`) comes from the
  collectors of prometheus-client, under its names. A program with a registry of its own gets the families
  below with `REGISTRY.register(monitor.web.collector.SnapshotCollector(pipeline.tick))`.
- Cost is the number of series. Rendering costs about a microsecond a series and happens on a scrape;
  whoever asked for the last page gets the next one prepared in advance.

"""


COMPAT = """## dcgm-exporter's names

`gpumon daemon --compat dcgm` serves these as well, with dcgm-exporter's labels (`gpu`, `UUID`, `pci_bus_id`,
`device`, `modelName`, `Hostname`, `DCGM_FI_DRIVER_VERSION`; `container`, `namespace`, `pod` where the kubelet
gave the GPU to one container) and in its units, so that its dashboards and alerts go on working. What a card
does not tell is absent, where dcgm-exporter may write 0. The unit of `DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` is
not documented there; here it is that of the driver's counters. MIG instances have no series of their own.

| name | type | meaning | the same as |
|---|---|---|---|"""


def page() -> str:
    columns = ("family", "type", "unit", "labels", "meaning", "source", "series", "who else has it")
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return INTRO + "\n".join([*rows, *map(_row, FAMILIES), "", COMPAT, *map(_compat_row, ROWS)]) + "\n"


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "—"
    others = ", ".join(who_else(family.name)) or "—"
    texts = (family.kind, family.unit or "—", labels, family.help, family.source, family.cost, others)
    return f"| `{family.name}` | " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _compat_row(row: Row) -> str:
    return f"| `{row.name}` | {row.kind} | {row.help} | `{row.same_as}` |"


if __name__ == "__main__":
    sys.stdout.write(page())
