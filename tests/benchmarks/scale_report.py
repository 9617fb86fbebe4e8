"""The scale benchmark's page: what was measured, and the arithmetic that carries it to 1,000 nodes."""

from __future__ import annotations

import math
from typing import Any

NODES = 1000
EVERY = 15
"""Seconds between two scrapes in production."""
MOST_OF_EVALUATION = 0.5
"""Of the time between two evaluations: beyond this, one slow disk or query makes rules miss their turn."""
HEAD_HOURS = 3
"""Prometheus keeps a series that ended in memory until its block is written: two hours, and up to one more."""
RUN_HOURS = 4
"""How long a run lasts in the arithmetic of churn: a choice."""


def table(result: dict[str, Any]) -> str:
    return "\n".join([*_measured(result), *_carried(result), ""])


def _measured(result: dict[str, Any]) -> list[str]:
    levels = result["levels"]
    lines = [
        "# Scale: from a few machines to a thousand",
        "",
        f"`{result['command']}` on {result['date']}, {result['machine']}.",
        "",
        f"{levels[0]['nodes']} daemons on loopback, each with {result['gpus_per_node']} simulated GPUs and a replayed run (10 steps/s "
        f"a rank), snapshots every second, scraped every {result['scrape_seconds']} s by one Prometheus that evaluates all rules and "
        "remote-writes everything to one VictoriaMetrics. All of it shares this machine, so CPU is noisy; series are exact.",
        "",
        "| ranks a node | series a node | recorded | page, gzip | scrape p50 | scrape worst | daemon CPU | daemon RSS | Prometheus CPU | all rules | VictoriaMetrics CPU |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in levels:
        lines.append(row(
            one["ranks"], f"{one['series_per_node']:,}", one["recorded_per_node"], f"{one['page_bytes_gzip'] / 1024:.1f} KiB",
            f"{one['scrape_ms']:.1f} ms", f"{one['scrape_ms_worst']:.1f} ms", f"{one['daemon_cpu_percent']:.2f} %",
            f"{one['daemon_rss_mib']:.0f} MiB", f"{one['prometheus_cpu_percent']:.1f} %", f"{one['rules_ms']:.0f} ms",
            f"{one['central_cpu_percent']:.1f} %"))  # fmt: skip
    return [*lines, "", "CPU is of one core; *recorded* are the series a node that the recording rules add; *all rules* is what evaluating them "
            "all once takes. " + _soundness(levels), ""]  # fmt: skip


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _soundness(levels: list[dict[str, Any]]) -> str:
    down = sum(one["targets_down"] for one in levels)
    lost = sum(one["samples_lost"] for one in levels)
    pairs = ", ".join(f"{one['series_central']:,} of {one['series_scraped']:,}" for one in levels)
    return (
        f"Targets that did not answer: {down}. "
        f"Samples lost on the way to the centre: {lost}. Series that arrived there: {pairs}."
    )


def _carried(result: dict[str, Any]) -> list[str]:
    lines = [
        f"## Carried to {NODES:,} nodes × {result['gpus_per_node']} GPUs",
        "",
        f"On paper, scraped and rules evaluated every {EVERY} s. With *S* series a node, recorded ones included, *B* bytes a page, *E* the time of all "
        f"rules, *P* and *V* the CPU of Prometheus and VictoriaMetrics in this test at *R* = nodes × S / {result['scrape_seconds']} samples a second:",
        "",
        f"- active series = {NODES:,} × S;  samples/s = {NODES:,} × S / {EVERY};  scrape traffic = {NODES:,} × B / {EVERY}",
        f"- rules = E × {NODES:,} / nodes of this test: they look at every series once. Prometheus evaluates a group's rules one after another, so one "
        f"evaluation must end within {EVERY} s; *in parts* says into how many the nodes have to be split so that each takes at most half of that",
        f"- churn: every run makes the series of its ranks anew. With runs of {RUN_HOURS} h, and ended series in memory for up to {HEAD_HOURS} h, memory "
        f"holds a rank's series 1 + {HEAD_HOURS} / {RUN_HOURS} times; what one more rank adds between the levels is a rank's series",
        "- CPU of Prometheus (scrape, rules, remote write) = P / R × samples/s;  of VictoriaMetrics (ingest) = V / R × samples/s",
        "- both are scaled in proportion, idle cost included: an upper bound, the closer the larger the level",
        "- memory of Prometheus = growth of its RSS between the smallest and the largest level, per series, × series in memory",
        "- disk = 1 byte a sample × samples/s × 86,400 × 30; the 1 byte is assumed, not measured: blocks of this short test hold a "
        "handful of samples each, most of them header (7 to 11 bytes a sample here)",
        "",
        f"| ranks a node | active series | with churn | samples/s | scrape traffic | Prometheus CPU | Prometheus memory | rules, every {EVERY} s | in parts | VictoriaMetrics CPU | disk, 30 days | all daemons |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_carried_row(one, result) for one in result["levels"]]
    return [*lines, "", *_reading(result)]


def _carried_row(one: dict[str, Any], result: dict[str, Any]) -> str:
    series = NODES * (one["series_per_node"] + one["recorded_per_node"])
    rate = series / EVERY
    here = series / NODES * one["nodes"] / result["scrape_seconds"]
    memory, held = memory_per_series(result), series + NODES * churned(one, result)
    return row(
        one["ranks"],
        f"{series / 1e6:.2f} M",
        f"{held / 1e6:.2f} M",
        f"{rate:,.0f}",
        f"{NODES * one['page_bytes_gzip'] / EVERY / 2**20:.1f} MiB/s",
        f"{one['prometheus_cpu_percent'] / here * rate / 100:.1f} cores",
        "—" if memory is None else f"{memory * held / 2**30:.1f} GiB",
        f"{rules_seconds(one):.1f} s",
        parts(one),
        f"{one['central_cpu_percent'] / here * rate / 100:.1f} cores",
        f"{rate * 86_400 * 30 / 2**30:,.0f} GiB",
        f"{NODES * one['daemon_cpu_percent'] / 100:.1f} cores over {NODES:,} machines",
    )


def rules_seconds(one: dict[str, Any]) -> float:
    """All rules over all nodes, once."""
    return float(one["rules_ms"]) / 1000 * NODES / float(one["nodes"])


def parts(one: dict[str, Any]) -> int:
    """Into how many the nodes must be split for their rules to end in time."""
    return max(1, math.ceil(rules_seconds(one) / (MOST_OF_EVALUATION * EVERY)))


def churned(one: dict[str, Any], result: dict[str, Any]) -> float:
    """Series a node of runs that are over and still in memory."""
    small, large = result["levels"][0], result["levels"][-1]
    more = large["ranks"] - small["ranks"]
    each = (large["series_per_node"] - small["series_per_node"]) / more if more else 0.0
    return float(one["ranks"]) * each * HEAD_HOURS / RUN_HOURS


def memory_per_series(result: dict[str, Any]) -> float | None:
    """Bytes of Prometheus for one more series, from two levels; None when they tell nothing."""
    small, large = result["levels"][0], result["levels"][-1]
    more = large["series_scraped"] - small["series_scraped"]
    grown = (large["prometheus_rss_mib"] - small["prometheus_rss_mib"]) * 2**20
    return grown / more if more > 0 and grown > 0 else None


def _reading(result: dict[str, Any]) -> list[str]:
    memory = memory_per_series(result)
    per = f"about {memory / 1024:.1f} KiB a series in this test" if memory else "not measured with one level"
    return [
        "## What follows",
        "",
        "- With one rank a GPU (8 a node) a thousand nodes are about a million series: on paper one Prometheus can hold that. For safety and "
        "for long history let agents, one a rack, remote-write into VictoriaMetrics (deploy/prometheus/). No server of our own is needed.",
        *_rules(result),
        f"- Memory of Prometheus is what ends next ({per}); agents keep only the write-ahead log.",
        "- 64 ranks a node is far more than one per GPU; there `--max-ranks` caps a node and `gpumon_metrics_left_out` counts the rest. "
        "Step-time buckets are 16 of a rank's series (a third): dropping `gpumon_rank_step_seconds_bucket` in the agent saves them.",
        "- Many short runs cost more than few long ones: a run of half an hour leaves its series in memory six times as long as it lasted.",
        "- A daemon's CPU is its own snapshots every second; a scrape every 15 s instead of every 5 s makes it less.",
    ]  # fmt: skip


def _rules(result: dict[str, Any]) -> list[str]:
    """What the rules' time means, said about each level by its figures."""
    told = ", ".join(f"{rules_seconds(one):.1f} s at {one['ranks']}" for one in result["levels"])
    late = [one for one in result["levels"] if rules_seconds(one) > EVERY]
    lines = [
        f"- **Rules.** Evaluated in one place for all nodes they would take {told} ranks a node, of {EVERY} s."
    ]
    if late:
        worst = max(map(parts, late))
        lines.append(
            f"- Where that is too long, evaluate them where the data arrives: one Prometheus (or vmalert beside the agents) for each of {worst} groups "
            "of nodes that no run crosses (partitions, clusters), and let the centre take only what they record. Rules about GPUs and nodes need one "
            "node's series; those about a run (its phases, its slowest rank) join all of its nodes. Where runs cross groups, sum by node first "
            "(`sum by (job, instance, run, phase) (…)`) and join those few series in the centre; or leave these rules out there: `gpumon show "
            "--prometheus` puts a run's nodes together when somebody asks."
        )
    return lines
